"""User data to write, as Arrow record batches; Spark DataFrames take another path.

Accepted are Arrow tables, batches, readers and datasets, pandas DataFrames, eager or lazy Polars frames, any object
with Arrow's C stream or array interface (DuckDB relations, scans and tables of a lake), rows as dicts of Python values,
and iterators of batches or rows. A stream is read once, and only as far as the writer has room; nothing is collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.value_arrays import array_of
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.values import to_internal

Rows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Sequence[Mapping[str, Any]] | Any"
"""Data to write: Arrow, pandas, Polars, anything with `__arrow_c_stream__`, or rows as dicts by column name."""

MAX_BATCH_BYTES = 1 << 29
"""The size above which batches are split: Arrow's strings and lists cannot hold more than 2 GiB in one array."""
MAX_BATCH_ROWS = 1 << 20
_DICTS_PER_BATCH = 1 << 15
_LAZY_ROWS_PER_BATCH = 1 << 18


@dataclass(frozen=True, slots=True)
class InputRows:
    """A stream of batches of one schema; `size_bytes` is the size of data that is already in memory, or None."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    size_bytes: int | None = None


def open_input(data: Rows, schema: Schema) -> InputRows:
    """Return data as a stream of batches; rows as dicts get the types of the table's schema.

    An `InputRows` is returned unchanged.
    """
    if isinstance(data, InputRows):
        return data
    if isinstance(data, pa.Table):
        return InputRows(data.schema, _split(iter(data.to_batches(max_chunksize=MAX_BATCH_ROWS))), data.nbytes)
    if isinstance(data, pa.RecordBatch):
        return InputRows(data.schema, _split(iter([data])), data.nbytes)
    if isinstance(data, pa.RecordBatchReader):
        return InputRows(data.schema, _split(_read(data)))
    if hasattr(data, "scanner") and hasattr(data, "get_fragments"):
        return open_input(data.scanner(), schema)
    if hasattr(data, "to_reader") and hasattr(data, "projected_schema"):
        return open_input(data.to_reader(), schema)
    if _library_of(data) == "pandas" and hasattr(data, "columns"):
        return open_input(_from_pandas(data, schema), schema)
    if _library_of(data) == "polars" and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return _from_lazy_frame(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return open_input(_from_stream(data), schema)
    if hasattr(data, "__arrow_c_array__"):
        return open_input(_from_array(data), schema)
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        batch = rows_to_batch(data, schema)
        return InputRows(batch.schema, iter([batch]), batch.nbytes)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        return _from_iterable(data, schema)
    raise _not_rows(data, "")


def _library_of(data: object) -> str:
    return type(data).__module__.partition(".")[0]


def _not_rows(data: object, where: str) -> InvalidRequestError:
    cls = type(data)
    return InvalidRequestError(
        f"Cannot write data of type {cls.__module__}.{cls.__qualname__}{where}",
        hint="Pass Arrow (a table, a reader, anything with __arrow_c_stream__), a pandas or Polars frame, "
        "a DuckDB relation, a list of dicts, or an iterator of record batches or dicts.",
    )


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise InvalidRequestError(f"Cannot read the data to write: {error}") from error


def _split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows == 0:
            continue
        parts = -(-batch.nbytes // MAX_BATCH_BYTES)
        size = max(1, min(-(-batch.num_rows // max(parts, 1)), MAX_BATCH_ROWS))
        for start in range(0, batch.num_rows, size):
            yield batch if size >= batch.num_rows else batch.slice(start, size)


def _from_pandas(data: Any, schema: Schema) -> pa.Table:
    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        problem = error
    # pandas columns of objects (maps, decimals beside integers) are read as the table's types.
    fields = [schema.find_field(str(name)) for name in data.columns]
    if fields and all(field is not None for field in fields):
        arrow = to_arrow_schema(Schema(tuple([field for field in fields if field is not None])), with_ids=False)
        try:
            plain = pa.schema([field.with_nullable(True) for field in arrow])
            return pa.Table.from_pandas(data, schema=plain, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            problem = error
    raise SchemaMismatchError(f"Cannot write the pandas DataFrame: {problem}") from problem


def _from_stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatchError(f"Cannot read the Arrow stream of {type(data).__qualname__}: {error}") from error


def _from_array(data: Any) -> pa.RecordBatch:
    try:
        return pa.record_batch(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatchError(f"Cannot read the Arrow array of {type(data).__qualname__}: {error}") from error


def _from_lazy_frame(data: Any, schema: Schema) -> InputRows:
    """Return the rows of a lazy Polars frame, which is evaluated as they are read."""
    frame = type(data.head(0).collect())
    empty = frame(schema=data.collect_schema())
    if not hasattr(data, "collect_batches"):
        return open_input(data.collect(), schema)
    rows = data.collect_batches(chunk_size=_LAZY_ROWS_PER_BATCH, lazy=True)
    tables = (_from_stream(row) for row in rows)
    return InputRows(_from_stream(empty).schema, _split(chain.from_iterable(_read(table) for table in tables)))


def _from_iterable(data: Iterable[Any], schema: Schema) -> InputRows:
    """Return the batches of an iterator of batches or rows, according to its first item."""
    rest = iter(data)
    first = next(rest, None)
    if first is None:
        return InputRows(to_arrow_schema(schema, with_ids=False), iter(()))
    rest = chain([first], rest)
    if isinstance(first, Mapping):
        # Later rows may have columns that the first ones lack, so all columns are written, with their defaults.
        lineage = [lineage_column for lineage_column in ROW_LINEAGE_COLUMNS if lineage_column.name in first]
        names = [*(field.name for field in schema.fields), *(field.name for field in lineage)]
        batches = (rows_to_batch(_as_rows(chunk), schema, names) for chunk in _chunks(rest))
        arrow = to_arrow_schema(Schema((*schema.fields, *lineage)), with_ids=False)
        return InputRows(pa.schema([field.with_nullable(True) for field in arrow]), batches)
    opened = _open_each(rest, schema)
    head = next(opened)
    return InputRows(head.schema, _split(_same_schema(chain([head], opened), head.schema)))


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, _DICTS_PER_BATCH)):
        yield chunk


def _as_rows(rows: list[Any]) -> list[Mapping[str, Any]]:
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise _not_rows(row, f" in a list of dicts: number {index} of {len(rows)}")
    return rows


def _open_each(parts: Iterator[Any], schema: Schema) -> Iterator[InputRows]:
    for item in parts:
        if isinstance(item, Mapping | str | bytes) or not (
            isinstance(item, pa.Table | pa.RecordBatch)
            or hasattr(item, "__arrow_c_stream__")
            or hasattr(item, "__arrow_c_array__")
        ):
            raise _not_rows(item, " in an iterator")
        yield open_input(item, schema)


def _same_schema(parts: Iterator[InputRows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for input_rows in parts:
        if not input_rows.schema.equals(schema):
            raise SchemaMismatchError(
                "Cannot write the batches: their columns differ: "
                f"{_columns_text(schema)}, then {_columns_text(input_rows.schema)}"
            )
        yield from input_rows.batches


def _columns_text(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def rows_to_batch(rows: Sequence[Mapping[str, Any]], schema: Schema, names: Sequence[str] = ()) -> pa.RecordBatch:
    """Return rows of Python values as a batch; a column that no row has is left out, unless `names` has it."""
    named = dict.fromkeys(chain(names, (name for row in rows for name in row)))
    fields = [nested_field for nested_field in (*schema.fields, *ROW_LINEAGE_COLUMNS) if nested_field.name in named]
    if not rows:
        fields = list(schema.fields)
    field_names = {field.name for field in fields}
    unknown = [name for name in named if name not in field_names]
    if unknown:
        raise SchemaMismatchError(
            f"Cannot write the rows: the table has no column {', '.join(map(repr, unknown[:10]))}",
            hint=f"The columns are: {', '.join(field.name for field in schema.fields)}.",
        )
    arrow = to_arrow_schema(Schema(tuple(fields)), with_ids=False)
    arrays = []
    for field, target in zip(fields, arrow, strict=True):
        values = [_internal_value(row, field.name, field.field_type, field.write_default) for row in rows]
        arrays.append(array_of(values, field.field_type, target.type))
    optional = [target.with_nullable(True) for target in arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(optional))


def _internal_value(row: Mapping[str, Any], name: str, data_type: Any, default: Any) -> Any:
    if name not in row:
        return default
    value = row[name]
    try:
        return None if value is None else to_internal(value, data_type)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"Cannot write the column {name!r}: {error.message}") from error
