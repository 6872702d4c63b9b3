"""More functions of Spark SQL over Arrow columns: of dates and times, and intervals beside `+` and `-`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import FUNCTIONS, Compiled, Compiler, Rows, Values, spread
from frazil.evaluate.sql_functions import field_of, in_calendar, of_kinds

_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}
_DATE_UNITS = frozenset({"year", "quarter", "month", "week"})


def _unit_of(compiled: Compiled, name: str) -> str:
    value = None if compiled.literal is None else compiled.literal.value
    unit = _UNITS.get(value.lower()) if isinstance(value, str) else None
    if unit is None:
        raise t.left_to_spark(f"the unit of {name} is one of {', '.join(sorted(set(_UNITS.values())))} here")
    return unit


def _floor(values: Any, unit: str) -> Any:
    return pc.floor_temporal(in_calendar(values), unit=unit, week_starts_monday=True)


def _date_trunc(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if len(arguments) != 2 or not t.is_moment(arguments[1].data_type):
        raise t.left_to_spark("date_trunc is known for a unit and a time here")
    unit, child = _unit_of(arguments[0], "date_trunc"), compiler.cast(arguments[1], t.TIMESTAMP)
    compiler.is_zoned = True
    return Compiled(t.TIMESTAMP, lambda rows: _floor(child.run(rows), unit), child.may_fail)


def _trunc(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if len(arguments) != 2 or arguments[0].data_type != t.DATE:
        raise t.left_to_spark("trunc is known for a date and a unit here")
    unit, child = _unit_of(arguments[1], "trunc"), arguments[0]
    if unit not in _DATE_UNITS:
        raise t.left_to_spark(f"trunc to the {unit} is not supported")
    return Compiled(t.DATE, lambda rows: _floor(child.run(rows), unit), child.may_fail)


def _with_months(days: Any, months: Any) -> Any:
    """Return dates so many months later, on the last day of the month where it has no such day."""
    is_scalar = isinstance(days, pa.Scalar) and isinstance(months, pa.Scalar)
    length = max(len(operand) if not isinstance(operand, pa.Scalar) else 1 for operand in (days, months))
    given, counts = spread(days, length), spread(months, length)
    missing = pc.or_(given.is_null(), counts.is_null()).to_numpy(zero_copy_only=False)
    day: Any = given.cast(t.INT).fill_null(0).to_numpy(zero_copy_only=False).astype("M8[D]")
    count = counts.cast(t.LONG).fill_null(0).to_numpy(zero_copy_only=False)
    month = day.astype("M8[M]")
    later = month + count.astype("m8[M]")
    last = (later + np.timedelta64(1, "M")).astype("M8[D]") - np.timedelta64(1, "D")
    found = np.minimum(later.astype("M8[D]") + (day - month.astype("M8[D]")), last).astype(np.int64)
    if (np.abs(found[~missing]) >= 2**31).any():
        raise InvalidRequestError("Cannot add months to a date: the result is no date")
    made = pa.array(np.where(missing, 0, found).astype(np.int32), t.INT, mask=missing).cast(t.DATE)
    return made[0] if is_scalar else made


def _last_day(days: Any) -> Any:
    first = _floor(days, "month")
    return pc.subtract(_with_months(first, pa.scalar(1, t.INT)).cast(t.INT), pa.scalar(1, t.INT)).cast(t.DATE)


def _since_epoch(unit: int) -> Callable[[Compiler, list[Compiled]], Compiled]:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if len(arguments) != 1 or arguments[0].data_type != t.TIMESTAMP:
            raise t.left_to_spark("the function is known for a time with a zone here")
        child = arguments[0]

        def run(rows: Rows) -> Values:
            return _divided(child.run(rows).cast(t.LONG), unit)

        return Compiled(t.LONG, run, child.may_fail)

    return build


def _divided(values: Any, unit: int) -> Any:
    if isinstance(values, pa.Scalar):
        return pa.scalar(None if values.as_py() is None else values.as_py() // unit, t.LONG)
    numbers: npt.NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(numbers // unit, t.LONG, mask=values.is_null().to_numpy(zero_copy_only=False))


def _cast_to(data_type: pa.DataType) -> Callable[[Compiler, list[Compiled]], Compiled]:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if len(arguments) != 1 or not (t.is_moment(arguments[0].data_type) or arguments[0].data_type == t.STRING):
            raise t.left_to_spark(f"a {t.shown_name(data_type)} is made of one text or time here")
        return compiler.cast(arguments[0], data_type, is_explicit=True)

    return build


FUNCTIONS |= {
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "to_date": _cast_to(t.DATE),
    "to_timestamp": _cast_to(t.TIMESTAMP),
    "quarter": field_of(pc.quarter, of_day=False),
    "dayofyear": field_of(pc.day_of_year, of_day=False),
    "dayofweek": field_of(lambda days: pc.day_of_week(days, count_from_zero=False, week_start=7), of_day=False),
    "weekday": field_of(pc.day_of_week, of_day=False),
    "weekofyear": field_of(pc.iso_week, of_day=False),
    "last_day": of_kinds(_last_day, t.DATE, (t.DATE,)),
    "add_months": of_kinds(_with_months, t.DATE, (t.DATE, t.INT)),
    "date_diff": FUNCTIONS["datediff"],
    "unix_date": of_kinds(lambda days: days.cast(t.INT), t.INT, (t.DATE,)),
    "unix_seconds": _since_epoch(1_000_000),
    "unix_millis": _since_epoch(1000),
    "unix_micros": _since_epoch(1),
}
