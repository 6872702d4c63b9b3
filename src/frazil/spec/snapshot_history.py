"""Who came before a snapshot, and what was current when. Specification: "Point in Time Reads (Time Travel)".

A table has two histories. The chain of parents says how a snapshot came to be; the snapshot log says which
snapshot was current at a time. Time travel asks the log, everything else the chain. The chain may end early,
since the snapshots before it expire.
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
    """Yield the head of a snapshot and of its ancestors, the newest first, as far as the table has them."""
    seen: set[int] = set()
    head = snapshots.find_head(snapshot_id)
    while head is not None and head.snapshot_id not in seen:
        seen.add(head.snapshot_id)
        yield head
        parent = head.parent_snapshot_id
        head = None if parent is None else snapshots.find_head(parent)


def ancestor_ids(metadata: TableMetadata, snapshot_id: int) -> Iterator[int]:
    """Yield the id of a snapshot and of its ancestors, the newest first."""
    return (head.snapshot_id for head in ancestor_heads(metadata.snapshots, snapshot_id))


def ancestors_of(metadata: TableMetadata, snapshot_id: int) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, the newest first."""
    return (metadata.snapshot(ancestor_id) for ancestor_id in ancestor_ids(metadata, snapshot_id))


def is_ancestor_of(metadata: TableMetadata, snapshot_id: int, ancestor_id: int) -> bool:
    """Return whether a snapshot is another one or came to be from it."""
    return any(known_id == ancestor_id for known_id in ancestor_ids(metadata, snapshot_id))


def ancestor_ids_between(
    metadata: TableMetadata, *, after_snapshot_id: int | None, to_snapshot_id: int
) -> tuple[int, ...]:
    """Return the ids after one snapshot up to another one, the newest first.

    The first one may have expired, as long as the chain still names it as a parent. Where the chain does not
    lead from the one to the other, what lies between is not known, and the request is refused. With
    `after_snapshot_id` None the whole chain is wanted, which must reach the table's first snapshot.
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
    """Return the id of the snapshot that was current at a time, by the snapshot log.

    That is the last entry of the log whose time is not later. The log is in the order of the changes, so
    that of two changes in one millisecond, or with a clock that went back, the later change counts.
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
    """Return the snapshot that was current at a time, by the snapshot log."""
    snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
    found = metadata.find_snapshot(snapshot_id)
    if found is None:
        raise SnapshotNotFoundError(
            f"Cannot read the table as of {show_ms(timestamp_ms)}: snapshot {snapshot_id}, current then, has expired"
        )
    return found


def schema_of_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Return the schema a snapshot was written with; the current one where the snapshot does not say."""
    return metadata.current_schema if snapshot.schema_id is None else metadata.schema(snapshot.schema_id)


def schema_of_ref(metadata: TableMetadata, name: str) -> Schema:
    """Return the schema to read a branch or tag with: a tag's is its snapshot's, a branch's the table's."""
    if name == MAIN_BRANCH or metadata.ref(name).is_branch:
        return metadata.current_schema
    return schema_of_snapshot(metadata, metadata.ref_snapshot(name))
