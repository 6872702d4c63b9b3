"""Add a snapshot to a branch: the last step of every action that changes files.

The parent is the branch's head; a branch that does not exist yet starts at the table's current snapshot. The manifest
list is written here, for each attempt, with the sequence number and row ids of that attempt. The changes require the
state that they rely on: the UUID of the table, and the parent as the branch's head. So if another writer has moved the
branch, or has used the sequence number on another branch, the commit is rejected and prepared again.

A staged snapshot is added without a branch, to be published by a later cherry-pick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from frazil.changes.requirements import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from frazil.changes.updates import AddSnapshot, SetSnapshotRef, TableUpdate
from frazil.commit.action import Changes
from frazil.commit.change_files import ChangedFiles
from frazil.commit.summary import COMMIT_ID, ENGINE, VERSION, frazil_version
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, SnapshotRef, Summary
from frazil.spec.statistics import NO_PROPERTIES
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a snapshot, and the caller's additions to its summary.

    With `is_staged` no reference is set to the snapshot. `properties` are added to the summary unchanged.
    """

    branch: str = MAIN_BRANCH
    properties: FrozenMap[str, str] = NO_PROPERTIES
    is_staged: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.properties, FrozenMap):
            object.__setattr__(self, "properties", FrozenMap(self.properties))


MAIN = Target()


def find_parent(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """Return the parent of the next commit to a branch, or None for the first commit."""
    ref = metadata.find_ref(branch)
    if ref is None:
        return metadata.current_snapshot
    if ref.is_tag:
        raise InvalidRequestError(
            f"Cannot commit to {branch!r}: it is a tag, and tags do not move", hint="Commit to a branch."
        )
    return metadata.snapshot(ref.snapshot_id)


def table_requirement(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Return the requirement that a table is the same table; old v1 tables have no UUID to compare."""
    return () if metadata.table_uuid is None else (AssertTableUuid(metadata.table_uuid),)


def ref_requirement(metadata: TableMetadata, name: str) -> AssertRefSnapshotId:
    """Return the requirement that a branch or tag has not moved."""
    ref = metadata.find_ref(name)
    return AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)


def snapshot_changes(
    writer: ManifestWriter,
    changed: ChangedFiles,
    parent: Snapshot | None,
    target: Target,
    operation: str,
    *,
    extra: Mapping[str, str] = NO_PROPERTIES,
    files: Collection[str] = (),
) -> Changes:
    """Write the manifest list of a snapshot and return the changes that add it to a table.

    `files` are data and delete files of the snapshot; those that the action wrote itself count as in use.
    """
    metadata, context = writer.loaded.metadata, writer.context
    parent_id = None if parent is None else parent.snapshot_id
    manifests = changed.manifests
    written = writer.write_list(manifests, parent_id)
    created = sum(1 for manifest in manifests if manifest.added_snapshot_id == context.snapshot_id)
    summary = changed.counts.summary(
        metadata,
        parent,
        operation,
        extra={
            Summary.ENGINE_NAME: ENGINE,
            Summary.ENGINE_VERSION: frazil_version(),
            **target.properties,
            **extra,
            Summary.MANIFESTS_CREATED: str(created),
            Summary.MANIFESTS_KEPT: str(len(manifests) - created),
            Summary.MANIFESTS_REPLACED: str(changed.replaced_manifests),
            **context.engine,
            VERSION: frazil_version(),
            COMMIT_ID: context.commit_id,
        },
    )
    snapshot = Snapshot(
        context.snapshot_id,
        # Times are informative only, but one that goes backwards would confuse readers of the log.
        max(context.now_ms(), metadata.last_updated_ms),
        written.path,
        FrozenMap(summary),
        parent_id,
        metadata.next_sequence_number,
        metadata.current_schema_id,
        first_row_id=written.first_row_id,
        added_rows=written.added_rows,
    )
    used = {written.path, *(manifest.manifest_path for manifest in manifests), *files}
    return add_snapshot(metadata, snapshot, target, [path for path in context.written.paths if path in used])


def add_snapshot(
    metadata: TableMetadata, snapshot: Snapshot, target: Target, written_files: Iterable[str] = ()
) -> Changes:
    """Return the changes that add a snapshot to a table and make it the head of a branch."""
    updates: tuple[TableUpdate, ...] = (AddSnapshot(snapshot),)
    # Files were checked against the current schema of the table.
    requirements: tuple[TableRequirement, ...] = (
        *table_requirement(metadata),
        AssertCurrentSchemaId(metadata.current_schema_id),
    )
    if not target.is_staged:
        updates = (*updates, SetSnapshotRef(target.branch, moved_ref(metadata, target.branch, snapshot.snapshot_id)))
        requirements = (*requirements, ref_requirement(metadata, target.branch))
    return Changes(updates, requirements, tuple(written_files))


def moved_ref(metadata: TableMetadata, branch: str, snapshot_id: int) -> SnapshotRef:
    """Return a branch at another snapshot, with the retention it has."""
    ref = metadata.find_ref(branch)
    return SnapshotRef(snapshot_id) if ref is None else replace(ref, snapshot_id=snapshot_id)
