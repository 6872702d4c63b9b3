"""Numbers, sizes and times as people read them, for labels and cells."""

from __future__ import annotations

import datetime
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_THOUSANDS: Final = ("", "k", "M", "G", "T", "P")
_STEPS: Final = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"))


def show_bytes(size: float) -> str:
    """Return a size: 512 B, 3.4 MiB, 120 GiB."""
    index = 0
    while abs(size) >= 1024 and index < len(_UNITS) - 1:
        size /= 1024
        index += 1
    return f"{size:.0f} {_UNITS[index]}" if index == 0 or abs(size) >= 100 else f"{size:.1f} {_UNITS[index]}"


def show_short(count: float) -> str:
    """Return a number for an axis: 950, 12k, 3.4M."""
    index = 0
    while abs(count) >= 1000 and index < len(_THOUSANDS) - 1:
        count /= 1000
        index += 1
    text = f"{count:.1f}".removesuffix(".0") if abs(count) < 10 and index else f"{count:.0f}"
    return f"{text}{_THOUSANDS[index]}"


def show_count(count: int) -> str:
    """Return a number with its thousands apart."""
    return f"{count:,}"


def moment(timestamp_ms: int) -> datetime.datetime | None:
    """Return a time in UTC; None where no calendar has it."""
    try:
        return datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def show_time(timestamp_ms: int) -> str:
    """Return a time to the second, in UTC."""
    found = moment(timestamp_ms)
    return f"{timestamp_ms} ms since 1970" if found is None else f"{found:%Y-%m-%d %H:%M:%S} UTC"


def show_ago(timestamp_ms: int, now_ms: int) -> str:
    """Return how long ago a time was: just now, 5 minutes ago, 3 months ago."""
    left = (now_ms - timestamp_ms) / 1000
    if left < 0:
        return "in the future" if left < -60 else "just now"
    if left < 10:
        return "just now"
    for size, unit in _STEPS:
        if left < size:
            return f"{_counted(int(left), unit)} ago"
        left /= size
    return f"{_counted(int(left), 'year')} ago"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
