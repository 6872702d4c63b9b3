"""Updates of table and view metadata, one class for each type. The REST protocol's `TableUpdate`, `ViewUpdate`.

They connect actions and catalogs on the write path: an action expresses its change as updates, together with what must
still hold (`changes/requirements.py`); `changes/apply.py` turns them into new metadata. The names are those of the
protocol. The ID `LAST_ADDED` refers to the object that the preceding updates added last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap, freeze_maps
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot, SnapshotRef
from frazil.spec.sorting import SortOrder
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.spec.view_metadata import ViewVersion

LAST_ADDED: Final = -1
"""Stands for the ID of the schema, spec, sort order or view version that was added last."""


@dataclass(frozen=True, slots=True)
class AssignUuid:
    """Assign a table or view its UUID; refused if it has another one."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Raise the format version."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema under the next ID; an existing one keeps its ID.

    `last_column_id` accounts for columns that were assigned an ID and dropped before the change was made.
    """

    schema: Schema
    last_column_id: int | None = None


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Set the schema for new data."""

    schema_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a partition spec under the next ID; an equivalent existing one keeps its ID."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Set the partition spec for new data."""

    spec_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order under the next ID; an equal existing one keeps its ID."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Set the sort order for new data."""

    sort_order_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Add a snapshot; it is not visible until a branch or tag is set to it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag."""

    ref_name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots; missing ones are ignored, those that a reference names are refused."""

    snapshot_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "snapshot_ids")


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag; a missing one is ignored."""

    ref_name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Set the location for new files."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set properties."""

    updates: FrozenMap[str, str]

    def __post_init__(self) -> None:
        freeze_maps(self, "updates")


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Remove properties; missing ones are ignored."""

    removals: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.removals, str):
            raise InvalidRequestError(f"Cannot remove the properties {self.removals!r}: pass a list of names")
        object.__setattr__(self, "removals", tuple(self.removals))


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of the snapshot that it names."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Remove the statistics file of a snapshot, if any, from the metadata."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of the snapshot that it names."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Remove the partition statistics file of a snapshot, if any, from the metadata."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove partition specs that no manifest uses, which the caller has checked."""

    spec_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "spec_ids")


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas that no snapshot uses."""

    schema_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "schema_ids")


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Add an encryption key."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Remove an encryption key; a missing one is ignored, one in use is refused."""

    key_id: str


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """Add a version of a view under its ID or the next one; an existing definition keeps its ID."""

    view_version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """Set the version of a view that queries use."""

    view_version_id: int = LAST_ADDED


TableUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
"""The updates of tables."""

ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)
"""The updates of views."""

Update: TypeAlias = TableUpdate | ViewUpdate


def _freeze_ids(update: RemoveSnapshots | RemovePartitionSpecs | RemoveSchemas, name: str) -> None:
    object.__setattr__(update, name, tuple(dict.fromkeys(getattr(update, name))))
