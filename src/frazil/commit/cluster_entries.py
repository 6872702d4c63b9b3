"""Sort the entries of many manifests by partition, one output manifest at a time, in bounded memory.

    rank      rank every live entry by the values of its partition: only these columns are read from all manifests
              at once and sorted
    deal      read each manifest whole, once, and deal its entries to clusters: entries of neighbouring ranks, as many
              as one new manifest holds. Beyond `HELD_BYTES` they are spilled to the temporary folder
    take      yield the clusters in order

For `commit/rewrite_manifests.py`. Files that a process leaves behind when it dies do not belong to the table.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import StorageError

Ranks: TypeAlias = npt.NDArray[np.int64]

HELD_BYTES: Final = 128 << 20
"""The most bytes of entries held in memory."""
_RANK: Final = "rank of the entry"


def rank_entries(manifests: Iterable[pa.Table], first_fields: Sequence[int]) -> Ranks:
    """Return the ranks of entries by partition, some fields before the others, in the order of manifests.

    The tables hold the live entries of one manifest each, with the column `partition`. Nulls come last. Without
    partition fields, entries stay in their order.
    fields entries stay in their order.
    """
    entries = 0
    keys: list[pa.Table] = []
    for rows in manifests:
        entries += rows.num_rows
        partition = rows.column("partition").combine_chunks()
        indexes = dict.fromkeys([*first_fields, *range(partition.type.num_fields)])
        if indexes:
            keys.append(pa.table({str(index): _sortable(partition.field(index)) for index in indexes}))
    if not keys:
        return np.arange(entries, dtype=np.int64)
    all_keys = pa.concat_tables(keys)
    order = pc.sort_indices(all_keys, sort_keys=[(name, "ascending") for name in all_keys.column_names])
    numbers = np.empty(entries, np.int64)
    numbers[order.to_numpy()] = np.arange(entries, dtype=np.int64)
    return numbers


def _sortable(column: pa.Array) -> pa.Array:
    """Return a column in a type that Arrow sorts."""
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


class Clusters:
    """Entries grouped into clusters; the `with` block removes spilled entries at its end."""

    def __init__(self, ranks: Ranks, count: int, *, held_bytes: int = HELD_BYTES) -> None:
        self._ranks = ranks
        self._size = max(-(-len(ranks) // max(count, 1)), 1)
        self.count = -(-len(ranks) // self._size)
        self._position = 0
        self._held: dict[int, list[pa.Table]] = {}
        self._bytes = 0
        self._max_bytes = held_bytes
        self._exits = contextlib.ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Clusters:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def deal(self, rows: pa.Table) -> None:
        """Add the live entries of the next manifest."""
        ranks = self._ranks[self._position : self._position + rows.num_rows]
        self._position += rows.num_rows
        order = np.argsort(ranks, kind="stable")
        ranks = ranks[order]
        sorted_rows = rows.take(pa.array(order)).append_column(_RANK, pa.array(ranks))
        numbers = ranks // self._size
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(ranks)], strict=True):
            self._held.setdefault(int(numbers[start]), []).append(sorted_rows.slice(start, end - start))
        self._bytes += sorted_rows.nbytes
        if self._bytes > self._max_bytes:
            self._spill()

    def take(self) -> Iterator[pa.Table]:
        """Yield the clusters in order, each with its entries in order; each is yielded once."""
        for number in range(self.count):
            parts = [*self._fetch(number), *self._held.pop(number, [])]
            rows = pa.concat_tables(parts)
            del parts
            rows = rows.take(pc.sort_indices(rows.column(_RANK)))
            yield rows.drop_columns([_RANK])

    def _spill(self) -> None:
        with _spill_errors():
            if self._folder is None:
                self._folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory(prefix="frazil-manifests-")))
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            for number, parts in self._held.items():
                rows = pa.concat_tables(parts)
                with (
                    (self._folder / str(number)).open("ab") as file,
                    pa.ipc.new_stream(file, rows.schema, options=options) as stream,
                ):
                    stream.write_table(rows)
        self._held, self._bytes = {}, 0

    def _fetch(self, number: int) -> Iterator[pa.Table]:
        if self._folder is None or not (self._folder / str(number)).exists():
            return
        path = self._folder / str(number)
        with _spill_errors(), path.open("rb") as file:
            size = path.stat().st_size
            while file.tell() < size:
                yield pa.ipc.open_stream(file).read_all()
        path.unlink()


@contextlib.contextmanager
def _spill_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"Cannot spill entries of manifests to {tempfile.gettempdir()}: {error}",
            hint="Free space there, or set TMPDIR to a folder with space.",
        ) from error
