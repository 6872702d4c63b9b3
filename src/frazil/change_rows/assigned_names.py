"""Resolves the columns named in `SET column = expression`, for all engines.

Columns are named as in SQL, ignoring case, with dots for parts of structs and backticks for quoting.
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
    """Group assignments by the ID of their top-level column and the path inside it; `()` is the whole column."""
    if not values:
        raise InvalidRequestError("Cannot change rows: no column is assigned")
    assignments: dict[int, dict[tuple[str, ...], Any]] = {}
    for name, value in values.items():
        field = _find(schema, name)
        above = [*reversed(schema.ancestors_of(field.field_id)), field]
        if any(isinstance(ancestor.field_type, ListType | MapType) for ancestor in above[:-1]):
            raise InvalidRequestError(f"Cannot assign to {name}: it is inside a list or a map")
        path = tuple(ancestor.name for ancestor in above[1:])
        into = assignments.setdefault(above[0].field_id, {})
        if any(path[: len(other)] == other or other[: len(path)] == path for other in into):
            raise InvalidRequestError(f"Cannot assign to {name} twice")
        into[path] = value
    return assignments


def assigned_names(written: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the top-level columns named in assignments, in lower case."""
    return {name.lower() for values in written for key in values for name in (key, _steps(key)[0])}


def same_names(columns: Iterable[str], source_columns: Iterable[str]) -> dict[str, str | None]:
    """Match each column of a table to the source column of the same name, or None.

    Without an exact match, names are compared ignoring case; a name with an exact match of its own is not considered.
    """
    names, sources = list(columns), list(source_columns)
    exact = {*names} & {*sources}
    others: dict[str, list[str]] = {}
    for source in sources:
        if source not in exact:
            others.setdefault(source.lower(), []).append(source)
    matches: dict[str, str | None] = {}
    for name in names:
        alike = [name] if name in exact else others.get(name.lower(), [])
        if len(alike) > 1:
            raise InvalidRequestError(f"Cannot match the column {name}: the source has {' and '.join(alike)}")
        matches[name] = alike[0] if alike else None
    return matches


def _find(schema: Schema, name: str) -> NestedField:
    match = next((field for field in schema.fields if field.name == name), None)
    if match is None:
        plain = ".".join(_steps(name))
        match = schema.find_field(plain) or schema.find_field(plain, case_sensitive=False)
    if match is None:
        raise FieldNotFoundError(
            f"Cannot assign to {name}: the table has no such column",
            hint=f"The columns are: {', '.join(field.name for field in schema.fields)}.",
        )
    return match


def _steps(name: str) -> list[str]:
    return [quoted.replace("``", "`") if plain == "" else plain.strip() for quoted, plain in _STEP.findall(name)] or [
        name
    ]
