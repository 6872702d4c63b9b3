"""Write the files of one partition, one after the other, each of about the table's target size.

This is between `write.py`, which groups rows by partition, and the formats, which write them. Files are split into row
groups here, measured, closed when they are large enough, published and described. The size of rows in a file is
estimated from earlier ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.datafile.collect_metrics import MetricsCollector
from frazil.datafile.format_writer import FormatWriter, WriteFormat
from frazil.datafile.sort_rows import RowSorter
from frazil.errors import WriteOutcomeUnknownError
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.sorting import UNSORTED_ORDER_ID
from frazil.storage.base import Storage
from frazil.storage.new_file import NewFile

_FEW_ROWS = 1 << 14
"""The rows below which measuring costs less than passing them to another thread."""
_NEARLY_FULL = 0.9
"""The share of the target size from which a file counts as full, to avoid a tiny last row group."""


class SizeGuess:
    """The ratio of bytes in a file to bytes in memory, learned from written rows and shared by threads."""

    __slots__ = ("_lock", "ratio")

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio
        self._lock = threading.Lock()

    def learn(self, memory_bytes: int, file_bytes: int) -> None:
        """Adjust the ratio by rows that were written."""
        if memory_bytes > 0 and file_bytes > 0:
            with self._lock:
                self.ratio = min(max((self.ratio + file_bytes / memory_bytes) / 2, 0.001), 4.0)


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The settings shared by all files of a write."""

    storage: Storage
    format: WriteFormat
    modes: dict[int, MetricsMode]
    target_bytes: int
    row_group_bytes: int
    min_row_group_rows: int
    spec_id: int
    guess: SizeGuess
    row_group_guess: SizeGuess
    content: FileContent = FileContent.DATA
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = UNSORTED_ORDER_ID
    sorter: RowSorter | None = None
    metrics_pool: Executor | None = None
    metrics: MetricsCollector = field(init=False)
    """An empty collector, copied for each file."""
    measured_ids: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", MetricsCollector(self.format.schema, self.modes))
        measured = frozenset(field_id for field_id, mode in self.modes.items() if mode.has_counts)
        object.__setattr__(self, "measured_ids", measured)


@dataclass(slots=True)
class Outcome:
    """The files of a write so far; `unsettled` are files that may or may not exist."""

    files: list[DataFile] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open_count: int = 0


class RollingFile:
    """Writes the rows of one partition; not thread-safe."""

    def __init__(
        self, plan: FilePlan, partition: tuple[Any, ...], next_location: Callable[[], str], outcome: Outcome
    ) -> None:
        self._plan = plan
        self._partition = partition
        self._next_location = next_location
        self._outcome = outcome
        self._file: _OpenFile | None = None
        self._last_key: pa.Table | None = None

    @property
    def is_open(self) -> bool:
        """Whether a file has been started and not closed."""
        return self._file is not None

    @property
    def open_bytes(self) -> int:
        """The size of the open file so far."""
        return 0 if self._file is None else self._file.size

    def write(self, rows: pa.Table, **details: Any) -> None:
        """Add rows, in the table's sort order as far as possible; `details` are fields of the files' descriptions."""
        if self._plan.sorter is not None:
            rows = self._sorted(rows, self._plan.sorter)
        index = 0
        while index < rows.num_rows:
            if self._file is None:
                self._file = self._open_next(details)
            count = self._next_count(rows, index)
            self._file.write(rows.slice(index, count), self._plan)
            index += count
            if self._file.estimated_bytes(self._plan.guess) >= _NEARLY_FULL * self._plan.target_bytes:
                self.close()

    def _sorted(self, rows: pa.Table, sorter: RowSorter) -> pa.Table:
        """Return rows sorted; close the open file first if they do not continue its order."""
        keys = sorter.keys(rows)
        order = sorter.sort(keys)
        if order is not None:
            taken = pa.array(order)
            rows, keys = rows.combine_chunks().take(taken), keys.take(taken)
        if self._file is not None and self._last_key is not None:
            if sorter.sort(pa.concat_tables([self._last_key, keys.slice(0, 1)])) is not None:
                self.close()
        last = keys.slice(keys.num_rows - 1, 1)
        # Copied, since a slice would keep all keys in memory.
        self._last_key = last.take(pa.array(np.zeros(1, np.int64)))
        return rows

    def _next_count(self, rows: pa.Table, index: int) -> int:
        """Return the number of rows for the next row group: as many as fit it and the file, in even parts."""
        assert self._file is not None
        plan = self._plan
        remaining: int = rows.num_rows - index
        if remaining <= plan.min_row_group_rows:
            return remaining
        row_bytes: float = max(rows.nbytes / rows.num_rows, 0.01)
        in_group = int(plan.row_group_bytes / (row_bytes * plan.row_group_guess.ratio))
        room = plan.target_bytes - self._file.estimated_bytes(plan.guess)
        in_file = int(room / (row_bytes * plan.guess.ratio))
        max_rows = max(min(in_group, in_file), plan.min_row_group_rows, 1)
        parts = -(-remaining // max_rows)
        return min(remaining, -(-remaining // parts) if in_group <= in_file else max_rows)

    def _open_next(self, details: dict[str, Any]) -> _OpenFile:
        file = self._plan.storage.open_new(self._next_location())
        try:
            writer = self._plan.format.open(file)
        except BaseException:
            file.discard()
            raise
        with self._outcome.lock:
            self._outcome.open_count += 1
        return _OpenFile(file, writer, self._plan.metrics.for_another_file(), details)

    def close(self) -> None:
        """Complete and publish the open file, if any."""
        opened, self._file = self._file, None
        if opened is None:
            return
        with self._outcome.lock:
            self._outcome.open_count -= 1
        try:
            described = opened.finish(self._plan, self._partition)
        except WriteOutcomeUnknownError:
            with self._outcome.lock:
                self._outcome.unsettled.append(opened.file.path)
            raise
        finally:
            opened.discard()
        with self._outcome.lock:
            self._outcome.files.append(described)

    def abandon(self) -> None:
        """Discard the open file, if any."""
        opened, self._file = self._file, None
        if opened is not None:
            opened.discard()


class _OpenFile:
    """A file that rows are added to."""

    __slots__ = ("_details", "_memory_bytes", "_metrics", "_writer", "file")

    def __init__(self, file: NewFile, writer: FormatWriter, metrics: MetricsCollector, details: dict[str, Any]) -> None:
        self.file = file
        self._writer = writer
        self._metrics = metrics
        self._details = details
        self._memory_bytes = 0

    def estimated_bytes(self, guess: SizeGuess) -> int:
        """Return the size of the file including rows buffered by its writer."""
        return max(self.size, int(self._memory_bytes * guess.ratio) if self.holds_rows else 0)

    @property
    def size(self) -> int:
        """The bytes produced so far."""
        return self.file.size + self._writer.buffered_bytes

    @property
    def holds_rows(self) -> bool:
        """Whether the format keeps rows in memory long after they were written to it."""
        return self._writer.holds_rows

    def write(self, rows: pa.Table, plan: FilePlan) -> None:
        # With fewer rows the size says little, since most of it is overhead of the format.
        learns = self.holds_rows or rows.num_rows >= plan.min_row_group_rows
        before = self.size if learns else 0
        pool = plan.metrics_pool if rows.num_rows >= _FEW_ROWS else None
        measured = None if pool is None else pool.submit(self._metrics.add, rows)
        try:
            self._writer.write(rows)
        finally:
            if measured is not None:
                measured.result()
        if measured is None:
            self._metrics.add(rows)
        if learns:
            size = rows.nbytes
            self._memory_bytes += size
            if not self.holds_rows:
                plan.guess.learn(size, self.size - before)

    def finish(self, plan: FilePlan, partition: tuple[Any, ...]) -> DataFile:
        layout = self._writer.close()
        if self.holds_rows:
            plan.guess.learn(self._memory_bytes, self.file.size)
        self.file.publish()
        metrics = self._metrics.metrics()
        sizes = layout.column_sizes
        measured = plan.measured_ids
        return DataFile(
            file_path=self.file.path,
            file_format=plan.format.file_format,
            record_count=self._metrics.row_count,
            file_size_in_bytes=self.file.size,
            content=plan.content,
            spec_id=plan.spec_id,
            partition=partition,
            column_sizes=None if sizes is None else {key: size for key, size in sizes.items() if key in measured},
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=layout.split_offsets,
            equality_ids=plan.equality_ids,
            sort_order_id=plan.sort_order_id,
            **self._details,
        )

    def discard(self) -> None:
        self._writer.abandon()
        self.file.discard()
