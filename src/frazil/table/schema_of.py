"""Schemas as users give them: text, a `frazil.Schema`, a `pyarrow.Schema` or a `StructType` of Spark's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from frazil.codec.arrow_schema import from_arrow_schema
from frazil.errors import InvalidRequestError
from frazil.spec.parse_type import parse_schema
from frazil.spec.schema import Schema


def is_schema(definition: object) -> bool:
    """Return whether a value is a schema in one of the forms that `schema_of` takes, and not a frame."""
    return isinstance(definition, Schema | str | pa.Schema) or _is_spark_schema(definition)


def _is_spark_schema(definition: object) -> bool:
    return type(definition).__module__ == "pyspark.sql.types" and type(definition).__name__ == "StructType"


def schema_of(schema: Schema | pa.Schema | str | Any, format_version: int) -> Schema:
    """Return a schema given as text, Arrow schema, Spark's schema or value."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema, format_version=format_version, has_fresh_ids=True)
    if _is_spark_schema(schema):
        from frazil.spark.types import from_spark_schema

        found: Schema = from_spark_schema(schema)
        return found
    raise InvalidRequestError(
        f"Cannot make a schema of {type(schema).__name__}",
        hint="Give text, a frazil.Schema, a pyarrow.Schema or a StructType.",
    )
