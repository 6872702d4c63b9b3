"""Set and remove properties, set the location of new files, upgrade the format version. They never conflict.

A property that another writer set concurrently is overwritten: the last writer wins, as for any single value.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.changes.updates import RemoveProperties, SetLocation, SetProperties, TableUpdate, UpgradeFormatVersion
from frazil.codec.name_mapping_json import check_name_mapping
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import table_requirement
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.metrics_config import check_metrics_columns
from frazil.spec.properties import check_properties
from frazil.spec.statistics import NO_PROPERTIES
from frazil.spec.table_metadata import without_trailing_slash
from frazil.spec.versions import check_upgrade


@dataclass(frozen=True, slots=True)
class UpdateProperties:
    """Set properties and remove others. Values are checked; unknown names are kept."""

    updates: FrozenMap[str, str] = NO_PROPERTIES
    removals: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if isinstance(self.removals, str):
            raise InvalidRequestError(f"Cannot remove the properties {self.removals!r}: pass a list of names")
        object.__setattr__(self, "updates", FrozenMap(self.updates))
        object.__setattr__(self, "removals", frozenset(self.removals))
        both = self.removals & self.updates.keys()
        if both:
            raise InvalidRequestError(f"Cannot set and remove the property {min(both)} at once")
        check_properties(self.updates)
        check_name_mapping(self.updates)

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the properties that differ from the present ones, or nothing if none does."""
        present = loaded.metadata.properties
        check_metrics_columns(loaded.metadata.current_schema, self.updates)
        updates: list[TableUpdate] = []
        new = {name: value for name, value in self.updates.items() if present.get(name) != value}
        gone = sorted(self.removals & present.keys())
        if new:
            updates.append(SetProperties(FrozenMap(new)))
        if gone:
            updates.append(RemoveProperties(tuple(gone)))
        return Changes(tuple(updates), table_requirement(loaded.metadata)) if updates else NOTHING


@dataclass(frozen=True, slots=True)
class UpdateLocation:
    """Set the location of new files; existing files stay in place."""

    location: str

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the new location, or nothing if it is the present one."""
        if without_trailing_slash(self.location) == loaded.metadata.location:
            return NOTHING
        return Changes((SetLocation(self.location),), table_requirement(loaded.metadata))


@dataclass(frozen=True, slots=True)
class UpgradeFormat:
    """Upgrade the format version. Downgrades are impossible."""

    format_version: int

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the new version, or nothing if the table has it."""
        if check_upgrade(loaded.metadata.format_version, self.format_version) == loaded.metadata.format_version:
            return NOTHING
        return Changes((UpgradeFormatVersion(self.format_version),), table_requirement(loaded.metadata))
