"""Lists that a service gives in pages, and the names that are in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.codec.json_fields import JsonObject
from frazil.errors import ServiceError

_MAX_PAGES: Final = 10_000
_MAX_NAMES: Final = 1_000_000
"""How many names a listing may have; of pages without names, a few may come among others."""


def read_pages(
    ask: Callable[[Mapping[str, str]], JsonObject], field: str, query: Mapping[str, str], what: str
) -> list[Any]:
    """Return what is listed in all pages; `ask` is asked for each by its query."""
    found: list[Any] = []
    asked = {**query, "pageToken": ""}
    seen: set[bytes] = set()
    while len(found) <= _MAX_NAMES and len(seen) <= _MAX_PAGES + len(found):
        page = ask(asked)
        listed = page.raw(field, None)
        found += listed if isinstance(listed, list) else []
        token = page.raw("next-page-token", None)
        if not isinstance(token, str) or token == "":
            return found
        digest = hashlib.blake2b(token.encode(errors="surrogatepass"), digest_size=16).digest()
        if digest in seen:
            break
        seen.add(digest)
        asked["pageToken"] = token
    raise ServiceError(f"Cannot {what}: the service's pages do not end, or have more than {_MAX_NAMES} names")


def read_identifier(item: Mapping[str, Any]) -> Identifier:
    """Return the name of a listed table or view."""
    return (*read_parts(item.get("namespace")), str(item.get("name")))


def read_parts(found: object) -> tuple[str, ...]:
    """Return the parts of a name; none where there is no list."""
    return tuple(str(step) for step in found) if isinstance(found, list) else ()
