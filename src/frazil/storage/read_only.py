"""Storage that is looked at and not changed: the error of a lake that was opened with `trust="none"`."""

from __future__ import annotations

from typing import Final

from frazil.errors import InvalidRequestError

TRUST_HINT: Final = 'Open the lake without trust="none", once you know who wrote what is in it.'


def untrusted(what: str) -> InvalidRequestError:
    """Return the error for what an untrusted lake is not used for; `what` goes after `Cannot`."""
    return InvalidRequestError(f'Cannot {what}: the lake was opened with trust="none"', hint=TRUST_HINT)
