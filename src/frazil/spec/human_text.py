"""Human-readable text of partition values, for partition paths and metadata tables.

The text is exactly that of Iceberg Java, so that both write to the same directories: `2017-12-01`, `1.0E10`, `0E-9`,
base64 for bytes, `null` for null. This module handles the differences from `values.format_value` (floating point,
decimals, days in years beyond 9999).
"""

from __future__ import annotations

import math
from typing import Any

from frazil.spec.decimals import decimal_of
from frazil.spec.iso8601 import civil_from_days
from frazil.spec.murmur3 import unscaled_decimal
from frazil.spec.types import DateType, DecimalType, DoubleType, FloatType, Type
from frazil.spec.values import format_value, shortest_float32

NULL_TEXT = "null"


def human_value(value: Any, value_type: Type) -> str:
    """Return the text of a value of a type."""
    if value is None:
        return NULL_TEXT
    match value_type:
        case DateType():
            return human_day(value)
        case FloatType():
            return _human_float(value, shortest_float32(value))
        case DoubleType():
            return _human_float(value, value)
        case DecimalType():
            # Python and Iceberg Java use an exponent under the same conditions.
            return str(decimal_of(unscaled_decimal(value, value_type), value_type.scale))
        case _:
            return format_value(value, value_type)


def human_year(years: int) -> str:
    """Return the text of a year, given as years from 1970."""
    return f"{1970 + years:04d}"


def human_month(months: int) -> str:
    """Return the text of a month, given as months from 1970-01."""
    return f"{1970 + months // 12:04d}-{months % 12 + 1:02d}"


def human_day(days: int) -> str:
    """Return the text of a day, given as days from 1970-01-01."""
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def human_hour(hours: int) -> str:
    """Return the text of an hour, given as hours from 1970-01-01 00:00."""
    return f"{human_day(hours // 24)}-{hours % 24:02d}"


def _human_float(value: float, shortest: float) -> str:
    """Return a number in the layout of Iceberg Java: plain from 10^-3 to 10^7, else one digit and an exponent."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0.0:
        return f"{sign}0.0"
    digits, exponent = _digits(repr(abs(shortest)))
    if len(digits) == 1:
        # Iceberg Java uses the nearest number of two digits: 4.9E-324, not 5.0E-324.
        digits, exponent = _digits(f"{abs(value):.1e}")
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"


def _digits(text: str) -> tuple[str, int]:
    """Return a positive number's digits, without leading and trailing zeros, and the exponent of the first."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    first = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), first
