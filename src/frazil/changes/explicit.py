"""Updates as every catalog service understands them: what a table or view has is not added, but named by its id.

Adding a schema, spec, order or version that is there keeps its id, and `LAST_ADDED` stands for that id here. Other
implementations let `LAST_ADDED` stand for what is new only, and refuse it else. What is new has the id that it gets:
some services take the id that they are told (Nessie), others choose the same.
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
    """Return updates of a table that mean the same and add only what is new."""
    draft = Draft(base)
    known: dict[str, int] = {}
    made: list[TableUpdate] = []
    for update in updates:
        if not isinstance(update, (*_ADDING, *_SETTING, change.UpgradeFormatVersion)):
            made.append(update)
            continue
        before = draft.metadata
        carry_out(draft, update)
        if isinstance(update, _ADDING):
            what = _what(update)
            is_new = draft.metadata is not before
            known.pop(what, None)
            if not is_new:
                known[what] = draft.last_added[what]
                continue
            update = _numbered(update, draft.last_added[what])
        made.append(_named(update, known))
    return tuple(made)


def _what(update: TableUpdate) -> str:
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


def _named(update: TableUpdate, known: dict[str, int]) -> TableUpdate:
    match update:
        case change.SetCurrentSchema(one) if one == LAST_ADDED and "schema" in known:
            return change.SetCurrentSchema(known["schema"])
        case change.SetDefaultSpec(one) if one == LAST_ADDED and "partition spec" in known:
            return change.SetDefaultSpec(known["partition spec"])
        case change.SetDefaultSortOrder(one) if one == LAST_ADDED and "sort order" in known:
            return change.SetDefaultSortOrder(known["sort order"])
        case _:
            return update


def explicit_view_updates(base: ViewMetadata, updates: Iterable[ViewUpdate]) -> tuple[ViewUpdate, ...]:
    """Return updates of a view that mean the same and add only what is new."""
    metadata = base
    last_schema_id = LAST_ADDED
    schema_id: int | None = None
    version_id: int | None = None
    made: list[ViewUpdate] = []
    for update in updates:
        if isinstance(update, change.AddSchema):
            grown, found = add_view_schema(metadata, update.schema)
            schema_id = found if grown is metadata else None
            last_schema_id = found
            if grown is not metadata:
                made.append(replace(update, schema=replace(update.schema, schema_id=found)))
            metadata = grown
        elif isinstance(update, change.AddViewVersion):
            version = update.view_version
            if version.schema_id == LAST_ADDED and schema_id is not None:
                version = replace(version, schema_id=schema_id)
            whole = replace(version, schema_id=last_schema_id) if version.schema_id == LAST_ADDED else version
            grown, found = add_view_version(metadata, whole)
            version_id = found if grown is metadata else None
            if grown is not metadata:
                made.append(change.AddViewVersion(version))
            metadata = grown
        elif isinstance(update, change.SetCurrentViewVersion) and update.view_version_id == LAST_ADDED:
            made.append(update if version_id is None else change.SetCurrentViewVersion(version_id))
        else:
            made.append(update)
    return tuple(made)
