"""Rows to data files, here or on Spark: what `append` and `overwrite` do before they commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.change_rows.source_rows import SourceRows
from frazil.codec.arrow_schema import from_arrow_schema
from frazil.commit.action import Action, PlannedChange
from frazil.commit.update_schema import UpdateSchema
from frazil.datafile.input_rows import InputRows, open_input
from frazil.datafile.write import write_data_files
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.union_by_name import union_by_name
from frazil.spec.versions import Feature, allows
from frazil.storage.locations import scheme_of
from frazil.verbs.on_spark import is_spark_frame
from frazil.verbs.write_session import Write


def write_rows(loaded: LoadedTable, data: Any, *, may_lack_parts: bool = False) -> tuple[DataFile, ...]:
    """Write rows as data files of a table, partitioned and sorted as it asks; nothing refers to them yet.

    A Spark DataFrame is written by its own session, everything else in this process. Structs of a DataFrame need every
    part of the table's, unless they `may_lack_parts`.
    """
    if is_spark_frame(data):
        from frazil.spark.write.write_files import write_frame

        return tuple(write_frame(data, loaded, may_lack_parts=may_lack_parts))
    return tuple(write_data_files(data, loaded, may_clean_up=True))


def change_of_files(action: Action, files: Sequence[DataFile]) -> PlannedChange:
    """Return the planned change of an action that adds files."""
    return PlannedChange(action, tuple(file.file_path for file in files), count_rows(files))


def count_rows(files: Sequence[DataFile]) -> int:
    """Return the number of rows in files."""
    return sum(file.record_count for file in files)


def with_columns_of(write: Write, data: Any, only: Collection[str] | None = None) -> Write:
    """Return a write after the columns of data that the table lacks, or `only` some of them, are added to it."""
    metadata = write.state.metadata
    return write.after(evolution_of(schema_of_rows(data, metadata.current_schema, metadata.format_version), only))


def schema_of_rows(data: Any, schema: Schema, format_version: int) -> Schema:
    """Return the columns of data that is to be written to a table of a schema, in the format's types.

    Of rows as dicts, which have Python's types, only those that the table lacks. Nanoseconds become microseconds in
    a format version that lacks them; writing refuses values that would lose digits.
    """
    if is_spark_frame(data):
        from frazil.spark.types import from_spark_schema

        found: Schema = from_spark_schema(data.schema)
        return found
    arrow = _arrow_schema_of(data, schema)
    if not allows(format_version, Feature.NEW_TYPES):
        arrow = pa.schema([field.with_type(_in_microseconds(field.type)) for field in arrow])
    return from_arrow_schema(arrow, format_version=format_version, has_fresh_ids=True)


def _in_microseconds(data_type: pa.DataType) -> pa.DataType:
    is_nanoseconds = pa.types.is_timestamp(data_type) and data_type.unit == "ns"
    return pa.timestamp("us", data_type.tz) if is_nanoseconds else data_type


def _arrow_schema_of(data: Any, known: Schema) -> pa.Schema:
    if isinstance(data, pa.Table | pa.RecordBatch | InputRows):
        return data.schema
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return _new_columns_of_dicts(data, known)
    if isinstance(data, Iterator) and not isinstance(data, pa.RecordBatchReader):
        raise InvalidRequestError(
            "Cannot tell the columns of an iterator before it is read, and columns are to be added to the table",
            hint="Hand over a pyarrow.RecordBatchReader, which knows its schema.",
        )
    return open_input(data, Schema(())).schema


def _new_columns_of_dicts(rows: Sequence[Mapping[str, Any]], known: Schema) -> pa.Schema:
    named = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in named if known.find_field(name, case_sensitive=False) is None]
    found = []
    for name in names:
        try:
            values = pa.array([row[name] for row in rows if row.get(name) is not None])
        except (pa.ArrowException, OverflowError) as error:
            raise SchemaMismatchError(f"Cannot tell the type of the column {name!r} of the rows: {error}") from error
        if len(values):
            found.append(pa.field(name, values.type))
    return pa.schema(found)


def evolution_of(wanted: Schema, only: Collection[str] | None = None) -> UpdateSchema:
    """Return the change of the schema that adds missing columns, and widens types to those of the data.

    `only` are the columns that count, in lower case; None is all.
    """
    if only is not None:
        wanted = Schema(tuple(field for field in wanted.fields if field.name.lower() in only))
    return UpdateSchema(lambda update: union_by_name(update, wanted), case_sensitive=False)


def frame_of_rows(data: Any, loaded: LoadedTable, session: Any) -> Any:
    """Return data as a Spark DataFrame; what is in this process goes to the session."""
    if is_spark_frame(data):
        return data
    from frazil.spark.arrow_types import frame_of_table
    from frazil.spark.jvm.engine_errors import engine_errors

    if isinstance(data, SourceRows):
        table = data.table
    else:
        rows = open_input(data, loaded.metadata.current_schema)
        table = pa.Table.from_batches(rows.batches, schema=rows.schema)
    # Whether there are nulls is seen in the values, and not promised by a mark that somebody else made.
    marked = pa.schema([field.with_nullable(True) for field in table.schema])
    with engine_errors(f"give Spark rows for {loaded.name}"):
        return frame_of_table(session, pa.Table.from_arrays(table.columns, schema=marked))


def is_here_only(loaded: LoadedTable) -> bool:
    """Return whether a table's files are in the memory of this process, where no Spark can reach them."""
    return scheme_of(loaded.metadata.location) == "memory"
