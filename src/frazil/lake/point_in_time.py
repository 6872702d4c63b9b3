"""Points in time as users give them, for scans as of a time and for ages of snapshots."""

from __future__ import annotations

import datetime
from typing import TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.iso8601 import parse_timestamp

PointInTime: TypeAlias = datetime.datetime | str | int
"""A datetime with a zone, ISO text with one, or milliseconds from 1970."""


def milliseconds_of(moment: PointInTime) -> int:
    """Return a point in time as milliseconds from 1970, rounded down."""
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise _no_zone(moment.isoformat())
        return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
    if isinstance(moment, str):
        parsed = parse_timestamp(moment)
        if parsed is None:
            raise InvalidRequestError(
                f"Cannot use {moment[:60]!r} as a point in time: it is not a time", hint="Write 2024-06-01T00:00:00Z."
            )
        nanos, offset = parsed
        if offset is None:
            raise _no_zone(moment)
        return (nanos - offset * 10**9) // 1_000_000
    raise InvalidRequestError(
        f"Cannot use {moment!r} as a point in time: give a datetime with a zone, ISO text or milliseconds"
    )


def _no_zone(shown: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot use {shown[:60]} as a point in time: it has no time zone", hint="Write 2024-06-01T00:00:00Z."
    )
