"""Applies updates to table metadata: how a commit changes a table. Pure functions.

This is the step of the write path between an action's updates and the swap of the pointer. Updates are applied in order
to a draft (`changes/table_steps.py`), then `_finish` enforces what must hold between the base and the result:

    references   each names an existing snapshot. A snapshot that a reference names cannot be removed, unless the
                 same change removes the reference; Iceberg Java drops such references silently, and a tag created
                 during an expiry is lost.
    snapshot log at most one more entry, however many snapshots a transaction made; a removed snapshot also removes
                 all entries up to its last one, since a log with a gap would report a wrong history
    times        never go back, whatever the clock says
    metadata log one more entry, for the base; the oldest are dropped beyond `write.metadata.previous-versions-max`
    invariants   `spec/check_table_metadata.py`, in full

A change that another writer made impossible raises a CommitConflictError: the action may be prepared again. A change
that
is never possible raises an InvalidRequestError. Updates that change nothing return the base itself.

Stricter than Iceberg Java: a table's UUID never changes, a branch does not become a tag or the reverse, partition field
ids keep their meaning, and row ids after a gap are not assigned twice. As in Iceberg Java, a snapshot without a parent
may have an older sequence number, if it replaced a table while another writer committed. It contains only its own
files,
so no delete of another snapshot is compared with them.

Specification: "Table Metadata Fields", "Snapshots", "Snapshot References", "Sequence Numbers", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from frazil.changes.table_steps import Draft, carry_out, empty_metadata
from frazil.changes.updates import TableUpdate
from frazil.errors import CommitConflictError, InvalidMetadataError, InvalidRequestError
from frazil.spec import properties as known
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.properties import read_property
from frazil.spec.snapshot import MetadataLogEntry, SnapshotLogEntry
from frazil.spec.table_metadata import TableMetadata


def apply_updates(
    base: TableMetadata | None,
    updates: Iterable[TableUpdate],
    *,
    now_ms: int,
    base_location: str | None = None,
) -> TableMetadata:
    """Return the metadata that results from applying updates to a base, or to a new table if the base is None.

    `base_location` is the file the base was read from, for the metadata log; None if it was never written. If nothing
    changes, the base itself is returned.
    """
    steps = tuple(updates)
    draft = Draft(empty_metadata(steps) if base is None else base)
    for update in steps:
        carry_out(draft, update)
    if draft.metadata is base:
        return base
    return _finish(base, draft, now_ms, base_location)


# Invariants between the base and the result


def _finish(base: TableMetadata | None, draft: Draft, now_ms: int, base_location: str | None) -> TableMetadata:
    metadata = draft.metadata
    _check_references(metadata)
    _check_still_unused(draft)
    log = _snapshot_log(base, draft, now_ms)
    added = [head.timestamp_ms for head in metadata.snapshots.heads if head.snapshot_id in draft.added_snapshot_ids]
    earlier = [] if base is None else [base.last_updated_ms]
    finished = replace(
        metadata,
        snapshot_log=log,
        metadata_log=_metadata_log(base, metadata, base_location),
        last_updated_ms=max([now_ms, *earlier, *added, *(entry.timestamp_ms for entry in log[-1:])]),
        oddities=(),
    )
    try:
        check_table_metadata(finished)
    except InvalidMetadataError as problem:
        raise InvalidRequestError(
            problem.message, hint=problem.hint, heading=problem.context.get("heading")
        ) from problem
    return finished


def _check_references(metadata: TableMetadata) -> None:
    for name, ref in metadata.refs.items():
        if metadata.snapshots.find_head(ref.snapshot_id) is None:
            raise CommitConflictError(
                f"Cannot remove snapshot {ref.snapshot_id}: {ref.type} {name!r} refers to it",
                hint="Another writer may have set it. Remove the reference in the same change, or keep the snapshot.",
            )


def _check_still_unused(draft: Draft) -> None:
    """Refuse to remove a schema or key that a snapshot uses, or a key that wraps another key."""
    schema_ids = draft.removed_schema_ids - draft.metadata.schemas_by_id.keys()
    if schema_ids or draft.removed_key_ids:
        for snapshot in draft.metadata.snapshots:
            if snapshot.schema_id in schema_ids:
                raise CommitConflictError(
                    f"Cannot remove schema {snapshot.schema_id}: snapshot {snapshot.snapshot_id} was written with it"
                )
            if snapshot.key_id in draft.removed_key_ids:
                raise CommitConflictError(
                    f"Cannot remove encryption key {snapshot.key_id!r}: snapshot {snapshot.snapshot_id} needs it"
                )
    for key in draft.metadata.encryption_keys:
        if key.encrypted_by_id in draft.removed_key_ids:
            raise InvalidRequestError(
                f"Cannot remove encryption key {key.encrypted_by_id!r}: key {key.key_id!r} is wrapped with it"
            )


def _snapshot_log(base: TableMetadata | None, draft: Draft, now_ms: int) -> tuple[SnapshotLogEntry, ...]:
    metadata = draft.metadata
    log = list(metadata.snapshot_log)
    if draft.removed_snapshot_ids:
        holes = [index for index, entry in enumerate(log) if entry.snapshot_id not in metadata.snapshots.ids]
        del log[: holes[-1] + 1 if holes else 0]
    current = metadata.current_snapshot_id
    if current is not None and (base is None or base.current_snapshot_id != current):
        # A snapshot added by this change became current when it was made; an older one becomes current now.
        head = metadata.snapshots.find_head(current)
        is_new = head is not None and current in draft.added_snapshot_ids
        time_ms = head.timestamp_ms if head is not None and is_new else now_ms
        earlier = [entry.timestamp_ms for entry in log[-1:]] + (
            [] if base is None or is_new else [base.last_updated_ms]
        )
        log.append(SnapshotLogEntry(max([time_ms, *earlier]), current))
    return tuple(log)


def _metadata_log(
    base: TableMetadata | None, metadata: TableMetadata, base_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base is None or base_location is None:
        return metadata.metadata_log
    limit = max(1, read_property(metadata.properties, known.METADATA_PREVIOUS_VERSIONS_MAX))
    log = (*metadata.metadata_log, MetadataLogEntry(base.last_updated_ms, base_location))
    return log[-limit:]
