"""Write batches of rows to files by partition: the common part of data files and equality delete files.

`write.py` describes the whole path. Here rows are held, grouped and passed to the writers of their partitions, on other
threads if there are any. The rows of a partition are copied only when they are written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.rolling_file import FilePlan, Outcome, RollingFile
from frazil.errors import FrazilError, InvalidRequestError
from frazil.spec.data_file import DataFile
from frazil.spec.partition_key import values_key
from frazil.storage.base import Storage
from frazil.threads import default_threads

MB = 1 << 20
DEFAULT_HELD_BYTES = 256 * MB
DEFAULT_MAX_OPEN_FILES = 100
MAX_THREADS = 8
_FEW_ROWS = 1000
_MAX_RUN_ROWS = 1 << 15
_MAX_RUN_PARTS = 64
"""The overhead of a thread, and of taking rows from a large table, exceeds that of writing a small part."""
_MANY_THREADS = 16
"""Small files mostly wait for sync or upload; the disk syncs several at once."""


class RowsWriter:
    """Writes batches of rows to files; the base of `DataFileWriter` and its siblings.

    As a context manager it discards incomplete files if an error leaves the block. `locate` returns the location of a
    new file of a partition; `plan_files` returns the settings of files, given the threads that measure rows.
    """

    def __init__(
        self,
        matcher: ColumnMatcher,
        partitioner: Partitioner,
        plan_files: Callable[[Executor | None], FilePlan],
        locate: Callable[[tuple[Any, ...]], str],
        *,
        held_bytes: int = DEFAULT_HELD_BYTES,
        max_open_files: int = DEFAULT_MAX_OPEN_FILES,
        threads: int | None = None,
    ) -> None:
        if held_bytes < 1 or max_open_files < 1 or (threads is not None and threads < 1):
            raise InvalidRequestError(
                f"Cannot write files: held_bytes ({held_bytes}), max_open_files ({max_open_files}) and "
                f"threads ({threads}) must be positive"
            )
        self._matcher = matcher
        self._partitioner = partitioner
        self._locate = locate
        workers = min(default_threads(), MAX_THREADS) if threads is None else threads
        self._pool = ThreadPoolExecutor(workers, "frazil-write") if workers > 1 else None
        self._many_pool: ThreadPoolExecutor | None = None
        self._metrics_pool = ThreadPoolExecutor(workers, "frazil-measure") if workers > 1 else None
        self._plan = plan_files(self._metrics_pool)
        self._batch_bytes = held_bytes if self._pool is None else max(held_bytes // 2, 1)
        self._max_open_files = max_open_files
        self._outcome = Outcome()
        self._writers: dict[tuple[Any, ...], RollingFile] = {}
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._running: list[Future[None]] = []
        self._is_closed = False

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The complete files, in the order of the numbers in their names."""
        with self._outcome.lock:
            return tuple(sorted(self._outcome.files, key=lambda file: file.file_path.rpartition("/")[2]))

    @property
    def unsettled(self) -> tuple[str, ...]:
        """The files that may or may not exist; they must not be deleted before that is known."""
        with self._outcome.lock:
            return tuple(self._outcome.unsettled)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are written once enough are held."""
        if self._is_closed:
            raise InvalidRequestError("Cannot write rows: the writer is closed")
        if batch.num_rows == 0:
            return
        matched = self._matcher.match(batch)
        self._held.append(matched)
        self._held_bytes += matched.nbytes
        if self._held_bytes >= self._flush_bytes():
            self._write_held()

    def _flush_bytes(self) -> float:
        """Return the size at which held rows are written: that of a row group if they go to a single one."""
        if self._partitioner.is_partitioned or self._plan.sorter is not None:
            return self._batch_bytes
        return min(self._batch_bytes, self._plan.row_group_bytes / self._plan.row_group_guess.ratio)

    def _write_held(self) -> None:
        rows = pa.Table.from_batches(self._held)
        self._held, self._held_bytes = [], 0
        if self._partitioner.is_partitioned:
            # Taking rows from many chunks is slow, and it happens for each partition.
            rows = rows.combine_chunks()
        groups = self._partitioner.group(rows)
        self._wait()
        writers = [self._writer_of(values) for values in groups.partitions]
        self._make_room(writers)
        for first, after in _runs(groups.starts):
            start, end = groups.starts[first], groups.starts[after]
            bounds = [offset - start for offset in groups.starts[first : after + 1]]
            if groups.order is None:
                self._run(writers[first:after], bounds, rows.slice(start, end - start), None)
            else:
                self._run(writers[first:after], bounds, rows, groups.order[start:end])

    def _writer_of(self, values: tuple[Any, ...]) -> RollingFile:
        key = values_key(values)
        writer = self._writers.get(key)
        if writer is None:
            writer = RollingFile(self._plan, values, lambda: self._locate(values), self._outcome)
            self._writers[key] = writer
        return writer

    def _make_room(self, needed: list[RollingFile]) -> None:
        """Close open files that get no rows now, largest first, so that not too many are open."""
        needed_ids = {id(rolling_file) for rolling_file in needed}
        others = [writer for writer in self._writers.values() if writer.is_open and id(writer) not in needed_ids]
        too_many = len(others) + len(needed) - self._max_open_files
        for other in sorted(others, key=lambda rolling_file: rolling_file.open_bytes, reverse=True)[: max(too_many, 0)]:
            other.close()

    def _run(
        self, writers: list[RollingFile], bounds: list[int], rows: pa.Table, chosen: npt.NDArray[np.int64] | None
    ) -> None:
        # Writing one small file is faster than starting a thread.
        is_small = len(writers) == 1 and bounds[-1] <= _FEW_ROWS
        pool = None if is_small else self._pool_for(len(writers))
        if pool is None:
            self._write_parts(writers, bounds, rows, chosen)
        else:
            self._running.append(pool.submit(self._write_parts, writers, bounds, rows, chosen))

    def _pool_for(self, files: int) -> Executor | None:
        """Return the threads for writing a number of files, or None if there are none."""
        if self._pool is None or files == 1:
            return self._pool
        if self._many_pool is None:
            self._many_pool = ThreadPoolExecutor(_MANY_THREADS, "frazil-write-many")
        return self._many_pool

    def _write_parts(
        self, writers: list[RollingFile], bounds: list[int], rows: pa.Table, chosen: npt.NDArray[np.int64] | None
    ) -> None:
        """Write rows that are consecutive in the order of partitions, each part by its writer."""
        rows = rows if chosen is None else rows.take(pa.array(chosen))
        for writer, (start, end) in zip(writers, pairwise(bounds), strict=True):
            writer.write(rows.slice(start, end - start))
            if self._outcome.open_count > self._max_open_files:
                writer.close()

    def _wait(self) -> None:
        """Wait for the other threads; of several errors, the first is raised."""
        running, self._running = self._running, []
        failed: BaseException | None = None
        for future in running:
            if failed is not None:
                future.cancel()
            error = None if future.cancelled() else future.exception()
            failed = failed or error
        if failed is not None:
            raise failed

    def close(self) -> list[DataFile]:
        """Write the held rows, complete all files and return the descriptions of all that were written."""
        if not self._is_closed:
            if self._held:
                self._write_held()
            self._wait()
            open_writers = [writer for writer in self._writers.values() if writer.is_open]
            pool = None if len(open_writers) == 1 else self._pool_for(len(open_writers))
            for rolling_file in open_writers:
                if pool is None:
                    rolling_file.close()
                else:
                    self._running.append(pool.submit(rolling_file.close))
            self._wait()
            self._shut_down()
        return list(self.files)

    def abort(self) -> None:
        """Discard incomplete files; complete files stay, and are in `files`."""
        if self._is_closed:
            return
        self._held = []
        for future in self._running:
            future.cancel()
        for future in self._running:
            if not future.cancelled():
                future.exception()
        for writer in self._writers.values():
            writer.abandon()
        self._shut_down()

    def _shut_down(self) -> None:
        self._is_closed = True
        self._writers = {}
        for pool in (self._pool, self._many_pool, self._metrics_pool):
            if pool is not None:
                pool.shutdown()

    def __enter__(self) -> RowsWriter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()
        if error is not None:
            note_written(error, [file.file_path for file in self.files], self.unsettled)


def _runs(starts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbouring partitions to write together: many small ones, or a single large one."""
    first = 0
    for index in range(1, len(starts)):
        is_last = index == len(starts) - 1
        if is_last or starts[index + 1] - starts[first] > _MAX_RUN_ROWS or index - first >= _MAX_RUN_PARTS:
            yield first, index
            first = index


class PathList(tuple[str, ...]):
    """Paths in an error's context, shown only as a count, since there may be many."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{len(self)}, the first is {self[0]}" if self else "none"


def delete_unused(storage: Storage, paths: Sequence[str]) -> None:
    """Delete files that are not referenced, after an error; those that cannot be deleted become orphans."""
    with contextlib.suppress(FrazilError):
        storage.delete_many(paths)


def note_written(error: BaseException, written: list[str], unsettled: tuple[str, ...]) -> None:
    """Record in an error which files were written before it, for clean-up."""
    if isinstance(error, FrazilError):
        if written:
            error.context.setdefault("written_files", PathList(written))
        if unsettled:
            error.context.setdefault("unsettled_files", PathList(unsettled))
    elif written:
        error.add_note(f"Files written before this: {PathList(written)}")
