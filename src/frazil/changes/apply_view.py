"""Applies updates to view metadata. Pure functions; the counterpart of `changes/apply.py` for views.

The rules are in `spec/view_evolution.py`: no SQL dialect is lost unless a property allows it, the version log gets one
entry however many updates there are, old versions expire. Specification: the view specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from frazil.changes import updates as change
from frazil.changes.updates import LAST_ADDED, ViewUpdate
from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import INITIAL_SCHEMA_ID, Schema
from frazil.spec.table_metadata import without_trailing_slash
from frazil.spec.view_evolution import (
    add_view_schema,
    add_view_version,
    finish_view_change,
    set_current_view_version,
    upgrade_view,
)
from frazil.spec.view_metadata import VersionLogEntry, ViewMetadata, ViewVersion


@dataclass(slots=True)
class _Draft:
    """The metadata after the updates applied so far, and what they added."""

    metadata: ViewMetadata
    last_schema_id: int | None = None
    last_version_id: int | None = None
    added_version_ids: set[int] = field(default_factory=set)


def apply_view_updates(base: ViewMetadata | None, updates: Iterable[ViewUpdate], *, now_ms: int) -> ViewMetadata:
    """Return the view metadata that results from applying updates to a base, or to a new view if the base is None.

    If nothing changes, the base itself is returned.
    """
    steps: Sequence[ViewUpdate] = tuple(updates)
    if base is None:
        draft, steps = _create(steps)
    else:
        draft = _Draft(base)
    start = draft.metadata
    for update in steps:
        _carry_out(draft, update, now_ms)
    return start if draft.metadata is start else finish_view_change(start, draft.metadata)


def _create(updates: Sequence[ViewUpdate]) -> tuple[_Draft, Sequence[ViewUpdate]]:
    """Create the view from the first added version; return it with the remaining updates."""
    view_uuid = next((update.uuid for update in updates if isinstance(update, change.AssignUuid)), None)
    location = next((update.location for update in updates if isinstance(update, change.SetLocation)), None)
    if view_uuid is None or location is None:
        raise InvalidRequestError("Cannot create the view: the change assigns no UUID or no location")
    draft: _Draft | None = None
    schemas: list[Schema] = []
    remaining: list[ViewUpdate] = []
    for update in updates:
        if draft is None and isinstance(update, change.AddSchema):
            schemas.append(update.schema)
        elif draft is None and isinstance(update, change.AddViewVersion):
            draft = _first_version(view_uuid, location, schemas, update.view_version)
        else:
            remaining.append(update)
    if draft is None:
        raise InvalidRequestError("Cannot create the view: the change adds no version")
    return draft, remaining


def _first_version(view_uuid: str, location: str, schemas: Sequence[Schema], version: ViewVersion) -> _Draft:
    distinct: list[Schema] = []
    last_id: int | None = None
    for schema in schemas:
        same = (earlier.schema_id for earlier in distinct if earlier.same_columns(schema))
        last_id = next(same, None)
        if last_id is None:
            last_id = INITIAL_SCHEMA_ID + len(distinct)
            distinct.append(schema.with_schema_id(last_id))
    schema_id = _id_or_last_added("schema", version.schema_id, last_id)
    metadata = ViewMetadata(
        view_uuid=view_uuid,
        location=without_trailing_slash(location),
        schemas=tuple(distinct),
        current_version_id=version.version_id,
        versions=(replace(version, schema_id=schema_id),),
        version_log=(VersionLogEntry(version.timestamp_ms, version.version_id),),
    )
    return _Draft(metadata, last_id, version.version_id, {version.version_id})


def _carry_out(draft: _Draft, update: ViewUpdate, now_ms: int) -> None:
    metadata = draft.metadata
    match update:
        case change.AssignUuid(uuid):
            if uuid.lower() != metadata.view_uuid.lower():
                raise InvalidRequestError(
                    f"Cannot change the view's UUID from {metadata.view_uuid} to {uuid}: it never changes"
                )
        case change.UpgradeFormatVersion(format_version):
            draft.metadata = upgrade_view(metadata, format_version)
        case change.AddSchema(schema):
            draft.metadata, draft.last_schema_id = add_view_schema(metadata, schema)
        case change.SetLocation(location):
            if without_trailing_slash(location) != metadata.location:
                draft.metadata = replace(metadata, location=without_trailing_slash(location))
        case change.SetProperties(changed):
            _set_properties(draft, {**metadata.properties, **changed})
        case change.RemoveProperties(removals):
            _set_properties(draft, {name: value for name, value in metadata.properties.items() if name not in removals})
        case change.AddViewVersion(version):
            schema_id = _id_or_last_added("schema", version.schema_id, draft.last_schema_id)
            draft.metadata, version_id = add_view_version(metadata, replace(version, schema_id=schema_id))
            draft.last_version_id = version_id
            if version_id not in metadata.versions_by_id:
                draft.added_version_ids.add(version_id)
        case change.SetCurrentViewVersion(view_version_id):
            _set_current(draft, view_version_id, now_ms)
        case _:
            raise InvalidRequestError(f"Cannot change a view by {type(update).__name__}: it is not an update of views")


def _set_properties(draft: _Draft, properties: dict[str, str]) -> None:
    if properties != draft.metadata.properties:
        draft.metadata = replace(draft.metadata, properties=FrozenMap(properties))


def _set_current(draft: _Draft, view_version_id: int, now_ms: int) -> None:
    version_id = _id_or_last_added("view version", view_version_id, draft.last_version_id)
    version = draft.metadata.version(version_id)
    # A version added by this change became current when it was made; an older one becomes current now.
    time_ms = version.timestamp_ms if version_id in draft.added_version_ids else now_ms
    earlier = [entry.timestamp_ms for entry in draft.metadata.version_log[-1:]]
    draft.metadata = set_current_view_version(draft.metadata, version_id, timestamp_ms=max([time_ms, *earlier]))


def _id_or_last_added(what: str, requested_id: int, last: int | None) -> int:
    if requested_id != LAST_ADDED:
        return requested_id
    if last is None:
        raise InvalidRequestError(f"Cannot use the {what} added last: this change added none")
    return last
