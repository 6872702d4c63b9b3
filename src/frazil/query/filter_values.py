"""Constants of a query as literals of predicates, if their comparison certainly means the same in DuckDB.

A literal that a column's type cannot hold exactly becomes a range around it, so that a predicate keeps too many rows
rather than too few.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

import numpy as np

from frazil.expr.predicates import TypedText
from frazil.query.syntax import Node
from frazil.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UuidType,
)

_INTEGER: Final = re.compile(r"[+-]?\d{1,38}")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
_TIMESTAMPTZ: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d(?::\d\d)?)?)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INTEGER_TYPES: Final = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "hugeint"})
_DOUBLE_TYPES: Final = frozenset({"double", "float8"})
_EXACT_INTEGERS: Final = 2**53
_DECIMAL_DIGITS: Final = 38
"""DuckDB makes doubles of literals with more digits than a decimal has."""
_DIGITS: Final = Context(prec=80)

Range = tuple[Any, Any]
"""The smallest and largest literal that a constant can equal; the same object if it is exact."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a query: `kind` is `text` for a literal in quotes, whose type its context decides."""

    category: str
    value: Any

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self.category == "null"


NULL: Final = Constant("null", None)


def constant_of(node: Node, parameters: Mapping[str, object]) -> Constant | None:
    """Return the constant of a tree node, or None if it is something else."""
    category = node.get("type")
    if category == "VALUE_CONSTANT":
        return _literal(node.get("literal", {}))
    if category == "VALUE_PARAMETER":
        return _parameter(parameters.get(node["identifier"]))
    if category == "OPERATOR_CAST" and not node.get("try_cast"):
        inner = constant_of(node["child"], parameters)
        type_expression = node.get("type_expr", {})
        if inner is None or type_expression.get("children"):
            return None
        target = str(type_expression.get("type_name", "")).lower()
        if target in _INTEGER_TYPES or target in _DOUBLE_TYPES:
            return _cast_number(inner, is_integer=target in _INTEGER_TYPES)
        if inner.category != "text":
            return None
        if target in ("varchar", "text", "string"):
            return inner
        patterns = {
            "date": ("date", _DATE),
            "timestamp": ("timestamp", _TIMESTAMP),
            "datetime": ("timestamp", _TIMESTAMP),
            "timestamptz": ("timestamptz", _TIMESTAMPTZ),
            "timestamp with time zone": ("timestamptz", _TIMESTAMPTZ),
        }
        pattern = patterns.get(target)
        return Constant(pattern[0], inner.value) if pattern is not None and pattern[1].fullmatch(inner.value) else None
    return None


def _cast_number(constant: Constant, *, is_integer: bool) -> Constant | None:
    """Return a constant that was cast to an integer or a double, if that does not change it."""
    number = constant.value
    if constant.category == "text" and (_INTEGER if is_integer else _NUMBER).fullmatch(constant.value):
        number = Decimal(constant.value)
    if not isinstance(number, Decimal) or (is_integer and number != number.to_integral_value()):
        return None
    return Constant("number", number) if is_integer else Constant("double", number)


def _literal(literal: Node) -> Constant | None:
    category, text = literal.get("kind"), literal.get("text", "")
    if category == "NULL_LITERAL":
        return NULL
    if category == "BOOLEAN":
        return Constant("boolean", text.lower() == "true")
    if category == "STRING":
        return Constant("text", text)
    if category == "INTEGER" and _INTEGER.fullmatch(text):
        return Constant("number", Decimal(text))
    if category == "NUMERIC" and _NUMBER.fullmatch(text):
        is_double = "e" in text.lower() or sum(map(str.isdigit, text)) >= _DECIMAL_DIGITS
        return Constant("double" if is_double else "number", Decimal(text))
    return None


def _parameter(value: object) -> Constant | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Constant("boolean", value)
    if isinstance(value, int):
        return Constant("number", Decimal(value))
    if isinstance(value, Decimal) and value.is_finite():
        return Constant("number", value)
    if isinstance(value, float) and math.isfinite(value):
        return Constant("double", Decimal(value))
    if isinstance(value, str):
        return Constant("text", value)
    if isinstance(value, datetime.datetime):
        if type(value) is not datetime.datetime:  # pandas has times in nanoseconds
            return None
        if value.tzinfo is None:
            return Constant("timestamp", value.isoformat(sep=" "))
        try:
            return Constant("timestamptz", _in_utc(value).isoformat(sep=" "))
        except OverflowError:  # before the year 1 or after 9999 in UTC
            return None
    if isinstance(value, datetime.date):
        return Constant("date", value.isoformat())
    if isinstance(value, UUID):
        return Constant("text", str(value))
    return None


def with_common_type(constants: Sequence[Constant]) -> list[Constant]:
    """Convert constants to DuckDB's common type for comparing them: one double turns all numbers into doubles."""
    if not any(constant.category == "double" for constant in constants):
        return list(constants)
    numbers = [(constant, _number(constant)) for constant in constants]
    return [constant if number is None else Constant("double", number) for constant, number in numbers]


def range_of(constant: Constant, data_type: Type) -> Range | None:
    """Return the literals of a column's type that enclose a constant, or None if that is uncertain."""
    for types, convert in _RANGES:
        if isinstance(data_type, types):
            try:
                return convert(constant, data_type)
            except (ValueError, InvalidOperation, OverflowError):
                return None
    return None


def exact_values(constants: Sequence[Constant], data_type: Type) -> list[Any] | None:
    """Return the literals of a list of constants, without nulls; None if one of them is not exact."""
    values: list[Any] = []
    for constant in constants:
        if constant.is_null:
            continue
        bounds = range_of(constant, data_type)
        if bounds is None or bounds[0] is not bounds[1]:
            return None
        values.append(bounds[0])
    return values


def _number(constant: Constant) -> Decimal | None:
    if constant.category in ("number", "double"):
        return constant.value if isinstance(constant.value, Decimal) else None
    if constant.category == "text" and _INTEGER.fullmatch(constant.value):
        return Decimal(constant.value)
    return None


def _integer(constant: Constant, data_type: Type) -> Range | None:
    number = _number(constant)
    if number is None or abs(number) >= (_EXACT_INTEGERS if constant.category == "double" else 2**63 - 1):
        return None
    if constant.category == "text" and isinstance(data_type, IntType) and not -(2**31) <= number < 2**31:
        return None  # an error in DuckDB
    low, high = math.floor(number), math.ceil(number)
    return (low, low) if low == high else (low, high)


def _decimal(constant: Constant, data_type: Type) -> Range | None:
    number = _number(constant)
    assert isinstance(data_type, DecimalType)
    if number is None or constant.category == "double":
        return None
    step = Decimal(1).scaleb(-data_type.scale)
    low = number.quantize(step, ROUND_FLOOR, _DIGITS)
    high = number.quantize(step, ROUND_CEILING, _DIGITS)
    if max(abs(low), abs(high)) >= Decimal(10) ** (data_type.precision - data_type.scale):
        return None
    return (low, low) if low == high else (low, high)


def _floating(constant: Constant, data_type: Type) -> Range | None:
    number = _number(constant)
    if number is None or constant.category == "text":
        return None
    category: Any = np.float32 if isinstance(data_type, FloatType) else np.float64
    with np.errstate(all="ignore"):
        nearest = category(float(number))
        low, high = float(np.nextafter(nearest, category(-np.inf))), float(np.nextafter(nearest, category(np.inf)))
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if Decimal(float(nearest)) == number:
        exact = float(nearest)
        return exact, exact
    return low, high


def _boolean(constant: Constant, data_type: Type) -> Range | None:
    return (constant.value, constant.value) if constant.category == "boolean" else None


def _text(constant: Constant, data_type: Type) -> Range | None:
    return (constant.value, constant.value) if constant.category == "text" else None


def _date(constant: Constant, data_type: Type) -> Range | None:
    if constant.category not in ("date", "text") or not _DATE.fullmatch(constant.value):
        return None
    datetime.date.fromisoformat(constant.value)
    return _same(TypedText("date", constant.value))


def _timestamp(constant: Constant, data_type: Type) -> Range | None:
    if constant.category not in ("date", "timestamp", "text") or not _TIMESTAMP.fullmatch(constant.value):
        return None
    moment = datetime.datetime.fromisoformat(constant.value)
    return _same(TypedText("timestamp_ntz", moment.isoformat(sep=" ")))


def _timestamptz(constant: Constant, data_type: Type) -> Range | None:
    if constant.category not in ("date", "timestamp", "timestamptz", "text") or not _TIMESTAMPTZ.fullmatch(
        constant.value
    ):
        return None
    moment = datetime.datetime.fromisoformat(constant.value)
    if moment.tzinfo is not None:
        moment = _in_utc(moment)
    return _same(TypedText("timestamp", f"{moment.isoformat(sep=' ')}Z"))


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    """Convert a time with a zone to the time in UTC, without one."""
    shifted = moment.astimezone(datetime.UTC)
    return shifted.replace(tzinfo=None)


def _uuid(constant: Constant, data_type: Type) -> Range | None:
    if constant.category != "text" or not _UUID.fullmatch(constant.value):
        return None
    return _same(constant.value.lower())


def _same(value: Any) -> Range:
    return value, value


_RANGES: Final[tuple[tuple[tuple[type[Type], ...], Callable[[Constant, Type], Range | None]], ...]] = (
    ((IntType, LongType), _integer),
    ((DecimalType,), _decimal),
    ((FloatType, DoubleType), _floating),
    ((BooleanType,), _boolean),
    ((StringType,), _text),
    ((DateType,), _date),
    ((TimestampType, TimestampNsType), _timestamp),
    ((TimestamptzType, TimestamptzNsType), _timestamptz),
    ((UuidType,), _uuid),
)
