"""Changes to the metadata of tables and views, a value for each kind. The REST protocol's `TableUpdate`, `ViewUpdate`.

Between an action and the catalog on the write path: an action says what it wants as updates, together with
what must still hold (`changes/requirements.py`); `changes/apply.py` turns them into new metadata. Names are
the protocol's. Ids of `LAST_ADDED` mean whatever the updates before added last.
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
"""Stands for the id of the schema, spec, sort order or view version that was added last."""


@dataclass(frozen=True, slots=True)
class AssignUuid:
    """Give a table or view its UUID; one that has another keeps it, and the change is refused."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Raise the format version."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema under the next id; one the table has keeps its id.

    `last_column_id` is for columns that were given an id and dropped before the change was made.
    """

    schema: Schema
    last_column_id: int | None = None


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """Write new data with a schema."""

    schema_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a partition spec under the next id; an equivalent one the table has keeps its id."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """Write new data under a partition spec."""

    spec_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add a sort order under the next id; an equal one the table has keeps its id."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """Sort new data by an order."""

    sort_order_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Add a snapshot; nothing leads to it before a branch or tag is set to it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag."""

    ref_name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots; those that are gone already are no error, those that a reference names are."""

    snapshot_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "snapshot_ids")


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag; one that is gone already is no error."""

    ref_name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Put new files elsewhere."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set properties."""

    updates: FrozenMap[str, str]

    def __post_init__(self) -> None:
        freeze_maps(self, "updates")


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Remove properties; those that are not set are no error."""

    removals: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.removals, str):
            raise InvalidRequestError(f"Cannot remove the properties {self.removals!r}: give a list of names")
        object.__setattr__(self, "removals", tuple(self.removals))


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of the snapshot it names."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Forget the statistics file of a snapshot; none is no error."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of the snapshot it names."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Forget the partition statistics file of a snapshot; none is no error."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove partition specs that no manifest uses; whoever asks has looked."""

    spec_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "spec_ids")


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas that no snapshot names."""

    schema_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        _freeze_ids(self, "schema_ids")


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Add an encryption key."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Remove an encryption key; one that is gone already is no error, one in use is."""

    key_id: str


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """Add a version of a view under its id or the next; the same definition keeps its id."""

    view_version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """Make a version of a view the one that queries use."""

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
"""What may change a table."""

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
"""What may change a view."""

Update: TypeAlias = TableUpdate | ViewUpdate


def _freeze_ids(update: RemoveSnapshots | RemovePartitionSpecs | RemoveSchemas, name: str) -> None:
    object.__setattr__(update, name, tuple(dict.fromkeys(getattr(update, name))))
