"""Paginated listings of a service, and the names in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.codec.json_fields import JsonObject
from frazil.errors import ServiceError

_MAX_PAGES: Final = 10_000
_MAX_NAMES: Final = 1_000_000
"""The maximum number of names in a listing; a few pages without names are tolerated."""


def read_pages(
    ask: Callable[[Mapping[str, str]], JsonObject], field: str, query: Mapping[str, str], what: str
) -> list[Any]:
    """Read all pages of a listing and return the items; `ask` requests a page by its query."""
    items: list[Any] = []
    page_query = {**query, "pageToken": ""}
    tokens: set[bytes] = set()
    while len(items) <= _MAX_NAMES and len(tokens) <= _MAX_PAGES + len(items):
        page = ask(page_query)
        listed = page.raw(field, None)
        items += listed if isinstance(listed, list) else []
        token = page.raw("next-page-token", None)
        if not isinstance(token, str) or token == "":
            return items
        digest = hashlib.blake2b(token.encode(errors="surrogatepass"), digest_size=16).digest()
        if digest in tokens:
            break
        tokens.add(digest)
        page_query["pageToken"] = token
    raise ServiceError(f"Cannot {what}: the service's pages do not end, or have more than {_MAX_NAMES} names")


def read_identifier(item: Mapping[str, Any]) -> Identifier:
    """Return the name of a listed table or view."""
    return (*read_parts(item.get("namespace")), str(item.get("name")))


def read_parts(value: object) -> tuple[str, ...]:
    """Return the parts of a name; empty if the value is not a list."""
    return tuple(str(step) for step in value) if isinstance(value, list) else ()
