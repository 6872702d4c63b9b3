"""Metadata of a large table, made without data files: what the planning benchmarks plan over.

Ten long columns with bounds, partitioned by day, files in the order of time, a number of manifests; every hundredth
file has a file of deleted positions where `add_deletes` was called. All files are described, none exist. Made with
frazil's own writers; any reader of the format can plan over it.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_list_avro import decode_manifest_list, encode_manifest_list
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.loaded import LoadedTable
from frazil.spec.data_file import FileContent
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.types import LONG, TIMESTAMP, NestedField
from frazil.storage.local import LocalStorage

COLUMNS = 10
FILES_PER_DAY = 1_000
FIRST_DAY = 19_000
ROWS = 100_000
SNAPSHOT_ID = 4_242_424_242
NOW_MS = 1_700_000_000_000
DELETE_FILE_PATH = 2147483546
"""The field id of the path in files of deleted positions."""
BOUNDS = pa.list_(
    pa.struct([pa.field("key", pa.int32(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
)
SCHEMA = Schema((NestedField(1, "ts", TIMESTAMP), *(NestedField(at + 1, f"c{at}", LONG) for at in range(1, COLUMNS))))


def make_planning_table(folder: Path, files: int, manifests: int) -> LoadedTable:
    """Write the metadata of a table of so many files in so many manifests into a folder."""
    spec = build_partition_spec(SCHEMA, ["day(ts)"])
    location = f"file://{folder}"
    metadata = new_table_metadata(SCHEMA, spec, location=location, uuid=str(uuid.UUID(int=7)), now_ms=NOW_MS)
    storage = LocalStorage(durable=False)
    described = []
    per_manifest = -(-files // manifests)
    for number in range(manifests):
        start, end = number * per_manifest, min(files, (number + 1) * per_manifest)
        path = f"{location}/metadata/manifest-{number:05d}.avro"
        encoded = encode_manifest(
            planning_entries(start, end, location),
            path=path,
            spec=metadata.default_spec,
            schema=metadata.current_schema,
            format_version=2,
            snapshot_id=SNAPSHOT_ID,
        )
        storage.create(path, encoded.data)
        described.append(encoded.manifest)
    loaded = LoadedTable(("bench", "planning"), metadata, None, storage)
    return _with_manifests(loaded, described, 1)


def add_deletes(loaded: LoadedTable, files: int) -> LoadedTable:
    """Return the table with a file of deleted positions for every hundredth of its files, in one manifest."""
    metadata, storage = loaded.metadata, loaded.storage
    path = f"{metadata.location}/metadata/deletes-00000.avro"
    encoded = encode_manifest(
        delete_entries(files, metadata.location),
        path=path,
        spec=metadata.default_spec,
        schema=metadata.current_schema,
        format_version=2,
        snapshot_id=SNAPSHOT_ID,
        content=ManifestContent.DELETES,
    )
    storage.create(path, encoded.data)
    current = metadata.current_snapshot
    assert current is not None
    assert current.manifest_list is not None
    before = decode_manifest_list(storage.read(current.manifest_list))
    return _with_manifests(loaded, [*before, encoded.manifest], 2)


def _with_manifests(loaded: LoadedTable, described: list[ManifestFile], version: int) -> LoadedTable:
    metadata, storage = loaded.metadata, loaded.storage
    location = metadata.location
    list_path = f"{location}/metadata/snap-{SNAPSHOT_ID}-{version}.avro"
    encoded_list = encode_manifest_list(
        described, format_version=2, snapshot_id=SNAPSHOT_ID, parent_snapshot_id=None, sequence_number=1
    )
    storage.create(list_path, encoded_list.data)
    snapshot = Snapshot(
        SNAPSHOT_ID, NOW_MS, list_path, FrozenMap({"operation": "append"}), sequence_number=1, schema_id=0
    )
    metadata = replace(
        metadata,
        snapshots=SnapshotList((snapshot,)),
        current_snapshot_id=SNAPSHOT_ID,
        last_sequence_number=1,
        snapshot_log=(SnapshotLogEntry(NOW_MS, SNAPSHOT_ID),),
        refs=FrozenMap({"main": SnapshotRef(SNAPSHOT_ID, "branch")}),
    )
    metadata_path = f"{location}/metadata/0000{version}-{uuid.UUID(int=8)}.metadata.json"
    storage.create(metadata_path, encode_table_metadata(metadata))
    return LoadedTable(loaded.identifier, metadata, metadata_path, storage)


def _paths(numbers: npt.NDArray[np.int64], days: npt.NDArray[np.int32], location: str) -> list[str]:
    return [
        f"{location}/data/ts_day={day}/{number:08d}-0-{number * 2654435761 % 2**32:08x}-00001.parquet"
        for number, day in zip(numbers.tolist(), days.tolist(), strict=True)
    ]


def delete_entries(files: int, location: str) -> pa.Table:
    """Return the entries of files that each delete positions of one data file."""
    numbers = np.arange(0, files, 100, dtype=np.int64)
    count = len(numbers)
    days = (FIRST_DAY + numbers // FILES_PER_DAY).astype(np.int32)
    referenced = _paths(numbers, days, location)
    bounds = pa.array([[(DELETE_FILE_PATH, path.encode())] for path in referenced], BOUNDS)
    return pa.table(
        {
            "status": pa.array(np.full(count, int(EntryStatus.ADDED), dtype=np.int32)),
            "content": pa.array(np.full(count, FileContent.POSITION_DELETES.value, dtype=np.int32)),
            "file_path": pa.array([path.replace(".parquet", "-deletes.parquet") for path in referenced]),
            "file_format": pa.array(["parquet"] * count),
            "partition": pa.StructArray.from_arrays([pa.array(days).cast(pa.date32())], names=["ts_day"]),
            "record_count": pa.array(np.full(count, 100, dtype=np.int64)),
            "file_size_in_bytes": pa.array(np.full(count, 2_000, dtype=np.int64)),
            "lower_bounds": bounds,
            "upper_bounds": bounds,
        }
    )


def planning_entries(start: int, end: int, location: str) -> pa.Table:
    """Return the entries of files `start` to `end` as columns; file n holds rows n×ROWS and on in each column."""
    count = end - start
    numbers = np.arange(start, end, dtype=np.int64)
    days = (FIRST_DAY + numbers // FILES_PER_DAY).astype(np.int32)
    lower, upper = numbers * ROWS, numbers * ROWS + ROWS - 1
    day_start = days.astype(np.int64) * 86_400_000_000
    paths = _paths(numbers, days, location)
    ids = np.tile(np.arange(1, COLUMNS + 1, dtype=np.int32), count)
    offsets = pa.array(np.arange(0, count * COLUMNS + 1, COLUMNS, dtype=np.int32))

    def metric(values: pa.Array) -> pa.Array:
        kind = pa.struct([pa.field("key", pa.int32(), nullable=False), pa.field("value", values.type, nullable=False)])
        pairs = pa.StructArray.from_arrays([pa.array(ids), values], fields=list(kind))
        return pa.ListArray.from_arrays(offsets, pairs)

    def bounds(first: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> pa.Array:
        wide = np.repeat(others[:, None], COLUMNS, axis=1)
        wide[:, 0] = first
        data = np.ascontiguousarray(wide.astype("<i8")).view(np.uint8).tobytes()
        positions = np.arange(0, count * COLUMNS * 8 + 1, 8, dtype=np.int32)
        return pa.Array.from_buffers(
            pa.binary(), count * COLUMNS, [None, pa.py_buffer(positions.tobytes()), pa.py_buffer(data)]
        )

    def counts(value: int) -> pa.Array:
        return pa.array(np.full(count * COLUMNS, value, dtype=np.int64))

    sizes = np.repeat(1_000_000 + numbers % 777, COLUMNS)
    return pa.table(
        {
            "status": pa.array(np.full(count, int(EntryStatus.ADDED), dtype=np.int32)),
            "content": pa.array(np.zeros(count, dtype=np.int32)),
            "file_path": pa.array(paths),
            "file_format": pa.array(["parquet"] * count),
            "partition": pa.StructArray.from_arrays([pa.array(days).cast(pa.date32())], names=["ts_day"]),
            "record_count": pa.array(np.full(count, ROWS, dtype=np.int64)),
            "file_size_in_bytes": pa.array(10_000_000 + numbers % 1_000_003),
            "column_sizes": metric(pa.array(sizes)),
            "value_counts": metric(counts(ROWS)),
            "null_value_counts": metric(counts(0)),
            "lower_bounds": metric(bounds(day_start, lower)),
            "upper_bounds": metric(bounds(day_start + 86_399_999_999, upper)),
            "split_offsets": pa.array([[4]] * count, pa.list_(pa.int64())),
            "sort_order_id": pa.array(np.zeros(count, dtype=np.int32)),
        }
    )
