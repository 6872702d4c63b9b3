"""Overrides of a table's settings for one write.

Files are written, rows found and others' changes judged with the overrides. The commit begins with the table without
them, so none of them stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from frazil.commit.conflicts import ReadSet
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import IsolationLevel, read_property
from frazil.spec.sorting import UNSORTED
from frazil.spec.table_metadata import TableMetadata

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
        if self == AS_THE_TABLE_SAYS:
            return loaded
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

    def applied_to_reads(self, read: ReadSet, metadata: TableMetadata) -> ReadSet:
        """Return what the write reads, with its isolation and the snapshot after which others' changes stop it."""
        if self.since_snapshot_id is not None:
            read = replace(read, snapshot_id=metadata.snapshot(self.since_snapshot_id).snapshot_id)
        return read if self.isolation is None else replace(read, isolation=self.isolation)


AS_THE_TABLE_SAYS = WriteOverrides()
