"""Data files and manifest entries for tests."""

from __future__ import annotations

from typing import Any

from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, FieldSummary, ManifestEntry, ManifestFile
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, TIMESTAMP, NestedField

EVENTS = Schema((NestedField(1, "id", LONG), NestedField(2, "ts", TIMESTAMP), NestedField(3, "kind", STRING)))
BY_DAY = build_partition_spec(EVENTS, ["day(ts)"], spec_id=3)
SNAPSHOT_ID = 77


def data_file(at: int = 0, **changes: Any) -> DataFile:
    """A Parquet file of 100 rows on day 19000."""
    known: dict[str, Any] = {
        "file_path": f"s3://bucket/data/{at:05d}.parquet",
        "file_format": FileFormat.PARQUET,
        "record_count": 100,
        "file_size_in_bytes": 5000 + at,
        "spec_id": 3,
        "partition": (19000,),
        "value_counts": {1: 100, 3: 100},
        "lower_bounds": {1: at.to_bytes(8, "little"), 3: b""},
        "upper_bounds": {1: (at + 99).to_bytes(8, "little"), 3: b"zz"},
        "split_offsets": (4,),
        "sort_order_id": 0,
    }
    return DataFile(**{**known, **changes})


def deletion_vector(at: int = 0, **changes: Any) -> DataFile:
    """A deletion vector for the data file of the same number."""
    known: dict[str, Any] = {
        "content": FileContent.POSITION_DELETES,
        "file_path": f"s3://bucket/data/{at:05d}.puffin",
        "file_format": FileFormat.PUFFIN,
        "referenced_data_file": f"s3://bucket/data/{at:05d}.parquet",
        "content_offset": 4,
        "content_size_in_bytes": 40,
        "value_counts": None,
        "lower_bounds": None,
        "upper_bounds": None,
        "split_offsets": None,
        "sort_order_id": None,
    }
    return data_file(at, **{**known, **changes})


def added(file: DataFile | None = None, **changes: Any) -> ManifestEntry:
    return ManifestEntry(EntryStatus.ADDED, file or data_file(), **{"snapshot_id": SNAPSHOT_ID, **changes})


def existing(file: DataFile | None = None, **changes: Any) -> ManifestEntry:
    known = {"snapshot_id": 5, "sequence_number": 2, "file_sequence_number": 2}
    return ManifestEntry(EntryStatus.EXISTING, file or data_file(), **{**known, **changes})


def deleted(file: DataFile | None = None, **changes: Any) -> ManifestEntry:
    known = {"snapshot_id": SNAPSHOT_ID, "sequence_number": 1, "file_sequence_number": 1}
    return ManifestEntry(EntryStatus.DELETED, file or data_file(), **{**known, **changes})


def manifest_file(at: int = 0, **changes: Any) -> ManifestFile:
    """A data manifest of an earlier snapshot: one added file of 100 rows, one existing of 50."""
    known: dict[str, Any] = {
        "manifest_path": f"s3://bucket/metadata/m{at}.avro",
        "manifest_length": 4000 + at,
        "partition_spec_id": 3,
        "added_snapshot_id": 5,
        "sequence_number": 2,
        "min_sequence_number": 1,
        "added_files_count": 1,
        "existing_files_count": 1,
        "deleted_files_count": 0,
        "added_rows_count": 100,
        "existing_rows_count": 50,
        "deleted_rows_count": 0,
        "partitions": (FieldSummary(False, False, b"\x01", b"\x02"),),
    }
    return ManifestFile(**{**known, **changes})
