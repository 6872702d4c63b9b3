"""Replace a table's schema, partitioning and sort order at once; its rows are removed, its history stays.

This is `REPLACE TABLE` and `CREATE OR REPLACE TABLE` of an existing table: `main` is removed, so that the table is
empty until a snapshot follows in the same transaction. Older snapshots, branches and tags stay readable. Columns that
keep their names keep their ids. Properties are added to the existing ones.

If the new rows may have been computed from the old ones (`read`), changes of other writers to the rows or columns since
are a conflict, as for an overwrite; a compaction is not. Otherwise the last writer wins, since an empty table
contradicts nothing. Stricter than Iceberg Java, where the last writer always wins and the snapshots of the others are
lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from frazil.changes.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
)
from frazil.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from frazil.commit.action import Changes, CommitContext
from frazil.commit.conflicts import ReadSet, check_columns_unchanged, check_rows_unchanged, open_window
from frazil.commit.new_snapshot import find_parent, ref_requirement, table_requirement
from frazil.commit.update_schema import check_names_left
from frazil.errors import UnsupportedError
from frazil.loaded import LoadedTable
from frazil.spec.fresh_ids import assign_fresh_ids
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.metrics_config import check_metrics_columns
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec, build_partition_spec
from frazil.spec.properties import check_properties, without_reserved
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.statistics import NO_PROPERTIES
from frazil.spec.table_metadata import TableMetadata, without_trailing_slash
from frazil.spec.versions import check_schema_allowed, check_upgrade


@dataclass(frozen=True, slots=True)
class ReplaceTable:
    """Start a table afresh under its name and UUID."""

    schema: Schema
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: FrozenMap[str, str] = NO_PROPERTIES
    location: str | None = None
    format_version: int | None = None
    case_sensitive: bool = True
    read: ReadSet | None = None

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the new schema, partitioning and order of the table, and the removal of its main branch."""
        metadata = loaded.metadata
        self._validate(loaded, context)
        version = metadata.format_version if self.format_version is None else self.format_version
        updates: list[TableUpdate] = []
        if version != metadata.format_version:
            check_upgrade(metadata.format_version, version)
            updates.append(UpgradeFormatVersion(version))
        last_id = max(metadata.last_column_id, metadata.current_schema.highest_field_id)
        fresh = assign_fresh_ids(self.schema, count(last_id + 1).__next__, base=metadata.current_schema)
        check_schema_allowed(fresh, version)
        check_properties(self.properties)
        check_metrics_columns(fresh, self.properties)
        check_names_left(metadata, fresh)
        spec = self._spec(metadata, fresh, version)
        order = build_sort_order(fresh, self.sort_by, case_sensitive=self.case_sensitive) if self.sort_by else UNSORTED
        updates += [
            AddSchema(fresh, max(last_id, fresh.highest_field_id)),
            SetCurrentSchema(),
            AddPartitionSpec(spec),
            SetDefaultSpec(),
            AddSortOrder(order),
            SetDefaultSortOrder(),
        ]
        if metadata.find_ref(MAIN_BRANCH) is not None:
            updates.append(RemoveSnapshotRef(MAIN_BRANCH))
        if self.location is not None and without_trailing_slash(self.location) != metadata.location:
            updates.append(SetLocation(without_trailing_slash(self.location)))
        properties = without_reserved(self.properties)
        if properties:
            updates.append(SetProperties(FrozenMap(properties)))
        requirements = (
            *table_requirement(metadata),
            ref_requirement(metadata, MAIN_BRANCH),
            AssertCurrentSchemaId(metadata.current_schema_id),
            AssertLastAssignedFieldId(metadata.last_column_id),
            AssertDefaultSpecId(metadata.default_spec_id),
            AssertLastAssignedPartitionId(metadata.last_partition_id),
            AssertDefaultSortOrderId(metadata.default_sort_order_id),
        )
        return Changes(tuple(updates), requirements)

    def _validate(self, loaded: LoadedTable, context: CommitContext) -> None:
        if self.read is None:
            return
        parent = find_parent(loaded.metadata, MAIN_BRANCH)
        check_rows_unchanged(open_window(loaded, context, self.read, parent, MAIN_BRANCH))
        check_columns_unchanged(context)

    def _spec(self, metadata: TableMetadata, schema: Schema, version: int) -> PartitionSpec:
        """Return the partition spec; fields that any spec of the table has keep their ids."""
        if not self.partition_by:
            return UNPARTITIONED
        if version < 2 and any(partition_spec.is_partitioned for partition_spec in metadata.partition_specs):
            raise UnsupportedError(
                "Cannot replace a partitioned table of format version 1 by another partitioned one: the ids of its "
                "partition fields are assigned by position",
                hint="Upgrade the table to format version 2 first, or drop it and create another.",
            )
        built = build_partition_spec(schema, self.partition_by, case_sensitive=self.case_sensitive)
        if version < 2:
            return built
        ids = {
            (field.source_ids, str(field.transform), field.name): field.field_id
            for spec in metadata.partition_specs
            for field in spec.fields
        }
        next_id = count(metadata.last_partition_id + 1)
        fields = tuple(
            replace(field, field_id=ids.get((field.source_ids, str(field.transform), field.name)) or next(next_id))
            for field in built.fields
        )
        return replace(built, fields=fields)
