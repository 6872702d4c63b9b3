"""The snapshots and references that expire. Specification: "Snapshot Retention Policy".

This is a pure function of the metadata and the time; `commit/expire_snapshots.py` turns its result into changes.
In addition to the specification, as in Iceberg Java, a snapshot that no reference leads to (one staged for a later
cherry-pick, say, or one rolled back) is retained until it is older than the table's limit.

Guarded streams are specific to frazil: the property `frazil.stream.<name>` holds the snapshot up to which a stream has
read. That snapshot and its descendants are retained; -1, for a stream that has read nothing yet, retains all snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from frazil.errors import InvalidRequestError
from frazil.spec.properties import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.spec.snapshot_history import ancestor_heads
from frazil.spec.table_metadata import TableMetadata

GUARD_PREFIX: Final = "frazil.stream."
"""The prefix of the properties of guarded streams."""
_BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class Retention:
    """The retained and expired snapshots, which together are all of the table's, and the expired references."""

    retained_ids: frozenset[int]
    expired_ids: frozenset[int]
    expired_refs: frozenset[str]


def snapshots_to_retain(
    metadata: TableMetadata,
    now_ms: int,
    *,
    older_than_ms: int | None = None,
    min_snapshots_to_keep: int | None = None,
    max_ref_age_ms: int | None = None,
) -> Retention:
    """Return the snapshots and references that a table retains at a time.

    References without limits of their own have the table's: the arguments, or else its properties
    `history.expire.*`. The main branch never expires, nor do the snapshots of retained references.
    """
    if older_than_ms is None:
        older_than_ms = now_ms - read_property(metadata.properties, MAX_SNAPSHOT_AGE_MS)
    if min_snapshots_to_keep is None:
        min_snapshots_to_keep = read_property(metadata.properties, MIN_SNAPSHOTS_TO_KEEP)
    if max_ref_age_ms is None:
        max_ref_age_ms = read_property(metadata.properties, MAX_REF_AGE_MS)
    if min_snapshots_to_keep < 1:
        raise InvalidRequestError(
            f"Cannot keep {min_snapshots_to_keep} snapshots of a branch: at least 1 must be kept, the current one"
        )
    snapshots = metadata.snapshots
    retained: set[int] = set()
    referenced: set[int] = set()
    expired_refs: set[str] = set()
    for name, ref in metadata.refs.items():
        head = snapshots.find_head(ref.snapshot_id)
        max_age_ms = max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name != MAIN_BRANCH and (head is None or now_ms - head.timestamp_ms > max_age_ms):
            expired_refs.add(name)
            continue
        if ref.is_tag:
            retained.add(ref.snapshot_id)
            referenced.add(ref.snapshot_id)
            continue
        branch_cutoff_ms = older_than_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
        keep_count = min_snapshots_to_keep if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        is_retained = True
        for index, ancestor in enumerate(ancestor_heads(snapshots, ref.snapshot_id)):
            referenced.add(ancestor.snapshot_id)
            is_retained = is_retained and (index < keep_count or ancestor.timestamp_ms >= branch_cutoff_ms)
            if is_retained:
                retained.add(ancestor.snapshot_id)
    retained |= {
        head.snapshot_id
        for head in snapshots.heads
        if head.snapshot_id not in referenced and head.timestamp_ms >= older_than_ms
    }
    retained |= guarded_snapshots(metadata).keys()
    retained &= snapshots.ids
    return Retention(
        retained_ids=frozenset(retained),
        expired_ids=frozenset(snapshots.ids - retained),
        expired_refs=frozenset(expired_refs),
    )


def guarded_snapshots(metadata: TableMetadata) -> dict[int, str]:
    """Return the snapshots that guarded streams still need, each with the name of such a stream."""
    stream_by_snapshot: dict[int, str] = {}
    guards = {
        int(text): key.removeprefix(GUARD_PREFIX)
        for key, text in metadata.properties.items()
        if key.startswith(GUARD_PREFIX) and text.isascii() and text.removeprefix("-").isdigit()
    }
    if not guards:
        return stream_by_snapshot
    for ref in metadata.refs.values():
        passed: list[int] = []
        for head in ancestor_heads(metadata.snapshots, ref.snapshot_id):
            passed.append(head.snapshot_id)
            # The snapshot itself may have expired, but its children still name it.
            named = [
                guards[snapshot_id]
                for snapshot_id in (head.snapshot_id, head.parent_snapshot_id)
                if snapshot_id in guards
            ]
            if named:
                stream_by_snapshot |= dict.fromkeys(passed, named[0])
        if _BEFORE_ALL in guards:
            stream_by_snapshot |= dict.fromkeys(passed, guards[_BEFORE_ALL])
    return stream_by_snapshot
