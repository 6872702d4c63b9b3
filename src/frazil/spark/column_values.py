"""Values of the format as Spark literals, in their stored form, and names as Spark reads them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import UnsupportedError
from frazil.spark.types import stored_type
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)

_INTEGERS = (IntType, LongType, TimeType, TimestampNsType, TimestamptzNsType)


def quote(name: str) -> str:
    """Return a name so that Spark takes it for one column, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any, kind: Type) -> Column:
    """Return a value, as `spec/types.py` holds it, as a literal of the stored form."""
    if value is None:
        return F.lit(None).cast(stored_type(kind))
    if isinstance(kind, StructType):
        return F.struct(*(literal(value.get(one.name), one.field_type).alias(one.name) for one in kind.fields))
    if isinstance(kind, ListType):
        items = F.array(*(literal(one, kind.element_type) for one in value))
        return items.cast(stored_type(kind))
    if isinstance(kind, MapType):
        pairs = [(literal(key, kind.key_type), literal(item, kind.value_type)) for key, item in value.items()]
        return F.create_map(*(part for pair in pairs for part in pair)).cast(stored_type(kind))
    if isinstance(kind, DateType):
        return F.date_from_unix_date(F.lit(value))
    if isinstance(kind, TimestamptzType):
        return F.timestamp_micros(F.lit(value).cast("bigint"))
    if isinstance(kind, TimestampType):
        return F.timestamp_add("MICROSECOND", F.lit(value).cast("bigint"), F.expr("timestamp_ntz'1970-01-01'"))
    if isinstance(kind, BooleanType | StringType):
        return F.lit(value)
    if isinstance(kind, _INTEGERS):
        return F.lit(value).cast(stored_type(kind))
    if isinstance(kind, FloatType | DoubleType):
        return F.lit(float(value)).cast(stored_type(kind))
    if isinstance(kind, DecimalType):
        return F.lit(str(value)).cast(stored_type(kind))
    raw = value.bytes if isinstance(value, UUID) else value
    if isinstance(raw, bytes):
        return F.unhex(F.lit(raw.hex()))
    raise UnsupportedError(f"Cannot write a value of type {kind} on Spark")


def some_value(kind: Type) -> Column:
    """Return any value of a type but null."""
    if isinstance(kind, BooleanType):
        return F.lit(False)
    if isinstance(kind, DecimalType):
        return F.lit(0).cast(stored_type(kind))
    if isinstance(kind, StringType):
        return F.lit("")
    if isinstance(kind, BinaryType | FixedType | UuidType | GeometryType | GeographyType):
        return F.lit("").cast("binary")
    if isinstance(kind, DateType):
        return F.expr("date'1970-01-01'")
    if isinstance(kind, TimestampType):
        return F.expr("timestamp_ntz'1970-01-01'")
    if isinstance(kind, TimestamptzType):
        return F.expr("timestamp'1970-01-01'")
    if isinstance(kind, StructType):
        return F.struct(*(some_value(one.field_type).alias(one.name) for one in kind.fields))
    if isinstance(kind, ListType):
        return literal([], kind)
    if isinstance(kind, MapType):
        return literal({}, kind)
    return literal(0, kind)
