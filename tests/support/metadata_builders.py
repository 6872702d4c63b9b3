"""Table metadata for tests, as values and as JSON."""

from __future__ import annotations

import json
from typing import Any

from frazil.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef, with_main_branch
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.table_metadata import TableMetadata
from tests.support import builders

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LOCATION = "s3://bucket/db/events"
DAY_MS = 24 * 60 * 60 * 1000
START_MS = 1_700_000_000_000


def snapshot(snapshot_id: int, parent: int | None = None, /, **fields: Any) -> Snapshot:
    """Make a snapshot; its time and sequence number follow its id."""
    defaults: dict[str, Any] = {
        "timestamp_ms": START_MS + snapshot_id,
        "manifest_list": f"{LOCATION}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "sequence_number": snapshot_id,
        "schema_id": 0,
    }
    return Snapshot(snapshot_id=snapshot_id, parent_snapshot_id=parent, **(defaults | fields))


def metadata(*snapshots: Snapshot, **fields: Any) -> TableMetadata:
    """Make metadata of version 2; the last snapshot is the current one, and the log has them all."""
    schema = fields.pop("schema", None) or builders.schema()
    current = fields.pop("current_snapshot_id", snapshots[-1].snapshot_id if snapshots else None)
    version = fields.get("format_version", 2)
    refs: dict[str, SnapshotRef] = fields.pop("refs", {})
    last_ms = max((one.timestamp_ms for one in snapshots), default=START_MS)
    defaults: dict[str, Any] = {
        "format_version": version,
        "table_uuid": UUID,
        "location": LOCATION,
        "last_updated_ms": last_ms,
        "last_column_id": schema.highest_field_id,
        "schemas": (schema,),
        "current_schema_id": schema.schema_id,
        "current_snapshot_id": current,
        "last_sequence_number": max((one.sequence_number for one in snapshots), default=0) if version > 1 else 0,
        "snapshots": SnapshotList(snapshots),
        "snapshot_log": tuple(SnapshotLogEntry(one.timestamp_ms, one.snapshot_id) for one in snapshots),
        "refs": with_main_branch(refs, current),
    }
    return TableMetadata(**(defaults | fields))


def chain(length: int, **fields: Any) -> TableMetadata:
    """Make metadata with snapshots 1, 2, ... each the parent of the next."""
    return metadata(*(snapshot(one, one - 1 or None) for one in range(1, length + 1)), **fields)


def document(version: int = 2, **fields: Any) -> dict[str, Any]:
    """Make a small valid metadata document; `a_b=...` replaces the field `a-b`, `a_b=None` removes it."""
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "x", "required": True, "type": "long"},
            {"id": 2, "name": "y", "required": False, "type": "string"},
        ],
    }
    made: dict[str, Any] = {
        "format-version": version,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-sequence-number": 2,
        "last-updated-ms": START_MS + 2,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "me"},
        "current-snapshot-id": 2,
        "refs": {"main": {"snapshot-id": 2, "type": "branch"}},
        "snapshots": [snapshot_document(1), snapshot_document(2, 1)],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [
            {"timestamp-ms": START_MS + 1, "snapshot-id": 1},
            {"timestamp-ms": START_MS + 2, "snapshot-id": 2},
        ],
        "metadata-log": [{"timestamp-ms": START_MS + 1, "metadata-file": f"{LOCATION}/metadata/1.metadata.json"}],
    }
    if version == 1:
        del made["last-sequence-number"]
        made |= {"schema": schema, "partition-spec": []}
        for one in made["snapshots"]:
            del one["sequence-number"]
    if version >= 3:
        made["next-row-id"] = 0
    for name, value in fields.items():
        if value is None:
            made.pop(name.replace("_", "-"), None)
        else:
            made[name.replace("_", "-")] = value
    return made


def snapshot_document(snapshot_id: int, parent: int | None = None, /, **fields: Any) -> dict[str, Any]:
    """Make a snapshot as JSON; `a_b=...` replaces the field `a-b`, `a_b=None` removes it."""
    made: dict[str, Any] = {
        "sequence-number": snapshot_id,
        "snapshot-id": snapshot_id,
        "timestamp-ms": START_MS + snapshot_id,
        "summary": {"operation": "append", "added-records": "3"},
        "manifest-list": f"{LOCATION}/metadata/snap-{snapshot_id}.avro",
        "schema-id": 0,
    }
    if parent is not None:
        made["parent-snapshot-id"] = parent
    for name, value in fields.items():
        if value is None:
            made.pop(name.replace("_", "-"), None)
        else:
            made[name.replace("_", "-")] = value
    return made


def text_of(value: Any) -> bytes:
    """Return a document's text, without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
