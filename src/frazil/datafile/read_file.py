"""Open a file of any format, and read columns by field id.

This is common to data files, position delete files and equality delete files. `datafile/read_task.py` adds what applies
only to rows of the table: deletes, filters and metadata columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from frazil.datafile.file_schema import FileSchema
from frazil.datafile.open_file import reading
from frazil.datafile.project import Projection, needed_leaves
from frazil.datafile.raw_batch import FileReader, ReadRules
from frazil.datafile.read_avro import AvroReader
from frazil.datafile.read_orc import OrcReader
from frazil.datafile.read_parquet import ParquetReader
from frazil.datafile.row_groups import row_group_test
from frazil.errors import InvalidDataFileError, InvalidManifestError, SchemaMismatchError, UnsupportedError
from frazil.expr.predicates import TRUE, Predicate, field_ids_of
from frazil.spec.column_projection import ResolvedColumn, resolve_columns
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import UnknownType
from frazil.storage.base import Storage

HEADING = "Column Projection"
DEFAULT_BATCH_ROWS = 128 * 1024

_READERS: Mapping[FileFormat, type[ParquetReader | OrcReader]] = {
    FileFormat.PARQUET: ParquetReader,
    FileFormat.ORC: OrcReader,
}


def open_reader(storage: Storage, file: DataFile, rules: ReadRules) -> FileReader:
    """Open a data or delete file; close it after use."""
    if file.key_metadata:
        raise UnsupportedError(
            f"Cannot read {file.file_path}: it is encrypted",
            hint="Encrypted tables are not supported yet.",
            path=file.file_path,
        )
    if file.file_format is FileFormat.AVRO:
        return AvroReader(storage, file.file_path, rules)
    cls = _READERS.get(file.file_format)
    if cls is None:
        raise InvalidManifestError(
            f"Cannot read {file.file_path}: {file.file_format} is not a format of data files",
            path=file.file_path,
            heading="Data File Fields",
        )
    return cls(storage, file.file_path, rules, size=file.file_size_in_bytes)


def resolve(
    wanted: Schema,
    file: FileSchema,
    path: str,
    *,
    partition_values: Mapping[int, Any] = FrozenMap(),
    within: Schema | None = None,
) -> tuple[ResolvedColumn, ...]:
    """Return the source of each requested column in a file; `within` is their whole schema, if it is larger."""
    ids: Collection[int] = file.field_ids
    try:
        if file.is_mapped:
            return resolve_columns(wanted, (), partition_values=partition_values, name_mapped_ids=ids, within=within)
        return resolve_columns(wanted, ids, partition_values=partition_values, within=within)
    except SchemaMismatchError as error:
        raise InvalidDataFileError(error.message, hint=error.hint, path=path, heading=HEADING) from error


def read_columns(
    storage: Storage,
    file: DataFile,
    wanted: Schema,
    rules: ReadRules,
    *,
    predicate: Predicate = TRUE,
    batch_rows: int = DEFAULT_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of a file, which must store all of them.

    `predicate`, bound to the requested schema, skips row groups by statistics; rows are not tested.
    """
    with closing(open_reader(storage, file, rules)) as reader, reading("file", file.file_path, HEADING):
        columns = resolve(wanted, reader.schema, file.file_path)
        missing = _find_constant(columns)
        if missing is not None:
            raise InvalidDataFileError(
                f"Cannot read the file: it has no column {missing.field.name!r} (field id {missing.field.field_id})",
                heading=HEADING,
            )
        leaves = needed_leaves(columns, reader.schema.fields)
        projection = Projection(columns, reader.pruned(leaves).fields)
        test = None
        if isinstance(reader, ParquetReader) and field_ids_of(predicate):
            test = row_group_test(predicate, columns, reader)
        for batch in reader.batches(leaves, batch_rows=batch_rows, may_match=test):
            yield projection.batch(batch.columns, batch.length)


def _find_constant(columns: Sequence[ResolvedColumn]) -> ResolvedColumn | None:
    """Return a column, or a nested field, that the file should store but does not."""
    stack = list(columns)
    while stack:
        column = stack.pop()
        if column.is_constant and not isinstance(column.field.field_type, UnknownType):
            return column
        stack += column.parts
    return None
