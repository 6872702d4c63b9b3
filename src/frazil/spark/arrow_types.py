"""Conversion between Spark and Arrow types, and of Arrow values to the form that Spark shows.

Types are converted by Spark itself, so that Spark receives exactly the types it expects; differences between its
versions are handled here. The shown form is that of `types.py`: uuids and times are text, nanoseconds are rounded down
to microseconds, fixed is binary.
"""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.types as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import types as spark_arrow

from frazil.codec.arrow_arrays import with_values

_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"}
    if "timezone" in inspect.signature(spark_arrow.to_arrow_type).parameters
    else {"timestamp_utc": True}
)


def to_arrow_type(spark_type: st.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark exchanges values of a type; timestamps with a zone are in UTC."""
    arrow_type: pa.DataType = spark_arrow.to_arrow_type(spark_type, **_IN_UTC)
    return arrow_type


def to_arrow_schema(struct: st.StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges rows."""
    arrow_schema: pa.Schema = spark_arrow.to_arrow_schema(struct, **_IN_UTC)
    return arrow_schema


def from_arrow_type(arrow_type: pa.DataType) -> st.DataType:
    """Return the Spark type for an Arrow type; a timestamp without a zone becomes `timestamp_ntz`."""
    return spark_arrow.from_arrow_type(arrow_type, prefer_timestamp_ntz=True)


def shown_struct(schema: pa.Schema) -> st.StructType:
    """Return the Spark schema that shows the columns of an Arrow schema."""
    return st.StructType(
        [st.StructField(field.name, from_arrow_type(_shown_type(field.type)), field.nullable) for field in schema]
    )


def _shown_type(arrow_type: pa.DataType) -> pa.DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.string() if arrow_type.extension_name == "arrow.uuid" else _shown_type(arrow_type.storage_type)
    if pa.types.is_time(arrow_type) or pa.types.is_large_string(arrow_type):
        return pa.string()
    if pa.types.is_fixed_size_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return pa.binary()
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", arrow_type.tz)
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_shown_type(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(_shown_part(arrow_type.key_field), _shown_part(arrow_type.item_field))
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return pa.list_(_shown_part(arrow_type.value_field))
    return arrow_type


def _shown_part(arrow_field: pa.Field) -> pa.Field:
    return arrow_field.with_type(_shown_type(arrow_field.type))


def shown_table(table: pa.Table, struct: st.StructType) -> pa.Table:
    """Convert an Arrow table to the Arrow types of a Spark schema of shown types."""
    schema = to_arrow_schema(struct)
    columns = [
        pa.chunked_array([shown_array(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def frame_of_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a DataFrame of the rows of an Arrow table, in the shown form."""
    struct = shown_struct(table.schema)
    if table.num_rows == 0:
        return spark.createDataFrame([], struct)
    return spark.createDataFrame(shown_table(table, struct), struct)


def shown_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert the columns of a batch, by position, to the types of a Spark-compatible Arrow schema."""
    columns = [shown_array(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def shown_array(array: Any, target: pa.DataType) -> Any:
    """Convert an Arrow array, as frazil reads it, to an Arrow type that Spark accepts."""
    if array.type == target:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return shown_array(array.storage, target)
    data_type = array.type
    if pa.types.is_struct(target):
        # By name: Spark orders the fields of a variant differently.
        parts = [shown_array(array.field(data_type.get_field_index(field.name)), field.type) for field in target]
        if not parts:
            return array.cast(target)
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
    if pa.types.is_map(target):
        keys, items = shown_array(array.keys, target.key_type), shown_array(array.items, target.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        return with_values(array, entries, target)
    if pa.types.is_list(target) and pa.types.is_list(data_type):
        return with_values(array, shown_array(array.values, target.value_type), target)
    if pa.types.is_fixed_size_binary(data_type) and pa.types.is_string(target):
        return pa.array([None if value is None else _uuid_text(value) for value in array.to_pylist()], target)
    if pa.types.is_timestamp(data_type) and data_type.unit == "ns":
        # A cast alone would round towards 1970.
        micros = pc.floor_temporal(array.cast(pa.timestamp("ns")), unit="microsecond").cast(pa.int64())
        return pc.divide(micros, 1000).cast(target)
    return array.cast(target)


def _uuid_text(value: bytes) -> str:
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
