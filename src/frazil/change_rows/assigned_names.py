"""Which columns `SET column = expression` names, whichever engine computes the expressions.

Columns are named as SQL names them, in any case, parts of structs with dots, quoted with backticks where needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField

_STEP = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def resolve_assignments(schema: Schema, values: Mapping[str, Any]) -> dict[int, dict[tuple[str, ...], Any]]:
    """Return assignments by the id of their top-level column: each to the path inside it, `()` for the whole."""
    if not values:
        raise InvalidRequestError("Cannot change rows: no column is assigned")
    found: dict[int, dict[tuple[str, ...], Any]] = {}
    for name, value in values.items():
        field = _find(schema, name)
        above = [*reversed(schema.ancestors_of(field.field_id)), field]
        if any(isinstance(ancestor.field_type, ListType | MapType) for ancestor in above[:-1]):
            raise InvalidRequestError(f"Cannot assign to {name}: it is inside a list or a map")
        path = tuple(ancestor.name for ancestor in above[1:])
        into = found.setdefault(above[0].field_id, {})
        if any(path[: len(other)] == other or other[: len(path)] == path for other in into):
            raise InvalidRequestError(f"Cannot assign to {name} twice")
        into[path] = value
    return found


def assigned_names(written: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the top-level columns that assignments name, in lower case."""
    return {name.lower() for values in written for key in values for name in (key, _steps(key)[0])}


def same_names(columns: Iterable[str], given: Iterable[str]) -> dict[str, str | None]:
    """Return for each column of a table the source's of its name, None for none.

    Where there is none of exactly that name, upper and lower case are one; what another column is called stays its own.
    """
    names, sources = list(columns), list(given)
    taken = {*names} & {*sources}
    others: dict[str, list[str]] = {}
    for source in sources:
        if source not in taken:
            others.setdefault(source.lower(), []).append(source)
    found: dict[str, str | None] = {}
    for name in names:
        alike = [name] if name in taken else others.get(name.lower(), [])
        if len(alike) > 1:
            raise InvalidRequestError(f"Cannot tell which column {name} is: there are {' and '.join(alike)}")
        found[name] = alike[0] if alike else None
    return found


def _find(schema: Schema, name: str) -> NestedField:
    found = next((field for field in schema.fields if field.name == name), None)
    if found is None:
        plain = ".".join(_steps(name))
        found = schema.find_field(plain) or schema.find_field(plain, case_sensitive=False)
    if found is None:
        raise FieldNotFoundError(
            f"Cannot assign to {name}: the table has no such column",
            hint=f"The columns are: {', '.join(field.name for field in schema.fields)}.",
        )
    return found


def _steps(name: str) -> list[str]:
    return [quoted.replace("``", "`") if plain == "" else plain.strip() for quoted, plain in _STEP.findall(name)] or [
        name
    ]
