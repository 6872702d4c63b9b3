"""Manifests and their entries. Specification: "Manifests", "Manifest Entry Fields", "Manifest Lists".

A `ManifestFile` is one line of a manifest list: a manifest's location, content type and counts, and a summary of the
values of each partition field. A `ManifestEntry` is one line of a manifest: a data file and its status.
`codec/manifest_list_avro.py` and `codec/manifest_avro.py` read and write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from frazil.errors import InvalidRequestError
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import freeze_tuples

UNASSIGNED_SEQUENCE_NUMBER = -1
"""The sequence number of a manifest that is in no manifest list yet; writing a list assigns one."""


class ManifestContent(IntEnum):
    """The content type of a manifest's files."""

    DATA = 0
    DELETES = 1

    @property
    def label(self) -> str:
        """The name of this content type in a manifest's key-value metadata."""
        return self.name.lower()


class EntryStatus(IntEnum):
    """The change that a snapshot made to a file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file in a manifest.

    Null ids and sequence numbers are inherited from the manifest when it is read; afterwards, only
    entries of old writers have none.
    """

    status: EntryStatus
    data_file: DataFile
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, EntryStatus):
            try:
                object.__setattr__(self, "status", EntryStatus(self.status))
            except ValueError:
                raise InvalidRequestError(
                    f"Cannot make a manifest entry: status {self.status!r} is not one of 0, 1 and 2",
                    heading="Manifest Entry Fields",
                ) from None

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the table: added or existing."""
        return self.status is not EntryStatus.DELETED


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The values of one partition field in the files of a manifest.

    Bounds are bytes in the specification's single-value form, or None if all values are null or NaN.
    `contains_nan` is None if the writer did not record it.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest, as described in a manifest list.

    A count of None is unknown and must be treated as nonzero. `partitions` has a summary for each field of the
    manifest's partition spec, in order.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    added_snapshot_id: int | None
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    def __post_init__(self) -> None:
        freeze_tuples(self, "partitions", may_be_none=True)
        if not isinstance(self.content, ManifestContent):
            try:
                object.__setattr__(self, "content", ManifestContent(self.content))
            except ValueError:
                raise InvalidRequestError(
                    f"Cannot describe manifest {self.manifest_path!r}: content {self.content!r} is not 0 or 1",
                    heading="Manifest Lists",
                ) from None
        if not self.manifest_path:
            raise InvalidRequestError("Cannot describe a manifest: its path is empty", heading="Manifest Lists")
        if self.first_row_id is not None and self.content is not ManifestContent.DATA:
            raise InvalidRequestError(
                f"Cannot describe manifest {self.manifest_path!r}: a delete manifest has no first_row_id",
                heading="Manifest Lists",
            )

    @property
    def has_added_files(self) -> bool:
        """Whether the manifest has, or may have, added entries."""
        return self.added_files_count is None or self.added_files_count > 0

    @property
    def has_existing_files(self) -> bool:
        """Whether the manifest has, or may have, existing entries."""
        return self.existing_files_count is None or self.existing_files_count > 0

    @property
    def has_deleted_files(self) -> bool:
        """Whether the manifest has, or may have, deleted entries."""
        return self.deleted_files_count is None or self.deleted_files_count > 0

    @property
    def has_live_files(self) -> bool:
        """Whether the manifest has, or may have, files that are part of the table."""
        return self.has_added_files or self.has_existing_files

    @property
    def is_encrypted(self) -> bool:
        """Whether reading the manifest requires a key."""
        return self.key_metadata is not None and len(self.key_metadata) > 0
