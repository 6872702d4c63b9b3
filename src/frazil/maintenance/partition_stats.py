"""Compute a snapshot's partition statistics and write their file. Specification: "Partition Statistics".

One row for each partition of each spec, sorted by the partition with nulls first: counts of rows, files and deletes,
and the time of its last change. Manifests are read, but no data. The number of rows after deletes is recorded if it is
known, for partitions without deletes or with only deletion vectors.

If an ancestor of the snapshot has statistics, only later entries are read: those that each later snapshot added and
deleted. The result must agree with the snapshot's summary, or else everything is recounted.

The file is Parquet in the metadata folder. It is informative only; a snapshot has at most one, and keeps it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.catalog.base import Catalog
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.commit.transaction import commit_actions
from frazil.commit.update_statistics import UpdateStatistics
from frazil.datafile.partition_stats_file import adds_up, partition_stats_schema, read_partition_stats
from frazil.datafile.value_arrays import array_of, values_of
from frazil.errors import InvalidRequestError
from frazil.expr.columns.partition_keys import partition_tuples
from frazil.loaded import LoadedTable
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.data_file import FileContent, FileFormat, PartitionKey
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.partition_key import partition_key
from frazil.spec.snapshot import Snapshot
from frazil.spec.snapshot_history import ancestor_ids
from frazil.spec.statistics import PartitionStatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.locations import metadata_folder
from frazil.threads import default_threads, map_in_order

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
    """The counts of one partition."""

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
        """Record that a snapshot changed the partition."""
        if snapshot is not None and (self.last_updated_at is None or snapshot.timestamp_ms > self.last_updated_at):
            self.last_updated_at = snapshot.timestamp_ms
            self.last_updated_snapshot_id = snapshot.snapshot_id

    @property
    def has_files(self) -> bool:
        """Whether the partition still has files."""
        counts = (self.data_file_count, self.position_delete_file_count, self.dv_count, self.equality_delete_file_count)
        return any(count != 0 for count in counts)


@dataclass(slots=True)
class _Counted:
    partitions: dict[PartitionKey, _Stats] = field(default_factory=dict)

    def has_global_deletes(self, metadata: TableMetadata) -> bool:
        """Return whether there are deletes that apply to all partitions."""
        return any(
            partition.equality_delete_file_count and metadata.spec(partition.spec_id).is_unpartitioned
            for partition in self.partitions.values()
        )


@with_progress("compute partition statistics of")
def compute_partition_stats(
    catalog: Catalog,
    loaded: LoadedTable,
    snapshot_id: int | None = None,
    *,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> tuple[LoadedTable, PartitionStatisticsFile | None]:
    """Write the partition statistics of a snapshot, by default the current one; return the new state and the file.

    The file is None if the table has no snapshot. Other writers do not conflict. With `dry_run` nothing is written.
    """
    metadata = loaded.metadata
    if all(partition_spec.is_unpartitioned for partition_spec in metadata.partition_specs):
        raise InvalidRequestError(f"Cannot compute partition statistics of {loaded.name}: it has no partitions")
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return loaded, None
    present = metadata.find_partition_statistics(snapshot.snapshot_id)
    if present is not None:
        return loaded, present
    table = partition_stats(loaded, snapshot, cache=cache, threads=threads)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue()
    name = f"partition-stats-{snapshot.snapshot_id}-{catalog.new_id()}.parquet"
    path = f"{metadata_folder(metadata.location, metadata.properties)}/{name}"
    file = PartitionStatisticsFile(snapshot.snapshot_id, path, len(data))
    if dry_run:
        return loaded, file
    loaded.storage.create(path, data)
    return commit_actions(catalog, loaded, UpdateStatistics(partition_statistics=(file,)), cache=cache), file


def partition_stats(
    loaded: LoadedTable, snapshot: Snapshot, *, cache: ManifestCache | None = None, threads: int | None = None
) -> pa.Table:
    """Return the rows of a snapshot's partition statistics file."""
    workers = default_threads() if threads is None else threads
    later = _from_earlier(loaded, snapshot, cache, workers)
    if later is not None and adds_up(later, snapshot):
        return later
    counted = _Counted()
    manifests = read_manifest_list(loaded.storage, snapshot)
    # Deletes come last, so that a partition with deletes and no data files is counted too.
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        chosen = [manifest for manifest in manifests if manifest.content is content]
        for row in _entries(loaded, chosen, cache, workers):
            _count(counted, loaded.metadata, *row)
    return _to_table(loaded.metadata, counted)


def _entries(
    loaded: LoadedTable, manifests: Sequence[ManifestFile], cache: ManifestCache | None, threads: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the entries of manifests: spec, partition, and the other fields in order."""
    specs = partition_types(loaded.metadata)

    def read(manifest: ManifestFile) -> list[tuple[Any, ...]]:
        files = read_manifest(loaded.storage, manifest, specs[manifest.partition_spec_id][1], _FIELDS, cache=cache)
        columns = [files.column(name).to_pylist() for name in _FIELDS if name != "partition"]
        return [(files.spec_id, *row) for row in zip(partition_tuples(files), *columns, strict=True)]

    for rows in counted("manifests read", map_in_order(read, manifests, threads=threads)):
        yield from rows


# From the statistics of an earlier snapshot


def _from_earlier(
    loaded: LoadedTable, snapshot: Snapshot, cache: ManifestCache | None, threads: int
) -> pa.Table | None:
    """Return a snapshot's statistics from those of its latest ancestor that has some, or None if impossible."""
    metadata = loaded.metadata
    since: list[Snapshot] = []
    earlier: pa.Table | None = None
    for snapshot_id in ancestor_ids(metadata, snapshot.snapshot_id):
        if metadata.find_partition_statistics(snapshot_id) is not None:
            earlier = read_partition_stats(loaded, metadata.snapshot(snapshot_id))
            break
        since.append(metadata.snapshot(snapshot_id))
    if earlier is None:
        return None
    counted = _restore(metadata, earlier)
    for later in reversed(since):
        # A snapshot's deletions are only in its own manifests, since later ones drop them.
        own = [
            each
            for each in read_manifest_list(loaded.storage, later)
            if each.added_snapshot_id == later.snapshot_id and (each.has_added_files or each.has_deleted_files)
        ]
        for row in _entries(loaded, own, cache, threads):
            status, snapshot_id = row[2], row[3]
            if status == EntryStatus.EXISTING:
                continue
            if snapshot_id != later.snapshot_id:
                return None
            _count(counted, metadata, *row, removes=status == EntryStatus.DELETED)
    counted.partitions = {key: stats for key, stats in counted.partitions.items() if stats.has_files}
    return _to_table(metadata, counted)


def _restore(metadata: TableMetadata, table: pa.Table) -> _Counted:
    """Return the counts in a statistics file."""
    data_type = partition_stats_schema(metadata).fields[0].field_type
    assert isinstance(data_type, StructType)
    stored = table.column("partition").combine_chunks()
    by_id = {
        nested_field.field_id: values_of(stored.field(index), nested_field.field_type)
        for index, nested_field in enumerate(data_type.fields)
    }
    counts = {name: table.column(name).to_pylist() for name in table.column_names if name in _Stats.__slots__}
    counted = _Counted()
    for index, spec_id in enumerate(counts.pop("spec_id")):
        spec = metadata.spec(spec_id)
        values = tuple(
            by_id[partition_field.field_id][index] if partition_field.field_id in by_id else None
            for partition_field in spec.fields
        )
        numbers = {name: column[index] for name, column in counts.items()}
        counted.partitions[partition_key(spec_id, values)] = _Stats(spec_id, values, **numbers)
    return counted


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
    *,
    removes: bool = False,
) -> None:
    """Count an entry. With `removes`, the file was counted before and is subtracted."""
    key = partition_key(spec_id, values)
    snapshot = None if snapshot_id is None else metadata.find_snapshot(snapshot_id)
    stats = counted.partitions.get(key)
    if status == EntryStatus.DELETED and not removes:
        if stats is not None:
            stats.touch(snapshot)
        return
    if stats is None:
        stats = counted.partitions[key] = _Stats(spec_id, values)
    stats.touch(snapshot)
    sign = -1 if removes else 1
    rows = sign * max(records, 0)
    if content == FileContent.DATA:
        stats.data_record_count += rows
        stats.data_file_count += sign
        stats.total_data_file_size_in_bytes += sign * max(size, 0)
    elif content == FileContent.EQUALITY_DELETES:
        stats.equality_delete_record_count += rows
        stats.equality_delete_file_count += sign
    else:
        stats.position_delete_record_count += rows
        if file_format == FileFormat.PUFFIN.value and metadata.format_version >= 3:
            stats.dv_count += sign
        else:
            stats.position_delete_file_count += sign


def _to_table(metadata: TableMetadata, counted: _Counted) -> pa.Table:
    schema = partition_stats_schema(metadata)
    partition = schema.fields[0].field_type
    assert isinstance(partition, StructType)
    rows = sorted(_rows(metadata, counted, partition), key=lambda row: _order(row["partition"], partition))
    arrow = to_arrow_schema(schema)
    arrays = [
        array_of([row[nested_field.name] for row in rows], nested_field.field_type, target.type)
        for nested_field, target in zip(schema.fields, arrow, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=arrow)


def _rows(metadata: TableMetadata, counted: _Counted, partition: StructType) -> Iterator[dict[str, Any]]:
    names = [nested_field.name for nested_field in partition_stats_schema(metadata).fields]
    has_global_deletes = counted.has_global_deletes(metadata)
    for stats in counted.partitions.values():
        spec = metadata.spec(stats.spec_id)
        values = dict(zip((partition_field.field_id for partition_field in spec.fields), stats.values, strict=True))
        row = {name: getattr(stats, name, None) for name in names}
        row["partition"] = {nested_field.name: values.get(nested_field.field_id) for nested_field in partition.fields}
        is_known = not (stats.position_delete_file_count or stats.equality_delete_file_count or has_global_deletes)
        row["total_record_count"] = stats.data_record_count - stats.position_delete_record_count if is_known else None
        yield row


def _order(values: dict[str, Any], partition: StructType) -> tuple[Any, ...]:
    """Return the sort key of a partition: nulls first, NaN last."""
    keys: list[tuple[Any, ...]] = []
    for nested_field in partition.fields:
        value = values[nested_field.name]
        keys.append((0,) if value is None else (2,) if value != value else (1, value))
    return tuple(keys)
