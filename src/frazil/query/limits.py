"""The limits of one query: time, memory and rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from frazil.errors import InvalidRequestError

DEFAULT_MEMORY_BYTES: Final = 2 << 30
_UNITS: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmg]i?b|b)\s*", re.IGNORECASE)
MIN_MEMORY_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one query; None means no limit.

    `memory_bytes` bounds sorts, groups and joins, which spill to temporary files. DuckDB does not count the strings
    that functions build.
    """

    timeout_seconds: float | None = None
    max_rows: int | None = None
    memory_bytes: int = DEFAULT_MEMORY_BYTES


def make_limits(timeout: float | None, max_rows: int | None, memory_limit: int | str | None) -> Limits:
    """Return the limits for the arguments of users; refuse invalid values."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        raise InvalidRequestError(f"Cannot run the query with timeout={timeout!r}: it is a positive number of seconds")
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 0):
        raise InvalidRequestError(f"Cannot run the query with max_rows={max_rows!r}: it is a number of rows")
    return Limits(timeout, max_rows, DEFAULT_MEMORY_BYTES if memory_limit is None else parse_bytes(memory_limit))


def parse_bytes(size: int | str) -> int:
    """Return a number of bytes, given as one or as text such as `512 MB` or `2GiB`."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        count = 0 if match is None else int(float(match[1]) * _UNITS[match[2].lower()])
    else:
        count = 0 if isinstance(size, bool) else size
    if count < MIN_MEMORY_BYTES:
        raise InvalidRequestError(
            f"Cannot run the query with memory_limit={size!r}: it is a number of bytes, or text such as '2 GB', "
            f"and at least {MIN_MEMORY_BYTES >> 20} MiB"
        )
    return count
