"""Values of the format as Spark literals, in their stored form, and names as Spark reads them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.spark.sql_literals import sql_literal
from frazil.spark.types import stored_type
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StringType,
    StructType,
    Type,
    UuidType,
)


def quote(name: str) -> str:
    """Return a name so that Spark takes it for one column, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any, kind: Type) -> Column:
    """Return a value, as `spec/types.py` holds it, as a literal of the stored form."""
    made = F.expr(sql_literal(value, kind))
    return made.cast(stored_type(kind)) if value is None or kind.is_nested else made


def some_value(kind: Type) -> Column:
    """Return any value of a type but null."""
    return literal(_sample(kind), kind)


def _sample(kind: Type) -> Any:
    if isinstance(kind, StructType):
        return {one.name: _sample(one.field_type) for one in kind.fields}
    if isinstance(kind, ListType | MapType):
        return [] if isinstance(kind, ListType) else {}
    if isinstance(kind, BinaryType | FixedType | GeometryType | GeographyType):
        return b""
    if isinstance(kind, BooleanType):
        return False
    if isinstance(kind, UuidType):
        return UUID(int=0)
    return "" if isinstance(kind, StringType) else 0
