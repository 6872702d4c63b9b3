"""Names of tables and namespaces as text: `db.events`, `` db.`odd name` ``."""

from __future__ import annotations

import re

from frazil.errors import InvalidRequestError
from frazil.text.place import syntax_error

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def parse_name(name: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a name; backticks take dots and other characters as they are, a tuple is taken whole."""
    if isinstance(name, tuple | list):
        return tuple(name)
    if not isinstance(name, str):
        raise InvalidRequestError(f"Cannot use {name!r} as a name: give text or a tuple of texts")
    parts: list[str] = []
    offset = 0
    while True:
        match = _PART.match(name, offset)
        if match is None:
            raise syntax_error(
                "the name", name, offset, "a part is missing" if offset >= len(name) else "a part is empty"
            )
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        offset = match.end()
        if offset == len(name):
            return tuple(parts)
        if name[offset] != ".":
            raise syntax_error("the name", name, offset, "expected a dot between parts")
        offset += 1
