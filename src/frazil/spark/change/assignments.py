"""`SET column = expression`, for UPDATE and the clauses of MERGE.

`change_rows/assigned_names.py` resolves the names of columns. Each expression is converted as a write would convert it
(`store_assignment.py`); unassigned columns keep their stored values. Assigning a nested field rebuilds its struct from
the new value and the old ones, as in Spark: if the struct was null, its other fields are null. A nondeterministic value
is computed once per row (`fix_nondeterministic_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame

from frazil.change_rows.assigned_names import resolve_assignments
from frazil.errors import InvalidRequestError
from frazil.spark.change.conditions import to_column
from frazil.spark.jvm.jvm_write import are_deterministic
from frazil.spark.own_columns import F
from frazil.spark.types import FIELD_ID
from frazil.spark.write.store_assignment import assign_value, keep_value
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType, UnknownType

_Typed: TypeAlias = tuple[Column, st.DataType]


def fix_nondeterministic_values(
    frame: DataFrame, values: Mapping[str, Any], prefix: str, only: Column | None = None
) -> tuple[DataFrame, dict[str, Any]]:
    """Return the frame with each nondeterministic value as a column, and all values as expressions over that frame.

    An assignment uses a value several times, to convert and test it. `only` restricts the rows that need the values.
    """
    columns = {name: to_column(value) for name, value in values.items()}
    nondeterministic = [
        name
        for name, is_same in zip(columns, are_deterministic(frame, list(columns.values())), strict=True)
        if not is_same
    ]
    new_columns = []
    for index, name in enumerate(nondeterministic):
        value = columns[name] if only is None else F.when(only, columns[name])
        new_columns.append(value.alias(f"{prefix}{index}"))
        columns[name] = F.col(f"{prefix}{index}")
    return (frame.select("*", *new_columns) if new_columns else frame), columns


def assigned_columns(
    frame: DataFrame,
    schema: Schema,
    values: Mapping[str, Any],
    stored: Callable[[NestedField], Column] | None,
    *,
    may_lack_parts: bool = False,
    keeps_parts: bool = False,
) -> dict[int, Column]:
    """Return the new value, in stored form, of each assigned column, by field id; expressions are over `frame`.

    `stored` returns the current value of a column, in stored form; None for inserted rows, which take whole columns
    only. Assigned structs must have all fields of the table's, unless they `may_lack_parts`: the missing ones become
    the default or null, or keep their values with `keeps_parts`.
    """
    assignments = resolve_assignments(schema, values)
    inner = [(schema.field(field_id).name, *path) for field_id, parts in assignments.items() for path in parts if path]
    if stored is None and inner:
        raise InvalidRequestError(
            f"Cannot insert a row with a value for {'.'.join(inner[0])!r}: it is a part of a column",
            hint="Give the whole column, as in named_struct('a', 1, 'b', 2).",
        )
    expressions = [to_column(value) for parts in assignments.values() for value in parts.values()]
    typed = iter(frame.select(*(column.alias(f"v{index}") for index, column in enumerate(expressions))).schema.fields)
    spark = frame.sparkSession

    def assign(target: NestedField, old: Column | None, parts: Mapping[tuple[str, ...], _Typed], path: str) -> Column:
        """Return the new value of a field that is assigned as a whole, in parts, or not at all."""
        if () in parts:
            value, spark_type = parts[()]
            kept_parts = old if keeps_parts else None
            return assign_value(
                value, spark_type, target, spark, path=path, may_lack_parts=may_lack_parts, kept=kept_parts
            )
        assert old is not None
        if not parts:
            return keep_value(old, target, path)
        assert isinstance(target.field_type, StructType)
        return F.struct(
            *(
                assign(field, old.getField(field.name), _inside(parts, field.name), f"{path}.{field.name}").alias(
                    field.name, metadata={FIELD_ID: field.field_id}
                )
                for field in target.field_type.fields
                if not isinstance(field.field_type, UnknownType)
            )
        )

    new_values: dict[int, Column] = {}
    for field_id, parts in assignments.items():
        nested_field = schema.field(field_id)
        of_parts = {path: (to_column(value), next(typed).dataType) for path, value in parts.items()}
        new_values[field_id] = assign(
            nested_field, None if stored is None else stored(nested_field), of_parts, nested_field.name
        )
    return new_values


def _inside(parts: Mapping[tuple[str, ...], _Typed], name: str) -> dict[tuple[str, ...], _Typed]:
    return {path[1:]: value for path, value in parts.items() if path[0] == name}
