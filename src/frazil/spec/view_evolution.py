"""Changes of views: pure functions from view metadata to view metadata. Specification: "Versions", "Version log".

A change consists of steps from a base (`add_view_schema`, `add_view_version`, `set_current_view_version`,
properties, location), followed by `finish_view_change`, which enforces the rules between the base and the result: no
SQL dialect is lost, the version log gets at most one line, and old versions expire. `changes/apply_view.py` applies
the steps of updates. Nothing here reads a clock: times come from the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec import properties as known
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import read_property
from frazil.spec.schema import INITIAL_SCHEMA_ID, Schema
from frazil.spec.view_metadata import VIEW_FORMAT_VERSION, VersionLogEntry, ViewMetadata, ViewVersion

FIRST_VERSION_ID = 1
_INT_MAX = 2**31 - 1


def new_view_metadata(
    *,
    view_uuid: str,
    location: str,
    schema: Schema,
    version: ViewVersion,
    properties: Mapping[str, str] | None = None,
) -> ViewMetadata:
    """Return the metadata of a new view with one version; the schema gets the first id."""
    first_schema = schema.with_schema_id(INITIAL_SCHEMA_ID)
    first = replace(version, schema_id=INITIAL_SCHEMA_ID)
    metadata = ViewMetadata(
        view_uuid=view_uuid,
        location=location,
        schemas=(first_schema,),
        current_version_id=first.version_id,
        versions=(first,),
        version_log=(VersionLogEntry(first.timestamp_ms, first.version_id),),
        properties=FrozenMap(properties or {}),
    )
    _history_size(metadata)
    return metadata


def upgrade_view(base: ViewMetadata, format_version: int) -> ViewMetadata:
    """Return the view in a format version, refusing all but the only existing one."""
    if format_version < base.format_version:
        raise InvalidRequestError(
            f"Cannot change the view's format version from {base.format_version} to {format_version}: "
            "views are never downgraded"
        )
    if format_version > VIEW_FORMAT_VERSION:
        raise UnsupportedError(
            f"Cannot use view format version {format_version}: the newest version of this build is "
            f"{VIEW_FORMAT_VERSION}"
        )
    return base


def add_view_schema(metadata: ViewMetadata, schema: Schema) -> tuple[ViewMetadata, int]:
    """Return the view with a schema added, and the schema's id; an equal existing schema is reused."""
    for existing in metadata.schemas:
        if existing.same_columns(schema):
            return metadata, existing.schema_id
    schema_id = max(max((schema.schema_id for schema in metadata.schemas), default=-1) + 1, INITIAL_SCHEMA_ID)
    if schema_id > _INT_MAX:
        raise InvalidRequestError("Cannot add a schema to the view: its schema ids are used up")
    return replace(metadata, schemas=(*metadata.schemas, schema.with_schema_id(schema_id))), schema_id


def add_view_version(metadata: ViewMetadata, version: ViewVersion) -> tuple[ViewMetadata, int]:
    """Return the view with a version added, and the version's id; an equal definition is reused.

    The version keeps its id if that is above all others, and otherwise gets an unused one.
    """
    for view_version in metadata.versions:
        if view_version.same_definition(version):
            return metadata, view_version.version_id
    if version.schema_id not in metadata.schemas_by_id:
        raise InvalidRequestError(
            f"Cannot add a version to the view: its schema_id {version.schema_id} is not among the view's schemas"
        )
    version_id = max(version.version_id, max(version.version_id for version in metadata.versions) + 1)
    if version_id > _INT_MAX:
        raise InvalidRequestError("Cannot add a version to the view: its version ids are used up")
    added = replace(version, version_id=version_id)
    return replace(metadata, versions=(*metadata.versions, added)), version_id


def set_current_view_version(metadata: ViewMetadata, version_id: int, *, timestamp_ms: int) -> ViewMetadata:
    """Return the view with another current version and a line in the log; the same version changes nothing."""
    if version_id == metadata.current_version_id:
        return metadata
    metadata.version(version_id)
    entry = VersionLogEntry(timestamp_ms, version_id)
    return replace(metadata, current_version_id=version_id, version_log=(*metadata.version_log, entry))


def finish_view_change(base: ViewMetadata, changed: ViewMetadata) -> ViewMetadata:
    """Return a changed view, ready to be committed over its base.

    Losing an SQL dialect is refused, unless `replace.drop-dialect.allowed` is true in the result. Of the lines that
    the steps added to the version log, only the last is kept. The latest `version.history.num-entries` versions are
    kept, and always the current one and those that this change added; the log is trimmed after the last line about an
    expired version.
    """
    if changed.view_uuid.lower() != base.view_uuid.lower():
        raise InvalidRequestError(f"Cannot change the view's UUID from {base.view_uuid} to {changed.view_uuid}")
    _check_dialects(base, changed)
    log = changed.version_log
    if len(log) > len(base.version_log) + 1:
        log = (*base.version_log, log[-1])
    versions = _retained_versions(base, changed)
    if len(versions) < len(changed.versions):
        log = trimmed_version_log(log, {version.version_id for version in versions})
    return replace(changed, versions=versions, version_log=log)


def trimmed_version_log(log: Iterable[VersionLogEntry], version_ids: set[int]) -> tuple[VersionLogEntry, ...]:
    """Return the part of a version log after its last line about an expired version."""
    recent: list[VersionLogEntry] = []
    for entry in log:
        if entry.version_id in version_ids:
            recent.append(entry)
        else:
            recent.clear()
    return tuple(recent)


def _retained_versions(base: ViewMetadata, changed: ViewMetadata) -> tuple[ViewVersion, ...]:
    needed = {version_id for version_id in changed.versions_by_id if version_id not in base.versions_by_id} | {
        changed.current_version_id
    }
    limit = max(len(needed), _history_size(changed))
    if len(changed.versions) <= limit:
        return changed.versions
    # Ids increase with time, so the latest versions have the highest ids.
    others = sorted(set(changed.versions_by_id) - {changed.current_version_id}, reverse=True)
    retained_ids = {changed.current_version_id, *others[: limit - 1]}
    return tuple(version for version in changed.versions if version.version_id in retained_ids)


def _history_size(metadata: ViewMetadata) -> int:
    return read_property(metadata.properties, known.VIEW_VERSION_HISTORY_SIZE)


def _check_dialects(base: ViewMetadata, changed: ViewMetadata) -> None:
    lost = base.current_version.dialects - changed.current_version.dialects
    if lost and not read_property(changed.properties, known.VIEW_REPLACE_DROP_DIALECT_ALLOWED):
        raise InvalidRequestError(
            f"Cannot replace the view: it would lose the SQL dialects {', '.join(sorted(lost))}; it had "
            f"{', '.join(sorted(base.current_version.dialects))} and would have "
            f"{', '.join(sorted(changed.current_version.dialects)) or 'none'}",
            hint=f"Give a query for each dialect, or set {known.VIEW_REPLACE_DROP_DIALECT_ALLOWED} to true.",
        )
