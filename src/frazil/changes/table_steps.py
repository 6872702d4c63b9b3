"""The effect of each update on a table's metadata, one function for each type.

A step changes the draft, or leaves it alone if the update changes nothing. Invariants of the whole result are checked
by
`changes/apply.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frazil.changes import updates as change
from frazil.changes.updates import LAST_ADDED, TableUpdate
from frazil.errors import CommitConflictError, InvalidPropertyError, InvalidRequestError, SnapshotNotFoundError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    INITIAL_SPEC_ID,
    PartitionField,
    PartitionSpec,
    check_partition_spec,
    check_writable,
)
from frazil.spec.properties import RESERVED_PROPERTIES
from frazil.spec.schema import INITIAL_SCHEMA_ID, Schema
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.spec.sorting import INITIAL_SORT_ORDER_ID, UNSORTED, UNSORTED_ORDER_ID, check_sort_order
from frazil.spec.table_metadata import TableMetadata, without_trailing_slash
from frazil.spec.upgrade import upgrade_table_metadata
from frazil.spec.versions import DEFAULT, Feature, check_feature, check_schema_allowed, check_version

_NONE_YET = -1
"""Placeholder, in a table that is being created, for IDs that its updates have not set yet."""


@dataclass(slots=True)
class Draft:
    """The metadata after the updates applied so far, and what the final checks need to know about them."""

    metadata: TableMetadata
    last_added: dict[str, int] = field(default_factory=dict)
    added_snapshot_ids: set[int] = field(default_factory=set)
    removed_snapshot_ids: set[int] = field(default_factory=set)
    removed_schema_ids: set[int] = field(default_factory=set)
    removed_key_ids: set[str] = field(default_factory=set)

    def set(self, **fields: Any) -> None:
        """Replace fields of the metadata."""
        self.metadata = replace(self.metadata, **fields)

    def id_or_last_added(self, what: str, requested_id: int) -> int:
        """Return an ID, with LAST_ADDED resolved."""
        if requested_id != LAST_ADDED:
            return requested_id
        last_id = self.last_added.get(what)
        if last_id is None:
            raise InvalidRequestError(f"Cannot use the {what} added last: this change added none")
        return last_id


def empty_metadata(updates: Sequence[TableUpdate]) -> TableMetadata:
    """Return empty metadata in the first requested format version, since versions cannot be lowered later."""
    versions = (update.format_version for update in updates if isinstance(update, change.UpgradeFormatVersion))
    return TableMetadata(
        format_version=check_version(next(versions, DEFAULT)),
        table_uuid=None,
        location="",
        last_updated_ms=0,
        last_column_id=0,
        schemas=(),
        current_schema_id=_NONE_YET,
        partition_specs=(),
        default_spec_id=_NONE_YET,
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
        default_sort_order_id=_NONE_YET,
    )


def carry_out(draft: Draft, update: TableUpdate) -> None:
    """Apply an update to the draft."""
    step = _STEPS.get(type(update))
    if step is None:
        raise InvalidRequestError(f"Cannot change a table by {type(update).__name__}: it is not an update of tables")
    step(draft, update)


# Identity, format, location, properties


def _assign_uuid(draft: Draft, update: change.AssignUuid) -> None:
    present = draft.metadata.table_uuid
    if present is None:
        draft.set(table_uuid=update.uuid)
    elif present.lower() != update.uuid.lower():
        raise InvalidRequestError(f"Cannot change the table's UUID from {present} to {update.uuid}: it never changes")


def _upgrade(draft: Draft, update: change.UpgradeFormatVersion) -> None:
    draft.metadata = upgrade_table_metadata(draft.metadata, update.format_version)


def _set_location(draft: Draft, update: change.SetLocation) -> None:
    location = without_trailing_slash(update.location)
    if location == "":
        raise InvalidRequestError("Cannot move the table: the new location is empty")
    if location != draft.metadata.location:
        draft.set(location=location)


def _set_properties(draft: Draft, update: change.SetProperties) -> None:
    for name, value in update.updates.items():
        if name in RESERVED_PROPERTIES:
            raise InvalidPropertyError(
                f"Cannot set the property {name}: it is reserved for the table's metadata",
                hint="Change the format version by an upgrade; the others follow the table's state.",
            )
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidPropertyError(f"Cannot set the property {name!r} to {value!r}: both must be text")
    merged = {**draft.metadata.properties, **update.updates}
    if merged != draft.metadata.properties:
        draft.set(properties=FrozenMap(merged))


def _remove_properties(draft: Draft, update: change.RemoveProperties) -> None:
    removed = set(update.removals)
    if removed & draft.metadata.properties.keys():
        remaining = {name: value for name, value in draft.metadata.properties.items() if name not in removed}
        draft.set(properties=FrozenMap(remaining))


# Schemas


def _add_schema(draft: Draft, update: change.AddSchema) -> None:
    metadata = draft.metadata
    check_schema_allowed(update.schema, metadata.format_version)
    if update.last_column_id is not None and update.last_column_id < metadata.last_column_id:
        raise InvalidRequestError(
            f"Cannot add a schema with last_column_id {update.last_column_id}: the table has assigned IDs up to "
            f"{metadata.last_column_id}"
        )
    last_column_id = max(metadata.last_column_id, update.schema.highest_field_id, update.last_column_id or 0)
    if last_column_id != metadata.last_column_id:
        draft.set(last_column_id=last_column_id)
    for schema in metadata.schemas:
        if schema.same_columns(update.schema):
            draft.last_added["schema"] = schema.schema_id
            return
    schema_id = max((schema.schema_id for schema in metadata.schemas), default=INITIAL_SCHEMA_ID - 1) + 1
    draft.set(schemas=(*metadata.schemas, update.schema.with_schema_id(schema_id)))
    draft.last_added["schema"] = schema_id


def _schema_at_hand(metadata: TableMetadata) -> Schema:
    """Return the current schema, or the last added one if a new table has none yet."""
    if metadata.current_schema_id == _NONE_YET and metadata.schemas:
        return metadata.schemas[-1]
    return metadata.current_schema


def _set_current_schema(draft: Draft, update: change.SetCurrentSchema) -> None:
    schema_id = draft.id_or_last_added("schema", update.schema_id)
    draft.metadata.schema(schema_id)
    if schema_id != draft.metadata.current_schema_id:
        draft.set(current_schema_id=schema_id)


def _remove_schemas(draft: Draft, update: change.RemoveSchemas) -> None:
    if draft.metadata.current_schema_id in update.schema_ids:
        raise InvalidRequestError(f"Cannot remove schema {draft.metadata.current_schema_id}: it is the current one")
    removed = draft.metadata.schemas_by_id.keys() & set(update.schema_ids)
    if removed:
        draft.removed_schema_ids |= removed
        draft.set(schemas=tuple(schema for schema in draft.metadata.schemas if schema.schema_id not in removed))


# Partition specs and sort orders


def _add_spec(draft: Draft, update: change.AddPartitionSpec) -> None:
    metadata, spec = draft.metadata, update.spec
    for partition_spec in metadata.partition_specs:
        if partition_spec.same_fields(spec):
            draft.last_added["partition spec"] = partition_spec.spec_id
            return
    check_writable(spec)
    check_partition_spec(_schema_at_hand(metadata), spec)
    if metadata.format_version == 1:
        if not spec.has_sequential_ids:
            raise InvalidRequestError(
                f"Cannot add the partition spec {spec}: in version 1, field ids go up from {FIRST_PARTITION_FIELD_ID}"
            )
    else:
        _check_field_ids(metadata, spec)
    spec_id = (
        max((partition_spec.spec_id for partition_spec in metadata.partition_specs), default=INITIAL_SPEC_ID - 1) + 1
    )
    draft.set(
        partition_specs=(*metadata.partition_specs, spec.with_spec_id(spec_id)),
        last_partition_id=max(metadata.last_partition_id, spec.last_assigned_field_id),
    )
    draft.last_added["partition spec"] = spec_id


def _check_field_ids(metadata: TableMetadata, spec: PartitionSpec) -> None:
    """Refuse a field whose ID has another meaning in an older spec, since manifests of both would be misread."""
    for partition_field in spec.fields:
        others = [
            old
            for older in metadata.partition_specs
            for old in older.fields
            if old.field_id == partition_field.field_id
        ]
        if others and not any(_means_the_same(partition_field, old) for old in others):
            raise InvalidRequestError(
                f"Cannot add the partition field [{partition_field}]: "
                f"the ID {partition_field.field_id} belongs to [{others[-1]}]",
                hint=f"New partition fields have IDs above {metadata.last_partition_id}.",
            )


def _means_the_same(partition_field: PartitionField, other: PartitionField) -> bool:
    is_void = partition_field.transform.is_void or other.transform.is_void
    return partition_field.source_ids == other.source_ids and (
        is_void or str(partition_field.transform) == str(other.transform)
    )


def _set_default_spec(draft: Draft, update: change.SetDefaultSpec) -> None:
    spec_id = draft.id_or_last_added("partition spec", update.spec_id)
    draft.metadata.spec(spec_id)
    if spec_id != draft.metadata.default_spec_id:
        draft.set(default_spec_id=spec_id)


def _remove_specs(draft: Draft, update: change.RemovePartitionSpecs) -> None:
    if draft.metadata.default_spec_id in update.spec_ids:
        raise InvalidRequestError(f"Cannot remove partition spec {draft.metadata.default_spec_id}: it is the default")
    remaining = tuple(
        partition_spec
        for partition_spec in draft.metadata.partition_specs
        if partition_spec.spec_id not in update.spec_ids
    )
    if len(remaining) < len(draft.metadata.partition_specs):
        draft.set(partition_specs=remaining)


def _add_sort_order(draft: Draft, update: change.AddSortOrder) -> None:
    metadata, order = draft.metadata, update.sort_order
    if order.is_unsorted:
        _list_unsorted(draft)
        draft.last_added["sort order"] = UNSORTED_ORDER_ID
        return
    for sort_order in metadata.sort_orders:
        if sort_order.same_order(order):
            draft.last_added["sort order"] = sort_order.order_id
            return
    check_sort_order(_schema_at_hand(metadata), order)
    order_id = max((sort_order.order_id for sort_order in metadata.sort_orders), default=INITIAL_SORT_ORDER_ID - 1) + 1
    draft.set(sort_orders=(*metadata.sort_orders, order.with_order_id(order_id)))
    draft.last_added["sort order"] = order_id


def _set_default_sort_order(draft: Draft, update: change.SetDefaultSortOrder) -> None:
    order_id = draft.id_or_last_added("sort order", update.sort_order_id)
    draft.metadata.sort_order(order_id)
    if order_id == UNSORTED_ORDER_ID:
        _list_unsorted(draft)
    if order_id != draft.metadata.default_sort_order_id:
        draft.set(default_sort_order_id=order_id)


def _list_unsorted(draft: Draft) -> None:
    """Add the unsorted order to the list: it always exists, but some readers expect it there."""
    if all(sort_order.order_id != UNSORTED_ORDER_ID for sort_order in draft.metadata.sort_orders):
        draft.set(sort_orders=(UNSORTED, *draft.metadata.sort_orders))


# Snapshots and references


def _add_snapshot(draft: Draft, update: change.AddSnapshot) -> None:
    metadata, snapshot = draft.metadata, update.snapshot
    what = f"Cannot add snapshot {snapshot.snapshot_id}"
    if _NONE_YET in (metadata.default_sort_order_id, metadata.default_spec_id):
        raise InvalidRequestError(f"{what}: the table has no schema, partition spec and sort order yet")
    if metadata.snapshots.find_head(snapshot.snapshot_id) is not None:
        raise InvalidRequestError(f"{what}: the table already has a snapshot with that ID")
    if snapshot.manifest_list is None:
        check_feature(metadata.format_version, Feature.INLINE_MANIFESTS)
    if metadata.format_version > 1 and snapshot.operation is None:
        raise InvalidRequestError(f"{what}: it has no summary with an {Summary.OPERATION}")
    if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas_by_id:
        raise CommitConflictError(
            f"{what}: its schema {snapshot.schema_id} does not exist in the table, or no longer exists"
        )
    next_row_id = _next_row_id(metadata, snapshot, what)
    _check_sequence_number(metadata, snapshot, what)
    draft.added_snapshot_ids.add(snapshot.snapshot_id)
    draft.set(
        snapshots=metadata.snapshots.with_added(snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
        next_row_id=next_row_id,
    )


def _check_sequence_number(metadata: TableMetadata, snapshot: Snapshot, what: str) -> None:
    if metadata.format_version == 1:
        if snapshot.sequence_number != 0:
            raise InvalidRequestError(
                f"{what} with sequence number {snapshot.sequence_number}: tables of version 1 have none"
            )
    elif snapshot.sequence_number <= metadata.last_sequence_number and snapshot.parent_snapshot_id is not None:
        raise CommitConflictError(
            f"{what} with sequence number {snapshot.sequence_number}: the table is at {metadata.last_sequence_number}"
        )


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot, what: str) -> int:
    """Return the table's next row ID after a snapshot has taken its share ("Snapshot Row IDs")."""
    first = snapshot.first_row_id
    if metadata.format_version < 3:
        if first is not None or snapshot.added_rows is not None:
            check_feature(metadata.format_version, Feature.ROW_LINEAGE)
        return metadata.next_row_id
    if first is None or snapshot.added_rows is None:
        raise InvalidRequestError(f"{what}: it has no first row id, and version 3 requires it")
    if snapshot.added_rows < 0:
        raise InvalidRequestError(f"{what}: it adds {snapshot.added_rows} rows")
    if first < metadata.next_row_id:
        raise CommitConflictError(f"{what} with first row id {first}: the table is at {metadata.next_row_id}")
    return first + snapshot.added_rows


def _set_ref(draft: Draft, update: change.SetSnapshotRef) -> None:
    metadata, name, ref = draft.metadata, update.ref_name, update.ref
    present = metadata.find_ref(name)
    if present == ref:
        return
    if name == "":
        raise InvalidRequestError(f"Cannot set a {ref.type}: its name is empty")
    if metadata.snapshots.find_head(ref.snapshot_id) is None:
        raise SnapshotNotFoundError(
            f"Cannot set {ref.type} {name!r} to snapshot {ref.snapshot_id}: the table has no such snapshot",
            hint="It may have expired.",
        )
    if name == MAIN_BRANCH and not ref.is_branch:
        raise InvalidRequestError(f"Cannot make {MAIN_BRANCH!r} a tag: it is always a branch")
    if present is not None and present.type != ref.type:
        raise InvalidRequestError(
            f"Cannot set {ref.type} {name!r}: a {present.type} of that name exists", hint="Drop it first."
        )
    draft.set(refs=FrozenMap({**metadata.refs, name: ref}))
    if name == MAIN_BRANCH and metadata.current_snapshot_id != ref.snapshot_id:
        draft.set(current_snapshot_id=ref.snapshot_id)


def _remove_ref(draft: Draft, update: change.RemoveSnapshotRef) -> None:
    if update.ref_name not in draft.metadata.refs:
        return
    remaining = {name: ref for name, ref in draft.metadata.refs.items() if name != update.ref_name}
    draft.set(refs=FrozenMap(remaining))
    if update.ref_name == MAIN_BRANCH:
        draft.set(current_snapshot_id=None)


def _remove_snapshots(draft: Draft, update: change.RemoveSnapshots) -> None:
    metadata = draft.metadata
    removed = metadata.snapshots.ids & set(update.snapshot_ids)
    if not removed:
        return
    draft.removed_snapshot_ids |= removed
    draft.set(
        snapshots=metadata.snapshots.without(removed),
        statistics=tuple(
            statistics_file for statistics_file in metadata.statistics if statistics_file.snapshot_id not in removed
        ),
        partition_statistics=tuple(
            statistics_file
            for statistics_file in metadata.partition_statistics
            if statistics_file.snapshot_id not in removed
        ),
    )


# Statistics and keys


def _set_statistics(draft: Draft, update: change.SetStatistics) -> None:
    new = update.statistics
    draft.metadata.snapshot(new.snapshot_id)
    if draft.metadata.find_statistics(new.snapshot_id) != new:
        others = (
            statistics_file
            for statistics_file in draft.metadata.statistics
            if statistics_file.snapshot_id != new.snapshot_id
        )
        draft.set(statistics=(*others, new))


def _remove_statistics(draft: Draft, update: change.RemoveStatistics) -> None:
    remaining = tuple(
        statistics_file
        for statistics_file in draft.metadata.statistics
        if statistics_file.snapshot_id != update.snapshot_id
    )
    if len(remaining) < len(draft.metadata.statistics):
        draft.set(statistics=remaining)


def _set_partition_statistics(draft: Draft, update: change.SetPartitionStatistics) -> None:
    new = update.partition_statistics
    draft.metadata.snapshot(new.snapshot_id)
    if draft.metadata.find_partition_statistics(new.snapshot_id) != new:
        others = (
            statistics_file
            for statistics_file in draft.metadata.partition_statistics
            if statistics_file.snapshot_id != new.snapshot_id
        )
        draft.set(partition_statistics=(*others, new))


def _remove_partition_statistics(draft: Draft, update: change.RemovePartitionStatistics) -> None:
    remaining = tuple(
        statistics_file
        for statistics_file in draft.metadata.partition_statistics
        if statistics_file.snapshot_id != update.snapshot_id
    )
    if len(remaining) < len(draft.metadata.partition_statistics):
        draft.set(partition_statistics=remaining)


def _add_key(draft: Draft, update: change.AddEncryptionKey) -> None:
    check_feature(draft.metadata.format_version, Feature.ENCRYPTION_KEYS)
    key = update.encryption_key
    for encryption_key in draft.metadata.encryption_keys:
        if encryption_key.key_id == key.key_id:
            if encryption_key != key:
                raise InvalidRequestError(f"Cannot add encryption key {key.key_id!r}: another key with that ID exists")
            return
    draft.removed_key_ids.discard(key.key_id)
    draft.set(encryption_keys=(*draft.metadata.encryption_keys, key))


def _remove_key(draft: Draft, update: change.RemoveEncryptionKey) -> None:
    remaining = tuple(
        encryption_key for encryption_key in draft.metadata.encryption_keys if encryption_key.key_id != update.key_id
    )
    if len(remaining) < len(draft.metadata.encryption_keys):
        draft.removed_key_ids.add(update.key_id)
        draft.set(encryption_keys=remaining)


_STEPS: dict[type, Callable[[Draft, Any], None]] = {
    change.AssignUuid: _assign_uuid,
    change.UpgradeFormatVersion: _upgrade,
    change.AddSchema: _add_schema,
    change.SetCurrentSchema: _set_current_schema,
    change.AddPartitionSpec: _add_spec,
    change.SetDefaultSpec: _set_default_spec,
    change.AddSortOrder: _add_sort_order,
    change.SetDefaultSortOrder: _set_default_sort_order,
    change.AddSnapshot: _add_snapshot,
    change.SetSnapshotRef: _set_ref,
    change.RemoveSnapshots: _remove_snapshots,
    change.RemoveSnapshotRef: _remove_ref,
    change.SetLocation: _set_location,
    change.SetProperties: _set_properties,
    change.RemoveProperties: _remove_properties,
    change.SetStatistics: _set_statistics,
    change.RemoveStatistics: _remove_statistics,
    change.SetPartitionStatistics: _set_partition_statistics,
    change.RemovePartitionStatistics: _remove_partition_statistics,
    change.RemovePartitionSpecs: _remove_specs,
    change.RemoveSchemas: _remove_schemas,
    change.AddEncryptionKey: _add_key,
    change.RemoveEncryptionKey: _remove_key,
}
