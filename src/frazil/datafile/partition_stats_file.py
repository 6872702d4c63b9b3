"""The partition statistics file of a snapshot: its columns, and how to read it. Specification: "Partition Statistics".

`maintenance/partition_stats.py` writes it, incrementally from the previous one, and the metadata table `partitions` is
read from it. It is informative only: a file that is missing, corrupt, or inconsistent with the snapshot's summary is
ignored.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.errors import StorageError
from frazil.loaded import LoadedTable
from frazil.spec.partitioning import unified_partition_type
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import INT, LONG, NestedField

_FIELD_ID = b"PARQUET:field_id"
_NEEDED = range(1, 6)
"""The columns of every version of the format."""
_TOTALS = {
    Summary.TOTAL_DATA_FILES: ("data_file_count",),
    Summary.TOTAL_RECORDS: ("data_record_count",),
    Summary.TOTAL_DELETE_FILES: ("position_delete_file_count", "dv_count", "equality_delete_file_count"),
    Summary.TOTAL_POSITION_DELETES: ("position_delete_record_count",),
    Summary.TOTAL_EQUALITY_DELETES: ("equality_delete_record_count",),
}
"""The fields of a snapshot's summary that equal sums of columns over all partitions."""


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


def read_partition_stats(loaded: LoadedTable, snapshot: Snapshot) -> pa.Table | None:
    """Return a snapshot's partition statistics with the table's present columns, and 0 for null counts.

    Returns None if there are no reliable ones. Partition fields are matched by id, or by name.
    """
    file = loaded.metadata.find_partition_statistics(snapshot.snapshot_id)
    if file is None:
        return None
    try:
        stored = pq.read_table(io.BytesIO(loaded.storage.read(file.statistics_path)))
        table = _as_present(loaded.metadata, stored)
    except (StorageError, pa.ArrowException):
        return None
    return table if table is not None and adds_up(table, snapshot) else None


def adds_up(table: pa.Table, snapshot: Snapshot) -> bool:
    """Return whether statistics agree with the snapshot's summary of the whole table."""
    summary: Mapping[str, str] = snapshot.summary or {}
    for name, columns in _TOTALS.items():
        text = summary.get(name)
        if text is not None and text.isascii() and text.isdigit():
            total = sum(pc.sum(table.column(column)).as_py() or 0 for column in columns if column in table.column_names)
            if total != int(text):
                return False
    return True


def _as_present(metadata: TableMetadata, stored: pa.Table) -> pa.Table | None:
    """Return statistics with the table's present columns, or None if a required column is missing."""
    schema = partition_stats_schema(metadata)
    arrow = to_arrow_schema(schema)
    columns = _find_fields(list(stored.schema), [(field.field_id, field.name) for field in schema.fields])
    arrays: list[pa.Array] = []
    for field, target, index in zip(schema.fields, arrow, columns, strict=True):
        if index is None and field.field_id in _NEEDED:
            return None
        if field.name == "partition":
            arrays.append(_partitions(stored.column(index).combine_chunks(), target.type))
        elif index is None:
            arrays.append(pa.array([0 if _is_count(field) else None] * stored.num_rows, target.type))
        else:
            column = stored.column(index).combine_chunks().cast(target.type)
            arrays.append(pc.fill_null(column, 0) if _is_count(field) else column)
    return pa.Table.from_arrays(arrays, schema=arrow)


def _is_count(field: NestedField) -> bool:
    return field.name.endswith("_count") and field.name != "total_record_count"


def _partitions(stored: pa.Array, target: pa.DataType) -> pa.Array:
    indexes = _find_fields(list(stored.type), [(int(field.metadata[_FIELD_ID]), field.name) for field in target])
    children = []
    for field, index in zip(target, indexes, strict=True):
        if index is None:
            children.append(pa.nulls(len(stored), field.type))
            continue
        child = stored.field(index)
        plain = child.storage if isinstance(child.type, pa.BaseExtensionType) else child
        if isinstance(field.type, pa.BaseExtensionType):
            children.append(pa.ExtensionArray.from_storage(field.type, plain.cast(field.type.storage_type)))
        else:
            children.append(plain.cast(field.type))
    return pa.Array.from_buffers(target, len(stored), [None], children=children)


def _find_fields(stored: list[pa.Field], fields: list[tuple[int, str]]) -> list[int | None]:
    """Return the indexes of fields by id, or by name if the file has no ids."""
    by_id = {
        int(field.metadata[_FIELD_ID]): index
        for index, field in enumerate(stored)
        if _FIELD_ID in (field.metadata or {})
    }
    if by_id:
        return [by_id.get(field_id) for field_id, _ in fields]
    by_name = {field.name: index for index, field in enumerate(stored)}
    return [by_name.get(name) for _, name in fields]
