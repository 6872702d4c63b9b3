"""Values as Spark literals in stored form, and columns cast to other types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pyspark.sql import Column, DataFrame

from frazil.spark.jvm.exact_sql import expression
from frazil.spark.own_columns import F
from frazil.spark.types import stored_type
from frazil.spec import types as ft
from frazil.sql.quote_names import quote
from frazil.sql.sql_literals import stored_literal


def cast_columns(frame: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Return a frame with some columns cast; `kinds` maps their names to the names of Spark types."""
    columns = [F.col(quote(name)) for name in frame.columns]
    return frame.select(
        *(
            column.cast(kinds[name]).alias(name) if name in kinds else column
            for name, column in zip(frame.columns, columns, strict=True)
        )
    )


def literal(value: Any, data_type: ft.Type) -> Column:
    """Return a value, in the representation of `spec/types.py`, as a literal in stored form."""
    column = expression(stored_literal(value, data_type))
    return column.cast(stored_type(data_type)) if value is None or data_type.is_nested else column


def some_value(data_type: ft.Type) -> Column:
    """Return an arbitrary non-null value of a type."""
    return literal(_sample(data_type), data_type)


def _sample(data_type: ft.Type) -> Any:
    if isinstance(data_type, ft.StructType):
        return {field.name: _sample(field.field_type) for field in data_type.fields}
    if isinstance(data_type, ft.ListType | ft.MapType):
        return [] if isinstance(data_type, ft.ListType) else {}
    if isinstance(data_type, ft.BinaryType | ft.FixedType | ft.GeometryType | ft.GeographyType):
        return b""
    if isinstance(data_type, ft.BooleanType):
        return False
    if isinstance(data_type, ft.UuidType):
        return UUID(int=0)
    return "" if isinstance(data_type, ft.StringType) else 0
