"""Paginated lists. A client that sends `pageToken`, initially empty, gets a page and the token of the next one.

A token is the last name of its page, so concurrently created or dropped names shift nothing. Without a token the list
is complete.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec

from frazil.errors import InvalidRequestError
from frazil.serve.exchange import Request

DEFAULT_SIZE: Final = 1_000
MAX_SIZE: Final = 10_000
_MAX_TOKEN_CHARS: Final = 4_096


def page_of(request: Request, names: Sequence[tuple[str, ...]]) -> tuple[Sequence[tuple[str, ...]], str | None]:
    """Return the requested part of a sorted list of names, and the token of the next page."""
    size = _size(request)
    token = request.query.get("pageToken")
    if token is None:
        return names, None
    start = bisect_right(names, _decode(token)) if token else 0
    page = names[start : start + size]
    return page, _encode(page[-1]) if start + size < len(names) else None


def _size(request: Request) -> int:
    text = request.query.get("pageSize")
    if text is None:
        return DEFAULT_SIZE
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise InvalidRequestError(f"Cannot list with pageSize={text[:40]!r}: it must be a positive integer")
    return min(int(text), MAX_SIZE)


def _encode(name: tuple[str, ...]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(name)).decode().rstrip("=")


def _decode(token: str) -> tuple[str, ...]:
    if len(token) <= _MAX_TOKEN_CHARS:
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            return msgspec.json.decode(data, type=tuple[str, ...])
        except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
            pass
    raise InvalidRequestError("Cannot list from this pageToken: it is not valid")
