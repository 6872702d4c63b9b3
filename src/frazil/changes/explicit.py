"""Updates in a form that every catalog service understands: existing objects are referenced by ID, not added again.

Adding an existing schema, spec, order or version returns its ID, and `LAST_ADDED` then stands for that ID. In other
implementations `LAST_ADDED` stands only for new objects. New objects carry the ID that they will get: some services use
the ID of the request (Nessie), others choose the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from frazil.changes import updates as change
from frazil.changes.table_steps import Draft, carry_out
from frazil.changes.updates import LAST_ADDED, TableUpdate, ViewUpdate
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_evolution import add_view_schema, add_view_version
from frazil.spec.view_metadata import ViewMetadata

_ADDING = (change.AddSchema, change.AddPartitionSpec, change.AddSortOrder)
_SETTING = (change.SetCurrentSchema, change.SetDefaultSpec, change.SetDefaultSortOrder)


def explicit_updates(base: TableMetadata, updates: Iterable[TableUpdate]) -> tuple[TableUpdate, ...]:
    """Return equivalent updates of a table that add only new objects."""
    draft = Draft(base)
    existing_ids: dict[str, int] = {}
    explicit: list[TableUpdate] = []
    for update in updates:
        if not isinstance(update, (*_ADDING, *_SETTING, change.UpgradeFormatVersion)):
            explicit.append(update)
            continue
        before = draft.metadata
        carry_out(draft, update)
        if isinstance(update, _ADDING):
            object_type = _object_type(update)
            is_new = draft.metadata is not before
            existing_ids.pop(object_type, None)
            if not is_new:
                existing_ids[object_type] = draft.last_added[object_type]
                continue
            update = _numbered(update, draft.last_added[object_type])
        explicit.append(_named(update, existing_ids))
    return tuple(explicit)


def _object_type(update: TableUpdate) -> str:
    if isinstance(update, change.AddSchema | change.SetCurrentSchema):
        return "schema"
    return "partition spec" if isinstance(update, change.AddPartitionSpec | change.SetDefaultSpec) else "sort order"


def _numbered(update: TableUpdate, added_id: int) -> TableUpdate:
    match update:
        case change.AddSchema(schema):
            return replace(update, schema=replace(schema, schema_id=added_id))
        case change.AddPartitionSpec(spec):
            return replace(update, spec=replace(spec, spec_id=added_id))
        case change.AddSortOrder(order):
            return replace(update, sort_order=replace(order, order_id=added_id))
        case _:
            return update


def _named(update: TableUpdate, existing_ids: dict[str, int]) -> TableUpdate:
    match update:
        case change.SetCurrentSchema(new_id) if new_id == LAST_ADDED and "schema" in existing_ids:
            return change.SetCurrentSchema(existing_ids["schema"])
        case change.SetDefaultSpec(new_id) if new_id == LAST_ADDED and "partition spec" in existing_ids:
            return change.SetDefaultSpec(existing_ids["partition spec"])
        case change.SetDefaultSortOrder(new_id) if new_id == LAST_ADDED and "sort order" in existing_ids:
            return change.SetDefaultSortOrder(existing_ids["sort order"])
        case _:
            return update


def explicit_view_updates(base: ViewMetadata, updates: Iterable[ViewUpdate]) -> tuple[ViewUpdate, ...]:
    """Return equivalent updates of a view that add only new objects."""
    metadata = base
    last_schema_id = LAST_ADDED
    schema_id: int | None = None
    version_id: int | None = None
    explicit: list[ViewUpdate] = []
    for update in updates:
        if isinstance(update, change.AddSchema):
            grown, assigned_id = add_view_schema(metadata, update.schema)
            schema_id = assigned_id if grown is metadata else None
            last_schema_id = assigned_id
            if grown is not metadata:
                explicit.append(replace(update, schema=replace(update.schema, schema_id=assigned_id)))
            metadata = grown
        elif isinstance(update, change.AddViewVersion):
            version = update.view_version
            if version.schema_id == LAST_ADDED and schema_id is not None:
                version = replace(version, schema_id=schema_id)
            resolved = replace(version, schema_id=last_schema_id) if version.schema_id == LAST_ADDED else version
            grown, assigned_id = add_view_version(metadata, resolved)
            version_id = assigned_id if grown is metadata else None
            if grown is not metadata:
                explicit.append(change.AddViewVersion(version))
            metadata = grown
        elif isinstance(update, change.SetCurrentViewVersion) and update.view_version_id == LAST_ADDED:
            explicit.append(update if version_id is None else change.SetCurrentViewVersion(version_id))
        else:
            explicit.append(update)
    return tuple(explicit)
