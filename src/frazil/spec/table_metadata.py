"""Table metadata: the complete state of a table except its data. Specification: "Table Metadata Fields".

It is read first and written last. The fields are the same in all format versions; `codec/table_metadata_json.py`
handles the differences in files. A value may violate the invariants while it is being changed:
`spec/check_table_metadata.py` checks them when a metadata file is read or written. Ancestry and time travel are in
`spec/snapshot_history.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from frazil.errors import (
    NotFoundError,
    ReferenceNotFoundError,
    SnapshotNotFoundError,
)
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps, freeze_tuples
from frazil.spec.partitioning import FIRST_PARTITION_FIELD_ID, UNPARTITIONED, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import (
    INITIAL_SEQUENCE_NUMBER,
    MAIN_BRANCH,
    NO_REFS,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.sorting import UNSORTED, SortOrder
from frazil.spec.statistics import NO_PROPERTIES, PartitionStatisticsFile, StatisticsFile

NO_SNAPSHOTS = SnapshotList()
INITIAL_ROW_ID = 0

_TUPLES = (
    "schemas",
    "partition_specs",
    "sort_orders",
    "snapshot_log",
    "metadata_log",
    "statistics",
    "partition_statistics",
    "encryption_keys",
)
_MAPS = ("properties", "refs", "extra")


@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """The metadata of a table at one time.

    `table_uuid` is text as written by the table's creator, None only in old v1 tables. `refs` contains `main`
    if there is a current snapshot. `last_sequence_number` is 0 in v1, `next_row_id` is 0 before v3.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...] = (UNPARTITIONED,)
    default_spec_id: int = UNPARTITIONED.spec_id
    last_partition_id: int = FIRST_PARTITION_FIELD_ID - 1
    sort_orders: tuple[SortOrder, ...] = (UNSORTED,)
    default_sort_order_id: int = UNSORTED.order_id
    last_sequence_number: int = INITIAL_SEQUENCE_NUMBER
    properties: FrozenMap[str, str] = NO_PROPERTIES
    current_snapshot_id: int | None = None
    snapshots: SnapshotList = NO_SNAPSHOTS
    snapshot_log: tuple[SnapshotLogEntry, ...] = field(default=(), hash=False)
    metadata_log: tuple[MetadataLogEntry, ...] = field(default=(), hash=False)
    refs: FrozenMap[str, SnapshotRef] = NO_REFS
    statistics: tuple[StatisticsFile, ...] = field(default=(), hash=False)
    partition_statistics: tuple[PartitionStatisticsFile, ...] = field(default=(), hash=False)
    next_row_id: int = INITIAL_ROW_ID
    encryption_keys: tuple[EncryptedKey, ...] = ()
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)
    oddities: tuple[str, ...] = field(default=(), hash=False, compare=False, repr=False)
    """Oddities of the file that it was read from (`spec/odd_metadata.py`); never written."""

    def __post_init__(self) -> None:
        freeze_tuples(self, *_TUPLES)
        freeze_maps(self, *_MAPS)
        if not isinstance(self.snapshots, SnapshotList):
            object.__setattr__(self, "snapshots", SnapshotList(self.snapshots))

    def __getstate__(self) -> dict[str, Any]:
        return {member.name: self.__dict__[member.name] for member in fields(self)}

    # Schemas, partition specs and sort orders

    @cached_property
    def schemas_by_id(self) -> dict[int, Schema]:
        """The schemas, by id."""
        return {schema.schema_id: schema for schema in self.schemas}

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """The partition specs, by id."""
        return {partition_spec.spec_id: partition_spec for partition_spec in self.partition_specs}

    @cached_property
    def sort_orders_by_id(self) -> dict[int, SortOrder]:
        """The sort orders, by id, always including the unsorted order."""
        return {UNSORTED.order_id: UNSORTED, **{sort_order.order_id: sort_order for sort_order in self.sort_orders}}

    def schema(self, schema_id: int) -> Schema:
        """Return a schema by id."""
        schema = self.schemas_by_id.get(schema_id)
        if schema is None:
            raise NotFoundError(
                f"Cannot find schema {schema_id}: the table has no such schema",
                hint=f"Its schemas are: {_listed(self.schemas_by_id)}.",
            )
        return schema

    @property
    def current_schema(self) -> Schema:
        """The schema for new data."""
        return self.schema(self.current_schema_id)

    def spec(self, spec_id: int) -> PartitionSpec:
        """Return a partition spec by id."""
        spec = self.specs_by_id.get(spec_id)
        if spec is None:
            raise NotFoundError(
                f"Cannot find partition spec {spec_id}: the table has no such spec",
                hint=f"Its specs are: {_listed(self.specs_by_id)}.",
            )
        return spec

    @property
    def default_spec(self) -> PartitionSpec:
        """The partition spec for new data."""
        return self.spec(self.default_spec_id)

    def sort_order(self, order_id: int) -> SortOrder:
        """Return a sort order by id."""
        order = self.sort_orders_by_id.get(order_id)
        if order is None:
            raise NotFoundError(
                f"Cannot find sort order {order_id}: the table has no such order",
                hint=f"Its orders are: {_listed(self.sort_orders_by_id)}.",
            )
        return order

    @property
    def default_sort_order(self) -> SortOrder:
        """The sort order for new data."""
        return self.sort_order(self.default_sort_order_id)

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next commit; always 0 in v1."""
        return INITIAL_SEQUENCE_NUMBER if self.format_version == 1 else self.last_sequence_number + 1

    # Snapshots and references

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot by id, or None."""
        return self.snapshots.find(snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot by id."""
        snapshot = self.snapshots.find(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFoundError(
                f"Cannot find snapshot {snapshot_id}: the table has no such snapshot",
                hint="It may have expired. The table's history lists the existing snapshots.",
            )
        return snapshot

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot of the main branch, or None if nothing has been committed."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def find_ref(self, name: str) -> SnapshotRef | None:
        """Return a branch or tag by name, or None."""
        return self.refs.get(name)

    def ref(self, name: str) -> SnapshotRef:
        """Return a branch or tag by name."""
        ref = self.refs.get(name)
        if ref is None:
            hint = f"Its branches and tags are: {_listed(self.refs)}."
            if name == MAIN_BRANCH:
                hint = "Nothing has been committed to the table yet."
            raise ReferenceNotFoundError(f"Cannot find branch or tag {name!r}: the table has none", hint=hint)
        return ref

    def ref_snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of a branch or tag."""
        return self.snapshot(self.ref(name).snapshot_id)

    def find_statistics(self, snapshot_id: int) -> StatisticsFile | None:
        """Return the last statistics file of a snapshot, or None."""
        return next(
            (
                statistics_file
                for statistics_file in reversed(self.statistics)
                if statistics_file.snapshot_id == snapshot_id
            ),
            None,
        )

    def find_partition_statistics(self, snapshot_id: int) -> PartitionStatisticsFile | None:
        """Return the last partition statistics file of a snapshot, or None."""
        return next(
            (
                statistics_file
                for statistics_file in reversed(self.partition_statistics)
                if statistics_file.snapshot_id == snapshot_id
            ),
            None,
        )

    def encryption_key(self, key_id: str) -> EncryptedKey:
        """Return an encryption key by id."""
        key = next((encryption_key for encryption_key in self.encryption_keys if encryption_key.key_id == key_id), None)
        if key is None:
            raise NotFoundError(f"Cannot find encryption key {key_id!r}: the table has no such key")
        return key


def without_trailing_slash(location: str) -> str:
    """Return a location without trailing slashes, so that paths can be joined to it."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def _listed(names: Any) -> str:
    listed = [str(name) for name in list(names)[:20]]
    return ", ".join(listed) + (", ..." if len(names) > 20 else "") if listed else "(none)"
