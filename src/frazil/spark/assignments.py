"""`SET column = expression`, for UPDATE and the clauses of MERGE: expressions as values of the table's columns.

Columns are named as SQL names them, in any case, parts of structs with dots, quoted with backticks where needed. Each
expression is assigned as a write would (`store_assignment.py`); what is not assigned stays as it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.spark.column_values import quote
from frazil.spark.conditions import to_column
from frazil.spark.store_assignment import assign_value
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField

_STEP = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def resolve_assignments(schema: Schema, values: Mapping[str, Any]) -> dict[int, dict[tuple[str, ...], Any]]:
    """Return assignments by the id of their top-level column: each to the path inside it, `()` for the whole."""
    if not values:
        raise InvalidRequestError("Cannot change rows: no column is assigned")
    found: dict[int, dict[tuple[str, ...], Any]] = {}
    for name, value in values.items():
        part = _find(schema, name)
        above = [*reversed(schema.ancestors_of(part.field_id)), part]
        if any(isinstance(one.field_type, ListType | MapType) for one in above[:-1]):
            raise InvalidRequestError(f"Cannot assign to {name}: it is inside a list or a map")
        path = tuple(one.name for one in above[1:])
        into = found.setdefault(above[0].field_id, {})
        if any(path[: len(other)] == other or other[: len(path)] == path for other in into):
            raise InvalidRequestError(f"Cannot assign to {name} twice")
        into[path] = value
    return found


def assigned_names(written: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the top-level columns that assignments name, in lower case."""
    return {name.lower() for values in written for key in values for name in (key, _steps(key)[0])}


def _find(schema: Schema, name: str) -> NestedField:
    found = next((part for part in schema.fields if part.name == name), None)
    if found is None:
        plain = ".".join(_steps(name))
        found = schema.find_field(plain) or schema.find_field(plain, case_sensitive=False)
    if found is None:
        raise FieldNotFoundError(
            f"Cannot assign to {name}: the table has no such column",
            hint=f"The columns are: {', '.join(part.name for part in schema.fields)}.",
        )
    return found


def _steps(name: str) -> list[str]:
    return [quoted.replace("``", "`") if plain == "" else plain.strip() for quoted, plain in _STEP.findall(name)] or [
        name
    ]


def assigned_columns(
    frame: DataFrame, schema: Schema, values: Mapping[str, Any], qualifier: str | None = None
) -> dict[int, Column]:
    """Return the new value, in stored form, of each column that is assigned; expressions are over a frame.

    `qualifier` stands before the table's own columns in the frame, where parts of structs are assigned.
    """
    expressions: dict[int, Column] = {}
    for field_id, parts in resolve_assignments(schema, values).items():
        part = schema.field(field_id)
        if () in parts:
            expressions[field_id] = to_column(parts[()])
            continue
        column = F.col(quote(part.name) if qualifier is None else f"{quote(qualifier)}.{quote(part.name)}")
        for path, value in parts.items():
            column = column.withField(".".join(map(quote, path)), to_column(value))
        expressions[field_id] = column
    names = {field_id: f"c{field_id}" for field_id in expressions}
    typed = frame.select(*(one.alias(names[field_id]) for field_id, one in expressions.items())).schema
    return {
        field_id: assign_value(one, typed[names[field_id]].dataType, schema.field(field_id), frame.sparkSession)
        for field_id, one in expressions.items()
    }
