"""Date and time functions that were tested to have Spark's meaning in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from frazil.query.spark_casts import coerce, ntz_to_timestamp, timestamp_to_ntz, with_four_digit_year
from frazil.query.spark_registry import (
    literal_text,
    register,
)
from frazil.query.spark_types import (
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    NotTranslatable,
    Typed,
    binary,
    call,
    cast_to,
    combine,
    repeated,
)


def as_date(value: Typed) -> Typed:
    """Convert an argument to a date; Spark casts timestamps and texts."""
    if value.type == STRING and value.literal is None:
        raise NotTranslatable("an argument is string")
    return coerce(value, DATE)


def _as_ntz(value: Typed) -> Typed:
    """Return the UTC wall clock time of a timestamp."""
    if value.type == VOID or not value.type.is_temporal:
        raise NotTranslatable(f"an argument is {value.type}")
    return coerce(value, TIMESTAMP_NTZ)


def _part_of_date(name: str, duckdb: str, shift: int = 0) -> None:
    @register(name, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        value = as_date(arguments[0])
        tree = call(duckdb, value.copy_tree())
        if shift:
            tree = binary(exp.Add, tree, exp.Literal.number(shift)) if shift > 0 else binary(
                exp.Sub, tree, exp.Literal.number(-shift)
            )  # fmt: skip
        return combine(cast_to(tree, INT), INT, [value])


for _name in ("year", "quarter", "month", "day", "dayofyear", "weekofyear"):
    _part_of_date(_name, _name)
_part_of_date("dayofmonth", "day")
_part_of_date("dayofweek", "dayofweek", 1)
_part_of_date("weekday", "isodow", -1)


for _name in ("hour", "minute", "second"):

    @register(_name, 1)
    def _part_of_time(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value = _as_ntz(arguments[0])
        return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


def _shift_days(names: str, type_name: type[exp.Binary]) -> None:
    @register(names, 2)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        day, days = as_date(arguments[0]), arguments[1]
        if days.type.name not in {"tinyint", "smallint", "int"}:
            raise NotTranslatable(f"an argument is {days.type}")
        return combine(
            binary(type_name, day.copy_tree(), coerce(days, INT).copy_tree()), DATE, [day, days], can_fail=True
        )


_shift_days("date_add dateadd", exp.Add)
_shift_days("date_sub", exp.Sub)


@register("datediff date_diff", 2)
def _datediff(arguments: Sequence[Typed]) -> Typed:
    end, start = (as_date(value) for value in arguments)
    return combine(cast_to(binary(exp.Sub, end.copy_tree(), start.copy_tree()), INT), INT, [end, start])


@register("add_months", 2)
def _add_months(arguments: Sequence[Typed]) -> Typed:
    day, months = as_date(arguments[0]), arguments[1]
    if months.type.name not in {"tinyint", "smallint", "int"}:
        raise NotTranslatable(f"an argument is {months.type}")
    interval = call("to_months", coerce(months, INT).copy_tree())
    return combine(cast_to(binary(exp.Add, day.copy_tree(), interval), DATE), DATE, [day, months], can_fail=True)


@register("last_day", 1)
def _last_day(arguments: Sequence[Typed]) -> Typed:
    value = as_date(arguments[0])
    return combine(call("last_day", value.copy_tree()), DATE, [value])


_UNITS_OF_DATE = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month", "mon": "month",
    "week": "week",
}  # fmt: skip
_UNITS_OF_TIME = {
    **_UNITS_OF_DATE, "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
}  # fmt: skip


@register("trunc", 2)
def _trunc(arguments: Sequence[Typed]) -> Typed:
    value, unit = as_date(arguments[0]), _UNITS_OF_DATE.get(literal_text(arguments[1]).lower())
    if unit is None:
        raise NotTranslatable(f"the unit {arguments[1].literal!r}")
    return combine(cast_to(call("date_trunc", exp.Literal.string(unit), value.copy_tree()), DATE), DATE, [value])


@register("date_trunc", 2)
def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit, value = _UNITS_OF_TIME.get(literal_text(arguments[0]).lower()), arguments[1]
    if unit is None or value.type not in {DATE, TIMESTAMP}:
        raise NotTranslatable(f"the unit {arguments[0].literal!r} or an argument of {value.type}")
    clock = coerce(value, TIMESTAMP_NTZ)
    tree = ntz_to_timestamp(call("date_trunc", exp.Literal.string(unit), clock.copy_tree()))
    return combine(tree, TIMESTAMP, [value])


_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


@register("date_format", 2)
def _date_format(arguments: Sequence[Typed]) -> Typed:
    value, pattern = _as_ntz(arguments[0]), literal_text(arguments[1])
    written, index = "", 0
    while index < len(pattern):
        token = next((token for token in _FORMATS if pattern.startswith(token, index)), None)
        if (token is None and pattern[index] not in "-/:. ,_") or (
            token and pattern.startswith(token[0], index + len(token))
        ):
            raise NotTranslatable(f"the pattern {pattern!r}")
        written += _FORMATS[token] if token else pattern[index]
        index += len(token or " ")
    tree = call("strftime", value.copy_tree(), exp.Literal.string(written))
    return combine(with_four_digit_year(repeated(value), tree), STRING, [value], can_fail=True)


@register("current_date curdate", 0)
def _current_date(arguments: Sequence[Typed]) -> Typed:
    return Typed(cast_to(timestamp_to_ntz(call("now")), DATE), DATE)


@register("current_timestamp now", 0)
def _now(arguments: Sequence[Typed]) -> Typed:
    return Typed(call("now"), TIMESTAMP)


_INTERVALS = {
    "YEAR": "to_years", "MONTH": "to_months", "WEEK": "to_weeks", "DAY": "to_days", "HOUR": "to_hours",
    "MINUTE": "to_minutes", "SECOND": "to_seconds",
}  # fmt: skip


def add_interval(value: Typed, interval: exp.Expr, *, is_minus: bool) -> Typed:
    """Return a date or timestamp plus or minus an interval of a whole number of one unit."""
    unit = str(interval.args["unit"].name).upper().removesuffix("S") if interval.args.get("unit") else ""
    count = interval.this.this if isinstance(interval.this, exp.Literal) else ""
    name = _INTERVALS.get(unit)
    if name is None or not count.removeprefix("-").isdecimal() or len(count) > len("-99999"):
        raise NotTranslatable(f"the interval {interval.sql('spark')[:60]}")
    if not value.type.is_temporal or (value.type == DATE and unit in {"HOUR", "MINUTE", "SECOND"}):
        raise NotTranslatable(f"an interval of {unit.lower()}s with {value.type}")
    step = call(name, exp.Literal.number(int(count)))
    clock = coerce(value, TIMESTAMP_NTZ) if value.type == TIMESTAMP else value
    shifted = binary(exp.Sub if is_minus else exp.Add, clock.copy_tree(), step)
    tree = ntz_to_timestamp(shifted) if value.type == TIMESTAMP else cast_to(shifted, value.type)
    return combine(tree, value.type, [value], can_fail=True)
