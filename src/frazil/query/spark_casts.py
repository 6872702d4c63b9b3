"""Casts of Spark's ANSI mode in DuckDB: those with the same meaning, some after a rewrite.

Rewrites remove these differences: DuckDB rounds floats and decimals to integers, Spark truncates them; DuckDB accepts
more texts as numbers; timestamps are cast by the session's time zone, which is UTC here.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from frazil.query.spark_types import (
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    as_decimal,
    call,
    cast_to,
    choose,
    combine,
    fail,
    is_null,
    number,
    repeated,
)

NEEDS_SPARK = "only Spark can read this value"
"""The reason in errors for values that Spark can read, but this translation cannot."""

_Rule = Callable[[Typed, SparkType], exp.Expr]
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?)?")
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_ISO_DATE = f"[ ]*{_YEAR}-[0-9]{{1,2}}-[0-9]{{1,2}}[ ]*"
_ISO_TIMESTAMP = f"[ ]*{_YEAR}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?[ ]*"
_WHOLE_NUMBER = "[ ]*[+-]?[0-9]+[ ]*"
_NUMBER = "[ ]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,4})?[ ]*"
_INTEGER_LIMITS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
_EXACT_DOUBLE_DIGITS = 15


def cast(value: Typed, target: SparkType) -> Typed:
    """Return CAST(value AS target) with Spark's meaning, or raise `NotTranslatable`."""
    source = value.type
    if source == target:
        return Typed(value.tree, target, value.can_fail, loose=value.loose)
    if not target.is_atomic:
        raise NotTranslatable(f"the cast from {source} to {target}")
    if source == VOID:
        return Typed(cast_to(exp.Null(), target), target)
    if isinstance(value.literal, str):
        return _cast_text_literal(value.literal, target)
    rule = _RULES.get((_kind(source), _kind(target)))
    if rule is None:
        raise NotTranslatable(f"the cast from {source} to {target}")
    return combine(rule(value, target), target, [value], can_fail=_may_fail(source, target))


def coerce(value: Typed, target: SparkType) -> Typed:
    """Convert a value to the type for comparing, merging or computing."""
    if value.type == target:
        return value
    if isinstance(value.literal, (int, Decimal)) and not isinstance(value.literal, bool) and target.is_numeric:
        return _convert_number(value, target)
    return cast(value, target)


def _convert_number(value: Typed, target: SparkType) -> Typed:
    """Convert a numeric literal to a wider numeric type."""
    return Typed(
        number(f"{value.literal:f}" if isinstance(value.literal, Decimal) else str(value.literal), target), target
    )


def _kind(spark_type: SparkType) -> str:
    return "integer" if spark_type.is_integral else spark_type.name


def _may_fail(source: SparkType, target: SparkType) -> bool:
    if target == STRING or source.is_temporal or (target.is_floating and source != STRING):
        return False
    if source.name == "boolean" or source == target:
        return False
    if target.is_decimal and (source.is_integral or source.is_decimal):
        exact = as_decimal(source)
        return exact.precision - exact.scale + (target.scale < exact.scale) > target.precision - target.scale
    if source.is_integral and target.is_integral:
        return _INTEGER_LIMITS[source.name] > _INTEGER_LIMITS[target.name]
    return True


def _plain(value: Typed, target: SparkType) -> exp.Expr:
    return cast_to(value.copy_tree(), target)


def _not_zero(value: Typed, target: SparkType) -> exp.Expr:
    return exp.NEQ(this=exp.Paren(this=value.copy_tree()), expression=number(0, value.type))


def _float_to_integer(value: Typed, target: SparkType) -> exp.Expr:
    """Truncate the fraction. The float 2^63 exceeds the integers, and Spark makes it the greatest one."""
    cut = call("trunc", value.copy_tree())
    if target.name != "bigint":
        return cast_to(cut, target)
    limit = number("9223372036854775808", value.type)
    greatest = exp.Literal.number(2**63 - 1)
    return choose([(exp.EQ(this=cut, expression=limit), greatest)], cast_to(cut.copy(), target))


def _decimal_to_integer(value: Typed, target: SparkType) -> exp.Expr:
    return cast_to(call("trunc", value.copy_tree()), target)


def _decimal_to_double(value: Typed, target: SparkType) -> exp.Expr:
    """Parse the digits: beyond 15 of them, DuckDB's own division rounds twice."""
    if value.type.precision <= _EXACT_DOUBLE_DIGITS and target == DOUBLE:
        return cast_to(value.copy_tree(), target)
    return cast_to(cast_to(value.copy_tree(), STRING), target)


def _decimal_to_text(value: Typed, target: SparkType) -> exp.Expr:
    """Write a digit before the point, which DuckDB omits if the type has no integer digits."""
    if value.type.precision > value.type.scale:
        return cast_to(value.copy_tree(), STRING)
    if value.type.precision == 38:
        raise NotTranslatable(f"the cast from {value.type} to string")
    return cast_to(cast_to(value.copy_tree(), SparkType("decimal", value.type.precision + 1, value.type.scale)), STRING)


def _only_like(pattern: str) -> _Rule:
    def rule(value: Typed, target: SparkType) -> exp.Expr:
        matches = call("regexp_full_match", value.copy_tree(), exp.Literal.string(pattern))
        trimmed = call("trim", value.copy_tree(), exp.Literal.string(" "))
        refusal = fail(f"Cannot cast a text to {target}: {NEEDS_SPARK}, or none can")
        return choose(
            [(is_null(value.copy_tree()), cast_to(exp.Null(), target)), (matches, _from_text(trimmed, target))], refusal
        )

    return rule


def _from_text(text: exp.Expr, target: SparkType) -> exp.Expr:
    if target == TIMESTAMP:
        return ntz_to_timestamp(cast_to(text, TIMESTAMP_NTZ))
    return cast_to(text, target)


def timestamp_to_ntz(tree: exp.Expr) -> exp.Expr:
    """Return the UTC wall clock time of an instant, whatever DuckDB's time zone."""
    return call("make_timestamp", call("epoch_us", tree))


def ntz_to_timestamp(tree: exp.Expr) -> exp.Expr:
    """Return the instant of a UTC wall clock time."""
    return call("make_timestamptz", call("epoch_us", tree))


def _timestamp_to_ntz(value: Typed, target: SparkType) -> exp.Expr:
    return timestamp_to_ntz(value.copy_tree())


def _timestamp_to_other(value: Typed, target: SparkType) -> exp.Expr:
    return cast_to(timestamp_to_ntz(value.copy_tree()), target)


def _to_timestamp(value: Typed, target: SparkType) -> exp.Expr:
    return ntz_to_timestamp(cast_to(value.copy_tree(), TIMESTAMP_NTZ))


def with_four_digit_year(clock: exp.Expr, written: exp.Expr) -> exp.Expr:
    """Return a date or wall clock time as text; Spark writes years beyond four digits with a sign."""
    year = call("year", clock)
    too_far = exp.Not(
        this=exp.Paren(this=exp.Between(this=year, low=exp.Literal.number(1), high=exp.Literal.number(9999)))
    )
    return choose([(too_far, fail(f"Cannot write a date as a text: {NEEDS_SPARK}"))], written)


def _time_to_text(value: Typed, target: SparkType) -> exp.Expr:
    clock = repeated(value)
    if value.type == TIMESTAMP:
        clock = timestamp_to_ntz(clock)
    return with_four_digit_year(clock, cast_to(clock.copy(), STRING))


_RULES: dict[tuple[str, str], _Rule] = {
    ("integer", "integer"): _plain,
    ("integer", "decimal"): _plain,
    ("integer", "float"): _plain,
    ("integer", "double"): _plain,
    ("integer", "string"): _plain,
    ("integer", "boolean"): _not_zero,
    ("boolean", "integer"): _plain,
    ("boolean", "string"): _plain,
    ("float", "double"): _plain,
    ("float", "integer"): _float_to_integer,
    ("double", "integer"): _float_to_integer,
    ("decimal", "decimal"): _plain,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "double"): _decimal_to_double,
    ("decimal", "string"): _decimal_to_text,
    ("string", "integer"): _only_like(_WHOLE_NUMBER),
    ("string", "double"): _only_like(_NUMBER),
    ("string", "date"): _only_like(_ISO_DATE),
    ("string", "timestamp"): _only_like(_ISO_TIMESTAMP),
    ("string", "timestamp_ntz"): _only_like(_ISO_TIMESTAMP),
    ("date", "timestamp"): _to_timestamp,
    ("date", "timestamp_ntz"): _plain,
    ("date", "string"): _time_to_text,
    ("timestamp_ntz", "timestamp"): _to_timestamp,
    ("timestamp_ntz", "date"): _plain,
    ("timestamp_ntz", "string"): _time_to_text,
    ("timestamp", "timestamp_ntz"): _timestamp_to_ntz,
    ("timestamp", "date"): _timestamp_to_other,
    ("timestamp", "string"): _time_to_text,
}


def _cast_text_literal(text: str, target: SparkType) -> Typed:
    """Evaluate the cast of a literal, if it has the plain form of the type that all systems parse alike."""
    tree: exp.Expr | None = None
    if target == DATE:
        tree = read_date(text)
    elif target in {TIMESTAMP, TIMESTAMP_NTZ}:
        tree = read_timestamp(text, target)
    elif target.is_decimal and re.fullmatch(r"[+-]?\d{1,38}(\.\d{1,38})?", text):
        value = Decimal(text)
        scale = -int(value.as_tuple().exponent)
        if scale <= target.scale and value.adjusted() < target.precision - target.scale:
            tree = number(text, target)
    elif target.is_integral and re.fullmatch(r"[+-]?\d{1,20}", text):
        limit = _INTEGER_LIMITS[target.name]
        if -limit <= int(text) < limit:
            tree = number(text, target)
    if tree is None:
        raise NotTranslatable(f"the cast of the text {text!r} to {target}")
    return Typed(tree, target)


def read_date(text: str) -> exp.Expr | None:
    """Parse a date literal; None if it is not year-month-day."""
    match = _DATE.fullmatch(text)
    try:
        day = datetime.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None
    return None if day is None else cast_to(exp.Literal.string(day.isoformat()), DATE)


def read_timestamp(text: str, target: SparkType) -> exp.Expr | None:
    """Parse a time literal; None if it is not a date, or a date and a time with seconds."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    *parts, fraction = match.groups()
    try:
        year, month, day, hour, minute, second = (int(piece or 0) for piece in parts)
        microseconds = int((fraction or "").ljust(6, "0"))
        time = datetime.datetime(year, month, day, hour, minute, second, microseconds)  # noqa: DTZ001
    except ValueError:
        return None
    tree = cast_to(exp.Literal.string(time.isoformat(" ")), TIMESTAMP_NTZ)
    return ntz_to_timestamp(tree) if target == TIMESTAMP else tree


__all__ = ["NEEDS_SPARK", "cast", "coerce", "ntz_to_timestamp", "read_date", "read_timestamp", "timestamp_to_ntz"]
