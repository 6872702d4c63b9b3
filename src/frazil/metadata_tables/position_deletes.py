"""The table `position_deletes`: every deleted position of a snapshot, from delete files and deletion vectors.

A row is one deleted position as stored in delete files: `file_path` and `pos` of the deleted row, the `row` itself if
the file stores it, and then the delete file with its partition and spec. Tables of version 3 also have the offset and
size of a deletion vector in its file. Deletes are included whether or not they still apply to a data file. Equality
deletes are not included.

This is the only metadata table that reads more than metadata: it has as many rows as there are deleted positions.
`iter_position_deletes` yields them file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_field
from frazil.codec.deletion_vector import read_deletion_vector
from frazil.codec.manifest_avro import ManifestColumns, iter_entries
from frazil.datafile.open_file import reading
from frazil.datafile.project import Projection, needed_leaves
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS, open_reader, resolve
from frazil.errors import CorruptTableError, InvalidManifestError, UnsupportedError
from frazil.expr.columns.manifest_columns import partition_children
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_chosen_manifests, read_rows, with_content
from frazil.metadata_tables.select_columns import project_array, select_columns
from frazil.metadata_tables.unify_partitions import (
    metadata_partition_type,
    partition_array,
    partition_fields,
)
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.delete_schemas import POSITION_HEADING, position_delete_read_schema
from frazil.spec.manifest import ManifestContent
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import ListType, MapType, StructType, Type
from frazil.storage.base import Storage
from frazil.threads import default_threads, map_in_order

_MANY_ROWS = 1 << 20
MAX_TABLE_BYTES = 2 << 30
"""The maximum size of the whole table; `iter_position_deletes` has no such limit."""
_FIELDS = (
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def position_deletes_schema(metadata: TableMetadata) -> pa.Schema:
    """Return the columns of the table; `row` has the table's present columns, all optional."""
    fields = [to_arrow_field(replace(field, doc=None), with_ids=False) for field in _stored_schema(metadata).fields]
    fields += partition_fields(metadata_partition_type(metadata))
    fields.append(pa.field("spec_id", pa.int32(), nullable=False))
    fields.append(pa.field("delete_file_path", pa.string(), nullable=False))
    if metadata.format_version >= 3:
        fields += [pa.field("content_offset", pa.int64()), pa.field("content_size_in_bytes", pa.int64())]
    return pa.schema(fields)


def _stored_schema(metadata: TableMetadata) -> Schema:
    """Return the columns to read from delete files, which may store any part of a row."""
    optional = _all_optional(metadata.current_schema.struct)
    assert isinstance(optional, StructType)
    return position_delete_read_schema(optional)


def _all_optional(data_type: Type) -> Type:
    if isinstance(data_type, StructType):
        return StructType(
            tuple(
                replace(field, field_type=_all_optional(field.field_type), required=False) for field in data_type.fields
            )
        )
    if isinstance(data_type, ListType):
        return replace(data_type, element_type=_all_optional(data_type.element_type))
    if isinstance(data_type, MapType):
        return replace(data_type, value_type=_all_optional(data_type.value_type))
    return data_type


def position_deletes(
    loaded: LoadedTable,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the deleted positions of a snapshot, in the order of its delete files."""
    schema = select_columns(position_deletes_schema(loaded.metadata), columns)
    parts: list[pa.Table] = []
    size = 0
    for position_delete in iter_position_deletes(loaded, choice=choice, columns=columns, cache=cache, threads=threads):
        size += position_delete.nbytes
        if size > MAX_TABLE_BYTES:
            raise UnsupportedError(
                f"Cannot show the deleted positions of {loaded.name} at once: they take more than "
                f"{MAX_TABLE_BYTES >> 20} MiB",
                hint="Read the metadata table on Spark.",
            )
        parts.append(position_delete)
    return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=schema)


def iter_position_deletes(
    loaded: LoadedTable,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the deleted positions of a snapshot, reading a few delete files at a time."""
    metadata, partition_type = loaded.metadata, metadata_partition_type(loaded.metadata)
    schema = select_columns(position_deletes_schema(metadata), columns)
    delete_files = read_rows(
        loaded,
        with_content(read_chosen_manifests(loaded, choice), ManifestContent.DELETES),
        _FIELDS,
        lambda rows: _delete_files(rows, partition_type),
        only_live=True,
        cache=cache,
        threads=threads,
    )
    builder = _RowBuilder(loaded.storage, schema, partition_type, _columns_to_read(metadata, schema))
    small: list[_DeleteFile] = []
    for delete_file in (file for files in delete_files for file in files):
        if delete_file.file.record_count <= _MANY_ROWS:
            small.append(delete_file)
            continue
        yield from _all_tables(builder, small, threads)
        small.clear()
        # A vector of a few bytes may hold billions of positions.
        yield from builder.iter_tables(delete_file)
    yield from _all_tables(builder, small, threads)


def _all_tables(builder: _RowBuilder, files: list[_DeleteFile], threads: int | None) -> Iterator[pa.Table]:
    for tables in map_in_order(builder.tables_of, files, threads=threads or default_threads()):
        yield from tables


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    """A delete file with the fields of its unified partition as arrays of one value."""

    file: DataFile
    partition: list[pa.Array]


def _delete_files(rows: ManifestColumns, data_type: StructType) -> list[_DeleteFile]:
    children = partition_children(rows, data_type)
    return [
        _DeleteFile(entry.data_file, [child.slice(index, 1) for child in children])
        for index, entry in enumerate(iter_entries(rows))
        if entry.data_file.content is FileContent.POSITION_DELETES
    ]


def _columns_to_read(metadata: TableMetadata, schema: pa.Schema) -> Schema:
    """Return the columns to read from delete files for columns of the table; at least positions."""
    stored = _stored_schema(metadata)
    chosen = tuple(field for field in stored.fields if field.name in schema.names)
    return Schema(chosen or (DELETE_POS,))


@dataclass(frozen=True, slots=True)
class _RowBuilder:
    """Builds rows of the table from one delete file at a time."""

    storage: Storage
    schema: pa.Schema
    partition_type: StructType
    columns: Schema

    def tables_of(self, delete_file: _DeleteFile) -> list[pa.Table]:
        """Return the rows of a delete file."""
        return list(self.iter_tables(delete_file))

    def iter_tables(self, delete_file: _DeleteFile) -> Iterator[pa.Table]:
        """Yield the rows of a delete file in batches."""
        stored = self._vector(delete_file.file) if delete_file.file.is_deletion_vector else self._rows(delete_file.file)
        return (self._table(batch, delete_file) for batch in stored if batch.num_rows)

    def _rows(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        rules = ReadRules(self.columns, create_name_mapping(self.columns))
        with (
            closing(open_reader(self.storage, file, rules)) as reader,
            reading("file", file.file_path, POSITION_HEADING),
        ):
            columns = resolve(self.columns, reader.schema, file.file_path)
            leaves = needed_leaves(columns, reader.schema.fields)
            projection = Projection(columns, reader.pruned(leaves).fields)
            for batch in reader.batches(leaves, batch_rows=DEFAULT_BATCH_ROWS):
                yield projection.batch(batch.columns, batch.length)

    def _vector(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        path, offset, size = file.referenced_data_file, file.content_offset, file.content_size_in_bytes
        if path is None or offset is None or size is None:
            raise InvalidManifestError(
                "Cannot read the deletion vector: its entry lacks the data file, the offset or the size",
                path=file.file_path,
                heading="Deletion Vectors",
            )
        try:
            vector = read_deletion_vector(
                lambda index, length: self.storage.read_range(file.file_path, index, length),
                offset,
                size,
                record_count=file.record_count,
            )
        except CorruptTableError as error:
            raise error.at_path(file.file_path) from error
        for positions in vector.parts(DEFAULT_BATCH_ROWS):
            columns = {DELETE_FILE_PATH.name: pa.repeat(path, len(positions)), DELETE_POS.name: pa.array(positions)}
            yield pa.RecordBatch.from_pydict(columns)

    def _table(self, batch: pa.RecordBatch, delete_file: _DeleteFile) -> pa.Table:
        """Return stored rows in the columns of the table."""
        count = batch.num_rows
        constants = {
            "spec_id": delete_file.file.spec_id,
            "delete_file_path": delete_file.file.file_path,
            "content_offset": delete_file.file.content_offset,
            "content_size_in_bytes": delete_file.file.content_size_in_bytes,
        }
        arrays = []
        for field in self.schema:
            if field.name in constants:
                arrays.append(pa.repeat(pa.scalar(constants[field.name], field.type), count))
            elif field.name == "partition":
                repeated = [child.take(pa.array(np.zeros(count, np.int64))) for child in delete_file.partition]
                arrays.append(partition_array(repeated, field.type, self.partition_type))
            elif field.name in batch.schema.names:
                arrays.append(project_array(batch.column(field.name), field.type))
            else:
                arrays.append(pa.nulls(count, field.type))
        return pa.Table.from_arrays(arrays, schema=self.schema)
