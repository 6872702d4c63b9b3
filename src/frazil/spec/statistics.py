"""Statistics files in table metadata. Specification: "Table Statistics", "Partition Statistics".

They are optional: a reader may ignore them, and their snapshots may have expired. The files themselves
are read by `codec/puffin.py` (table statistics) and as data files (partition statistics).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps, freeze_tuples

NO_PROPERTIES: FrozenMap[str, str] = FrozenMap()


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """The description of a statistics file's blob in table metadata."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: FrozenMap[str, str] = NO_PROPERTIES
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields")
        freeze_maps(self, "properties")


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file with statistics of one snapshot. `key_metadata` is base64 text, as in the file."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "blob_metadata")


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """A data file with a row of statistics for each partition of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)
