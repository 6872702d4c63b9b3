"""The error of changes to a lake that was opened with `trust="none"`: its storage is read-only."""

from __future__ import annotations

from typing import Final

from frazil.errors import InvalidRequestError

TRUST_HINT: Final = 'Open the lake without trust="none", once you know who wrote its content.'


def untrusted(what: str) -> InvalidRequestError:
    """Return the error for an action that an untrusted lake does not allow; `what` follows `Cannot`."""
    return InvalidRequestError(f'Cannot {what}: the lake was opened with trust="none"', hint=TRUST_HINT)
