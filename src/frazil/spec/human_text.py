"""Values as people read them, in partition paths and metadata tables.

The text is that of the reference implementation, so that directories written by either have one name:
`2017-12-01`, `2017-12-01T10:12:55.038194+00:00`, `1.0E10`, base64 for bytes, `null` for null. Dates are not
bounded by Python's years 1 to 9999: the format's 32-bit days reach years of seven digits.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

from frazil.spec.decimals import decimal_from_unscaled, unscaled_value
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
)

MONTHS_PER_YEAR = 12
HOURS_PER_DAY = 24
SECONDS_PER_DAY = 86_400
MICROS_PER_SECOND = 1_000_000
NANOS_PER_SECOND = 1_000_000_000
NULL_TEXT = "null"


def human_value(value: Any, value_type: Type) -> str:
    """Return the text of a value of a type."""
    if value is None:
        return NULL_TEXT
    match value_type:
        case BooleanType():
            return "true" if value else "false"
        case DateType():
            return human_day(value)
        case TimeType():
            return _human_time(value)
        case TimestampType():
            return _human_timestamp(value, MICROS_PER_SECOND)
        case TimestamptzType():
            return _human_timestamp(value, MICROS_PER_SECOND) + "+00:00"
        case TimestampNsType():
            return _human_timestamp(value, NANOS_PER_SECOND)
        case TimestamptzNsType():
            return _human_timestamp(value, NANOS_PER_SECOND) + "+00:00"
        case FixedType() | BinaryType() | GeometryType() | GeographyType():
            return base64.b64encode(value).decode("ascii")
        case FloatType():
            return _human_float(value, _shortest_float32(value))
        case DoubleType():
            return _human_float(value, repr(float(value)))
        case DecimalType():
            # Python and the reference share the rule for when an exponent appears.
            return str(decimal_from_unscaled(unscaled_value(value, value_type.scale), value_type.scale))
        case _:
            return str(value)


def human_year(years: int) -> str:
    """Return the text of years from 1970."""
    return f"{1970 + years:04d}"


def human_month(months: int) -> str:
    """Return the text of months from 1970-01."""
    return f"{1970 + months // MONTHS_PER_YEAR:04d}-{months % MONTHS_PER_YEAR + 1:02d}"


def human_day(days: int) -> str:
    """Return the text of days from 1970-01-01."""
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def human_hour(hours: int) -> str:
    """Return the text of hours from 1970-01-01 00:00."""
    return f"{human_day(hours // HOURS_PER_DAY)}-{hours % HOURS_PER_DAY:02d}"


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of days from 1970-01-01 in the proleptic Gregorian calendar."""
    # Count from 0000-03-01, in eras of 400 years, so that leap days end years and eras are all alike.
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year, month, day


def _human_timestamp(value: int, units_per_second: int) -> str:
    seconds, fraction = divmod(value, units_per_second)
    days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
    year, month, day = civil_from_days(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    clock = f"{second_of_day // 3600:02d}:{second_of_day // 60 % 60:02d}:{second_of_day % 60:02d}"
    digits = f"{fraction:0{len(str(units_per_second)) - 1}d}".rstrip("0")
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}T{clock}" + (f".{digits}" if digits else "")


def _human_time(micros: int) -> str:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 == 0 and fraction == 0:
        return text
    text += f":{seconds % 60:02d}"
    if fraction == 0:
        return text
    return f"{text}.{fraction // 1000:03d}" if fraction % 1000 == 0 else f"{text}.{fraction:06d}"


def _shortest_float32(value: float) -> str:
    """Return the fewest digits that read back as the same 32-bit float."""
    if not math.isfinite(value):
        return repr(value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        # Rounding up may leave the 32-bit range at its very end; more digits are needed there.
        if abs(float(text)) <= 3.4028235677973362e38 and struct.pack("<f", float(text)) == struct.pack("<f", value):
            return repr(float(text))
    return repr(float(f"{value:.9g}"))


def _human_float(value: float, shortest: str) -> str:
    """Return digits in the reference's layout: plain from 10^-3 to 10^7, else one digit and an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0.0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    mantissa, _, exponent_text = shortest.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(exponent_text or 0) + len(whole) - 1
    digits = whole + fraction
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    digits = stripped.rstrip("0") or "0"
    if len(digits) == 1:
        # The reference never writes fewer than two digits and takes the nearest two: 4.9E-324, not 5.0E-324.
        digits = f"{value:.1e}".lstrip("-").partition("e")[0].replace(".", "").rstrip("0")
    sign = "-" if value < 0 else ""
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        padded = digits.ljust(exponent + 1, "0")
        return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
