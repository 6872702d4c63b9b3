"""Ancestry of snapshots, and time travel by the snapshot log. Specification: "Point in Time Reads (Time Travel)".

A table has two histories. The chain of parents shows how a snapshot came to be; the snapshot log shows which
snapshot was current at a time. Time travel uses the log, everything else the chain. The chain may end early,
since old snapshots expire.
"""

from __future__ import annotations

from collections.abc import Iterator

from frazil.errors import InvalidRequestError, SnapshotNotFoundError
from frazil.spec.iso8601 import show_ms
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, SnapshotHead
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.table_metadata import TableMetadata


def ancestor_heads(snapshots: SnapshotList, snapshot_id: int) -> Iterator[SnapshotHead]:
    """Yield the heads of a snapshot and its ancestors, newest first, until one is missing."""
    seen: set[int] = set()
    head = snapshots.find_head(snapshot_id)
    while head is not None and head.snapshot_id not in seen:
        seen.add(head.snapshot_id)
        yield head
        parent = head.parent_snapshot_id
        head = None if parent is None else snapshots.find_head(parent)


def ancestor_ids(metadata: TableMetadata, snapshot_id: int) -> Iterator[int]:
    """Yield the ids of a snapshot and its ancestors, newest first."""
    return (head.snapshot_id for head in ancestor_heads(metadata.snapshots, snapshot_id))


def ancestors_of(metadata: TableMetadata, snapshot_id: int) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, newest first."""
    return (metadata.snapshot(ancestor_id) for ancestor_id in ancestor_ids(metadata, snapshot_id))


def is_ancestor_of(metadata: TableMetadata, snapshot_id: int, ancestor_id: int) -> bool:
    """Return whether `ancestor_id` is a snapshot or one of its ancestors."""
    return any(chain_id == ancestor_id for chain_id in ancestor_ids(metadata, snapshot_id))


def ancestor_ids_between(
    metadata: TableMetadata, *, after_snapshot_id: int | None, to_snapshot_id: int
) -> tuple[int, ...]:
    """Return the ids after one snapshot up to and including another, newest first.

    The first one may have expired, as long as the chain still names it as a parent. If the chain does not lead from
    one to the other, the request is refused. With `after_snapshot_id` None, the whole chain is returned, which must
    reach the table's first snapshot.
    """
    between: list[int] = []
    if to_snapshot_id == after_snapshot_id:
        return ()
    metadata.snapshot(to_snapshot_id)
    parent: int | None = None
    for head in ancestor_heads(metadata.snapshots, to_snapshot_id):
        between.append(head.snapshot_id)
        parent = head.parent_snapshot_id
        if parent is not None and parent == after_snapshot_id:
            break
    if parent != after_snapshot_id:
        start = "the first snapshot" if after_snapshot_id is None else f"snapshot {after_snapshot_id}"
        stop = "" if parent is None else f", where its parent {parent} has expired"
        raise InvalidRequestError(
            f"Cannot list the snapshots from {start} to {to_snapshot_id}: the chain of parents ends at "
            f"{between[-1]}{stop}"
        )
    return tuple(between)


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int:
    """Return the id of the snapshot that was current at a time, according to the snapshot log.

    That is the last entry of the log whose time is not later. The log is in the order of the changes, so
    that of two changes in one millisecond, or with a clock that was set back, the later change wins.
    """
    for entry in reversed(metadata.snapshot_log):
        if entry.timestamp_ms <= timestamp_ms:
            return entry.snapshot_id
    if not metadata.snapshot_log:
        hint = "The table keeps no snapshot log. Read by snapshot id or by the name of a branch or tag."
    else:
        hint = f"The table's log starts at {show_ms(min(entry.timestamp_ms for entry in metadata.snapshot_log))}."
    raise SnapshotNotFoundError(
        f"Cannot read the table as of {show_ms(timestamp_ms)}: no snapshot is known to have been current then",
        hint=hint,
    )


def snapshot_as_of(metadata: TableMetadata, timestamp_ms: int) -> Snapshot:
    """Return the snapshot that was current at a time, according to the snapshot log."""
    snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
    snapshot = metadata.find_snapshot(snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(
            f"Cannot read the table as of {show_ms(timestamp_ms)}: snapshot {snapshot_id}, current then, has expired"
        )
    return snapshot


def schema_of_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Return the schema that a snapshot was written with, or the current one if the snapshot has none recorded."""
    return metadata.current_schema if snapshot.schema_id is None else metadata.schema(snapshot.schema_id)


def schema_of_ref(metadata: TableMetadata, name: str) -> Schema:
    """Return the schema for reading a branch or tag: that of a tag's snapshot, or the table's for a branch."""
    if name == MAIN_BRANCH or metadata.ref(name).is_branch:
        return metadata.current_schema
    return schema_of_snapshot(metadata, metadata.ref_snapshot(name))
