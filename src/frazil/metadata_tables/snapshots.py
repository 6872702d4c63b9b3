"""The tables built from table metadata alone: `snapshots`, `history`, `refs` and `metadata_log_entries`.

Nothing is read from storage. They belong to the table, not to a snapshot, and do not support time travel.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from frazil.errors import InvalidMetadataError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.select_columns import project_table, select_columns
from frazil.spec.snapshot import MetadataLogEntry, Snapshot, SnapshotLogEntry, Summary
from frazil.spec.snapshot_history import ancestor_ids

TIMESTAMPTZ_TYPE = pa.timestamp("us", "UTC")
_LARGEST_MS = (2**63 - 1) // 1000

SNAPSHOTS_SCHEMA = pa.schema(
    [
        pa.field("committed_at", TIMESTAMPTZ_TYPE, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
    ]
)

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("made_current_at", TIMESTAMPTZ_TYPE, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)

REFS_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)

METADATA_LOG_ENTRIES_SCHEMA = pa.schema(
    [
        pa.field("timestamp", TIMESTAMPTZ_TYPE, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


def snapshots(loaded: LoadedTable, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the snapshots that have not expired, in the order of the metadata."""
    retained = list(loaded.metadata.snapshots)
    return _table(
        SNAPSHOTS_SCHEMA,
        columns,
        to_micros(snapshot.timestamp_ms for snapshot in retained),
        [snapshot.snapshot_id for snapshot in retained],
        [snapshot.parent_snapshot_id for snapshot in retained],
        [snapshot.operation for snapshot in retained],
        [snapshot.manifest_list for snapshot in retained],
        [_summary(snapshot) for snapshot in retained],
    )


def _summary(snapshot: Snapshot) -> list[tuple[str, str]] | None:
    """Return a summary without its operation, which has a column of its own."""
    if not snapshot.summary:
        return None
    return [(key, value) for key, value in snapshot.summary.items() if key != Summary.OPERATION]


def history(loaded: LoadedTable, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return which snapshot was current from which time, by the snapshot log."""
    metadata = loaded.metadata
    current = metadata.current_snapshot_id
    ancestors = frozenset(() if current is None else ancestor_ids(metadata, current))
    heads = [metadata.snapshots.find_head(entry.snapshot_id) for entry in metadata.snapshot_log]
    return _table(
        HISTORY_SCHEMA,
        columns,
        to_micros(entry.timestamp_ms for entry in metadata.snapshot_log),
        [entry.snapshot_id for entry in metadata.snapshot_log],
        [None if head is None else head.parent_snapshot_id for head in heads],
        [entry.snapshot_id in ancestors for entry in metadata.snapshot_log],
    )


def refs(loaded: LoadedTable, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the branches and tags."""
    all_refs = loaded.metadata.refs
    return _table(
        REFS_SCHEMA,
        columns,
        list(all_refs),
        [snapshot_ref.type.upper() for snapshot_ref in all_refs.values()],
        [snapshot_ref.snapshot_id for snapshot_ref in all_refs.values()],
        [ref.max_ref_age_ms for ref in all_refs.values()],
        [snapshot_ref.min_snapshots_to_keep for snapshot_ref in all_refs.values()],
        [snapshot_ref.max_snapshot_age_ms for snapshot_ref in all_refs.values()],
    )


def metadata_log_entries(loaded: LoadedTable, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the metadata files, the current one last, each with the snapshot that was current at its time.

    Columns of that snapshot are null if it has expired, or if there was none yet.
    """
    metadata = loaded.metadata
    log = list(metadata.metadata_log)
    if loaded.metadata_location is not None:
        log.append(MetadataLogEntry(metadata.last_updated_ms, loaded.metadata_location))
    ids = _current_at([entry.timestamp_ms for entry in log], metadata.snapshot_log)
    latest = [None if snapshot_id is None else metadata.find_snapshot(snapshot_id) for snapshot_id in ids]
    return _table(
        METADATA_LOG_ENTRIES_SCHEMA,
        columns,
        to_micros(entry.timestamp_ms for entry in log),
        [entry.metadata_file for entry in log],
        ids,
        [None if schema is None else schema.schema_id for schema in latest],
        [None if snapshot is None else snapshot.sequence_number for snapshot in latest],
    )


def _current_at(times_ms: Sequence[int], log: Sequence[SnapshotLogEntry]) -> list[int | None]:
    """Return for each time the snapshot of the last log entry that is not later, or None."""
    # Clocks may go back, so the log need not be sorted, but the minimum time from each entry on is.
    minimums: list[int] = []
    for entry in reversed(log):
        minimums.append(min(entry.timestamp_ms, minimums[-1]) if minimums else entry.timestamp_ms)
    minimums.reverse()
    indexes = [bisect_right(minimums, time_ms) - 1 for time_ms in times_ms]
    return [None if index < 0 else log[index].snapshot_id for index in indexes]


def to_micros(times_ms: Iterable[int | None]) -> pa.Array:
    """Convert times in milliseconds to timestamps in microseconds."""
    values = []
    for time_ms in times_ms:
        if time_ms is not None and abs(time_ms) > _LARGEST_MS:
            raise InvalidMetadataError(
                f"Cannot show the time {time_ms} ms: it is outside the range of timestamps", heading="Snapshots"
            )
        values.append(None if time_ms is None else time_ms * 1000)
    return pa.array(values, pa.int64()).view(TIMESTAMPTZ_TYPE)


def _table(schema: pa.Schema, columns: Sequence[str] | None, *values: Any) -> pa.Table:
    chosen = select_columns(schema, columns)
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(value, field.type)
        for value, field in zip(values, schema, strict=True)
    ]
    return project_table(pa.Table.from_arrays(arrays, schema=schema), chosen)
