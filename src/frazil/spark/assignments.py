"""`SET column = expression`, for UPDATE and the clauses of MERGE: expressions as values of the table's columns.

Columns are named as SQL names them, in any case, parts of structs with dots, quoted with backticks where needed. Each
expression is assigned as a write would (`store_assignment.py`); what is not assigned stays as it is stored. A part that
is assigned makes its struct anew, of the new value and the old ones, as in Spark: where there was none, the other parts
are null. A value that may differ from run to run is computed once for each row (`settle_values`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.spark.conditions import to_column
from frazil.spark.jvm_write import are_deterministic
from frazil.spark.store_assignment import assign_value, keep_value
from frazil.spark.types import FIELD_ID
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField, StructType, UnknownType

_Typed: TypeAlias = tuple[Column, st.DataType]
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


def settle_values(
    frame: DataFrame, values: Mapping[str, Any], prefix: str, only: Column | None = None
) -> tuple[DataFrame, dict[str, Any]]:
    """Return a frame that has values which may differ from run to run as columns, and all values over that frame.

    An assignment uses a value several times, to convert and test it. `only` are the rows for which values are asked.
    """
    columns = {name: to_column(value) for name, value in values.items()}
    unsettled = [
        name
        for name, is_same in zip(columns, are_deterministic(frame, list(columns.values())), strict=True)
        if not is_same
    ]
    made = []
    for at, name in enumerate(unsettled):
        value = columns[name] if only is None else F.when(only, columns[name])
        made.append(value.alias(f"{prefix}{at}"))
        columns[name] = F.col(f"{prefix}{at}")
    return (frame.select("*", *made) if made else frame), columns


def assigned_columns(
    frame: DataFrame,
    schema: Schema,
    values: Mapping[str, Any],
    stored: Callable[[NestedField], Column] | None,
    *,
    may_lack_parts: bool = False,
    keeps_parts: bool = False,
) -> dict[int, Column]:
    """Return the new value, in stored form, of each column that is assigned; expressions are over a frame.

    `stored` gives what a column is now, in stored form; None where the row is new, which has whole columns only.
    Structs that are assigned have all parts of the table's, unless they `may_lack_parts`: those are the default or
    null then, or stay as they are with `keeps_parts`.
    """
    found = resolve_assignments(schema, values)
    inner = [(schema.field(field_id).name, *path) for field_id, parts in found.items() for path in parts if path]
    if stored is None and inner:
        raise InvalidRequestError(
            f"Cannot insert a row with a value for {'.'.join(inner[0])!r}: it is a part of a column",
            hint="Give the whole column, as in named_struct('a', 1, 'b', 2).",
        )
    given = [to_column(value) for parts in found.values() for value in parts.values()]
    typed = iter(frame.select(*(one.alias(f"v{at}") for at, one in enumerate(given))).schema.fields)
    spark = frame.sparkSession

    def assign(part: NestedField, old: Column | None, parts: Mapping[tuple[str, ...], _Typed], path: str) -> Column:
        """Return a value of which all is assigned, or some parts, or nothing."""
        if () in parts:
            value, kind = parts[()]
            kept = old if keeps_parts else None
            return assign_value(value, kind, part, spark, path=path, may_lack_parts=may_lack_parts, kept=kept)
        assert old is not None
        if not parts:
            return keep_value(old, part, path)
        assert isinstance(part.field_type, StructType)
        return F.struct(
            *(
                assign(one, old.getField(one.name), _inside(parts, one.name), f"{path}.{one.name}").alias(
                    one.name, metadata={FIELD_ID: one.field_id}
                )
                for one in part.field_type.fields
                if not isinstance(one.field_type, UnknownType)
            )
        )

    made: dict[int, Column] = {}
    for field_id, parts in found.items():
        part = schema.field(field_id)
        of_parts = {path: (to_column(value), next(typed).dataType) for path, value in parts.items()}
        made[field_id] = assign(part, None if stored is None else stored(part), of_parts, part.name)
    return made


def _inside(parts: Mapping[tuple[str, ...], _Typed], name: str) -> dict[tuple[str, ...], _Typed]:
    return {path[1:]: value for path, value in parts.items() if path[0] == name}
