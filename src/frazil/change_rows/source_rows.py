"""The source rows of a merge or an upsert: opened once, searched by key, then fetched by row.

In-memory data stays in place. A stream is buffered in memory up to `HELD_BYTES`; a larger one is spilled to an
anonymous
file on this machine, and read from there as needed.

Columns get the types that they would have in Spark, if any: dictionaries are decoded, unsigned integers are widened to
signed ones, times get microseconds. Other types are passed on unchanged.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_type
from frazil.datafile.input_rows import InputRows, open_input, rows_to_batch
from frazil.errors import InvalidRequestError, SchemaMismatchError, StorageError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import SOURCE
from frazil.expr.columns.manifest_columns import single_chunk
from frazil.spec.schema import Schema

HELD_BYTES = 256 << 20
_SIGNED = {pa.uint8(): t.SHORT, pa.uint16(): t.INT, pa.uint32(): t.LONG, pa.uint64(): pa.decimal128(20, 0)}


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source, with columns in the types for computations."""

    table: pa.Table

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    @cached_property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns with their types."""
        return {field.name: field.type for field in self.table.schema}

    def take(
        self, names: Sequence[str], places: npt.NDArray[np.int64] | None = None
    ) -> dict[tuple[str, str], pa.Array]:
        """Return some columns of some rows, or of all rows without positions."""
        chosen = self.table.select(list(names))
        if places is None:
            return {(SOURCE, name): single_chunk(chosen.column(name)) for name in names}
        if all(chosen.column(name).num_chunks == 1 for name in names):
            return {(SOURCE, name): chosen.column(name).chunk(0).take(pa.array(places)) for name in names}
        # Rows of many chunks are fetched fast, and without copying the chunks, only in ascending order.
        order = np.argsort(places, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        ascending, indices = chosen.take(pa.array(places[order])), pa.array(back)
        return {(SOURCE, name): single_chunk(ascending.column(name)).take(indices) for name in names}


def open_source(data: Any, schema: Schema, *, held_bytes: int = HELD_BYTES) -> SourceRows:
    """Read a source to its end; values of dicts get the types of the table columns of the same names."""
    if isinstance(data, SourceRows):
        return data
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return SourceRows(_with_computable_types(_from_dicts(data, schema), schema))
    rows = open_input(data, schema)
    twice = [name for name in set(rows.schema.names) if rows.schema.names.count(name) > 1]
    if twice:
        raise SchemaMismatchError(f"Cannot read the source: it has two columns named {min(twice)!r}")
    table = _with_computable_types(_collect(rows, held_bytes), schema)
    return SourceRows(table.combine_chunks() if table.nbytes <= held_bytes else table)


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    table_columns = {field.name for field in schema.fields}
    more = list(dict.fromkeys(name for row in rows for name in row if name not in table_columns))
    batch = rows_to_batch([{name: row[name] for name in row if name in table_columns} for row in rows], schema)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in more:
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaMismatchError(f"Cannot read the column {name!r} of the source: {error}") from error
    return pa.table(columns)


def _collect(rows: InputRows, held_bytes: int) -> pa.Table:
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in rows.batches:
        pending.append(batch)
        size += batch.nbytes
        if size > held_bytes and rows.size_bytes is None:
            return _spool(rows, pending)
    return pa.Table.from_batches(pending, schema=rows.schema)


def _spool(rows: InputRows, pending: list[pa.RecordBatch]) -> pa.Table:
    """Spill a stream to an anonymous file; the file vanishes with its last reader."""
    try:
        with tempfile.TemporaryFile(prefix="frazil-source-") as file:
            with pa.ipc.new_file(file, rows.schema) as writer:
                while pending:
                    writer.write_batch(pending.pop(0))
                for batch in rows.batches:
                    writer.write_batch(batch)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageError(f"Cannot spill source rows to {tempfile.gettempdir()}: {error}") from error
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def _with_computable_types(table: pa.Table, schema: Schema) -> pa.Table:
    fine = {
        table_field.name.lower(): to_arrow_type(table_field.field_type, with_ids=False)
        for table_field in schema.fields
        if not table_field.field_type.is_nested
    }
    for index, field in enumerate(table.schema):
        data_type = normal_type(field.type, fine.get(field.name.lower()))
        if data_type != field.type:
            try:
                column = table.column(index).cast(data_type)
            except pa.ArrowInvalid as error:
                raise InvalidRequestError(f"Cannot read the column {field.name!r} of the source: {error}") from error
            table = table.set_column(index, pa.field(field.name, data_type, field.nullable), column)
    return table


def normal_type(data_type: pa.DataType, column_type: pa.DataType | None = None) -> pa.DataType:
    """Return the type for computing with values of an Arrow type; `wanted` is the type of the table's column."""
    if data_type == column_type or t.is_computed(data_type):
        return data_type
    types = pa.types
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return normal_type(data_type.value_type, column_type)
    if types.is_large_string(data_type) or types.is_string_view(data_type):
        return t.STRING
    if types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return t.BINARY
    if data_type in _SIGNED:
        return _SIGNED[data_type]
    if types.is_float16(data_type):
        return t.FLOAT
    if types.is_date64(data_type):
        return t.DATE
    if types.is_timestamp(data_type):
        unit = (
            "ns" if column_type is not None and types.is_timestamp(column_type) and column_type.unit == "ns" else "us"
        )
        return pa.timestamp(unit, None if data_type.tz is None else "UTC")
    if types.is_time(data_type) and column_type is not None and types.is_time(column_type):
        return column_type
    return data_type
