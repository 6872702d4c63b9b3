"""The usual changes of a view, from metadata to metadata, by the updates that ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from frazil.changes.apply_view import apply_view_updates
from frazil.changes.updates import (
    LAST_ADDED,
    AddSchema,
    AddViewVersion,
    RemoveProperties,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    ViewUpdate,
)
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.view_metadata import ViewMetadata, ViewVersion


def replace_view(base: ViewMetadata, version: ViewVersion, schema: Schema) -> ViewMetadata:
    """Return the view with a new current version."""
    added = AddViewVersion(replace(version, schema_id=LAST_ADDED))
    return apply_view_updates(base, [AddSchema(schema), added, SetCurrentViewVersion()], now_ms=version.timestamp_ms)


def roll_back_view(base: ViewMetadata, version_id: int, *, timestamp_ms: int) -> ViewMetadata:
    """Return the view with another of its versions as the current one."""
    return apply_view_updates(base, [SetCurrentViewVersion(version_id)], now_ms=timestamp_ms)


def change_view_properties(
    base: ViewMetadata, updates: Mapping[str, str], removals: Iterable[str] = ()
) -> ViewMetadata:
    """Return the view with properties set and removed."""
    steps: list[ViewUpdate] = [SetProperties(FrozenMap(updates)), RemoveProperties(tuple(removals))]
    return apply_view_updates(base, steps, now_ms=0)


def move_view(base: ViewMetadata, location: str) -> ViewMetadata:
    """Return the view with another base location for new metadata files."""
    return apply_view_updates(base, [SetLocation(location)], now_ms=0)
