"""Truncated bounds of long text and binary values. Specification: "Field-level Metrics and Statistics".

Writers limit bounds to a length (`truncate(16)`) so that manifests stay small. A lower bound may be any value that
is not greater than the smallest, so a prefix suffices. An upper bound must not be smaller than the largest: the last
character or byte of the prefix that can be incremented is incremented, and the rest is dropped. If none can, there
is no upper bound of that length, which is represented by None.

Text is cut between code points and never incremented into the surrogates, which UTF-8 cannot encode.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import InvalidRequestError
from frazil.spec.types import BinaryType, StringType, Type

_LAST_CODE_POINT = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def truncate_lower_bound(value: Any, data_type: Type, length: int) -> Any:
    """Return a lower bound of a value with at most `length` units; only text and binary get shorter."""
    if isinstance(data_type, StringType | BinaryType):
        return value[: _checked(length)]
    return value


def truncate_upper_bound(value: Any, data_type: Type, length: int) -> Any:
    """Return an upper bound of a value with at most `length` units, or None if there is none."""
    if isinstance(data_type, StringType):
        return truncate_upper_text(value, length)
    if isinstance(data_type, BinaryType):
        return truncate_upper_bytes(value, length)
    return value


def truncate_upper_text(value: str, length: int) -> str | None:
    """Return text of at most `length` code points that is not below a value, or None if there is none."""
    if len(value) <= _checked(length):
        return value
    for index in range(length - 1, -1, -1):
        code_point = ord(value[index])
        if code_point < _LAST_CODE_POINT:
            incremented = _AFTER_SURROGATES if code_point == _BEFORE_SURROGATES else code_point + 1
            return value[:index] + chr(incremented)
    return None


def truncate_upper_bytes(value: bytes, length: int) -> bytes | None:
    """Return at most `length` bytes that are not below a value, or None if there are none."""
    if len(value) <= _checked(length):
        return value
    prefix = value[:length].rstrip(b"\xff")
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else None


def _checked(length: int) -> int:
    if length <= 0:
        raise InvalidRequestError(f"Cannot truncate a bound to {length}: the length must be positive")
    return length
