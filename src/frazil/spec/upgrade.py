"""Upgrades of table metadata to a later format version. Specification: "Format version changes" (Appendix E).

Only metadata changes: data files, manifests and old snapshots stay unchanged, and readers handle their missing
fields. Downgrades are impossible, since an older version cannot represent everything that a newer one may hold.
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
    """Return a table's metadata in a format version, upgraded step by step.

    `new_uuid` is for old v1 tables without a UUID. Metadata that already has the version is returned itself.
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
        # Snapshots are read so that they are written as in v2, with their sequence number, which is 0.
        snapshots=SnapshotList(tuple(metadata.snapshots)),
        extra=_extra_after_upgrade(metadata),
    )


def _to_v3(metadata: TableMetadata) -> TableMetadata:
    snapshots = metadata.snapshots
    if any(head.first_row_id is not None for head in snapshots.heads):
        # Row ids are meaningless before v3, so any existing ones are removed.
        snapshots = SnapshotList(replace(snapshot, first_row_id=None, added_rows=None) for snapshot in snapshots)
    return replace(
        metadata,
        format_version=3,
        snapshots=snapshots,
        next_row_id=INITIAL_ROW_ID,
        extra=_extra_after_upgrade(metadata),
    )


def _extra_after_upgrade(metadata: TableMetadata) -> FrozenMap[str, object]:
    """Return the unrecognised fields, without those that the newer version defines."""
    return FrozenMap(
        {name: value for name, value in metadata.extra.items() if name.replace("-", "_") not in TABLE_METADATA_FIELDS}
    )
