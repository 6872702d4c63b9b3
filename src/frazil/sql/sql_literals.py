"""Values of the format as expressions of Spark SQL, exact to the last digit. What DEFAULT stands for in a statement."""

from __future__ import annotations

from typing import Any

from frazil.codec.single_value_json import encode_json_value
from frazil.errors import UnsupportedError
from frazil.spec.types import BinaryType, BooleanType, FixedType, NestedType, Type
from frazil.sql.type_names import escape, spark_type_name


def sql_text(text: str) -> str:
    """Return text in quotes: doubled where it has such itself, which every SQL reads, unless it has a backslash."""
    return f"'{escape(text)}'" if "\\" in text else "'" + text.replace("'", "''") + "'"


def sql_literal(value: Any, kind: Type) -> str:
    """Return a value, as the format keeps it, as an expression."""
    name = spark_type_name(kind)
    if value is None:
        return f"cast(null as {name})"
    if isinstance(kind, NestedType):
        raise UnsupportedError(f"Cannot write a default of type {name} as an expression")
    if isinstance(kind, BinaryType | FixedType):
        return f"X'{bytes(value).hex()}'"
    if isinstance(kind, BooleanType):
        return "true" if value else "false"
    return f"cast('{escape(str(encode_json_value(value, kind)))}' as {name})"
