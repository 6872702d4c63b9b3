"""Points in time and ages as users give them, for scans as of a time, for ages of snapshots, and in the terminal.

2024-06-01T00:00:00Z, 2024-06-01 10:00+02:00    a time, with its zone
2024-06-01, today, yesterday                    the first moment of a day, in UTC
7d, 2 hours ago, 90 minutes                     so long ago: seconds, minutes, hours, days, weeks
now
"""

from __future__ import annotations

import datetime
import re
import time
from typing import TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.iso8601 import SECONDS_PER_DAY, parse_date, parse_timestamp

PointInTime: TypeAlias = datetime.datetime | str | int
"""A datetime with a zone, text such as `2024-06-01T00:00:00Z`, `2024-06-01`, `yesterday` or `7d`, or milliseconds."""

_DAY_MS = SECONDS_PER_DAY * 1000
_DAYS_AGO = {"today": 0, "yesterday": 1}
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": _DAY_MS, "w": 7 * _DAY_MS}
_AGE = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?|an?)\s*"
    r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)",
    re.ASCII | re.IGNORECASE,
)
_HINT = "Write 2024-06-01T00:00:00Z, 2024-06-01, yesterday, 7d or '2 hours ago'."


def milliseconds_of(moment: PointInTime, *, now_ms: int | None = None) -> int:
    """Return a point in time as milliseconds from 1970, rounded down; `now_ms` is what ages are counted from."""
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise _no_zone(moment.isoformat())
        return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
    if isinstance(moment, str):
        return _milliseconds_of_text(moment.strip(), time.time_ns() // 1_000_000 if now_ms is None else now_ms)
    raise InvalidRequestError(
        f"Cannot use {moment!r} as a point in time: give a datetime with a zone, text or milliseconds", hint=_HINT
    )


def age_ms(text: str) -> int:
    """Return how long an age is: `7d`, `90 minutes`."""
    found = _find_age(text.strip())
    if found is None:
        raise InvalidRequestError(
            f"Cannot use {text[:60]!r} as a length of time: it is not a number and a unit",
            hint="Write 30s, 90m, 12h, 7d or 2w.",
        )
    return found


def _milliseconds_of_text(text: str, now_ms: int) -> int:
    parsed = parse_timestamp(text)
    if parsed is not None:
        nanos, offset = parsed
        if offset is None:
            raise _no_zone(text)
        return (nanos - offset * 10**9) // 1_000_000
    days = parse_date(text)
    if days is not None:
        return days * _DAY_MS
    word = text.lower()
    if word == "now":
        return now_ms
    if word in _DAYS_AGO:
        return (now_ms // _DAY_MS - _DAYS_AGO[word]) * _DAY_MS
    age = _find_age(text[: -len("ago")].rstrip() if word.endswith((" ago", "\tago")) else text)
    if age is None:
        raise InvalidRequestError(f"Cannot use {text[:60]!r} as a point in time: it is not a time", hint=_HINT)
    return now_ms - age


def _find_age(text: str) -> int | None:
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    number = 1.0 if match[1][0].isalpha() else float(match[1])
    return int(number * _UNITS_MS[match[2][0].lower()])


def _no_zone(text: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot use {text[:60]} as a point in time: it has no time zone", hint="Write 2024-06-01T00:00:00Z."
    )
