"""Promotions of types and of their values. Specification: "Schema Evolution".

Used when a schema changes (is the change allowed?), when a file is read with a newer schema (the file still
has the old type) and when data is written to a wider column. Promotions only widen types.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import SchemaMismatchError
from frazil.spec import types as ft

LATEST_PROMOTIONS = 3
"""The format version from which all promotions below are allowed."""

PROMOTIONS: tuple[tuple[type[ft.Type], tuple[type[ft.Type], ...], int], ...] = (
    (ft.IntType, (ft.LongType,), 1),
    (ft.FloatType, (ft.DoubleType,), 1),
    (ft.DecimalType, (ft.DecimalType,), 1),
    (ft.DateType, (ft.TimestampType, ft.TimestampNsType), 3),
    (ft.UnknownType, (ft.Type,), 3),
)
"""The specification's table: a type, the types that it may become, and the first format version that allows it."""

_MICROS_PER_DAY = 86_400_000_000
_NANOS_PER_DAY = 1000 * _MICROS_PER_DAY


def is_promotion_allowed(from_type: ft.Type, to_type: ft.Type, *, format_version: int = LATEST_PROMOTIONS) -> bool:
    """Return whether a column may change from one type to another; it may always keep its type."""
    if from_type == to_type:
        return True
    if isinstance(from_type, ft.DecimalType) and isinstance(to_type, ft.DecimalType):
        return from_type.scale == to_type.scale and from_type.precision <= to_type.precision
    return any(
        isinstance(from_type, from_kind) and isinstance(to_type, to_kinds) and format_version >= first_version
        for from_kind, to_kinds, first_version in PROMOTIONS
    )


def explain_refusal(from_type: ft.Type, to_type: ft.Type, *, format_version: int = LATEST_PROMOTIONS) -> str:
    """Return the reason why a type may not become another, for an error message."""
    if isinstance(from_type, ft.DecimalType) and isinstance(to_type, ft.DecimalType):
        if to_type.scale != from_type.scale:
            return f"the scale of a decimal cannot change ({from_type.scale} to {to_type.scale})"
        return f"the precision of a decimal can only grow ({from_type.precision} to {to_type.precision})"
    if is_promotion_allowed(from_type, to_type):
        return f"{from_type} may become {to_type} only from format version 3 on, the table has {format_version}"
    if is_promotion_allowed(to_type, from_type):
        return f"{to_type} is narrower than {from_type}, values could be lost"
    if isinstance(from_type, ft.NestedType) and type(from_type) is type(to_type):
        return f"{describe_type(from_type)} changes part by part, not as a whole"
    if isinstance(from_type, ft.NestedType) or isinstance(to_type, ft.NestedType):
        return f"{describe_type(from_type)} may not become {describe_type(to_type)}"
    return f"{from_type} may {describe_promotions(from_type, format_version=format_version)}"


def describe_promotions(from_type: ft.Type, *, format_version: int = LATEST_PROMOTIONS) -> str:
    """Return the allowed promotions of a type, in words that follow "may": `become only long`."""
    for from_kind, to_kinds, first_version in PROMOTIONS:
        if isinstance(from_type, from_kind) and format_version >= first_version:
            if isinstance(from_type, ft.DecimalType):
                return f"become only a decimal of the scale {from_type.scale} and a larger precision"
            if isinstance(from_type, ft.UnknownType):
                return "become any type"
            return f"become only {' or '.join(str(to_kind()) for to_kind in to_kinds)}"
    return "not become another type"


def describe_type(data_type: ft.Type) -> str:
    """Return a type's name for an error message; nested types are named by their kind only."""
    names: dict[type[ft.Type], str] = {ft.StructType: "a struct", ft.ListType: "a list", ft.MapType: "a map"}
    return names.get(type(data_type), str(data_type))


def promote_value(value: Any, from_type: ft.Type, to_type: ft.Type) -> Any:
    """Return a value converted to the type that its type was promoted to.

    Only dates change, to timestamps at midnight. A date outside the range of the new type is refused, as required by
    the specification.
    """
    if value is None or not isinstance(from_type, ft.DateType) or isinstance(to_type, ft.DateType):
        return value
    promoted = value * (_NANOS_PER_DAY if isinstance(to_type, ft.TimestampNsType) else _MICROS_PER_DAY)
    if not ft.LongType.MIN <= promoted <= ft.LongType.MAX:
        raise SchemaMismatchError(
            f"Cannot read the date {value} (days from 1970-01-01) as {to_type}: it is outside the range of {to_type}"
        )
    return promoted
