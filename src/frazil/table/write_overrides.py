"""A table for one write, with overrides of its properties.

Files are written, rows found and others' changes judged by what the write says; what is committed begins with the table
as it is, so that nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.commit.action import Action
from frazil.commit.conflicts import ReadSet
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import IsolationLevel, read_property
from frazil.spec.snapshot import Snapshot
from frazil.spec.sorting import UNSORTED
from frazil.table.verbs import TableVerbs

_NOTHING: FrozenMap[str, str] = FrozenMap()
_DISTRIBUTIONS = (
    known.WRITE_DISTRIBUTION_MODE,
    known.DELETE_DISTRIBUTION_MODE,
    known.UPDATE_DISTRIBUTION_MODE,
    known.MERGE_DISTRIBUTION_MODE,
)
_ISOLATIONS = (known.DELETE_ISOLATION_LEVEL, known.UPDATE_ISOLATION_LEVEL, known.MERGE_ISOLATION_LEVEL)


@dataclass(frozen=True, slots=True)
class WriteOverrides:
    """Overrides for one write; None is the table's own setting."""

    properties: Mapping[str, str] = _NOTHING
    codec: str | None = None
    codec_level: str | None = None
    codec_strategy: str | None = None
    spec_id: int | None = None
    sort_order_id: int | None = None
    isolation: IsolationLevel | None = None
    since_snapshot_id: int | None = None
    """The snapshot after which others' changes stop an overwrite."""
    follows_table: bool = True
    """Whether rows are distributed and sorted as the table says."""

    def applied(self, loaded: LoadedTable) -> LoadedTable:
        """Return a table as the write sees it; it is never committed."""
        metadata = loaded.metadata
        properties = {**metadata.properties, **self.properties}
        if not self.follows_table:
            properties |= {distribution.name: "none" for distribution in _DISTRIBUTIONS}
        if self.isolation is not None:
            properties |= {isolation.name: self.isolation for isolation in _ISOLATIONS}
        formats = {
            "write": read_property(properties, known.DEFAULT_FILE_FORMAT),
            "write.delete": read_property(properties, known.DELETE_DEFAULT_FILE_FORMAT),
        }
        for prefix, form in formats.items():
            if self.codec is not None:
                properties[f"{prefix}.{form}.compression-codec"] = self.codec
            if self.codec_level is not None and form != "orc":
                properties[f"{prefix}.{form}.compression-level"] = self.codec_level
            if self.codec_strategy is not None and form == "orc":
                properties[f"{prefix}.orc.compression-strategy"] = self.codec_strategy
        orders = metadata.sort_orders
        order = self.sort_order_id if self.follows_table else UNSORTED.order_id
        if order == UNSORTED.order_id and UNSORTED not in orders:
            orders = (*orders, UNSORTED)
        changed = replace(
            metadata,
            properties=FrozenMap(properties),
            default_spec_id=metadata.default_spec_id if self.spec_id is None else metadata.spec(self.spec_id).spec_id,
            sort_orders=orders,
            default_sort_order_id=metadata.default_sort_order_id if order is None else order,
        )
        if order is not None:
            changed.sort_order(order)
        return replace(loaded, metadata=changed)


AS_THE_TABLE_SAYS = WriteOverrides()


class SaidTable(TableVerbs):
    """A table whose writes are told more; it commits through the table it is made of."""

    def __init__(self, table: TableVerbs, said: WriteOverrides) -> None:
        self._table = table
        self._says = said
        self._cache = table._cache
        self._state: LoadedTable | None = None

    def _begin(self) -> LoadedTable:
        self._state = self._table._begin()
        return self._says.applied(self._state)

    def _begin_again(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        now = self._table._begin_again(state, branch)
        if now is None:
            return None
        self._state = now
        return self._says.applied(now)

    def _run(self, action: Action) -> Snapshot | None:
        return self._table._run(action)

    def _commit(
        self, state: LoadedTable, action: Action, written: Sequence[str] = ()
    ) -> tuple[LoadedTable, Snapshot | None]:
        return self._table._commit(self._as_it_is(), action, written)

    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        return self._table._together(self._as_it_is(), lambda table: change(SaidTable(table, self._says)))

    def _read_set(self, state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
        read = self._table._read_set(state, branch, predicate)
        says = self._says
        if says.since_snapshot_id is not None:
            read = replace(read, snapshot_id=state.metadata.snapshot(says.since_snapshot_id).snapshot_id)
        return read if says.isolation is None else replace(read, isolation=says.isolation)

    def _as_it_is(self) -> LoadedTable:
        return self._table._begin() if self._state is None else self._state


def with_overrides(table: TableVerbs, said: WriteOverrides) -> TableVerbs:
    """Return a table whose writes go by what is said."""
    return table if said == AS_THE_TABLE_SAYS else SaidTable(table, said)
