"""The rows that a merge or an upsert brings: opened once, asked for keys, then taken row by row.

Data that is in memory stays where it is. What comes as a stream is held up to `HELD_BYTES`; more goes to a file of this
machine without a name, and is read from there as it is needed.

Columns get the types that Spark would give them, where there is one: dictionaries are decoded, unsigned numbers become
the next wider signed ones, times become microseconds. What has none is passed on as it is.
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
    """Rows of a source, as many as there are, with the columns in the types they are computed in."""

    table: pa.Table

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    @cached_property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns with their types."""
        return {field.name: field.type for field in self.table.schema}

    def take(
        self, names: Sequence[str], places: npt.NDArray[np.int64] | None = None
    ) -> dict[tuple[str, str], pa.Array]:
        """Return some columns of some rows, all rows without positions."""
        chosen = self.table.select(list(names))
        if places is None:
            return {(SOURCE, name): single_chunk(chosen.column(name)) for name in names}
        if all(chosen.column(name).num_chunks == 1 for name in names):
            return {(SOURCE, name): chosen.column(name).chunk(0).take(pa.array(places)) for name in names}
        # Rows of many chunks are taken quickly, and without copying the chunks, only in their order.
        order = np.argsort(places, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        ascending, indices = chosen.take(pa.array(places[order])), pa.array(back)
        return {(SOURCE, name): single_chunk(ascending.column(name)).take(indices) for name in names}


def open_source(data: Any, schema: Schema, *, held_bytes: int = HELD_BYTES) -> SourceRows:
    """Read a source to its end; rows as dicts take the types of the table's columns where they have their names."""
    if isinstance(data, SourceRows):
        return data
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return SourceRows(_normal(_from_dicts(data, schema), schema))
    rows = open_input(data, schema)
    twice = [name for name in set(rows.schema.names) if rows.schema.names.count(name) > 1]
    if twice:
        raise SchemaMismatchError(f"Cannot read the source: it has two columns of the name {min(twice)!r}")
    table = _normal(_collect(rows, held_bytes), schema)
    return SourceRows(table.combine_chunks() if table.nbytes <= held_bytes else table)


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    known = {field.name for field in schema.fields}
    more = list(dict.fromkeys(name for row in rows for name in row if name not in known))
    batch = rows_to_batch([{name: row[name] for name in row if name in known} for row in rows], schema)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in more:
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaMismatchError(f"Cannot read the column {name!r} of the source: {error}") from error
    return pa.table(columns)


def _collect(rows: InputRows, held_bytes: int) -> pa.Table:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows.batches:
        held.append(batch)
        size += batch.nbytes
        if size > held_bytes and rows.size_bytes is None:
            return _spool(rows, held)
    return pa.Table.from_batches(held, schema=rows.schema)


def _spool(rows: InputRows, held: list[pa.RecordBatch]) -> pa.Table:
    """Return the rows of a stream from a file without a name; it is gone with the last who reads it."""
    try:
        with tempfile.TemporaryFile(prefix="frazil-source-") as file:
            with pa.ipc.new_file(file, rows.schema) as writer:
                while held:
                    writer.write_batch(held.pop(0))
                for batch in rows.batches:
                    writer.write_batch(batch)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageError(
            f"Cannot keep the rows of the source in the temporary folder {tempfile.gettempdir()}: {error}"
        ) from error
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def _normal(table: pa.Table, schema: Schema) -> pa.Table:
    fine = {
        own.name.lower(): to_arrow_type(own.field_type, with_ids=False)
        for own in schema.fields
        if not own.field_type.is_nested
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


def normal_type(data_type: pa.DataType, wanted: pa.DataType | None = None) -> pa.DataType:
    """Return the type in which values of an Arrow type are computed; `wanted` is that of the table's column."""
    if data_type == wanted or t.is_computed(data_type):
        return data_type
    types = pa.types
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return normal_type(data_type.value_type, wanted)
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
        unit = "ns" if wanted is not None and types.is_timestamp(wanted) and wanted.unit == "ns" else "us"
        return pa.timestamp(unit, None if data_type.tz is None else "UTC")
    if types.is_time(data_type) and wanted is not None and types.is_time(wanted):
        return wanted
    return data_type
