"""The snapshots of a change feed between versions or times: `CHANGES FROM VERSION 3 TO VERSION 5`.

A version is a snapshot's sequence number, its id, or the name of a branch or tag. Version 0 is the state before the
first snapshot. Both ends are inclusive by default.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import InvalidRequestError, SnapshotNotFoundError
from frazil.scan.changelog import Changelog
from frazil.spec.iso8601 import show_ms
from frazil.spec.snapshot import Operation, SnapshotHead
from frazil.spec.snapshot_history import ancestor_heads
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A range of versions, or of times in microseconds; without an end, up to now."""

    start_version: str | None = None
    end_version: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    has_start: bool = True
    """Whether the start is inclusive."""
    has_end: bool = True
    """Whether the end is inclusive."""


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """A window of changes, and the snapshots in it that changed rows, oldest first."""

    changelog: Changelog
    snapshot_ids: tuple[int, ...]


def find_version(metadata: TableMetadata, head_id: int | None, version: str) -> SnapshotHead | None:
    """Return the snapshot of a version, or None for the state before the first snapshot."""
    text = version.strip()
    heads = [] if head_id is None else list(ancestor_heads(metadata.snapshots, head_id))
    ref = metadata.find_ref(text)
    number = int(text) if text.isascii() and text.removeprefix("-").isdigit() else None
    if number == 0:
        return None
    for head in heads:
        if number is not None and number in (head.snapshot_id, head.sequence_number):
            return head
        if ref is not None and head.snapshot_id == ref.snapshot_id:
            return head
    numbered = [head for head in heads if head.sequence_number]
    span = f"{numbered[-1].sequence_number} to {numbered[0].sequence_number}" if numbered else "none"
    raise SnapshotNotFoundError(
        f"Cannot read changes of version {text[:60]!r}: the branch has no such snapshot",
        hint=f"A version is a sequence number (there are {span}), a snapshot's id, or a branch or tag.",
    )


def change_window(metadata: TableMetadata, head_id: int | None, bounds: ChangeRange) -> ChangeWindow:
    """Return the snapshots of a range; refuse a range whose beginning has expired."""
    nothing = ChangeWindow(Changelog(is_empty=True), ())
    heads = [] if head_id is None else list(ancestor_heads(metadata.snapshots, head_id))[::-1]
    first, last = 0, len(heads)
    indexes = {head.snapshot_id: index for index, head in enumerate(heads)}
    if bounds.start_version is not None:
        version = find_version(metadata, head_id, bounds.start_version)
        first = 0 if version is None else indexes[version.snapshot_id] + (0 if bounds.has_start else 1)
        if version is None and heads:
            _check_whole(heads[0], f"version {bounds.start_version}")
    if bounds.end_version is not None:
        version = find_version(metadata, head_id, bounds.end_version)
        last = 0 if version is None else indexes[version.snapshot_id] + (1 if bounds.has_end else 0)
    if bounds.start_us is not None:
        first = next(
            (index for index, head in enumerate(heads) if _is_after(head, bounds.start_us, bounds.has_start)), last
        )
        if first == 0 and heads:
            _check_whole(heads[0], show_ms(bounds.start_us // 1000))
    if bounds.end_us is not None:
        last = next(
            (index for index, head in enumerate(heads) if _is_after(head, bounds.end_us, not bounds.has_end)), last
        )
    if bounds.start_us is not None and bounds.end_us is not None and bounds.end_us < bounds.start_us:
        raise InvalidRequestError("Cannot read changes: the end of the range is before its start")
    if bounds.start_version is not None and bounds.end_version is not None and last < first and heads:
        raise InvalidRequestError(
            f"Cannot read changes from version {bounds.start_version} to {bounds.end_version}: the end is not later"
        )
    chosen = heads[first:last]
    if not chosen:
        return nothing
    ids = [snapshot_head.snapshot_id for snapshot_head in chosen]
    changed = tuple(snapshot_id for snapshot_id in ids if metadata.snapshot(snapshot_id).operation != Operation.REPLACE)
    return ChangeWindow(Changelog(chosen[0].parent_snapshot_id, ids[-1]), changed)


def _is_after(head: SnapshotHead, time_us: int, is_inclusive: bool) -> bool:
    own = head.timestamp_ms * 1000
    return own >= time_us if is_inclusive else own > time_us


def _check_whole(oldest: SnapshotHead, start: str) -> None:
    if oldest.parent_snapshot_id is not None:
        raise SnapshotNotFoundError(
            f"Cannot read changes from {start} on: the snapshots before {oldest.snapshot_id} of "
            f"{show_ms(oldest.timestamp_ms)} have expired",
            hint=f"Begin with version {oldest.snapshot_id}.",
        )
