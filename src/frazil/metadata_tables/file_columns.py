"""The columns that the files and entries tables share: a file in the form of the metadata tables.

Arrays are computed manifest by manifest from its columns, without a loop over files. Names, order and types are Iceberg
Java's. Two things differ from the form in a manifest: `file_format` is in upper case, and maps are Arrow maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_field
from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_fields import DATA_FILE, ENTRY_FIELDS
from frazil.errors import CorruptTableError
from frazil.expr.columns.manifest_columns import partition_children, single_chunk
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_rows
from frazil.metadata_tables.readable_metrics import (
    READABLE_METRICS,
    metric_sources,
    readable_metrics,
    readable_metrics_field,
)
from frazil.metadata_tables.select_columns import select_columns
from frazil.metadata_tables.unify_partitions import (
    as_type,
    metadata_partition_type,
    partition_array,
    partition_fields,
)
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import METRIC_MAPS
from frazil.spec.manifest import ManifestFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import INT, NestedField, StructType

DATA_FILE_COLUMN = "data_file"

_REQUIRED = {"status", "file_path", "file_format", "record_count", "file_size_in_bytes"}
_FEW_ROWS = 1000
_SPEC_ID = NestedField(141, "spec_id", INT)
_LEFT_OUT = {"partition", "block_size_in_bytes"}


def files_schema(metadata: TableMetadata) -> pa.Schema:
    """Return the columns of the files tables."""
    fields = _file_fields(metadata_partition_type(metadata))
    return pa.schema([*fields, readable_metrics_field(metadata.current_schema)])


def entries_schema(metadata: TableMetadata) -> pa.Schema:
    """Return the columns of the entries tables."""
    file = pa.struct(_file_fields(metadata_partition_type(metadata)))
    fields = [_arrow_field(entry_field) for entry_field in ENTRY_FIELDS]
    data_file = pa.field(DATA_FILE_COLUMN, file, nullable=False)
    return pa.schema([*fields, data_file, readable_metrics_field(metadata.current_schema)])


def _file_fields(partition_type: StructType) -> list[pa.Field]:
    fields: list[pa.Field] = []
    for field in DATA_FILE:
        if field.name == "partition":
            fields += [_arrow_field(_SPEC_ID), *partition_fields(partition_type)]
        elif field.name not in _LEFT_OUT:
            fields.append(_arrow_field(field))
    return fields


def _arrow_field(field: NestedField) -> pa.Field:
    return to_arrow_field(replace(field, required=field.name in _REQUIRED, doc=None), with_ids=False)


def manifest_fields_of(schema: Iterable[pa.Field]) -> set[str]:
    """Return the columns of a manifest that are needed for columns of a metadata table."""
    needed: set[str] = set()
    for field in schema:
        if field.name == READABLE_METRICS:
            needed |= metric_sources(field.type)
        elif field.name == DATA_FILE_COLUMN:
            needed |= manifest_fields_of(field.type)
        elif field.name != _SPEC_ID.name:
            needed.add(field.name)
    return needed


@dataclass(frozen=True)
class FileColumns:
    """Builds columns of the files and entries tables from a table's manifests."""

    metadata: TableMetadata

    @cached_property
    def partition_type(self) -> StructType:
        """The type of the `partition` column."""
        return metadata_partition_type(self.metadata)

    def table_of(self, files: ManifestColumns, schema: pa.Schema) -> pa.Table:
        """Return the rows of a manifest in the columns of a schema."""
        return pa.Table.from_arrays([self._array(files, field) for field in schema], schema=schema)

    def _array(self, files: ManifestColumns, target: pa.Field) -> pa.Array:
        name, data_type, count = target.name, target.type, len(files)
        if name == _SPEC_ID.name:
            return pa.array(np.full(count, files.spec_id, np.int32))
        if name == "partition":
            return partition_array(partition_children(files, self.partition_type), data_type, self.partition_type)
        if name == READABLE_METRICS:
            return readable_metrics(files, self.metadata.current_schema, data_type)
        if name == DATA_FILE_COLUMN:
            children = [self._array(files, field) for field in data_type]
            return pa.Array.from_buffers(data_type, count, [None], children=children)
        column = single_chunk(files.column(name))
        if name == "file_format":
            return pc.utf8_upper(column)
        if name in METRIC_MAPS:
            return map_array(column, data_type)
        return as_type(column, data_type) if not pa.types.is_list(data_type) else _list_array(column, data_type)


def read_file_rows(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None,
    only_live: bool,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the rows of manifests in the requested columns of the files or entries tables."""
    chosen = select_columns(schema, columns)
    builder = FileColumns(loaded.metadata)

    def build(rows: ManifestColumns) -> ManifestColumns | pa.Table:
        return rows if len(rows) < _FEW_ROWS else builder.table_of(rows, chosen)

    read = read_rows(
        loaded, manifests, manifest_fields_of(chosen), build, only_live=only_live, cache=cache, threads=threads
    )
    tables: list[pa.Table] = []
    for (is_small, _), run in groupby(read, lambda rows: (isinstance(rows, ManifestColumns), _kind_of(rows))):
        group = list(run)
        tables += _tables_of(builder, group, chosen) if is_small else group
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema=chosen)


def _kind_of(rows: ManifestColumns | pa.Table) -> object:
    """Return what rows of small manifests must have in common to be processed together."""
    return (rows.spec_id, rows.content, rows.table.schema) if isinstance(rows, ManifestColumns) else None


def _tables_of(builder: FileColumns, run: Sequence[ManifestColumns], schema: pa.Schema) -> list[pa.Table]:
    """Return the rows of small manifests of one kind, processed at once, since each call has a fixed cost."""
    try:
        joined = replace(run[0], table=pa.concat_tables([files.table for files in run]).combine_chunks())
        return [builder.table_of(joined, schema)]
    except CorruptTableError:
        # One of them is corrupt; process them one by one, so that the error names it.
        return [builder.table_of(files, schema) for files in run]


def _list_array(lists: pa.Array, target: pa.DataType) -> pa.Array:
    """Return lists as another type with the same layout but another element name or nullability."""
    validity, offsets = lists.buffers()[:2]
    return pa.Array.from_buffers(target, len(lists), [validity, offsets], offset=lists.offset, children=[lists.values])


def map_array(pairs: pa.Array, target: pa.DataType) -> pa.Array:
    """Return lists of key and value pairs as maps, sharing memory; incomplete pairs are dropped."""
    if any(child.null_count for child in pairs.values.flatten()):
        pairs = _with_whole_pairs(pairs)
    validity, offsets = pairs.buffers()[:2]
    inner = pa.struct([target.key_field, target.item_field])
    children = [as_type(child, field.type) for child, field in zip(pairs.values.flatten(), inner, strict=True)]
    flat = pa.Array.from_buffers(inner, len(pairs.values), [None], children=children)
    return pa.Array.from_buffers(target, len(pairs), [validity, offsets], offset=pairs.offset, children=[flat])


def _with_whole_pairs(pairs: pa.Array) -> pa.Array:
    keys, values = pairs.values.flatten()
    keep = pc.and_(keys.is_valid(), values.is_valid())
    kept_before = np.concatenate([[0], np.cumsum(keep.to_numpy(zero_copy_only=False))]).astype(np.int32)
    offsets = np.frombuffer(pairs.buffers()[1], np.int32, len(pairs) + 1, pairs.offset * 4)
    validity = None if pairs.null_count == 0 else pairs.is_valid().buffers()[1]
    buffers = [validity, pa.py_buffer(kept_before[offsets].tobytes())]
    return pa.Array.from_buffers(pairs.type, len(pairs), buffers, children=[pairs.values.filter(keep)])
