"""Data that a user hands over to be written, as Arrow record batches.

Arrow tables, batches and readers, pandas frames, whatever offers the Arrow C stream (polars, DuckDB, datasets), and
rows as dicts of Python values. Readers are read once and only as far as the writer has room; nothing is collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.value_arrays import array_of
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.values import to_internal

Rows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Sequence[Mapping[str, Any]] | Any"
"""Data to write: Arrow, pandas, anything with `__arrow_c_stream__`, or rows as dicts by column name."""

MAX_BATCH_BYTES = 1 << 29
"""A larger batch is cut: Arrow's plain strings and lists cannot hold more than 2 GiB in one array."""
MAX_BATCH_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class InputRows:
    """A stream of batches of one schema; `size_bytes` is that of data that is in memory already, else None."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    size_bytes: int | None = None


def open_input(data: Rows, schema: Schema) -> InputRows:
    """Return data as a stream of batches; rows as dicts take the types of the table's schema."""
    if isinstance(data, pa.Table):
        return InputRows(data.schema, _cut(iter(data.to_batches(max_chunksize=MAX_BATCH_ROWS))), data.nbytes)
    if isinstance(data, pa.RecordBatch):
        return InputRows(data.schema, _cut(iter([data])), data.nbytes)
    if isinstance(data, pa.RecordBatchReader):
        return InputRows(data.schema, _cut(_read(data)))
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return open_input(_from_pandas(data), schema)
    if hasattr(data, "__arrow_c_stream__"):
        return open_input(_from_stream(data), schema)
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        batch = rows_to_batch(data, schema)
        return InputRows(batch.schema, iter([batch]), batch.nbytes)
    raise InvalidRequestError(
        f"Cannot write data of type {type(data).__module__}.{type(data).__qualname__}",
        hint="Hand over a pyarrow Table, RecordBatch or RecordBatchReader, a pandas DataFrame, or a list of dicts.",
    )


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowException as error:
        raise InvalidRequestError(f"Cannot read the data to write: {error}") from error


def _cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows == 0:
            continue
        parts = -(-batch.nbytes // MAX_BATCH_BYTES)
        size = max(1, min(-(-batch.num_rows // max(parts, 1)), MAX_BATCH_ROWS))
        for start in range(0, batch.num_rows, size):
            yield batch if size >= batch.num_rows else batch.slice(start, size)


def _from_pandas(data: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatchError(f"Cannot write the pandas DataFrame: {error}") from error


def _from_stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatchError(f"Cannot read the Arrow stream of {type(data).__qualname__}: {error}") from error


def rows_to_batch(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.RecordBatch:
    """Return rows of Python values as a batch; a column that no row has is left out, for its default."""
    named = dict.fromkeys(name for row in rows for name in row)
    fields = [part for part in (*schema.fields, *ROW_LINEAGE_COLUMNS) if part.name in named]
    if not rows:
        fields = list(schema.fields)
    known = {part.name for part in fields}
    unknown = [name for name in named if name not in known]
    if unknown:
        raise SchemaMismatchError(
            f"Cannot write the rows: the table has no column {', '.join(map(repr, unknown[:10]))}",
            hint=f"The columns are: {', '.join(part.name for part in schema.fields)}.",
        )
    arrow = to_arrow_schema(Schema(tuple(fields)), with_ids=False)
    arrays = []
    for part, target in zip(fields, arrow, strict=True):
        values = [_internal(row, part.name, part.field_type, part.write_default) for row in rows]
        arrays.append(array_of(values, part.field_type, target.type))
    optional = [target.with_nullable(True) for target in arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(optional))


def _internal(row: Mapping[str, Any], name: str, kind: Any, default: Any) -> Any:
    if name not in row:
        return default
    value = row[name]
    try:
        return None if value is None else to_internal(value, kind)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"Cannot write the column {name!r}: {error.message}") from error
