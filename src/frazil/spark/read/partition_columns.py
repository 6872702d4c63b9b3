"""Partition transforms as Spark columns, and partition tuples as the names of folders. Specification: "Partitioning".

Spark's writer puts the rows of each value of one column into a folder named after the value. This module builds that
column: a text that encodes the whole partition tuple and is never null or empty, so that no two tuples share a folder
(Spark treats null and the empty string as equal). The folder's name is decoded to the exact tuple:

    k5_n_6162           5, null, "ab"        values separated by `_`, text and bytes in hexadecimal digits
    h<64 digits>        too long for a name: a hash; the tuple is read from a row of the file

Transforms run as Spark expressions if Spark computes them exactly. The exceptions are the bucket of text, bytes,
decimals and uuids, which Spark hashes differently, and the truncation of decimals; they run on Arrow columns in Python
workers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import Column, SparkSession

from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.expr.columns.transforms import transform_column
from frazil.spark.jvm.jvm_write import hash_longs
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.own_columns import F
from frazil.spark.types import stored_type
from frazil.spec import types as ft
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.transforms import Bucket, Day, Hour, Month, Transform, Truncate, Year
from frazil.sql.quote_names import quote

_MICROS_PER_HOUR = 3_600_000_000
_MICROS_PER_DAY = 24 * _MICROS_PER_HOUR
_MAX_NAME = 180
"""Folder names have at most 255 bytes on common file systems, and the column's own name is part of it."""
_MAX_NUMBER = 41
"""The most characters of a value that is not text: 38 digits, a point, a sign and a zero."""
_BYTES = (ft.StringType, ft.BinaryType, ft.FixedType, ft.UuidType)
_NANOS = (ft.TimestampNsType, ft.TimestamptzNsType)


def field_column(schema: Schema, field_id: int) -> Column:
    """Return the column or nested field of a frame for a field id of the table."""
    steps = [*reversed(schema.ancestors_of(field_id)), schema.field(field_id)]
    column = F.col(quote(steps[0].name))
    for step in steps[1:]:
        column = column.getField(step.name)
    return column


def partition_values(spec: PartitionSpec, schema: Schema, spark: SparkSession) -> list[Column]:
    """Return the value of each field of a spec, except void ones, over a frame in stored form."""
    return [
        transform_value(field.transform, field_column(schema, field.source_ids[0]), field.source_type(schema), spark)
        for field in spec.fields
        if not field.transform.is_void
    ]


def is_generated(spec: PartitionSpec, schema: Schema) -> bool:
    """Return whether Spark expressions compute all values of a spec, so that computing them twice is cheap."""
    return not any(_needs_arrow(field.transform, field.source_type(schema)) for field in spec.fields)


def partition_key(spec: PartitionSpec, schema: Schema, spark: SparkSession) -> Column:
    """Return the text that encodes the partition of each row."""
    values = partition_values(spec, schema, spark)
    kinds = [field.result_type(schema) for field in spec.fields if not field.transform.is_void]
    parts = [_encode(value, data_type) for value, data_type in zip(values, kinds, strict=True)]
    if not parts:
        return F.lit("k")
    key = F.concat(F.lit("k"), parts[0], *(piece for column in parts[1:] for piece in (F.lit("_"), column)))
    texts = [value for value, data_type in zip(values, kinds, strict=True) if isinstance(data_type, _BYTES)]
    # Spark recomputes the key at each use, so its length is estimated from the values if that is accurate enough.
    room = _MAX_NAME - len("k") - len(parts) * len("x_") - (len(parts) - len(texts)) * _MAX_NUMBER
    if not texts and room >= 0:
        return key
    is_long = F.length(key) > F.lit(_MAX_NAME)
    if room >= _MAX_NAME // 2:
        is_long = sum((F.coalesce(F.octet_length(text), F.lit(0)) for text in texts), F.lit(0)) * 2 > F.lit(room)
    return F.when(is_long, F.concat(F.lit("h"), F.sha2(key, 256))).otherwise(key)


def decode_key(text: str, spec: PartitionSpec, partition_type: ft.StructType) -> tuple[Any, ...] | None:
    """Return the partition tuple that a key encodes, or None if the key is a hash."""
    if text.startswith("h"):
        return None
    parts = iter(text[1:].split("_"))
    values: list[Any] = []
    for field, nested_field in zip(spec.fields, partition_type.fields, strict=True):
        values.append(None if field.transform.is_void else _decode(next(parts), nested_field.field_type))
    return tuple(values)


def _encode(value: Column, data_type: ft.Type) -> Column:
    if isinstance(data_type, ft.StringType | ft.BinaryType | ft.FixedType | ft.UuidType):
        # The leading letter distinguishes an empty text.
        text = F.concat(F.lit("x"), F.hex(value))
    elif isinstance(data_type, ft.BooleanType):
        text = F.when(value, F.lit("1")).when(~value, F.lit("0"))
    else:
        text = value.cast("string")
    return F.coalesce(text, F.lit("n"))


def _decode(text: str, data_type: ft.Type) -> Any:
    if text == "n":
        return None
    if isinstance(data_type, _BYTES):
        raw = bytes.fromhex(text[1:])
        if isinstance(data_type, ft.StringType):
            return raw.decode()
        return UUID(bytes=raw) if isinstance(data_type, ft.UuidType) else raw
    if isinstance(data_type, ft.BooleanType):
        return text == "1"
    if isinstance(data_type, ft.FloatType | ft.DoubleType):
        return float(text)
    if isinstance(data_type, ft.DecimalType):
        return Decimal(text).quantize(Decimal(1).scaleb(-data_type.scale))
    return int(text)


# Transforms


def transform_value(transform: Transform, column: Column, data_type: ft.Type, spark: SparkSession) -> Column:
    """Return a transform of a column in stored form; dates and timestamps become the format's numbers."""
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        raise InvalidRequestError(f"Cannot apply {transform} to a {data_type} column")
    if _needs_arrow(transform, data_type):
        return _on_arrow(transform, column, data_type, spark)
    if isinstance(transform, Bucket):
        return _bucket(transform, column, data_type, spark)
    if isinstance(transform, Truncate):
        return _truncate(transform, column, data_type)
    if isinstance(transform, Year | Month | Day | Hour):
        return _time_part(transform, column, data_type)
    if transform.is_identity:
        return plain_number(column, data_type)
    raise UnsupportedError(f"Cannot write to partitions by {transform}: the transform is unknown")


def plain_number(column: Column, data_type: ft.Type) -> Column:
    """Convert dates and timestamps to the format's numbers; return other columns unchanged."""
    if isinstance(data_type, ft.DateType):
        return F.unix_date(column)
    if isinstance(data_type, ft.TimestamptzType):
        return F.unix_micros(column)
    if isinstance(data_type, ft.TimestampType):
        return F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01'"), column)
    return column


def _divide_down(column: Column, by: int) -> Column:
    divisor = F.lit(by).cast("bigint")
    return F.call_function("div", column - F.pmod(column, divisor), divisor)


def _time_part(transform: Transform, column: Column, data_type: ft.Type) -> Column:
    if isinstance(data_type, ft.DateType):
        days = F.unix_date(column)
    else:
        micros = _divide_down(column, 1000) if isinstance(data_type, _NANOS) else plain_number(column, data_type)
        if isinstance(transform, Hour):
            return _divide_down(micros, _MICROS_PER_HOUR).cast("int")
        days = _divide_down(micros, _MICROS_PER_DAY).cast("int")
    if isinstance(transform, Day):
        return days
    date = column if isinstance(data_type, ft.DateType) else F.date_from_unix_date(days)
    years = F.year(date) - F.lit(1970)
    return years if isinstance(transform, Year) else years * F.lit(12) + F.month(date) - F.lit(1)


def _needs_arrow(transform: Transform, data_type: ft.Type) -> bool:
    """Return whether no Spark expression computes a transform exactly."""
    if isinstance(transform, Bucket):
        return isinstance(data_type, ft.StringType | ft.BinaryType | ft.FixedType | ft.UuidType | ft.DecimalType)
    return isinstance(transform, Truncate) and isinstance(data_type, ft.DecimalType)


def _truncate(transform: Truncate, column: Column, data_type: ft.Type) -> Column:
    if isinstance(data_type, ft.StringType | ft.BinaryType):
        return F.substring(column, 1, transform.width)
    width = F.lit(transform.width).cast(stored_type(data_type))
    cut = F.try_subtract(column, F.pmod(column, width))
    wrapped = transform.wrapped_range(data_type)
    if wrapped is None:
        return cut
    return F.when(column.isNotNull() & cut.isNull(), F.lit(wrapped.result).cast(stored_type(data_type))).otherwise(cut)


def _bucket(transform: Bucket, column: Column, data_type: ft.Type, spark: SparkSession) -> Column:
    number = plain_number(column, data_type)
    if isinstance(data_type, _NANOS):
        number = _divide_down(number, 1000)
    hashed = hash_longs(number.cast("bigint"), spark)
    if hashed is None:
        return _on_arrow(transform, column, data_type, spark)
    bucket = F.pmod(hashed.bitwiseAND(F.lit(0x7FFFFFFF)), F.lit(transform.num_buckets))
    return F.when(column.isNotNull(), bucket)


def _on_arrow(transform: Transform, column: Column, data_type: ft.Type, spark: SparkSession) -> Column:
    """Return a transform that Python workers compute on Arrow columns."""
    arrow_udf = getattr(F, "arrow_udf", None)
    if arrow_udf is None:
        raise UnsupportedError(
            f"Cannot compute {transform} of a {data_type} column on this Spark: it has no functions over Arrow columns",
            hint="Use Spark 4.1 or newer, or append the rows as Arrow.",
        )
    ship_package(spark)
    transformed: Column = arrow_udf(_transform_of(transform, data_type), stored_type(transform.result_type(data_type)))(
        column
    )
    return transformed


def _transform_of(transform: Transform, data_type: ft.Type) -> Callable[[pa.Array], pa.Array]:
    def compute(column: pa.Array) -> pa.Array:
        return transform_column(transform, stored_as(column, data_type), data_type)

    compute.__annotations__ = {"column": pa.Array, "return": pa.Array}
    return compute


def stored_as(column: Any, data_type: ft.Type) -> Any:
    """Convert an Arrow column of Spark's, in stored form, to the format's Arrow type."""
    target = to_arrow_type(data_type)
    storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
    if column.type == storage:
        return column
    is_counted = pa.types.is_temporal(storage) and pa.types.is_integer(column.type)
    return column.view(storage) if is_counted else column.cast(storage)
