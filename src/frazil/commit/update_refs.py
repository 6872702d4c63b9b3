"""Create, move and drop branches and tags; roll back. Specification: "Snapshot References".

Each action requires that the references it read have not moved, so that moving a branch never loses a concurrent commit
to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from frazil.changes.updates import RemoveSnapshotRef, SetSnapshotRef
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import moved_ref, ref_requirement, table_requirement
from frazil.commit.once import drop_records, move_records
from frazil.errors import AlreadyExistsError, InvalidRequestError, ReferenceNotFoundError, SnapshotNotFoundError
from frazil.loaded import LoadedTable
from frazil.spec.iso8601 import show_ms
from frazil.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from frazil.spec.snapshot_history import ancestor_heads, is_ancestor_of
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class CreateRef:
    """Create a branch or tag at a snapshot, by default the current one; `replaces` allows replacing an existing one."""

    name: str
    type: RefType
    snapshot_id: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    replaces: bool = False
    exist_ok: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the new reference."""
        metadata = loaded.metadata
        present = metadata.find_ref(self.name)
        if present is not None and self.exist_ok and not self.replaces:
            if present.type != self.type:
                raise AlreadyExistsError(f"Cannot create {self.type} {self.name!r}: it exists as a {present.type}")
            return NOTHING
        if present is not None and not self.replaces:
            raise AlreadyExistsError(
                f"Cannot create {self.type} {self.name!r}: it exists as a {present.type}",
                hint="Replace it, or drop it first.",
            )
        snapshot_id = self.snapshot_id if self.snapshot_id is not None else metadata.current_snapshot_id
        if snapshot_id is None:
            raise InvalidRequestError(
                f"Cannot create {self.type} {self.name!r}: the table has no snapshot yet",
                hint="Commit a snapshot first.",
            )
        metadata.snapshot(snapshot_id)
        ref = SnapshotRef(
            snapshot_id, self.type, self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms
        )
        return _set(metadata, self.name, ref)


@dataclass(frozen=True, slots=True)
class SetRetention:
    """Set how long a branch or tag retains snapshots; None leaves a limit unchanged, 0 removes it."""

    name: str
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the reference with its new retention."""
        ref = loaded.metadata.ref(self.name)
        limits: dict[str, int | None] = {}
        for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value: int | None = getattr(self, name)
            if value is not None:
                limits[name] = None if value == 0 else value
        changed = SnapshotRef(
            ref.snapshot_id,
            ref.type,
            limits.get("min_snapshots_to_keep", ref.min_snapshots_to_keep),
            limits.get("max_snapshot_age_ms", ref.max_snapshot_age_ms),
            limits.get("max_ref_age_ms", ref.max_ref_age_ms),
            ref.extra,
        )
        return _set(loaded.metadata, self.name, changed)


@dataclass(frozen=True, slots=True)
class DropRef:
    """Drop a branch or tag. Its snapshots stay until they expire."""

    name: str
    type: RefType
    missing_ok: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the removal of the present reference."""
        metadata = loaded.metadata
        if self.name == MAIN_BRANCH:
            raise InvalidRequestError(f"Cannot drop branch {MAIN_BRANCH!r}: a table always has it")
        ref = metadata.find_ref(self.name)
        if ref is None and self.missing_ok:
            return NOTHING
        if ref is None or ref.type != self.type:
            other = "" if ref is None else f", but a {ref.type} of that name"
            raise ReferenceNotFoundError(f"Cannot drop {self.type} {self.name!r}: the table has none{other}")
        return Changes(
            (RemoveSnapshotRef(self.name), *drop_records(metadata, self.name)),
            (*table_requirement(metadata), ref_requirement(metadata, self.name)),
        )


@dataclass(frozen=True, slots=True)
class RenameBranch:
    """Rename a branch."""

    name: str
    new_name: str

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the branch under its new name, and the removal of the old one."""
        metadata = loaded.metadata
        if self.name == MAIN_BRANCH:
            raise InvalidRequestError(f"Cannot rename branch {MAIN_BRANCH!r}: a table always has it")
        ref = metadata.ref(self.name)
        if ref.is_tag:
            raise ReferenceNotFoundError(f"Cannot rename branch {self.name!r}: it is a tag")
        if metadata.find_ref(self.new_name) is not None:
            raise AlreadyExistsError(f"Cannot rename branch {self.name!r} to {self.new_name!r}: that name is taken")
        return Changes(
            (
                SetSnapshotRef(self.new_name, ref),
                RemoveSnapshotRef(self.name),
                *move_records(metadata, self.new_name, ref.snapshot_id),
                *drop_records(metadata, self.name),
            ),
            (
                *table_requirement(metadata),
                ref_requirement(metadata, self.name),
                ref_requirement(metadata, self.new_name),
            ),
        )


@dataclass(frozen=True, slots=True)
class FastForward:
    """Move a branch to the head of another reference that descends from it; a missing branch is created."""

    branch: str
    to: str

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the branch at the other reference's snapshot, or nothing if it is there already."""
        metadata = loaded.metadata
        target = metadata.ref(self.to)
        present = metadata.find_ref(self.branch)
        if present is not None and present.is_tag:
            raise InvalidRequestError(f"Cannot fast-forward {self.branch!r}: it is a tag, and tags do not move")
        if present is not None and present.snapshot_id == target.snapshot_id:
            return NOTHING
        if present is not None and not is_ancestor_of(metadata, target.snapshot_id, present.snapshot_id):
            raise InvalidRequestError(
                f"Cannot fast-forward {self.branch!r} to {self.to!r}: snapshot {present.snapshot_id} is not an "
                f"ancestor of snapshot {target.snapshot_id}",
                hint="The branch has commits that the other does not.",
            )
        changes = _set(metadata, self.branch, moved_ref(metadata, self.branch, target.snapshot_id))
        return replace(changes, requirements=(*changes.requirements, ref_requirement(metadata, self.to)))


@dataclass(frozen=True, slots=True)
class ReplaceBranch:
    """Set an existing branch to a snapshot, regardless of its history."""

    branch: str
    snapshot_id: int

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the branch at the snapshot, or nothing if it is there already."""
        metadata = loaded.metadata
        if metadata.ref(self.branch).is_tag:
            raise InvalidRequestError(f"Cannot move {self.branch!r}: it is a tag")
        metadata.snapshot(self.snapshot_id)
        return _set(metadata, self.branch, moved_ref(metadata, self.branch, self.snapshot_id))


@dataclass(frozen=True, slots=True)
class SetCurrentSnapshot:
    """Make a snapshot, or the snapshot of a branch or tag, the table's current state, regardless of its history."""

    snapshot_id: int | None = None
    ref: str | None = None

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return `main` at the snapshot."""
        metadata = loaded.metadata
        if (self.snapshot_id is None) == (self.ref is None):
            raise InvalidRequestError("Cannot set the current snapshot: pass either a snapshot id or a reference")
        if self.snapshot_id is not None:
            snapshot_id = metadata.snapshot(self.snapshot_id).snapshot_id
            return _set(metadata, MAIN_BRANCH, moved_ref(metadata, MAIN_BRANCH, snapshot_id))
        name = self.ref or ""
        changes = _set(metadata, MAIN_BRANCH, moved_ref(metadata, MAIN_BRANCH, metadata.ref(name).snapshot_id))
        return replace(changes, requirements=(*changes.requirements, ref_requirement(metadata, name)))


@dataclass(frozen=True, slots=True)
class Rollback:
    """Move a branch back to an earlier snapshot of its history: by id, or the last one before a time."""

    snapshot_id: int | None = None
    before_ms: int | None = None
    branch: str = MAIN_BRANCH

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the branch at the earlier snapshot."""
        metadata = loaded.metadata
        if (self.snapshot_id is None) == (self.before_ms is None):
            raise InvalidRequestError("Cannot roll back: pass either a snapshot id or a time")
        head = metadata.ref(self.branch).snapshot_id
        if self.snapshot_id is not None:
            metadata.snapshot(self.snapshot_id)
            if not is_ancestor_of(metadata, head, self.snapshot_id):
                raise InvalidRequestError(
                    f"Cannot roll back to snapshot {self.snapshot_id}: it is not in the history of {self.branch!r}",
                    hint="Set the current snapshot instead, to move to a snapshot outside the history.",
                )
            return _set(metadata, self.branch, moved_ref(metadata, self.branch, self.snapshot_id))
        before_ms = self.before_ms or 0
        for ancestor in ancestor_heads(metadata.snapshots, head):
            if ancestor.timestamp_ms < before_ms:
                return _set(metadata, self.branch, moved_ref(metadata, self.branch, ancestor.snapshot_id))
        raise SnapshotNotFoundError(
            f"Cannot roll back to before {show_ms(before_ms)}: {self.branch!r} has no snapshot that old"
        )


def _set(metadata: TableMetadata, name: str, ref: SnapshotRef) -> Changes:
    if metadata.find_ref(name) == ref:
        return NOTHING
    # Writes that are no longer in the history may be repeated.
    records = () if ref.is_tag else move_records(metadata, name, ref.snapshot_id)
    return Changes(
        (SetSnapshotRef(name, ref), *records), (*table_requirement(metadata), ref_requirement(metadata, name))
    )
