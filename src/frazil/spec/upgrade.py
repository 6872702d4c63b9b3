"""Table metadata from one format version to a later one. Specification: "Format version changes" (Appendix E).

Only metadata changes: data files, manifests and old snapshots stay as they are, and readers know what they
lack. There is no way back, since an older version cannot say what a newer one may hold.
"""

from __future__ import annotations

from dataclasses import replace

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import INITIAL_SEQUENCE_NUMBER
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.table_metadata import INITIAL_ROW_ID, TableMetadata
from frazil.spec.versions import TABLE_METADATA_FIELDS, check_upgrade


def upgrade_table_metadata(metadata: TableMetadata, version: int, *, new_uuid: str | None = None) -> TableMetadata:
    """Return a table's metadata in a format version, step by step from its own.

    `new_uuid` is for old v1 tables that have none. The metadata itself comes back where it has the version.
    """
    check_upgrade(metadata.format_version, version)
    for step in range(metadata.format_version, version):
        metadata = _to_v2(metadata, new_uuid) if step == 1 else _to_v3(metadata)
    return metadata


def _to_v2(metadata: TableMetadata, new_uuid: str | None) -> TableMetadata:
    table_uuid = metadata.table_uuid if metadata.table_uuid is not None else new_uuid
    if table_uuid is None:
        raise InvalidRequestError(
            "Cannot upgrade the table to format version 2: it has no UUID", hint="Give it one with new_uuid."
        )
    return replace(
        metadata,
        format_version=2,
        table_uuid=table_uuid,
        last_sequence_number=INITIAL_SEQUENCE_NUMBER,
        # Read here so that they are written as v2 has them: with their sequence number, which is 0.
        snapshots=SnapshotList(tuple(metadata.snapshots)),
        extra=_still_unknown(metadata),
    )


def _to_v3(metadata: TableMetadata) -> TableMetadata:
    snapshots = metadata.snapshots
    if any(head.first_row_id is not None for head in snapshots.heads):
        # Row ids mean nothing before v3; whoever wrote them, they are not this table's.
        snapshots = SnapshotList(replace(snapshot, first_row_id=None, added_rows=None) for snapshot in snapshots)
    return replace(
        metadata,
        format_version=3,
        snapshots=snapshots,
        next_row_id=INITIAL_ROW_ID,
        extra=_still_unknown(metadata),
    )


def _still_unknown(metadata: TableMetadata) -> FrozenMap[str, object]:
    """Return the unknown fields without those that only the older version did not know."""
    return FrozenMap(
        {name: value for name, value in metadata.extra.items() if name.replace("-", "_") not in TABLE_METADATA_FIELDS}
    )
