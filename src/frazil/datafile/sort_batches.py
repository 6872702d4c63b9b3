"""Sort any number of rows in bounded memory, spilling to a temporary folder.

For rewrites of many files (`maintenance/rewrite_group.py`), between reading and writing rows.

    hold      rows are held up to `held_bytes`; if those are all, they are sorted in memory, and nothing else happens
    run       otherwise the held rows are sorted and spilled to a file with their keys, then the next rows
    merge     a batch or two of every run are in memory. Of these, all rows up to the smallest end of a run's batches
              are sorted together, since no later row can come before them. Sorting concatenated sorted runs is a merge,
              and costs little more
    merge     at most `fan_in` runs at a time: as soon as that many of one size exist, they become one

Equal rows keep their order: only neighbouring runs are merged, in the order they were created, and among equal ends
that of the first run counts. Keys are compared by the given order, so this module does not depend on types.

Spill files are unnamed if the system supports it, as Linux does: they disappear when they are closed, and when the
process is killed. A full disk is an error, and the files written so far are released.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.errors import StorageError

DEFAULT_SORT_BYTES: Final = 128 << 20
"""The default size of rows that are sorted in memory at once."""
_FAN_IN: Final = 32
_RUN_PART: Final = 4
"""The share of a run in the held bytes: sorting needs as much again, while other rows may still be held."""
_COPIES: Final = 4
"""The copies of rows during a merge: up to two batches of each run, concatenated, and sorted."""

NewFile: TypeAlias = Callable[[], IO[bytes]]


class RowOrder(Protocol):
    """An order of rows, such as `RowSorter`."""

    def keys(self, rows: pa.Table) -> pa.Table:
        """Return the columns by which rows are compared."""
        ...

    def sort(self, keys: pa.Table) -> npt.NDArray[np.int64] | None:
        """Return the stable order of rows with these keys, or None if they are sorted."""
        ...


def sort_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    choose: Callable[[bool], RowOrder],
    *,
    held_bytes: int = DEFAULT_SORT_BYTES,
    fan_in: int = _FAN_IN,
    new_file: NewFile | None = None,
) -> Generator[pa.RecordBatch]:
    """Yield the rows of batches in a stable order; close the iterator to release files early.

    `choose` returns the order once some rows are held, and is told whether they are all. Memory is about `held_bytes`
    and half as much again. `fan_in` is the number of sorted runs to merge at a time, and `new_file` opens spill files.
    """
    remaining = iter(batches)
    held, is_all = _hold(remaining, held_bytes)
    order = choose(is_all)
    batch_bytes = max(held_bytes // (_COPIES * fan_in), 1)
    if is_all:
        yield from _without_keys(_sorted_parts(held, schema, order, batch_bytes, keeps_keys=False), schema)
        return
    runs = _Runs(order, len(schema), fan_in, batch_bytes, _open_temporary if new_file is None else new_file)
    try:
        run_bytes = max(held_bytes // _RUN_PART, 1)
        remaining = itertools.chain(_drain(held), remaining)
        while some := _hold(remaining, run_bytes)[0]:
            runs.add(_sorted_parts(some, schema, order, batch_bytes))
        yield from _without_keys(runs.merge_all(), schema)
    finally:
        runs.close()


def _hold(batches: Iterator[pa.RecordBatch], max_bytes: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return batches up to a size, and whether there are no more."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
            if size >= max_bytes:
                return held, False
    return held, True


def _drain(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, releasing each."""
    held.reverse()
    while held:
        yield held.pop()


def _sorted_parts(
    held: list[pa.RecordBatch], schema: pa.Schema, order: RowOrder, part_bytes: int, *, keeps_keys: bool = True
) -> Iterator[pa.Table]:
    """Yield rows in order, a part at a time, followed by their key columns; `held` is emptied."""
    rows = _concatenate(held, schema)
    if rows.num_rows == 0:
        return
    keys = order.keys(rows)
    indexes = order.sort(keys) if rows.num_rows > 1 else None
    whole = rows.rename_columns([str(index) for index in range(rows.num_columns)])
    if keeps_keys:
        whole = pa.Table.from_arrays([*whole.columns, *keys.columns], names=[*whole.column_names, *keys.column_names])
    del rows, keys
    step = _rows_in(whole, part_bytes)
    for start in range(0, whole.num_rows, step):
        yield whole.slice(start, step) if indexes is None else whole.take(pa.array(indexes[start : start + step]))


def _concatenate(held: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches as a table of contiguous columns, since taking rows searches all chunks each time.

    This goes column by column, releasing what is copied, so that rows are not in memory twice.
    """
    columns: list[Any] = [[batch.column(index) for batch in held] for index in range(len(schema))]
    held.clear()
    for index, field in enumerate(schema):
        columns[index] = pa.chunked_array(columns[index], field.type).combine_chunks()
    return pa.Table.from_arrays(columns, schema=schema)


def _rows_in(rows: pa.Table, size: int) -> int:
    return max(1, int(rows.num_rows) * size // max(int(rows.nbytes), 1))


def _without_keys(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield parts as batches without keys."""
    for piece in parts:
        for batch in piece.select(list(range(len(schema)))).to_batches():
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class _Run:
    """Sorted rows in a file with a read position: `rows` are the next ones."""

    def __init__(self, parts: Iterable[pa.Table], batch_bytes: int, new_file: NewFile) -> None:
        self._reader: pa.RecordBatchReader | None = None
        self.rows = pa.table({})
        self.is_read = False
        self._batch_rows = 1
        with _spill_errors():
            self._file = new_file()
        try:
            self._write(parts, batch_bytes)
        except BaseException:
            self.close()
            raise

    def _write(self, parts: Iterable[pa.Table], batch_bytes: int) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in parts:
            with _spill_errors():
                if writer is None:
                    writer = pa.ipc.new_stream(self._file, batch.schema, options=options)
                writer.write_table(batch, _rows_in(batch, batch_bytes))
        with _spill_errors():
            assert writer is not None
            writer.close()
            self._file.flush()
            self._file.seek(0)

    def fill(self) -> None:
        """Ensure at least half a batch of rows, unless there are no more."""
        parts = []
        count = self.rows.num_rows
        while not self.is_read and count * 2 < self._batch_rows:
            with _spill_errors():
                if self._reader is None:
                    self._reader = pa.ipc.open_stream(self._file)
                batch = next(self._reader, None)
            if batch is None:
                self.is_read = True
                break
            parts.append(pa.Table.from_batches([batch]))
            self._batch_rows = batch.num_rows
            count += batch.num_rows
        if parts:
            self.rows = pa.concat_tables([self.rows, *parts] if self.rows.num_rows else parts)

    def close(self) -> None:
        """Release the file."""
        self.rows = pa.table({})
        # Closing may flush a buffer, which fails if writing failed; those bytes are not needed.
        try:
            self._file.close()
        except OSError:
            pass


class _Runs:
    """The runs of one sort, in the order of their rows, with the number of merges of each."""

    def __init__(self, order: RowOrder, width: int, fan_in: int, batch_bytes: int, new_file: NewFile) -> None:
        self._order = order
        self._width = width
        self._fan_in = fan_in
        self._batch_bytes = batch_bytes
        self._new_file = new_file
        self._runs: list[tuple[int, _Run]] = []

    def add(self, parts: Iterable[pa.Table]) -> None:
        """Add sorted rows after the others; they follow equal rows of those."""
        self._runs.append((0, _Run(parts, self._batch_bytes, self._new_file)))
        while len(self._runs) >= self._fan_in and self._runs[-self._fan_in][0] == self._runs[-1][0]:
            self._join(self._fan_in)

    def _join(self, count: int) -> None:
        """Merge the last few runs into one."""
        level = self._runs[-count][0] + 1
        joined = _Run(self._merge([run for _, run in self._runs[-count:]]), self._batch_bytes, self._new_file)
        self._runs[-count:] = [(level, joined)]

    def merge_all(self) -> Iterator[pa.Table]:
        """Yield all rows in order, with their keys."""
        while len(self._runs) > self._fan_in:
            # The last runs are the smallest.
            self._join(min(self._fan_in, len(self._runs) - self._fan_in + 1))
        return self._merge([run for _, run in self._runs])

    def _merge(self, runs: Sequence[_Run]) -> Iterator[pa.Table]:
        remaining = list(runs)
        while True:
            for run in remaining:
                run.fill()
            for run in remaining:
                if run.rows.num_rows == 0:
                    run.close()
            remaining = [run for run in remaining if run.rows.num_rows]
            if not remaining:
                return
            yield self._next(remaining)

    def _next(self, runs: list[_Run]) -> pa.Table:
        """Return, in order, the rows that precede all rows that are not in memory yet."""
        chosen, last = self._runs_before_end(runs)
        starts = np.cumsum([0, *(run.rows.num_rows for run in chosen)])
        rows = pa.concat_tables([run.rows for run in chosen])
        order = self._order.sort(self._keys(rows)) if len(chosen) > 1 else None
        if order is None:
            order = np.arange(rows.num_rows)
        if last is not None:
            end = starts[chosen.index(last) + 1] - 1
            order = order[: int(np.flatnonzero(order == end)[0]) + 1]
        # Take the first rows of each run, as many as precede the end.
        counts = np.bincount(np.searchsorted(starts, order, side="right") - 1, minlength=len(chosen)).tolist()
        for run, count in zip(chosen, counts, strict=True):
            run.rows = run.rows.slice(count)
        return rows.combine_chunks().take(pa.array(order))

    def _runs_before_end(self, runs: list[_Run]) -> tuple[list[_Run], _Run | None]:
        """Return the runs with rows up to the first end, and the run that ends there, or None if all are read."""
        waiting = [index for index, run in enumerate(runs) if not run.is_read]
        if not waiting:
            return runs, None
        edges = [edge for run in runs for edge in (run.rows.slice(0, 1), run.rows.slice(run.rows.num_rows - 1))]
        order = self._order.sort(self._keys(pa.concat_tables(edges)))
        ranks = np.arange(len(edges))
        if order is not None:
            ranks[order] = np.arange(len(edges))
        last = min(waiting, key=lambda index: int(ranks[2 * index + 1]))
        return [run for index, run in enumerate(runs) if ranks[2 * index] <= ranks[2 * last + 1]], runs[last]

    def _keys(self, rows: pa.Table) -> pa.Table:
        return rows.select(list(range(self._width, rows.num_columns)))

    def close(self) -> None:
        """Release all files."""
        for _, run in self._runs:
            run.close()


def _open_temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="frazil-sort-")


@contextmanager
def _spill_errors() -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"Cannot spill rows to {tempfile.gettempdir()}: {error}",
            hint="Free space there, set TMPDIR to a folder with space, or sort less at once: lower "
            "max-file-group-size-bytes.",
        ) from error
