"""The table `partitions`: the contents of each partition of a snapshot, aggregated over its live files.

Partitions of all specs are shown in the unified type. Two specs whose files have the same tuple in it share a row,
unless they have different numbers of its fields: `a = 1` of an older spec is not `a = 1, b = null` of a newer one. This
is Iceberg Java's rule.

`last_updated_at` is the commit time of the newest snapshot that added one of the partition's live files, or null if all
of those have expired; `spec_id` is that of the file it added, or the highest of the partition's files.

If the snapshot has reliable partition statistics (`datafile/partition_stats_file.py`), they are returned, and no
manifest is read. Their updates include files that were removed from a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.datafile.partition_stats_file import partition_stats_schema, read_partition_stats
from frazil.expr.columns.manifest_columns import partition_children, single_chunk
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_chosen_manifests, read_rows
from frazil.metadata_tables.select_columns import project_table, select_columns
from frazil.metadata_tables.snapshots import TIMESTAMPTZ_TYPE, to_micros
from frazil.metadata_tables.unify_partitions import (
    metadata_partition_type,
    partition_array,
    partition_fields,
)
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, choose_snapshot
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import FileContent
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType

_FIELDS = ("content", "partition", "record_count", "file_size_in_bytes", "snapshot_id")
_SUMS: dict[str, tuple[FileContent, str | None]] = {
    "record_count": (FileContent.DATA, "record_count"),
    "file_count": (FileContent.DATA, None),
    "total_data_file_size_in_bytes": (FileContent.DATA, "file_size_in_bytes"),
    "position_delete_record_count": (FileContent.POSITION_DELETES, "record_count"),
    "position_delete_file_count": (FileContent.POSITION_DELETES, None),
    "equality_delete_record_count": (FileContent.EQUALITY_DELETES, "record_count"),
    "equality_delete_file_count": (FileContent.EQUALITY_DELETES, None),
}
"""The sums for a partition: a number of files of one content, or 1 for each file."""

_STATS = {
    "record_count": ("data_record_count",),
    "file_count": ("data_file_count",),
    "position_delete_file_count": ("position_delete_file_count", "dv_count"),
}
"""The columns in partition statistics with another name."""


def partitions_schema(metadata: TableMetadata) -> pa.Schema:
    """Return the columns of the table; without partitions it has neither `partition` nor `spec_id`."""
    partition = partition_fields(metadata_partition_type(metadata))
    spec_id = [pa.field("spec_id", pa.int32(), nullable=False)] if partition else []
    sums = [
        pa.field(name, pa.int32() if source is None else pa.int64(), nullable=False)
        for name, (_, source) in _SUMS.items()
    ]
    updated = [pa.field("last_updated_at", TIMESTAMPTZ_TYPE), pa.field("last_updated_snapshot_id", pa.int64())]
    return pa.schema([*partition, *spec_id, *sums, *updated])


def partitions(
    loaded: LoadedTable,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the partitions of a snapshot, in the order of their first occurrence in its manifests or statistics."""
    metadata = loaded.metadata
    schema = partitions_schema(metadata)
    chosen = select_columns(schema, columns)
    partition_type = metadata_partition_type(metadata)
    updates = _Updates(metadata)
    snapshot, _ = choose_snapshot(metadata, choice)
    stats = None if snapshot is None else read_partition_stats(loaded, snapshot)
    if stats is None:
        tables = read_rows(
            loaded,
            read_chosen_manifests(loaded, choice),
            _FIELDS,
            lambda files: _rows(files, partition_type, updates),
            only_live=True,
            cache=cache,
            threads=threads,
        )
    else:
        tables = list(_stats_rows(stats, metadata, partition_type, updates))
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return pa.Table.from_batches([], schema=chosen)
    rows = pa.concat_tables(tables)
    keys = [name for name in rows.column_names if name.startswith("key_")]
    sums = [(name, "sum") for name in _SUMS]
    groups = rows.group_by(keys, use_threads=False).aggregate([*sums, ("update", "max")])
    spec_ids, snapshot_ids, times = updates.decode(single_chunk(groups.column("update_max")))
    arrays_by_name = {name: single_chunk(groups.column(f"{name}_sum")) for name in _SUMS}
    arrays_by_name |= {"spec_id": spec_ids, "last_updated_snapshot_id": snapshot_ids, "last_updated_at": times}
    if len(partition_type):
        children = [single_chunk(groups.column(f"key_{index}")) for index in range(len(partition_type))]
        arrays_by_name["partition"] = partition_array(children, schema.field("partition").type, partition_type)
    arrays = [
        arrays_by_name[field.name] if field.name == "partition" else arrays_by_name[field.name].cast(field.type)
        for field in schema
    ]
    return project_table(pa.Table.from_arrays(arrays, schema=schema), chosen)


def _rows(files: ManifestColumns, data_type: StructType, updates: _Updates) -> pa.Table:
    """Return for each file its partition as keys, its index in the order of updates, and its contribution to sums."""
    count = len(files)
    own = {field.field_id for field in files.partition_type.fields}
    shared = sum(field.field_id in own for field in data_type.fields)
    columns = {f"key_{index}": child for index, child in enumerate(partition_children(files, data_type))}
    columns["key_fields"] = pa.array(np.full(count, shared, np.int32))
    columns["update"] = updates.encode(single_chunk(files.column("snapshot_id")), files.spec_id)
    content = files.column("content").to_numpy()
    for name, (content_value, source) in _SUMS.items():
        # Files of writers that did not know a number have -1.
        values = np.ones(count, np.int64) if source is None else np.maximum(files.column(source).to_numpy(), 0)
        columns[name] = pa.array(np.where(content == int(content_value), values, 0))
    return pa.table(columns)


def _stats_rows(
    stats: pa.Table, metadata: TableMetadata, data_type: StructType, updates: _Updates
) -> Iterator[pa.Table]:
    """Yield the same columns from statistics, a table for each spec."""
    stored = partition_stats_schema(metadata).fields[0].field_type
    assert isinstance(stored, StructType)
    positions = {field.field_id: index for index, field in enumerate(stored.fields)}
    for spec_id in stats.column("spec_id").unique().to_pylist():
        rows = stats.filter(pc.equal(stats.column("spec_id"), spec_id))
        partition = single_chunk(rows.column("partition"))
        own = {field.field_id for field in metadata.spec(spec_id).fields}
        columns: dict[str, pa.Array] = {}
        for index, field in enumerate(data_type.fields):
            child = partition.field(positions[field.field_id])
            columns[f"key_{index}"] = child.storage if isinstance(child.type, pa.BaseExtensionType) else child
        shared = sum(field.field_id in own for field in data_type.fields)
        columns["key_fields"] = pa.array(np.full(len(rows), shared, np.int32))
        columns["update"] = updates.encode(single_chunk(rows.column("last_updated_snapshot_id")), spec_id)
        for name in _SUMS:
            counted = [column_name for column_name in _STATS.get(name, (name,)) if column_name in rows.column_names]
            columns[name] = pa.array(
                sum(rows.column(column_name).to_numpy().astype(np.int64) for column_name in counted)
            )
        yield pa.table(columns)


class _Updates:
    """The order of a table's snapshots and specs as one number, so that the newest update is the maximum.

    Snapshots are ordered by commit time and then by sequence number; expired ones come first.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        heads = sorted(metadata.snapshots.heads, key=lambda head: (head.timestamp_ms, head.sequence_number))
        self._snapshot_ids = pa.array([None, *(head.snapshot_id for head in heads)], pa.int64())
        self._times = to_micros([None, *(head.timestamp_ms for head in heads)])
        self._spec_ids = pa.array(
            sorted(partition_spec.spec_id for partition_spec in metadata.partition_specs), pa.int32()
        )

    def encode(self, snapshot_ids: pa.Array, spec_id: int) -> pa.Array:
        """Return the number of each file's update."""
        positions = pc.index_in(snapshot_ids, value_set=self._snapshot_ids, skip_nulls=True)
        known_positions = pc.fill_null(positions, 0).cast(pa.int64())
        spec_index = pc.index_in(pa.scalar(spec_id, pa.int32()), value_set=self._spec_ids).as_py()
        return pc.add(pc.multiply(known_positions, len(self._spec_ids)), spec_index)

    def decode(self, numbers: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return the spec id, the snapshot id and the time of updates."""
        values = numbers.to_numpy()
        snapshots, specs = np.divmod(values, len(self._spec_ids))
        return self._spec_ids.take(specs), self._snapshot_ids.take(snapshots), self._times.take(snapshots)
