"""Shorter lower and upper bounds for long text and binary values. Specification: "Field-level Metrics and Statistics".

Writers keep bounds to a length (`truncate(16)`) so that manifests stay small. A lower bound may be any value that
is not greater than the smallest, so a prefix does. An upper bound must not be smaller than the largest: the last
character or byte of the prefix that can grow is raised by one and what follows it is dropped; where none can,
there is no upper bound of that length and None says so.

Text is cut by code points, never inside one, and never raised into the surrogates, which UTF-8 cannot encode.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import InvalidRequestError
from frazil.spec.types import BinaryType, StringType, Type

_LAST_CODE_POINT = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def truncate_lower_bound(value: Any, data_type: Type, length: int) -> Any:
    """Return a lower bound at most `length` long that is not above a value; only text and binary get shorter."""
    if isinstance(data_type, StringType | BinaryType):
        return value[: _checked(length)]
    return value


def truncate_upper_bound(value: Any, data_type: Type, length: int) -> Any:
    """Return an upper bound at most `length` long that is not below a value, or None where there is none."""
    if isinstance(data_type, StringType):
        return truncate_upper_text(value, length)
    if isinstance(data_type, BinaryType):
        return truncate_upper_bytes(value, length)
    return value


def truncate_upper_text(value: str, length: int) -> str | None:
    """Return text of at most `length` code points that is not below a value, or None where there is none."""
    if len(value) <= _checked(length):
        return value
    for index in range(length - 1, -1, -1):
        code_point = ord(value[index])
        if code_point < _LAST_CODE_POINT:
            raised = _AFTER_SURROGATES if code_point == _BEFORE_SURROGATES else code_point + 1
            return value[:index] + chr(raised)
    return None


def truncate_upper_bytes(value: bytes, length: int) -> bytes | None:
    """Return at most `length` bytes that are not below a value, or None where there are none."""
    if len(value) <= _checked(length):
        return value
    kept = value[:length].rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def _checked(length: int) -> int:
    if length <= 0:
        raise InvalidRequestError(f"Cannot truncate a bound to {length}: the length must be positive")
    return length
