"""The partition statistics file of a snapshot: its columns, and reading it. Specification: "Partition Statistics".

`maintenance/partition_stats.py` writes it and goes on from the last one; the metadata table `partitions` is answered
from it. It informs, and nothing may depend on it: a file that is gone, is broken, or adds up to other numbers than the
snapshot's summary says is as good as none.
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
"""The columns that every version of the format has."""
_TOTALS = {
    Summary.TOTAL_DATA_FILES: ("data_file_count",),
    Summary.TOTAL_RECORDS: ("data_record_count",),
    Summary.TOTAL_DELETE_FILES: ("position_delete_file_count", "dv_count", "equality_delete_file_count"),
    Summary.TOTAL_POSITION_DELETES: ("position_delete_record_count",),
    Summary.TOTAL_EQUALITY_DELETES: ("equality_delete_record_count",),
}
"""What a snapshot's summary says of columns added up over all partitions."""


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
    """Return the partition statistics of a snapshot under the table's present columns, with 0 for counts that are null.

    None where it has none that can be relied on. Partition fields are found by id, or by name.
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
    """Return whether statistics agree with what the snapshot's summary says of the whole table."""
    summary: Mapping[str, str] = snapshot.summary or {}
    for name, columns in _TOTALS.items():
        said = summary.get(name)
        if said is not None and said.isascii() and said.isdigit():
            found = sum(pc.sum(table.column(column)).as_py() or 0 for column in columns if column in table.column_names)
            if found != int(said):
                return False
    return True


def _as_present(metadata: TableMetadata, stored: pa.Table) -> pa.Table | None:
    """Return statistics under the table's present columns; None where a column is missing that must be there."""
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
    places = _find_fields(list(stored.type), [(int(field.metadata[_FIELD_ID]), field.name) for field in target])
    children = []
    for field, index in zip(target, places, strict=True):
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


def _find_fields(stored: list[pa.Field], wanted: list[tuple[int, str]]) -> list[int | None]:
    """Return where fields of some ids are, by their names where the file has no ids."""
    known = {
        int(field.metadata[_FIELD_ID]): index
        for index, field in enumerate(stored)
        if _FIELD_ID in (field.metadata or {})
    }
    if known:
        return [known.get(field_id) for field_id, _ in wanted]
    by_name = {field.name: index for index, field in enumerate(stored)}
    return [by_name.get(name) for _, name in wanted]
