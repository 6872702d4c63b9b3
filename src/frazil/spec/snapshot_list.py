"""The snapshots of a table, in order and by id, read lazily. Specification: "Snapshots".

Tables keep thousands of snapshots, and most operations need only one. A list holds either snapshots or
`StoredSnapshot`s: heads that read the rest on demand (`codec/snapshot_json.py` keeps the snapshot's text). Ancestry,
retention and the invariants need only heads and read no snapshot at all, and adding or removing one leaves the others
unread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, KeysView, Sequence
from typing import Any, Protocol, TypeAlias, overload

from frazil.errors import InvalidRequestError
from frazil.spec.snapshot import Snapshot, SnapshotHead


class StoredSnapshot(SnapshotHead, Protocol):
    """A snapshot that has not been read yet."""

    def read(self) -> Snapshot:
        """Return the whole snapshot."""


Cell: TypeAlias = Snapshot | StoredSnapshot


class SnapshotList(Sequence[Snapshot]):
    """Snapshots in the order of table metadata: immutable, and equal to a list of equal snapshots, read or not."""

    __slots__ = ("_cells", "_positions")

    def __init__(self, snapshots: Iterable[Cell] = ()) -> None:
        self._cells: tuple[Cell, ...] = tuple(snapshots)
        self._positions = {cell.snapshot_id: index for index, cell in enumerate(self._cells)}
        if len(self._positions) != len(self._cells):
            seen: set[int] = set()
            for cell in self._cells:
                if cell.snapshot_id in seen:
                    raise InvalidRequestError(f"Cannot list the snapshots: two have the id {cell.snapshot_id}")
                seen.add(cell.snapshot_id)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The stored snapshots, read or not."""
        return self._cells

    @property
    def heads(self) -> Sequence[SnapshotHead]:
        """The heads in order, available without reading snapshots."""
        return self._cells

    @property
    def ids(self) -> KeysView[int]:
        """The snapshot ids in order, with fast lookup."""
        return self._positions.keys()

    def find_head(self, snapshot_id: int) -> SnapshotHead | None:
        """Return the head of a snapshot by id, or None."""
        position = self._positions.get(snapshot_id)
        return None if position is None else self._cells[position]

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot by id, or None."""
        position = self._positions.get(snapshot_id)
        return None if position is None else self[position]

    def with_added(self, snapshot: Snapshot) -> SnapshotList:
        """Return the list with a snapshot appended."""
        return SnapshotList((*self._cells, snapshot))

    def without(self, snapshot_ids: Collection[int]) -> SnapshotList:
        """Return the list without the snapshots of these ids."""
        return SnapshotList(cell for cell in self._cells if cell.snapshot_id not in snapshot_ids)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...
    @overload
    def __getitem__(self, index: slice) -> SnapshotList: ...
    def __getitem__(self, index: int | slice) -> Snapshot | SnapshotList:
        if isinstance(index, slice):
            return SnapshotList(self._cells[index])
        return _read(self._cells[index])

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Snapshot]:
        return map(_read, self._cells)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SnapshotList):
            return NotImplemented
        return tuple(self.ids) == tuple(other.ids) and all(
            mine is yours or _read(mine) == _read(yours) for mine, yours in zip(self._cells, other._cells, strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple(self._positions))

    def __reduce__(self) -> tuple[Any, ...]:
        return SnapshotList, (self._cells,)

    def __repr__(self) -> str:
        return f"SnapshotList(<{len(self)} snapshots>)"


def _read(cell: Cell) -> Snapshot:
    return cell if isinstance(cell, Snapshot) else cell.read()
