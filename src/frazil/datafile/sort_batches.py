"""Sort any number of rows in bounded memory: what does not fit waits on this machine's disk.

For rewrites of many files (`maintenance/rewrite_group.py`), between reading and writing rows.

    hold      rows are held up to `held_bytes`; if that is all of them, they are sorted where they are, and that is it
    run       else what is held is sorted and put into a file, with the keys it was sorted by; then the next rows
    merge     a batch or two of every run are in memory. Of what lies there, all rows up to the first end of a run's
              batches are sorted together: none that comes later can stand before them. Sorting runs that lie one behind
              the other is merging them, and costs little more
    merge     at most `fan_in` runs at a time: as soon as so many of one size are there, they become one

Equal rows stay in the order they came in: runs are merged in the order they were made, neighbours only, and an end is
that of the first run among equals. Keys are compared by the one who made them, so that all of this knows no types.

Files have no name in the temporary folder where the system can do so, as Linux can: they are gone when they are closed,
and when the process is killed. A full disk is an error, and what was written by then is let go of.
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
"""How many bytes of rows are sorted in memory at once."""
_FAN_IN: Final = 32
_RUN_PART: Final = 4
"""What a run has of the bytes that are held: sorting takes as much again, while some of the rest may still be held."""
_COPIES: Final = 4
"""Of what is merged: up to two batches of each run, put together, and in order."""

NewFile: TypeAlias = Callable[[], IO[bytes]]


class RowOrder(Protocol):
    """An order of rows, as `RowSorter` is one."""

    def keys(self, rows: pa.Table) -> pa.Table:
        """Return the columns by which rows are compared."""
        ...

    def sort(self, keys: pa.Table) -> npt.NDArray[np.int64] | None:
        """Return the order of rows with these keys, equal ones as they are, or None where they are sorted."""
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
    """Yield the rows of batches in an order, equal ones as they came; close the iterator to let go of files early.

    `choose` is asked for the order once some rows are there, and told whether they are all. Rows take about
    `held_bytes` and half as much again. `fan_in` is how many sorted runs are merged at a time, `new_file` opens files
    for what does not fit.
    """
    coming = iter(batches)
    held, is_all = _hold(coming, held_bytes)
    order = choose(is_all)
    batch_bytes = max(held_bytes // (_COPIES * fan_in), 1)
    if is_all:
        yield from _shown(_sorted_parts(held, schema, order, batch_bytes, keeps_keys=False), schema)
        return
    runs = _Runs(order, len(schema), fan_in, batch_bytes, _open_temporary if new_file is None else new_file)
    try:
        run_bytes = max(held_bytes // _RUN_PART, 1)
        coming = itertools.chain(_drained(held), coming)
        while some := _hold(coming, run_bytes)[0]:
            runs.add(_sorted_parts(some, schema, order, batch_bytes))
        yield from _shown(runs.merged(), schema)
    finally:
        runs.close()


def _hold(batches: Iterator[pa.RecordBatch], most: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return batches up to a size, and whether there are no more."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
            if size >= most:
                return held, False
    return held, True


def _drained(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches and let go of them."""
    held.reverse()
    while held:
        yield held.pop()


def _sorted_parts(
    held: list[pa.RecordBatch], schema: pa.Schema, order: RowOrder, part_bytes: int, *, keeps_keys: bool = True
) -> Iterator[pa.Table]:
    """Yield rows in order, a part at a time, with the columns of their keys behind their own; `held` is emptied."""
    rows = _in_one_piece(held, schema)
    if rows.num_rows == 0:
        return
    keys = order.keys(rows)
    places = order.sort(keys) if rows.num_rows > 1 else None
    whole = rows.rename_columns([str(index) for index in range(rows.num_columns)])
    if keeps_keys:
        whole = pa.Table.from_arrays([*whole.columns, *keys.columns], names=[*whole.column_names, *keys.column_names])
    del rows, keys
    step = _rows_in(whole, part_bytes)
    for start in range(0, whole.num_rows, step):
        yield whole.slice(start, step) if places is None else whole.take(pa.array(places[start : start + step]))


def _in_one_piece(held: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches as a table of whole columns, since taking rows looks through all chunks each time.

    Column by column, and what is copied is let go of, so that rows are not in memory twice.
    """
    columns: list[Any] = [[batch.column(index) for batch in held] for index in range(len(schema))]
    held.clear()
    for index, field in enumerate(schema):
        columns[index] = pa.chunked_array(columns[index], field.type).combine_chunks()
    return pa.Table.from_arrays(columns, schema=schema)


def _rows_in(rows: pa.Table, size: int) -> int:
    return max(1, int(rows.num_rows) * size // max(int(rows.nbytes), 1))


def _shown(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield parts as batches of rows alone."""
    for piece in parts:
        for batch in piece.select(list(range(len(schema)))).to_batches():
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class _Run:
    """Sorted rows in a file, and how far they have been read: `rows` are the next of them."""

    def __init__(self, parts: Iterable[pa.Table], batch_bytes: int, new_file: NewFile) -> None:
        self._reader: pa.RecordBatchReader | None = None
        self.rows = pa.table({})
        self.is_read = False
        self._batch_rows = 1
        with _on_disk():
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
            with _on_disk():
                if writer is None:
                    writer = pa.ipc.new_stream(self._file, batch.schema, options=options)
                writer.write_table(batch, _rows_in(batch, batch_bytes))
        with _on_disk():
            assert writer is not None
            writer.close()
            self._file.flush()
            self._file.seek(0)

    def fill(self) -> None:
        """Have at least half a batch of rows, unless there are no more."""
        parts = []
        count = self.rows.num_rows
        while not self.is_read and count * 2 < self._batch_rows:
            with _on_disk():
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
        """Let go of the file."""
        self.rows = pa.table({})
        # Closing may write what is left in a buffer, and fails where writing did; nobody wants those bytes.
        try:
            self._file.close()
        except OSError:
            pass


class _Runs:
    """The runs of one sort, in the order of their rows, with how often each has been merged."""

    def __init__(self, order: RowOrder, width: int, fan_in: int, batch_bytes: int, new_file: NewFile) -> None:
        self._order = order
        self._width = width
        self._fan_in = fan_in
        self._batch_bytes = batch_bytes
        self._new_file = new_file
        self._runs: list[tuple[int, _Run]] = []

    def add(self, parts: Iterable[pa.Table]) -> None:
        """Put sorted rows behind the others; they come after those where they are equal."""
        self._runs.append((0, _Run(parts, self._batch_bytes, self._new_file)))
        while len(self._runs) >= self._fan_in and self._runs[-self._fan_in][0] == self._runs[-1][0]:
            self._join(self._fan_in)

    def _join(self, count: int) -> None:
        """Make one run of the last few."""
        level = self._runs[-count][0] + 1
        joined = _Run(self._merge([run for _, run in self._runs[-count:]]), self._batch_bytes, self._new_file)
        self._runs[-count:] = [(level, joined)]

    def merged(self) -> Iterator[pa.Table]:
        """Yield all rows in order, with their keys."""
        while len(self._runs) > self._fan_in:
            # The last are the smallest.
            self._join(min(self._fan_in, len(self._runs) - self._fan_in + 1))
        return self._merge([run for _, run in self._runs])

    def _merge(self, runs: Sequence[_Run]) -> Iterator[pa.Table]:
        left = list(runs)
        while True:
            for run in left:
                run.fill()
            for run in left:
                if run.rows.num_rows == 0:
                    run.close()
            left = [run for run in left if run.rows.num_rows]
            if not left:
                return
            yield self._next(left)

    def _next(self, runs: list[_Run]) -> pa.Table:
        """Return, in order, rows that stand before all that are not in memory yet."""
        chosen, last = self._chosen(runs)
        starts = np.cumsum([0, *(run.rows.num_rows for run in chosen)])
        rows = pa.concat_tables([run.rows for run in chosen])
        places = self._order.sort(self._keys(rows)) if len(chosen) > 1 else None
        if places is None:
            places = np.arange(rows.num_rows)
        if last is not None:
            end = starts[chosen.index(last) + 1] - 1
            places = places[: int(np.flatnonzero(places == end)[0]) + 1]
        # Of each run the first rows are taken, as many as stand before the end.
        counts = np.bincount(np.searchsorted(starts, places, side="right") - 1, minlength=len(chosen)).tolist()
        for run, count in zip(chosen, counts, strict=True):
            run.rows = run.rows.slice(count)
        return rows.combine_chunks().take(pa.array(places))

    def _chosen(self, runs: list[_Run]) -> tuple[list[_Run], _Run | None]:
        """Return the runs with rows up to the first end, and the run that ends there; None where all ends are known."""
        waiting = [index for index, run in enumerate(runs) if not run.is_read]
        if not waiting:
            return runs, None
        edges = [edge for run in runs for edge in (run.rows.slice(0, 1), run.rows.slice(run.rows.num_rows - 1))]
        places = self._order.sort(self._keys(pa.concat_tables(edges)))
        ranks = np.arange(len(edges))
        if places is not None:
            ranks[places] = np.arange(len(edges))
        last = min(waiting, key=lambda index: int(ranks[2 * index + 1]))
        return [run for index, run in enumerate(runs) if ranks[2 * index] <= ranks[2 * last + 1]], runs[last]

    def _keys(self, rows: pa.Table) -> pa.Table:
        return rows.select(list(range(self._width, rows.num_columns)))

    def close(self) -> None:
        """Let go of all files."""
        for _, run in self._runs:
            run.close()


def _open_temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="frazil-sort-")


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"Cannot keep rows that are being sorted in the temporary folder {tempfile.gettempdir()}: {error}",
            hint="Make room there, set TMPDIR to a folder that has some, or sort less at once: lower "
            "max-file-group-size-bytes.",
        ) from error
