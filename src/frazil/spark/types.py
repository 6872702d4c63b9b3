"""Conversion of types and values between the table format and Spark. Specification: "Schemas and Data Types".

Each type has two forms on Spark. The *stored* form is lossless, and is what Spark's Parquet reader and writer use; the
*shown* form is what users see:

    format                      stored           shown
    boolean … double, decimal   the same         the same
    date, string, binary        the same         the same
    timestamp                   timestamp_ntz    timestamp_ntz
    timestamptz                 timestamp        timestamp
    timestamp_ns                bigint           timestamp_ntz, rounded down to microseconds
    timestamptz_ns              bigint           timestamp, rounded down to microseconds
    time                        bigint           time(6) if the session has that type enabled, else text
    uuid                        binary           string
    fixed                       binary           binary
    geometry, geography         binary (WKB)     geometry, geography, from Spark 4.1 on
    variant                     variant          variant
    unknown                     void             void
    struct, list, map           of stored parts  of shown parts

`show_column` and `store_column` convert between the forms. A column whose forms agree is returned unchanged, so that
Spark's optimiser sees a plain column. Rewrites use the stored form throughout, so that nanoseconds survive them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pyspark.sql.types as st
from pyspark.sql import Column, SparkSession

from frazil.errors import SchemaMismatchError, UnsupportedError
from frazil.spark.own_columns import F
from frazil.spark.session import setting
from frazil.spec import types as ft
from frazil.spec.schema import Schema
from frazil.sql.text_lengths import warn_of_lengths

FIELD_ID = "parquet.field.id"
"""The metadata key of a field's id in Spark's Parquet reader and writer."""

_MICROS_PER_SECOND = 1_000_000
_SAME = {
    ft.BOOLEAN: st.BooleanType(),
    ft.INT: st.IntegerType(),
    ft.LONG: st.LongType(),
    ft.FLOAT: st.FloatType(),
    ft.DOUBLE: st.DoubleType(),
    ft.DATE: st.DateType(),
    ft.TIMESTAMP: st.TimestampNTZType(),
    ft.TIMESTAMPTZ: st.TimestampType(),
    ft.STRING: st.StringType(),
    ft.BINARY: st.BinaryType(),
    ft.VARIANT: st.VariantType(),
    ft.UNKNOWN: st.NullType(),
}
_FROM_SPARK: dict[type[st.DataType], ft.Type] = {
    st.BooleanType: ft.BOOLEAN,
    st.ByteType: ft.INT,
    st.ShortType: ft.INT,
    st.IntegerType: ft.INT,
    st.LongType: ft.LONG,
    st.FloatType: ft.FLOAT,
    st.DoubleType: ft.DOUBLE,
    st.DateType: ft.DATE,
    st.TimestampNTZType: ft.TIMESTAMP,
    st.TimestampType: ft.TIMESTAMPTZ,
    st.StringType: ft.STRING,
    st.BinaryType: ft.BINARY,
    st.VariantType: ft.VARIANT,
    st.NullType: ft.UNKNOWN,
}


_GEOSPATIAL = "spark.sql.geospatial.enabled"


def has_time_type(spark: SparkSession | None) -> bool:
    """Return whether the session has Spark's TIME type enabled; False without a session."""
    if spark is None or not hasattr(st, "TimeType"):
        return False
    return spark.conf.get("spark.sql.timeType.enabled", "false") == "true"


def stored_type(data_type: ft.Type, *, with_ids: bool = True) -> st.DataType:
    """Return the stored form of a type, with or without the field ids of nested fields."""
    if isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType | ft.TimeType):
        return st.LongType()
    if isinstance(data_type, ft.UuidType | ft.FixedType | ft.GeometryType | ft.GeographyType):
        return st.BinaryType()
    if isinstance(data_type, ft.StructType):
        return st.StructType([stored_field(field, with_ids=with_ids) for field in data_type.fields])
    if isinstance(data_type, ft.ListType):
        return st.ArrayType(stored_type(data_type.element_type, with_ids=with_ids), not data_type.element_required)
    if isinstance(data_type, ft.MapType):
        key, value = (
            stored_type(field_type, with_ids=with_ids) for field_type in (data_type.key_type, data_type.value_type)
        )
        return st.MapType(key, value, not data_type.value_required)
    return _same_type(data_type)


def stored_field(field: ft.NestedField, *, with_ids: bool = True) -> st.StructField:
    """Return a field in its stored form, with its id in the metadata that Spark's Parquet reader and writer use."""
    metadata = {FIELD_ID: field.field_id} if with_ids else {}
    return st.StructField(field.name, stored_type(field.field_type, with_ids=with_ids), field.optional, metadata)


def without_metadata(spark_type: st.DataType) -> st.DataType:
    """Return the type without field metadata, at any depth."""
    if isinstance(spark_type, st.StructType):
        return st.StructType(
            [
                st.StructField(field.name, without_metadata(field.dataType), field.nullable)
                for field in spark_type.fields
            ]
        )
    if isinstance(spark_type, st.ArrayType):
        return st.ArrayType(without_metadata(spark_type.elementType), spark_type.containsNull)
    if isinstance(spark_type, st.MapType):
        key, value = without_metadata(spark_type.keyType), without_metadata(spark_type.valueType)
        return st.MapType(key, value, spark_type.valueContainsNull)
    return spark_type


def shown_type(data_type: ft.Type, spark: SparkSession | None) -> st.DataType:
    """Return the shown form of a type."""
    if isinstance(data_type, ft.TimestampNsType):
        return st.TimestampNTZType()
    if isinstance(data_type, ft.TimestamptzNsType):
        return st.TimestampType()
    if isinstance(data_type, ft.TimeType):
        return st.TimeType(6) if has_time_type(spark) else st.StringType()
    if isinstance(data_type, ft.UuidType):
        return st.StringType()
    if isinstance(data_type, ft.FixedType):
        return st.BinaryType()
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return _spatial_type(data_type, spark)
    if isinstance(data_type, ft.StructType):
        return st.StructType([shown_field(field, spark) for field in data_type.fields])
    if isinstance(data_type, ft.ListType):
        return st.ArrayType(shown_type(data_type.element_type, spark), not data_type.element_required)
    if isinstance(data_type, ft.MapType):
        return st.MapType(
            shown_type(data_type.key_type, spark), shown_type(data_type.value_type, spark), not data_type.value_required
        )
    return _same_type(data_type)


def shown_field(field: ft.NestedField, spark: SparkSession | None) -> st.StructField:
    """Return a field in its shown form, with its doc as the comment."""
    comment = {} if field.doc is None else {"comment": field.doc}
    return st.StructField(field.name, shown_type(field.field_type, spark), field.optional, comment)


def shown_schema(schema: Schema, spark: SparkSession | None) -> st.StructType:
    """Return a schema in its shown form."""
    return st.StructType([shown_field(field, spark) for field in schema.fields])


def _same_type(data_type: ft.Type) -> st.DataType:
    if isinstance(data_type, ft.DecimalType):
        return st.DecimalType(data_type.precision, data_type.scale)
    return _SAME[data_type]


def is_shown_as_stored(data_type: ft.Type) -> bool:
    """Return whether the stored and shown forms of a type are the same."""
    if isinstance(data_type, ft.StructType):
        return all(is_shown_as_stored(field.field_type) for field in data_type.fields)
    if isinstance(data_type, ft.ListType):
        return is_shown_as_stored(data_type.element_type)
    if isinstance(data_type, ft.MapType):
        return is_shown_as_stored(data_type.key_type) and is_shown_as_stored(data_type.value_type)
    return not isinstance(
        data_type,
        ft.TimestampNsType | ft.TimestamptzNsType | ft.TimeType | ft.UuidType | ft.GeometryType | ft.GeographyType,
    )


def show_column(column: Column, data_type: ft.Type, spark: SparkSession) -> Column:
    """Convert a column from the stored to the shown form."""
    if is_shown_as_stored(data_type):
        return column
    if isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType):
        micros = _divide_down(column, 1000)
        if isinstance(data_type, ft.TimestamptzNsType):
            return F.timestamp_micros(micros)
        return F.timestamp_add("MICROSECOND", micros, F.expr("timestamp_ntz'1970-01-01'"))
    if isinstance(data_type, ft.TimeType):
        text = _time_text(column)
        return text.cast("time(6)") if has_time_type(spark) else text
    if isinstance(data_type, ft.UuidType):
        digits = F.lower(F.hex(column))
        cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        return F.when(
            column.isNotNull(), F.concat_ws("-", *(F.substring(digits, index, length) for index, length in cuts))
        )
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        srid = _spatial_type(data_type, spark).srid
        if isinstance(data_type, ft.GeographyType):
            return F.call_function("st_geogfromwkb", column)
        # Spark 4.1 has no single function for both.
        return F.call_function("st_setsrid", F.call_function("st_geomfromwkb", column), F.lit(srid))
    return _convert_parts(column, data_type, lambda element, of: show_column(element, of, spark))


def store_column(column: Column, data_type: ft.Type) -> Column:
    """Convert a column from the shown form, or a form that Spark casts to it, to the stored form.

    Invalid values raise while Spark runs: text that is not a uuid or a time, a timestamp out of range for nanoseconds.
    """
    if is_shown_as_stored(data_type):
        return column
    if isinstance(data_type, ft.TimestamptzNsType):
        return F.unix_micros(column) * F.lit(1000)
    if isinstance(data_type, ft.TimestampNsType):
        return F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01'"), column) * F.lit(1000)
    if isinstance(data_type, ft.TimeType):
        return _time_micros(column.cast("string"))
    if isinstance(data_type, ft.UuidType):
        is_uuid = column.rlike("(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
        return F.when(column.isNotNull(), F.unhex(F.replace(_checked(column, is_uuid, "uuid"), F.lit("-"))))
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return F.call_function("st_asbinary", column)
    return _convert_parts(column, data_type, store_column)


def _convert_parts(column: Column, data_type: ft.Type, convert: Callable[[Column, ft.Type], Column]) -> Column:
    if isinstance(data_type, ft.StructType):
        parts = [convert(column[field.name], field.field_type).alias(field.name) for field in data_type.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ft.ListType):
        element = data_type.element_type
        return F.transform(column, lambda item: convert(item, element))
    if isinstance(data_type, ft.MapType):
        key_type, value_type = data_type.key_type, data_type.value_type
        pairs = F.transform(
            F.map_entries(column),
            lambda item: F.struct(
                convert(item["key"], key_type).alias("key"), convert(item["value"], value_type).alias("value")
            ),
        )
        return F.map_from_entries(pairs)
    raise UnsupportedError(f"Cannot convert values of type {data_type} on Spark")


def _divide_down(column: Column, by: int) -> Column:
    """Return the floor of an integer division; Spark's own division rounds towards zero."""
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


def _checked(column: Column, is_valid: Column, what: str) -> Column:
    """Return the column; raise while Spark runs if a value is not valid."""
    message = F.concat(F.lit("Cannot write '"), column, F.lit(f"': it is not a {what}"))
    return F.when(column.isNull() | is_valid, column).otherwise(F.raise_error(message).cast("string"))


def _spatial_type(
    data_type: ft.GeometryType | ft.GeographyType, spark: SparkSession | None
) -> st.GeometryType | st.GeographyType:
    spatial_type = getattr(st, "GeographyType" if isinstance(data_type, ft.GeographyType) else "GeometryType", None)
    if spatial_type is None:
        raise UnsupportedError(
            f"Cannot read values of type {data_type}: this Spark has no such type",
            hint="Use Spark 4.1 or newer, leave the column out, or read with scan.to_arrow().",
        )
    if spark is not None and setting(spark, _GEOSPATIAL) == "false":
        raise UnsupportedError(
            f"Cannot read values of type {data_type}: Spark's geospatial types are disabled in the session",
            hint=f"Set {_GEOSPATIAL} to true, leave the column out, or read with scan.to_arrow().",
        )
    srid = 4326 if isinstance(data_type, ft.GeographyType) else _srid(data_type.crs)
    return spatial_type(srid)  # type: ignore[no-any-return]


def _srid(crs: str) -> int:
    """Return Spark's number for a coordinate reference system."""
    if crs.upper() in ("OGC:CRS84", "EPSG:4326"):
        return 4326
    prefix, _, number = crs.partition(":")
    if prefix.lower() in ("srid", "epsg") and number.isdigit():
        return int(number)
    raise UnsupportedError(
        f"Cannot show a geometry in {crs!r}: Spark identifies reference systems by number only",
        hint="Leave the column out, or read with scan.to_arrow().",
    )


def from_spark_schema(struct: st.StructType) -> Schema:
    """Return a table schema for a Spark schema, with field ids from 1 in the order of columns.

    Comments become docs; byte and short become int. A column of a type that the format lacks is rejected by name.
    """
    ids = count(1)
    return Schema(tuple(_from_spark_field(field, field.name, ids) for field in struct.fields))


def from_spark_type(spark_type: st.DataType, name: str, ids: Iterator[int]) -> ft.Type:
    """Return the format's type for a Spark type; `name` is the column's name in errors."""
    if isinstance(spark_type, st.DecimalType):
        return ft.DecimalType(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, st.StructType):
        return ft.StructType(
            tuple(_from_spark_field(field, f"{name}.{field.name}", ids) for field in spark_type.fields)
        )
    if isinstance(spark_type, st.ArrayType):
        element_id = next(ids)
        return ft.ListType(
            element_id, from_spark_type(spark_type.elementType, f"{name}.element", ids), not spark_type.containsNull
        )
    if isinstance(spark_type, st.MapType):
        key_id, value_id = next(ids), next(ids)
        key = from_spark_type(spark_type.keyType, f"{name}.key", ids)
        value = from_spark_type(spark_type.valueType, f"{name}.value", ids)
        return ft.MapType(key_id, key, value_id, value, not spark_type.valueContainsNull)
    if type(spark_type).__name__ == "TimeType":
        return ft.TIME
    if type(spark_type).__name__ in ("GeometryType", "GeographyType"):
        return _from_spatial(spark_type)
    if isinstance(spark_type, st.CharType | st.VarcharType):
        warn_of_lengths()
        return ft.STRING
    data_type = _FROM_SPARK.get(type(spark_type))
    if data_type is None:
        raise SchemaMismatchError(
            f"Cannot use column {name}: the table format has no type for Spark's {spark_type.simpleString()}",
            hint="Cast the column to another type first.",
        )
    return data_type


def _from_spatial(spark_type: st.DataType) -> ft.Type:
    srid = getattr(spark_type, "srid", None)
    if type(spark_type).__name__ == "GeographyType":
        return ft.GeographyType()
    return ft.GeometryType() if srid in (None, -1, 4326) else ft.GeometryType(f"srid:{srid}")


def _from_spark_field(struct_field: st.StructField, name: str, ids: Iterator[int]) -> ft.NestedField:
    field_id = next(ids)
    comment = struct_field.metadata.get("comment")
    return ft.NestedField(
        field_id,
        struct_field.name,
        from_spark_type(struct_field.dataType, name, ids),
        not struct_field.nullable,
        comment,
    )
