"""Change the schema, and what depends on its names: the name mapping and the properties of columns.

Steps are repeated on the present schema at each attempt, and the commit requires that schema: column ids are assigned
by whichever writer commits first. A step that a concurrent change made impossible, such as adding a column under a name
that is now taken, is an error.

Specification: "Schema Evolution", "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.changes.apply import apply_updates
from frazil.changes.requirements import AssertCurrentSchemaId, AssertLastAssignedFieldId
from frazil.changes.updates import AddSchema, RemoveProperties, SetCurrentSchema, SetProperties, TableUpdate
from frazil.codec.name_mapping_json import decode_name_mapping, encode_name_mapping
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import table_requirement
from frazil.errors import SchemaChangeError
from frazil.loaded import LoadedTable
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.name_mapping import update_name_mapping
from frazil.spec.partitioning import find_taken_names
from frazil.spec.properties import COLUMN_PROPERTIES, DEFAULT_NAME_MAPPING
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class UpdateSchema:
    """Change the current schema: `change` is called with a schema update, once per attempt."""

    change: Callable[[SchemaUpdate], object]
    case_sensitive: bool = True

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the schema that the steps produce from the present one, or nothing if it is the same."""
        return self._changes(loaded.metadata)

    def applied_to(self, loaded: LoadedTable) -> LoadedTable:
        """Return a table as it will be after the change, to plan a write that is committed together with it."""
        metadata = loaded.metadata
        updates = self._changes(metadata).updates
        metadata = apply_updates(metadata, updates, now_ms=metadata.last_updated_ms)
        return LoadedTable(loaded.identifier, metadata, loaded.metadata_location, loaded.storage)

    def _changes(self, metadata: TableMetadata) -> Changes:
        before = metadata.current_schema
        update = schema_update(metadata, case_sensitive=self.case_sensitive)
        self.change(update)
        evolved = update.apply(schema_id=max(metadata.schemas_by_id) + 1)
        if evolved.schema.same_columns(before):
            return NOTHING
        check_sources_kept(metadata, evolved.schema)
        check_names_left(metadata, evolved.schema)
        return Changes(
            (
                AddSchema(evolved.schema, evolved.last_column_id),
                SetCurrentSchema(),
                *property_updates(metadata, evolved.schema),
            ),
            (
                *table_requirement(metadata),
                AssertCurrentSchemaId(metadata.current_schema_id),
                AssertLastAssignedFieldId(metadata.last_column_id),
            ),
        )


def schema_update(metadata: TableMetadata, *, case_sensitive: bool) -> SchemaUpdate:
    """Return an update of the current schema without changes."""
    return SchemaUpdate(
        metadata.current_schema,
        metadata.last_column_id,
        metadata.format_version,
        specs=metadata.partition_specs,
        case_sensitive=case_sensitive,
    )


def check_sources_kept(metadata: TableMetadata, after: Schema) -> None:
    """Refuse to drop a column that new data is partitioned or sorted by."""
    before = metadata.current_schema
    parts = [field for field in metadata.default_spec.fields if not field.transform.is_void]
    uses = [("partitioned", field_id) for field in parts for field_id in field.source_ids]
    uses += [("sorted", field_id) for field in metadata.default_sort_order.fields for field_id in field.source_ids]
    for verb, field_id in uses:
        if before.find_field(field_id) is not None and after.find_field(field_id) is None:
            raise SchemaChangeError(
                f"Cannot drop column {before.name_of(field_id)!r}: the table is {verb} by it",
                hint="Change the partition spec or the sort order first.",
            )


def check_names_left(metadata: TableMetadata, after: Schema) -> None:
    """Refuse a column with the name of a present or former partition field that has another source."""
    specs = metadata.partition_specs
    taken = {field.name for field, _ in find_taken_names(metadata.current_schema, specs)}
    for field, source in find_taken_names(after, specs):
        if field.name not in taken:
            raise SchemaChangeError(
                f"Cannot name a column {field.name!r}: a partition field of column {source!r} has that name",
                hint="Choose another name. Fields that were removed from the spec keep their names, for older files.",
            )


def property_updates(metadata: TableMetadata, after: Schema) -> tuple[TableUpdate, ...]:
    """Return the updates that a schema change makes to properties keyed by column names."""
    before, stored = metadata.current_schema, metadata.properties
    gone: list[str] = []
    new: dict[str, str] = {}
    for key, value in stored.items():
        prefix = next(
            (column_property for column_property in COLUMN_PROPERTIES if key.startswith(column_property)), None
        )
        field = None if prefix is None else before.find_field(key[len(prefix) :])
        if prefix is None or field is None:
            continue
        name = None if after.find_field(field.field_id) is None else after.name_of(field.field_id)
        if name != key[len(prefix) :]:
            gone.append(key)
            if name is not None:
                new[f"{prefix}{name}"] = value
    text = stored.get(DEFAULT_NAME_MAPPING.name)
    if text is not None:
        changed = encode_name_mapping(update_name_mapping(decode_name_mapping(text), before, after))
        if changed != text:
            new[DEFAULT_NAME_MAPPING.name] = changed
    gone = [key for key in gone if key not in new]
    updates: list[TableUpdate] = []
    if gone:
        updates.append(RemoveProperties(tuple(gone)))
    if new:
        updates.append(SetProperties(FrozenMap(new)))
    return tuple(updates)
