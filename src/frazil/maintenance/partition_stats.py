"""Compute a snapshot's partition statistics and write their file. Specification: "Partition Statistics".

One row for each partition of each spec, sorted by the partition with nulls first: counts of rows, files and deletes,
and when the partition last changed. Manifests are read, no data. How many rows are left after deletes is said where it
is known: where a partition has no deletes, or deletion vectors only.

The file is Parquet in the metadata folder. It informs; a snapshot has one at most, and one that has it keeps it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.catalog.base import Catalog
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.commit.partition_keys import partition_key, partition_tuples
from frazil.commit.transaction import commit_actions
from frazil.commit.update_statistics import UpdateStatistics
from frazil.datafile.value_arrays import array_of
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.scan.delete_index import PartitionKey
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import partition_types
from frazil.scan.read_manifests import default_threads, map_in_order, read_manifest, read_manifest_list
from frazil.spec.data_file import FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.partitioning import unified_partition_type
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.statistics import PartitionStatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import INT, LONG, NestedField, StructType
from frazil.storage.locations import metadata_folder

_FIELDS = (
    "status",
    "snapshot_id",
    "content",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
)


@dataclass(slots=True)
class _Stats:
    """What is counted for one partition."""

    spec_id: int
    values: tuple[Any, ...]
    data_record_count: int = 0
    data_file_count: int = 0
    total_data_file_size_in_bytes: int = 0
    position_delete_record_count: int = 0
    position_delete_file_count: int = 0
    dv_count: int = 0
    equality_delete_record_count: int = 0
    equality_delete_file_count: int = 0
    last_updated_at: int | None = None
    last_updated_snapshot_id: int | None = None

    def touch(self, snapshot: Snapshot | None) -> None:
        """Note that a snapshot changed the partition."""
        if snapshot is not None and (self.last_updated_at is None or snapshot.timestamp_ms > self.last_updated_at):
            self.last_updated_at = snapshot.timestamp_ms
            self.last_updated_snapshot_id = snapshot.snapshot_id


@dataclass(slots=True)
class _Counted:
    partitions: dict[PartitionKey, _Stats] = field(default_factory=dict)
    has_global_deletes: bool = False


def partition_stats_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of a partition statistics file of a table."""
    is_v3 = metadata.format_version >= 3
    partition = unified_partition_type(
        metadata.partition_specs, metadata.current_schema, other_schemas=metadata.schemas
    )
    fields = [
        NestedField(1, "partition", partition, required=True),
        NestedField(2, "spec_id", INT, required=True),
        NestedField(3, "data_record_count", LONG, required=True),
        NestedField(4, "data_file_count", INT, required=True),
        NestedField(5, "total_data_file_size_in_bytes", LONG, required=True),
        NestedField(6, "position_delete_record_count", LONG, required=is_v3),
        NestedField(7, "position_delete_file_count", INT, required=is_v3),
        NestedField(8, "equality_delete_record_count", LONG, required=is_v3),
        NestedField(9, "equality_delete_file_count", INT, required=is_v3),
        NestedField(10, "total_record_count", LONG),
        NestedField(11, "last_updated_at", LONG),
        NestedField(12, "last_updated_snapshot_id", LONG),
    ]
    if is_v3:
        fields.insert(7, NestedField(13, "dv_count", INT, required=True))
    return Schema(tuple(fields))


def compute_partition_stats(
    catalog: Catalog,
    loaded: LoadedTable,
    snapshot_id: int | None = None,
    *,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> tuple[LoadedTable, PartitionStatisticsFile | None]:
    """Write the partition statistics of a snapshot, the current one unless given; return the new state and the file.

    None where the table has no snapshot. Other writers are no conflict.
    """
    metadata = loaded.metadata
    if all(one.is_unpartitioned for one in metadata.partition_specs):
        raise InvalidRequestError(f"Cannot compute partition statistics of {loaded.name}: it has no partitions")
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return loaded, None
    known = metadata.find_partition_statistics(snapshot.snapshot_id)
    if known is not None:
        return loaded, known
    table = partition_stats(loaded, snapshot, cache=cache, threads=threads)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue()
    name = f"partition-stats-{snapshot.snapshot_id}-{catalog.new_id()}.parquet"
    path = f"{metadata_folder(metadata.location, metadata.properties)}/{name}"
    loaded.storage.create(path, data)
    made = PartitionStatisticsFile(snapshot.snapshot_id, path, len(data))
    return commit_actions(catalog, loaded, UpdateStatistics(partition_statistics=(made,)), cache=cache), made


def partition_stats(
    loaded: LoadedTable, snapshot: Snapshot, *, cache: ManifestCache | None = None, threads: int | None = None
) -> pa.Table:
    """Return the rows of a snapshot's partition statistics file."""
    counted = _Counted()
    workers = default_threads() if threads is None else threads
    specs = partition_types(loaded.metadata)

    def read(manifest: ManifestFile) -> list[tuple[Any, ...]]:
        files = read_manifest(loaded.storage, manifest, specs[manifest.partition_spec_id][1], _FIELDS, cache=cache)
        columns = [files.column(name).to_pylist() for name in _FIELDS if name != "partition"]
        return [(files.spec_id, *row) for row in zip(partition_tuples(files), *columns, strict=True)]

    manifests = read_manifest_list(loaded.storage, snapshot)
    # Deletes come last: a partition without data files that has deletes counts all the same.
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        chosen = [one for one in manifests if one.content is content]
        for rows in map_in_order(read, chosen, threads=workers):
            for row in rows:
                _count(counted, loaded.metadata, *row)
    return _to_table(loaded.metadata, counted)


def _count(
    counted: _Counted,
    metadata: TableMetadata,
    spec_id: int,
    values: tuple[Any, ...],
    status: int,
    snapshot_id: int | None,
    content: int,
    file_format: str,
    records: int,
    size: int,
) -> None:
    key = partition_key(spec_id, values)
    snapshot = None if snapshot_id is None else metadata.find_snapshot(snapshot_id)
    stats = counted.partitions.get(key)
    if status == EntryStatus.DELETED:
        if stats is not None:
            stats.touch(snapshot)
        return
    if stats is None:
        stats = counted.partitions[key] = _Stats(spec_id, values)
    stats.touch(snapshot)
    rows = max(records, 0)
    if content == FileContent.DATA:
        stats.data_record_count += rows
        stats.data_file_count += 1
        stats.total_data_file_size_in_bytes += max(size, 0)
    elif content == FileContent.EQUALITY_DELETES:
        stats.equality_delete_record_count += rows
        stats.equality_delete_file_count += 1
        counted.has_global_deletes |= metadata.spec(spec_id).is_unpartitioned
    else:
        stats.position_delete_record_count += rows
        if file_format == FileFormat.PUFFIN.value and metadata.format_version >= 3:
            stats.dv_count += 1
        else:
            stats.position_delete_file_count += 1


def _to_table(metadata: TableMetadata, counted: _Counted) -> pa.Table:
    schema = partition_stats_schema(metadata)
    partition = schema.fields[0].field_type
    assert isinstance(partition, StructType)
    rows = sorted(_rows(metadata, counted, partition), key=lambda row: _order(row["partition"], partition))
    arrow = to_arrow_schema(schema)
    arrays = [
        array_of([row[part.name] for row in rows], part.field_type, target.type)
        for part, target in zip(schema.fields, arrow, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=arrow)


def _rows(metadata: TableMetadata, counted: _Counted, partition: StructType) -> Iterator[dict[str, Any]]:
    names = [one.name for one in partition_stats_schema(metadata).fields]
    for stats in counted.partitions.values():
        spec = metadata.spec(stats.spec_id)
        values = dict(zip((one.field_id for one in spec.fields), stats.values, strict=True))
        row = {name: getattr(stats, name, None) for name in names}
        row["partition"] = {one.name: values.get(one.field_id) for one in partition.fields}
        is_known = not (
            stats.position_delete_file_count or stats.equality_delete_file_count or counted.has_global_deletes
        )
        row["total_record_count"] = stats.data_record_count - stats.position_delete_record_count if is_known else None
        yield row


def _order(values: dict[str, Any], partition: StructType) -> tuple[Any, ...]:
    """Return a key by which partitions sort: nulls first, NaN last."""
    keys: list[tuple[Any, ...]] = []
    for part in partition.fields:
        value = values[part.name]
        keys.append((0,) if value is None else (2,) if value != value else (1, value))
    return tuple(keys)
