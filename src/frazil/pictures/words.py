"""Numbers, sizes and times in readable form, for labels and cells."""

from __future__ import annotations

import datetime
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_THOUSANDS: Final = ("", "k", "M", "G", "T", "P")
_STEPS: Final = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"))


def show_bytes(size: float) -> str:
    """Format a size: 512 B, 3.4 MiB, 120 GiB."""
    index = 0
    while abs(size) >= 1024 and index < len(_UNITS) - 1:
        size /= 1024
        index += 1
    return f"{size:.0f} {_UNITS[index]}" if index == 0 or abs(size) >= 100 else f"{size:.1f} {_UNITS[index]}"


def show_short(count: float) -> str:
    """Format a number for an axis: 950, 12k, 3.4M."""
    index = 0
    while abs(count) >= 1000 and index < len(_THOUSANDS) - 1:
        count /= 1000
        index += 1
    text = f"{count:.1f}".removesuffix(".0") if abs(count) < 10 and index else f"{count:.0f}"
    return f"{text}{_THOUSANDS[index]}"


def show_count(count: int) -> str:
    """Format a number with thousands separators."""
    return f"{count:,}"


def moment(timestamp_ms: int) -> datetime.datetime | None:
    """Return a time in UTC, or None if it is outside the range of the calendar."""
    try:
        return datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def show_time(timestamp_ms: int) -> str:
    """Format a time to the second, in UTC."""
    time = moment(timestamp_ms)
    return f"{timestamp_ms} ms since 1970" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def show_ago(timestamp_ms: int, now_ms: int) -> str:
    """Format the age of a time: just now, 5 minutes ago, 3 months ago."""
    remaining = (now_ms - timestamp_ms) / 1000
    if remaining < 0:
        return "in the future" if remaining < -60 else "just now"
    if remaining < 10:
        return "just now"
    for size, unit in _STEPS:
        if remaining < size:
            return f"{_counted(int(remaining), unit)} ago"
        remaining /= size
    return f"{_counted(int(remaining), 'year')} ago"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
