"""`SET column = expression`, for UPDATE and the clauses of MERGE: expressions as values of the table's columns.

Columns are named as `local/assigned_names.py` has it. Each expression is assigned as a write would
(`store_assignment.py`); what is not assigned stays as it is stored. A part that is assigned makes its struct anew, of
the new value and the old ones, as in Spark: where there was none, the other parts are null. A value that may differ
from run to run is computed once for each row (`settle_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame

from frazil.errors import InvalidRequestError
from frazil.local.assigned_names import resolve_assignments
from frazil.spark.change.conditions import to_column
from frazil.spark.jvm.jvm_write import are_deterministic
from frazil.spark.own_columns import F
from frazil.spark.types import FIELD_ID
from frazil.spark.write.store_assignment import assign_value, keep_value
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType, UnknownType

_Typed: TypeAlias = tuple[Column, st.DataType]


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
    for index, name in enumerate(unsettled):
        value = columns[name] if only is None else F.when(only, columns[name])
        made.append(value.alias(f"{prefix}{index}"))
        columns[name] = F.col(f"{prefix}{index}")
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
    typed = iter(frame.select(*(column.alias(f"v{index}") for index, column in enumerate(given))).schema.fields)
    spark = frame.sparkSession

    def assign(target: NestedField, old: Column | None, parts: Mapping[tuple[str, ...], _Typed], path: str) -> Column:
        """Return a value of which all is assigned, or some parts, or nothing."""
        if () in parts:
            value, spark_type = parts[()]
            kept = old if keeps_parts else None
            return assign_value(value, spark_type, target, spark, path=path, may_lack_parts=may_lack_parts, kept=kept)
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

    made: dict[int, Column] = {}
    for field_id, parts in found.items():
        nested_field = schema.field(field_id)
        of_parts = {path: (to_column(value), next(typed).dataType) for path, value in parts.items()}
        made[field_id] = assign(
            nested_field, None if stored is None else stored(nested_field), of_parts, nested_field.name
        )
    return made


def _inside(parts: Mapping[tuple[str, ...], _Typed], name: str) -> dict[tuple[str, ...], _Typed]:
    return {path[1:]: value for path, value in parts.items() if path[0] == name}
