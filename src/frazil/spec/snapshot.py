"""Snapshots, references to them, and the two logs. Specification: "Snapshots", "Snapshot References".

A snapshot is the state of a table at one time: the step of the read path between table metadata and the
manifest list. Times are milliseconds from 1970-01-01 UTC; they only inform, since the order of snapshots
is the chain of parents.
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
"""The branch whose snapshot is the table's current one."""

INITIAL_SEQUENCE_NUMBER: Final = 0
"""The sequence number of every snapshot of a v1 table."""


class Operation:
    """What a snapshot did: the values of the summary's `operation`."""

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
    """What ancestry, retention and the invariants need of a snapshot; a `Snapshot` is one."""

    @property
    def snapshot_id(self) -> int:
        """The snapshot's id."""

    @property
    def parent_snapshot_id(self) -> int | None:
        """The id of the snapshot before it."""

    @property
    def sequence_number(self) -> int:
        """The number of the commit that made it."""

    @property
    def timestamp_ms(self) -> int:
        """When it was made."""

    @property
    def first_row_id(self) -> int | None:
        """The first row id it assigned."""

    @property
    def added_rows(self) -> int | None:
        """How many row ids it assigned at most."""


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The state of a table after one commit.

    `manifest_list` is the file that lists the manifests. Old v1 writers named the `manifests` here instead;
    where a snapshot has both, the list counts. `first_row_id` and `added_rows` are absent before v3, and in
    the snapshots a v3 table had before its upgrade.
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
        """Return the id, what was done and when, and the rows that the summary counts."""
        summary = {} if self.summary is None else self.summary
        counts = (("+", "added-records", " rows"), ("-", "deleted-records", " rows"), ("", "total-records", " in all"))
        rows = [f"{sign}{summary[key]}{what}" for sign, key, what in counts if summary_number(self, key) is not None]
        did = visible(self.operation or "unknown operation")
        counts_text = f": {', '.join(rows)}" if rows else ""
        return f"<Snapshot {self.snapshot_id}, {did}, {show_ms(self.timestamp_ms)}{counts_text}>"

    @property
    def operation(self) -> str | None:
        """What the commit did; None where the snapshot has no summary.

        A summary without an operation breaks the specification; as in Iceberg Java it is read as an
        overwrite, the operation that promises nothing.
        """
        if not self.summary:
            return None
        return self.summary.get(Summary.OPERATION, Operation.OVERWRITE)

    @property
    def num_affected_rows(self) -> int | None:
        """How many rows the commit was about, as SQL answers; None where nobody counted."""
        if self.operation == Operation.REPLACE:
            return 0
        counts = (self.num_inserted_rows, self.num_updated_rows, self.num_deleted_rows)
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    @property
    def num_inserted_rows(self) -> int | None:
        """How many rows a write, a merge or an upsert added; None where nobody counted."""
        counted = self._counted("inserted", Summary.NUM_INSERTED_ROWS)
        return self._count(Summary.ADDED_RECORDS) if counted is None and self.operation == Operation.APPEND else counted

    @property
    def num_updated_rows(self) -> int | None:
        """How many rows an update, a merge or an upsert changed; None where nobody counted."""
        return self._counted("updated", Summary.NUM_UPDATED_ROWS)

    @property
    def num_deleted_rows(self) -> int | None:
        """How many rows a delete or a merge removed; None where nobody counted.

        Of files that went whole, by their metadata, it is known where no delete file hid rows of them.
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
    """Return a number of a snapshot's summary; None where there is none, or something else."""
    text = "" if snapshot is None or snapshot.summary is None else snapshot.summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


RefType: TypeAlias = Literal["branch", "tag"]
BRANCH: Final = "branch"
TAG: Final = "tag"


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or a tag: a name for a snapshot, with how long to keep what it names.

    Where a retention value is None, the table's property of the same name decides.
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
        """Whether commits may move it."""
        return self.type == BRANCH

    @property
    def is_tag(self) -> bool:
        """Whether it stays where it is."""
        return self.type == TAG


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """From this time on, this snapshot was the table's current one."""

    timestamp_ms: int
    snapshot_id: int
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A metadata file that was current before; the time is that of its own last update."""

    timestamp_ms: int
    metadata_file: str
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


NO_REFS: FrozenMap[str, SnapshotRef] = FrozenMap()


def with_main_branch(refs: Mapping[str, SnapshotRef], current_snapshot_id: int | None) -> FrozenMap[str, SnapshotRef]:
    """Return the references with `main` at the current snapshot where they do not name it ("refs")."""
    if current_snapshot_id is None or MAIN_BRANCH in refs:
        return refs if isinstance(refs, FrozenMap) else FrozenMap(refs)
    return FrozenMap({MAIN_BRANCH: SnapshotRef(current_snapshot_id), **refs})
