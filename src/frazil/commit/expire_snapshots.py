"""Remove snapshots that the retention policy no longer keeps. Specification: "Snapshot Retention Policy".

The commit changes only metadata; `commit/expired_files.py` deletes files afterwards. The expired snapshots are chosen
at each attempt from the present references, and the commit requires exactly these: a tag that another writer adds
concurrently keeps its snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.changes.requirements import TableRequirement
from frazil.changes.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    TableUpdate,
)
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import ref_requirement, table_requirement
from frazil.commit.once import move_records
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec import properties
from frazil.spec.property_kinds import read_property
from frazil.spec.retention import GUARD_PREFIX, guarded_snapshots, snapshots_to_retain
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.threads import map_in_order


@dataclass(frozen=True, slots=True)
class ExpireSnapshots:
    """Remove snapshots by age and number, or by id.

    If only ids are given, nothing else expires. With `cleans_metadata`, schemas and partition specs are removed that no
    remaining snapshot uses.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: tuple[int, ...] = ()
    max_ref_age_ms: int | None = None
    cleans_metadata: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the removal of everything that the policy does not keep at this time, or nothing if it keeps all."""
        metadata = loaded.metadata
        check_may_collect(metadata, "expire snapshots")
        expired, refs = self._choose(metadata, context.now_ms())
        updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in sorted(refs)]
        if expired:
            updates.append(
                RemoveSnapshots(tuple(snapshot_id for snapshot_id in metadata.snapshots.ids if snapshot_id in expired))
            )
        if self.cleans_metadata:
            updates += _unused(loaded, context, expired)
        if expired:
            # For rolled-back writes, only the chain of parents identifies them, and expiry cuts the chain.
            for name, ref in metadata.refs.items():
                updates += move_records(metadata, name, ref.snapshot_id) if ref.is_branch and name not in refs else ()
        if not updates:
            return NOTHING
        requirements: tuple[TableRequirement, ...] = table_requirement(metadata)
        requirements += tuple(ref_requirement(metadata, name) for name in sorted(metadata.refs))
        return Changes(tuple(updates), requirements)

    def _choose(self, metadata: TableMetadata, now_ms: int) -> tuple[set[int], set[str]]:
        by_policy = not self.snapshot_ids or not (self.older_than_ms is None and self.retain_last is None)
        expired: set[int] = set()
        refs: set[str] = set()
        if by_policy:
            retention = snapshots_to_retain(
                metadata,
                now_ms,
                older_than_ms=self.older_than_ms,
                min_snapshots_to_keep=self.retain_last,
                max_ref_age_ms=self.max_ref_age_ms,
            )
            expired |= retention.expired_ids
            refs |= retention.expired_refs
        guarded = guarded_snapshots(metadata) if self.snapshot_ids else {}
        named = {ref.snapshot_id: name for name, ref in metadata.refs.items() if name not in refs}
        for snapshot_id in self.snapshot_ids:
            if snapshot_id in named:
                raise InvalidRequestError(
                    f"Cannot expire snapshot {snapshot_id}: branch or tag {named[snapshot_id]!r} refers to it",
                    hint="Drop or move the reference first.",
                )
            if snapshot_id in guarded:
                raise InvalidRequestError(
                    f"Cannot expire snapshot {snapshot_id}: the stream {guarded[snapshot_id]!r} still needs it",
                    hint=f"If that stream is gone, remove the table property {GUARD_PREFIX}{guarded[snapshot_id]}.",
                )
            if metadata.snapshots.find_head(snapshot_id) is not None:
                expired.add(snapshot_id)
        return expired, refs


def check_may_collect(metadata: TableMetadata, what: str) -> None:
    """Refuse to delete files of a table whose properties say that it may share them."""
    if not read_property(metadata.properties, properties.GC_ENABLED):
        raise InvalidRequestError(
            f"Cannot {what}: the table's files may be used by other tables",
            hint=f"Its property {properties.GC_ENABLED.name} is false.",
        )


def _unused(loaded: LoadedTable, context: CommitContext, expired: set[int]) -> list[TableUpdate]:
    """Return the removal of schemas and specs that nothing uses once the snapshots have expired."""
    metadata = loaded.metadata
    remaining = [metadata.snapshot(unused_id) for unused_id in metadata.snapshots.ids if unused_id not in expired]
    schema_ids = {metadata.current_schema_id, *(schema.schema_id for schema in remaining)}
    spec_ids = {metadata.default_spec_id}

    def specs_of(snapshot: Snapshot) -> set[int]:
        return {manifest.partition_spec_id for manifest in read_manifest_list(loaded.storage, snapshot)}

    for used in map_in_order(specs_of, remaining, threads=min(context.threads, max(len(remaining), 1))):
        spec_ids |= used
    updates: list[TableUpdate] = []
    specs = tuple(unused_id for unused_id in metadata.specs_by_id if unused_id not in spec_ids)
    if specs:
        updates.append(RemovePartitionSpecs(specs))
    schemas = tuple(unused_id for unused_id in metadata.schemas_by_id if unused_id not in schema_ids)
    if schemas:
        updates.append(RemoveSchemas(schemas))
    return updates
