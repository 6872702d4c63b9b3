"""Conversion of dates, times and timestamps between ISO 8601 text and integers.

Used by values (`spec/values.py`), JSON single values and partition paths. The `datetime` module is limited to the
years 1 to 9999 and to microseconds, but the integers of Iceberg are not, so the calendar is computed here on
plain integers (proleptic Gregorian, as implied by the specification's "days from 1970-01-01").

Years of five digits and more have a sign (`+10000-01-01`), as in ISO 8601 and Iceberg Java; the year before 0001 is
0000. Fractions are written with as few digits as possible.
"""

from __future__ import annotations

import datetime
import re

SECONDS_PER_DAY = 86_400
MICROS_PER_DAY = SECONDS_PER_DAY * 10**6
NANOS_PER_DAY = SECONDS_PER_DAY * 10**9

_MAX_OFFSET_SECONDS = 18 * 3600
_DATE = r"(\d{4}|-\d{4,9}|\+\d{5,9})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_OFFSET = r"([Zz]|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_TIME, re.ASCII)
_TIMESTAMP_TEXT = re.compile(rf"{_DATE}([Tt ]){_TIME}{_OFFSET}?", re.ASCII)
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar."""
    # Years start in March in this computation, so that the leap day is the last day of its year.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a date given as days from 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def parse_date(text: str) -> int | None:
    """Parse an ISO date as days from 1970-01-01, or return None if it is invalid."""
    match = _DATE_TEXT.fullmatch(text)
    return None if match is None else _days(match[1], match[2], match[3])


def parse_time(text: str) -> int | None:
    """Parse an ISO time of day as nanoseconds from midnight, or return None if it is invalid."""
    match = _TIME_TEXT.fullmatch(text)
    return None if match is None else _nanos_of_day(match[1], match[2], match[3], match[4])


def parse_timestamp(text: str, *, needs_t: bool = False) -> tuple[int, int | None] | None:
    """Parse an ISO timestamp as local nanoseconds from 1970-01-01 and zone offset in seconds, or return None.

    The offset is None if the text has none. To get the point in time, subtract the offset. Unless `needs_t`,
    a space may replace the T.
    """
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or (needs_t and match[4] == " "):
        return None
    days = _days(match[1], match[2], match[3])
    nanos = _nanos_of_day(match[5], match[6], match[7], match[8])
    if days is None or nanos is None:
        return None
    local = days * NANOS_PER_DAY + nanos
    if match[9] is None:
        return local, None
    offset = _offset_seconds(match[9])
    return None if offset is None else (local, offset)


def format_date(days: int) -> str:
    """Return the ISO text of a date."""
    year, month, day = civil_from_days(days)
    if 0 <= year <= 9999:
        return f"{year:04d}-{month:02d}-{day:02d}"
    return f"{'-' if year < 0 else '+'}{abs(year):04d}-{month:02d}-{day:02d}"


def format_time(nanos: int) -> str:
    """Return the ISO text of a time of day given in nanoseconds."""
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text if fraction == 0 else f"{text}.{f'{fraction:09d}'.rstrip('0')}"


def format_timestamp(nanos: int) -> str:
    """Return the ISO text, without an offset, of a timestamp given in nanoseconds."""
    days, nanos_of_day = divmod(nanos, NANOS_PER_DAY)
    return f"{format_date(days)}T{format_time(nanos_of_day)}"


def show_ms(timestamp_ms: int) -> str:
    """Return a time in milliseconds as ISO 8601 text in UTC, or as a number if it is out of range."""
    try:
        when = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _days(year_text: str, month_text: str, day_text: str) -> int | None:
    year, month, day = int(year_text), int(month_text), int(day_text)
    if not 1 <= month <= 12 or (year == 0 and year_text.startswith("-")):
        return None
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 29 if month == 2 and is_leap else _DAYS_IN_MONTH[month - 1]
    return days_from_civil(year, month, day) if 1 <= day <= last else None


def _nanos_of_day(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour), int(minute), int(second or "0")
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + (int(fraction.ljust(9, "0")) if fraction else 0)


def _offset_seconds(text: str) -> int | None:
    if text in ("Z", "z"):
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    total = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _MAX_OFFSET_SECONDS:
        return None
    return -total if text[0] == "-" else total
