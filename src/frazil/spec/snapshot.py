"""Snapshots, references to them, and the two logs. Specification: "Snapshots", "Snapshot References".

A snapshot is the state of a table at one time, and refers to a manifest list. Times are milliseconds from 1970-01-01
UTC; they are informational, since the order of snapshots is the chain of parents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps, freeze_tuples
from frazil.spec.iso8601 import show_ms
from frazil.visible_text import visible

MAIN_BRANCH: Final = "main"
"""The branch whose snapshot is the table's current snapshot."""

INITIAL_SEQUENCE_NUMBER: Final = 0
"""The sequence number of every snapshot of a v1 table."""


class Operation:
    """The values of the summary's `operation`, which describe the change of a snapshot."""

    APPEND: Final = "append"
    REPLACE: Final = "replace"
    OVERWRITE: Final = "overwrite"
    DELETE: Final = "delete"


class Summary:
    """The keys of a snapshot's summary. Specification: "Optional Snapshot Summary Fields"."""

    OPERATION: Final = "operation"

    ADDED_DATA_FILES: Final = "added-data-files"
    DELETED_DATA_FILES: Final = "deleted-data-files"
    TOTAL_DATA_FILES: Final = "total-data-files"
    ADDED_DELETE_FILES: Final = "added-delete-files"
    ADDED_EQUALITY_DELETE_FILES: Final = "added-equality-delete-files"
    REMOVED_EQUALITY_DELETE_FILES: Final = "removed-equality-delete-files"
    ADDED_POSITION_DELETE_FILES: Final = "added-position-delete-files"
    REMOVED_POSITION_DELETE_FILES: Final = "removed-position-delete-files"
    ADDED_DVS: Final = "added-dvs"
    REMOVED_DVS: Final = "removed-dvs"
    REMOVED_DELETE_FILES: Final = "removed-delete-files"
    TOTAL_DELETE_FILES: Final = "total-delete-files"
    ADDED_RECORDS: Final = "added-records"
    DELETED_RECORDS: Final = "deleted-records"
    TOTAL_RECORDS: Final = "total-records"
    ADDED_FILES_SIZE: Final = "added-files-size"
    REMOVED_FILES_SIZE: Final = "removed-files-size"
    TOTAL_FILES_SIZE: Final = "total-files-size"
    ADDED_POSITION_DELETES: Final = "added-position-deletes"
    REMOVED_POSITION_DELETES: Final = "removed-position-deletes"
    TOTAL_POSITION_DELETES: Final = "total-position-deletes"
    ADDED_EQUALITY_DELETES: Final = "added-equality-deletes"
    REMOVED_EQUALITY_DELETES: Final = "removed-equality-deletes"
    TOTAL_EQUALITY_DELETES: Final = "total-equality-deletes"
    DELETED_DUPLICATE_FILES: Final = "deleted-duplicate-files"
    CHANGED_PARTITION_COUNT: Final = "changed-partition-count"
    MANIFESTS_CREATED: Final = "manifests-created"
    MANIFESTS_KEPT: Final = "manifests-kept"
    MANIFESTS_REPLACED: Final = "manifests-replaced"
    ENTRIES_PROCESSED: Final = "entries-processed"

    WAP_ID: Final = "wap.id"
    PUBLISHED_WAP_ID: Final = "published-wap-id"
    SOURCE_SNAPSHOT_ID: Final = "source-snapshot-id"
    ENGINE_NAME: Final = "engine-name"
    ENGINE_VERSION: Final = "engine-version"

    # Not in the specification; Iceberg Java writes them.
    REPLACE_PARTITIONS: Final = "replace-partitions"
    PARTITION_SUMMARIES_INCLUDED: Final = "partition-summaries-included"
    CHANGED_PARTITION_PREFIX: Final = "partitions."
    MERGED_ROWS_PREFIX: Final = "spark.merge-into.num-target-rows-"

    # Not in the specification; frazil writes them.
    NUM_INSERTED_ROWS: Final = "frazil.num-inserted-rows"
    NUM_UPDATED_ROWS: Final = "frazil.num-updated-rows"
    NUM_DELETED_ROWS: Final = "frazil.num-deleted-rows"


class SnapshotHead(Protocol):
    """The fields of a snapshot that ancestry, retention and the invariants need; `Snapshot` has them."""

    @property
    def snapshot_id(self) -> int:
        """The snapshot's id."""

    @property
    def parent_snapshot_id(self) -> int | None:
        """The id of the previous snapshot."""

    @property
    def sequence_number(self) -> int:
        """The sequence number of its commit."""

    @property
    def timestamp_ms(self) -> int:
        """The time of its creation."""

    @property
    def first_row_id(self) -> int | None:
        """The first row id it assigned."""

    @property
    def added_rows(self) -> int | None:
        """An upper bound of the number of row ids it assigned."""


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The state of a table after one commit.

    `manifest_list` is the file that lists the manifests. Old v1 writers stored the `manifests` here instead;
    if a snapshot has both, the list is used. `first_row_id` and `added_rows` are absent before v3, and in
    snapshots from before an upgrade to v3.
    """

    snapshot_id: int
    timestamp_ms: int
    manifest_list: str | None = None
    summary: FrozenMap[str, str] | None = None
    parent_snapshot_id: int | None = None
    sequence_number: int = INITIAL_SEQUENCE_NUMBER
    schema_id: int | None = None
    manifests: tuple[str, ...] | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_maps(self, "summary", may_be_none=True)
        freeze_tuples(self, "manifests", may_be_none=True)
        if self.manifest_list is None and self.manifests is None:
            raise InvalidRequestError(
                f"Cannot make snapshot {self.snapshot_id}: it has neither a manifest list nor manifests"
            )
        if self.first_row_id is not None and self.added_rows is None:
            raise InvalidRequestError(
                f"Cannot make snapshot {self.snapshot_id}: it has a first row id but no number of added rows"
            )

    def __repr__(self) -> str:
        """Return the id, the operation and time, and the row counts of the summary."""
        summary = {} if self.summary is None else self.summary
        counts = (("+", "added-records", " rows"), ("-", "deleted-records", " rows"), ("", "total-records", " in all"))
        rows = [f"{sign}{summary[key]}{what}" for sign, key, what in counts if summary_number(self, key) is not None]
        operation_text = visible(self.operation or "unknown operation")
        counts_text = f": {', '.join(rows)}" if rows else ""
        return f"<Snapshot {self.snapshot_id}, {operation_text}, {show_ms(self.timestamp_ms)}{counts_text}>"

    @property
    def operation(self) -> str | None:
        """The operation of the commit, or None if the snapshot has no summary.

        A summary without an operation violates the specification; as in Iceberg Java, it is read as an
        overwrite, the operation without guarantees.
        """
        if not self.summary:
            return None
        return self.summary.get(Summary.OPERATION, Operation.OVERWRITE)

    @property
    def num_affected_rows(self) -> int | None:
        """The number of rows that the commit affected, as reported by SQL, or None if unknown."""
        if self.operation == Operation.REPLACE:
            return 0
        counts = (self.num_inserted_rows, self.num_updated_rows, self.num_deleted_rows)
        counted = [count for count in counts if count is not None]
        return sum(counted) if counted else None

    @property
    def num_inserted_rows(self) -> int | None:
        """The number of rows that a write, a merge or an upsert added, or None if unknown."""
        counted = self._counted("inserted", Summary.NUM_INSERTED_ROWS)
        return self._count(Summary.ADDED_RECORDS) if counted is None and self.operation == Operation.APPEND else counted

    @property
    def num_updated_rows(self) -> int | None:
        """The number of rows that an update, a merge or an upsert changed, or None if unknown."""
        return self._counted("updated", Summary.NUM_UPDATED_ROWS)

    @property
    def num_deleted_rows(self) -> int | None:
        """The number of rows that a delete or a merge removed, or None if unknown.

        For whole files that were removed by their metadata, it is known only if no delete file applied to them.
        """
        counted = self._counted("deleted", Summary.NUM_DELETED_ROWS)
        if counted is not None or self.operation != Operation.DELETE:
            return counted
        if self._count(Summary.TOTAL_EQUALITY_DELETES) or self._count(Summary.TOTAL_POSITION_DELETES):
            return None
        return self._count(Summary.DELETED_RECORDS) - self._count(Summary.REMOVED_POSITION_DELETES)

    def _counted(self, by_merges: str, key: str) -> int | None:
        counted = summary_number(self, f"{Summary.MERGED_ROWS_PREFIX}{by_merges}")
        return summary_number(self, key) if counted is None else counted

    def _count(self, key: str) -> int:
        return summary_number(self, key) or 0


def summary_number(snapshot: Snapshot | None, key: str) -> int | None:
    """Return a number in a snapshot's summary, or None if it is missing or not a number."""
    text = "" if snapshot is None or snapshot.summary is None else snapshot.summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


RefType: TypeAlias = Literal["branch", "tag"]
BRANCH: Final = "branch"
TAG: Final = "tag"


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or a tag: a name for a snapshot, with the retention of its snapshots.

    If a retention value is None, the table property of the same name applies.
    """

    snapshot_id: int
    type: RefType = BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        if self.type not in (BRANCH, TAG):
            raise InvalidRequestError(f"Cannot make a reference of type {self.type!r}: use branch or tag")
        for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(self, name)
            if value is None:
                continue
            if value <= 0:
                raise InvalidRequestError(f"Cannot make a {self.type}: {name} is {value}, and must be above 0")
            if self.type == TAG and name != "max_ref_age_ms":
                raise InvalidRequestError(f"Cannot make a tag with {name}: only branches have it")

    @property
    def is_branch(self) -> bool:
        """Whether this is a branch, which commits may move."""
        return self.type == BRANCH

    @property
    def is_tag(self) -> bool:
        """Whether this is a tag, which does not move."""
        return self.type == TAG


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """The snapshot that became the table's current one at a time."""

    timestamp_ms: int
    snapshot_id: int
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A previously current metadata file; the time is that of its own last update."""

    timestamp_ms: int
    metadata_file: str
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


NO_REFS: FrozenMap[str, SnapshotRef] = FrozenMap()


def with_main_branch(refs: Mapping[str, SnapshotRef], current_snapshot_id: int | None) -> FrozenMap[str, SnapshotRef]:
    """Return the references, with `main` at the current snapshot if it is missing ("refs")."""
    if current_snapshot_id is None or MAIN_BRANCH in refs:
        return refs if isinstance(refs, FrozenMap) else FrozenMap(refs)
    return FrozenMap({MAIN_BRANCH: SnapshotRef(current_snapshot_id), **refs})
