"""Types and values between the format and Spark. Specification: "Schemas and Data Types".

Each type has two forms on Spark. The *stored* form is what Spark's own Parquet reader gives and its writer takes,
and it loses nothing; the *shown* form is what users see:

    format                      stored           shown
    boolean … double, decimal   the same         the same
    date, string, binary        the same         the same
    timestamp                   timestamp_ntz    timestamp_ntz
    timestamptz                 timestamp        timestamp
    timestamp_ns                bigint           timestamp_ntz, rounded down to microseconds
    timestamptz_ns              bigint           timestamp, rounded down to microseconds
    time                        bigint           time(6) where the session has that type switched on, else text
    uuid                        binary           string
    fixed                       binary           binary
    geometry, geography         binary (WKB)     geometry, geography, from Spark 4.1 on
    variant                     variant          variant
    unknown                     void             void
    struct, list, map           of stored parts  of shown parts

`show_column` and `store_column` turn columns of one form into the other; columns whose forms agree are passed
through as they are, so that Spark's optimiser sees plain columns. Rewrites of rows stay in the stored form: what a
microsecond cannot hold is never lost by a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pyspark.sql.types as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import SchemaMismatchError, UnsupportedError
from frazil.spark.session import setting
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    Type,
    UuidType,
)

FIELD_ID = "parquet.field.id"
"""The key under which Spark's Parquet reader and writer find a field's id in its metadata."""

_MICROS_PER_SECOND = 1_000_000
_SAME = {
    BOOLEAN: st.BooleanType(),
    INT: st.IntegerType(),
    LONG: st.LongType(),
    FLOAT: st.FloatType(),
    DOUBLE: st.DoubleType(),
    DATE: st.DateType(),
    TIMESTAMP: st.TimestampNTZType(),
    TIMESTAMPTZ: st.TimestampType(),
    STRING: st.StringType(),
    BINARY: st.BinaryType(),
    VARIANT: st.VariantType(),
    UNKNOWN: st.NullType(),
}
_FROM_SPARK: dict[type[st.DataType], Type] = {
    st.BooleanType: BOOLEAN,
    st.ByteType: INT,
    st.ShortType: INT,
    st.IntegerType: INT,
    st.LongType: LONG,
    st.FloatType: FLOAT,
    st.DoubleType: DOUBLE,
    st.DateType: DATE,
    st.TimestampNTZType: TIMESTAMP,
    st.TimestampType: TIMESTAMPTZ,
    st.StringType: STRING,
    st.CharType: STRING,
    st.VarcharType: STRING,
    st.BinaryType: BINARY,
    st.VariantType: VARIANT,
    st.NullType: UNKNOWN,
}


_GEOSPATIAL = "spark.sql.geospatial.enabled"


def has_time_type(spark: SparkSession | None) -> bool:
    """Return whether the session has Spark's TIME type switched on; where no session is in reach, it has not."""
    if spark is None or not hasattr(st, "TimeType"):
        return False
    return spark.conf.get("spark.sql.timeType.enabled", "false") == "true"


def stored_type(kind: Type, *, with_ids: bool = True) -> st.DataType:
    """Return the type in which Spark's Parquet reader gives values of a type, with the ids of its parts or without."""
    if isinstance(kind, TimestampNsType | TimestamptzNsType | TimeType):
        return st.LongType()
    if isinstance(kind, UuidType | FixedType | GeometryType | GeographyType):
        return st.BinaryType()
    if isinstance(kind, StructType):
        return st.StructType([stored_field(field, with_ids=with_ids) for field in kind.fields])
    if isinstance(kind, ListType):
        return st.ArrayType(stored_type(kind.element_type, with_ids=with_ids), not kind.element_required)
    if isinstance(kind, MapType):
        key, value = (stored_type(one, with_ids=with_ids) for one in (kind.key_type, kind.value_type))
        return st.MapType(key, value, not kind.value_required)
    return _same_type(kind)


def stored_field(part: NestedField, *, with_ids: bool = True) -> st.StructField:
    """Return a field in its stored form, with its id where Spark's Parquet reader and writer look for it."""
    metadata = {FIELD_ID: part.field_id} if with_ids else {}
    return st.StructField(part.name, stored_type(part.field_type, with_ids=with_ids), part.optional, metadata)


def without_metadata(kind: st.DataType) -> st.DataType:
    """Return a type whose fields, at any depth, say their name, type and nullability alone."""
    if isinstance(kind, st.StructType):
        return st.StructType(
            [st.StructField(field.name, without_metadata(field.dataType), field.nullable) for field in kind.fields]
        )
    if isinstance(kind, st.ArrayType):
        return st.ArrayType(without_metadata(kind.elementType), kind.containsNull)
    if isinstance(kind, st.MapType):
        key, value = without_metadata(kind.keyType), without_metadata(kind.valueType)
        return st.MapType(key, value, kind.valueContainsNull)
    return kind


def shown_type(kind: Type, spark: SparkSession | None) -> st.DataType:
    """Return the type that users see for a type."""
    if isinstance(kind, TimestampNsType):
        return st.TimestampNTZType()
    if isinstance(kind, TimestamptzNsType):
        return st.TimestampType()
    if isinstance(kind, TimeType):
        return st.TimeType(6) if has_time_type(spark) else st.StringType()
    if isinstance(kind, UuidType):
        return st.StringType()
    if isinstance(kind, FixedType):
        return st.BinaryType()
    if isinstance(kind, GeometryType | GeographyType):
        return _spatial_type(kind, spark)
    if isinstance(kind, StructType):
        return st.StructType([shown_field(field, spark) for field in kind.fields])
    if isinstance(kind, ListType):
        return st.ArrayType(shown_type(kind.element_type, spark), not kind.element_required)
    if isinstance(kind, MapType):
        return st.MapType(shown_type(kind.key_type, spark), shown_type(kind.value_type, spark), not kind.value_required)
    return _same_type(kind)


def shown_field(part: NestedField, spark: SparkSession | None) -> st.StructField:
    """Return a field as users see it, its doc as Spark's comment."""
    comment = {} if part.doc is None else {"comment": part.doc}
    return st.StructField(part.name, shown_type(part.field_type, spark), part.optional, comment)


def shown_schema(schema: Schema, spark: SparkSession | None) -> st.StructType:
    """Return a table's schema as users see it on Spark."""
    return st.StructType([shown_field(field, spark) for field in schema.fields])


def _same_type(kind: Type) -> st.DataType:
    if isinstance(kind, DecimalType):
        return st.DecimalType(kind.precision, kind.scale)
    return _SAME[kind]


def is_shown_as_stored(kind: Type) -> bool:
    """Return whether both forms of a type are the same, so that its columns need no conversion."""
    if isinstance(kind, StructType):
        return all(is_shown_as_stored(field.field_type) for field in kind.fields)
    if isinstance(kind, ListType):
        return is_shown_as_stored(kind.element_type)
    if isinstance(kind, MapType):
        return is_shown_as_stored(kind.key_type) and is_shown_as_stored(kind.value_type)
    return not isinstance(
        kind, TimestampNsType | TimestamptzNsType | TimeType | UuidType | GeometryType | GeographyType
    )


def show_column(column: Column, kind: Type, spark: SparkSession) -> Column:
    """Return a stored column in the form that users see."""
    if is_shown_as_stored(kind):
        return column
    if isinstance(kind, TimestampNsType | TimestamptzNsType):
        micros = _divide_down(column, 1000)
        if isinstance(kind, TimestamptzNsType):
            return F.timestamp_micros(micros)
        return F.timestamp_add("MICROSECOND", micros, F.expr("timestamp_ntz'1970-01-01'"))
    if isinstance(kind, TimeType):
        text = _time_text(column)
        return text.cast("time(6)") if has_time_type(spark) else text
    if isinstance(kind, UuidType):
        digits = F.lower(F.hex(column))
        cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        return F.when(column.isNotNull(), F.concat_ws("-", *(F.substring(digits, at, length) for at, length in cuts)))
    if isinstance(kind, GeometryType | GeographyType):
        srid = _spatial_type(kind, spark).srid
        if isinstance(kind, GeographyType):
            return F.call_function("st_geogfromwkb", column)
        # Spark 4.1 knows no function of both.
        return F.call_function("st_setsrid", F.call_function("st_geomfromwkb", column), F.lit(srid))
    return _convert_parts(column, kind, lambda part, of: show_column(part, of, spark))


def store_column(column: Column, kind: Type) -> Column:
    """Return a column of the shown form, or of a form Spark casts to it, in the stored form.

    Values that do not fit raise while Spark runs: text that is not a uuid or a time, a timestamp too far away for
    nanoseconds.
    """
    if is_shown_as_stored(kind):
        return column
    if isinstance(kind, TimestamptzNsType):
        return F.unix_micros(column) * F.lit(1000)
    if isinstance(kind, TimestampNsType):
        return F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01'"), column) * F.lit(1000)
    if isinstance(kind, TimeType):
        return _time_micros(column.cast("string"))
    if isinstance(kind, UuidType):
        is_uuid = column.rlike("(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
        return F.when(column.isNotNull(), F.unhex(F.replace(_checked(column, is_uuid, "uuid"), F.lit("-"))))
    if isinstance(kind, GeometryType | GeographyType):
        return F.call_function("st_asbinary", column)
    return _convert_parts(column, kind, store_column)


def _convert_parts(column: Column, kind: Type, convert: Callable[[Column, Type], Column]) -> Column:
    if isinstance(kind, StructType):
        parts = [convert(column[field.name], field.field_type).alias(field.name) for field in kind.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(kind, ListType):
        element = kind.element_type
        return F.transform(column, lambda one: convert(one, element))
    if isinstance(kind, MapType):
        key_type, value_type = kind.key_type, kind.value_type
        pairs = F.transform(
            F.map_entries(column),
            lambda one: F.struct(
                convert(one["key"], key_type).alias("key"), convert(one["value"], value_type).alias("value")
            ),
        )
        return F.map_from_entries(pairs)
    raise UnsupportedError(f"Cannot convert values of type {kind} on Spark")


def _divide_down(column: Column, by: int) -> Column:
    """Return whole numbers divided and rounded down; Spark's own division rounds towards zero."""
    whole = column - F.pmod(column, F.lit(by).cast("bigint"))
    return F.call_function("div", whole, F.lit(by).cast("bigint"))


def _time_text(column: Column) -> Column:
    def digits(divisor: int, modulus: int, width: int) -> Column:
        whole = F.call_function("div", column, F.lit(divisor).cast("bigint"))
        return F.lpad((whole % F.lit(modulus)).cast("string"), width, "0")

    second = _MICROS_PER_SECOND
    clock = F.concat_ws(":", digits(3600 * second, 24, 2), digits(60 * second, 60, 2), digits(second, 60, 2))
    return F.when(column.isNotNull(), F.concat(clock, F.lit("."), digits(1, second, 6)))


def _time_micros(text: Column) -> Column:
    shape = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"
    checked = _checked(text, text.rlike(shape), "time")
    hours, minutes = F.substring(checked, 1, 2).cast("bigint"), F.substring(checked, 4, 2).cast("bigint")
    seconds = F.coalesce(F.nullif(F.substring(checked, 7, 2), F.lit("")), F.lit("0")).cast("bigint")
    fraction = F.rpad(F.substring(checked, 10, 6), 6, "0").cast("bigint")
    whole = (hours * F.lit(3600) + minutes * F.lit(60) + seconds) * F.lit(_MICROS_PER_SECOND)
    return F.when(text.isNotNull(), whole + fraction)


def _checked(column: Column, is_fine: Column, what: str) -> Column:
    """Return the column, raising while Spark runs where a value is not what it must be."""
    message = F.concat(F.lit("Cannot write '"), column, F.lit(f"': it is not a {what}"))
    return F.when(column.isNull() | is_fine, column).otherwise(F.raise_error(message).cast("string"))


def _spatial_type(kind: GeometryType | GeographyType, spark: SparkSession | None) -> st.GeometryType | st.GeographyType:
    found = getattr(st, "GeographyType" if isinstance(kind, GeographyType) else "GeometryType", None)
    if found is None:
        raise UnsupportedError(
            f"Cannot read values of type {kind}: this Spark has no such type",
            hint="Use Spark 4.1 or newer, leave the column out, or read with scan.to_arrow().",
        )
    if spark is not None and setting(spark, _GEOSPATIAL) == "false":
        raise UnsupportedError(
            f"Cannot read values of type {kind}: the session has Spark's geospatial types switched off",
            hint=f"Set {_GEOSPATIAL} to true, leave the column out, or read with scan.to_arrow().",
        )
    srid = 4326 if isinstance(kind, GeographyType) else _srid(kind.crs)
    return found(srid)  # type: ignore[no-any-return]


def _srid(crs: str) -> int:
    """Return the number by which Spark knows a reference system; 0 is a plane without one."""
    if crs.upper() in ("OGC:CRS84", "EPSG:4326"):
        return 4326
    prefix, _, number = crs.partition(":")
    if prefix.lower() in ("srid", "epsg") and number.isdigit():
        return int(number)
    raise UnsupportedError(
        f"Cannot show a geometry in {crs!r}: Spark knows reference systems by number only",
        hint="Leave the column out, or read with scan.to_arrow().",
    )


def from_spark_schema(struct: st.StructType) -> Schema:
    """Return a schema for a Spark schema, with ids in the order of columns from 1.

    Comments become docs; char and varchar become strings, byte and short become int; what the format has no type
    for is refused with the column's name.
    """
    ids = count(1)
    return Schema(tuple(_from_spark_field(field, field.name, ids) for field in struct.fields))


def from_spark_type(kind: st.DataType, name: str, ids: Iterator[int]) -> Type:
    """Return the format's type for a Spark type; `name` is the column, for the error."""
    if isinstance(kind, st.DecimalType):
        return DecimalType(kind.precision, kind.scale)
    if isinstance(kind, st.StructType):
        return StructType(tuple(_from_spark_field(field, f"{name}.{field.name}", ids) for field in kind.fields))
    if isinstance(kind, st.ArrayType):
        element_id = next(ids)
        return ListType(element_id, from_spark_type(kind.elementType, f"{name}.element", ids), not kind.containsNull)
    if isinstance(kind, st.MapType):
        key_id, value_id = next(ids), next(ids)
        key = from_spark_type(kind.keyType, f"{name}.key", ids)
        value = from_spark_type(kind.valueType, f"{name}.value", ids)
        return MapType(key_id, key, value_id, value, not kind.valueContainsNull)
    if type(kind).__name__ == "TimeType":
        return TIME
    if type(kind).__name__ in ("GeometryType", "GeographyType"):
        return _from_spatial(kind)
    found = _FROM_SPARK.get(type(kind))
    if found is None:
        raise SchemaMismatchError(
            f"Cannot use column {name}: the table format has no type for Spark's {kind.simpleString()}",
            hint="Cast the column to another type first.",
        )
    return found


def _from_spatial(kind: st.DataType) -> Type:
    srid = getattr(kind, "srid", None)
    if type(kind).__name__ == "GeographyType":
        return GeographyType()
    return GeometryType() if srid in (None, -1, 4326) else GeometryType(f"srid:{srid}")


def _from_spark_field(one: st.StructField, name: str, ids: Iterator[int]) -> NestedField:
    field_id = next(ids)
    comment = one.metadata.get("comment")
    return NestedField(field_id, one.name, from_spark_type(one.dataType, name, ids), not one.nullable, comment)
