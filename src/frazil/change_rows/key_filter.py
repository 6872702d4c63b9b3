"""The filter that a source's keys imply for the rows of a table, used for planning the table's files.

A few values are listed, more are reduced to bounds. If the table is partitioned by a time of a key, the days or hours
that occur are listed too, so that a source with rows of January and December does not read what lies between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from frazil.expr.predicates import FALSE, Predicate, all_of, any_of, at_least, at_most, is_in, is_null, less_than
from frazil.spec import types as ft
from frazil.spec.transforms import Day, Hour, Transform

MAX_VALUES = 200
"""Beyond this number of values, planning uses only bounds, as it does with longer lists anyway."""
_LOOKED_AT = 1 << 16
_MICROS: dict[type[Transform], int] = {Day: 86_400_000_000, Hour: 3_600_000_000}
_USABLE = (
    ft.BooleanType,
    ft.IntType,
    ft.LongType,
    ft.DecimalType,
    ft.StringType,
    ft.BinaryType,
    ft.DateType,
    ft.TimestampType,
    ft.TimestamptzType,
)


def is_usable_key(field: ft.NestedField) -> bool:
    """Return whether the values of a column can be used for a filter; floating point cannot, due to -0.0 and NaN."""
    return isinstance(field.field_type, _USABLE)


class KeyValues(Protocol):
    """The values of a key; `listed` is None if there are more than `MAX_VALUES`."""

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest value, or None twice if there are none."""

    @property
    def has_null(self) -> bool:
        """Whether null occurs."""

    @property
    def listed(self) -> list[Any] | None:
        """The values, if they are few."""


class ValuesHere:
    """The values of a key that are in this process."""

    def __init__(self, column: pa.ChunkedArray | pa.Array) -> None:
        present = column.drop_null()
        # If a sample already has too many distinct values, the others need not be deduplicated.
        self._is_listed = len(pc.unique(present.slice(0, _LOOKED_AT))) <= MAX_VALUES
        self._values = pc.unique(present) if self._is_listed else present
        self.has_null = column.null_count > 0

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest value, or None twice if there are none."""
        if pa.types.is_boolean(self._values.type):  # of which there are two
            values = self._values.to_pylist()
            return (min(values), max(values)) if values else (None, None)
        extremes = pc.min_max(self._values)
        return extremes["min"].as_py(), extremes["max"].as_py()

    @property
    def listed(self) -> list[Any] | None:
        """The values, if they are few."""
        return self._values.to_pylist() if self._is_listed and len(self._values) <= MAX_VALUES else None


def unit_of(transform: Transform, field: ft.NestedField) -> int | None:
    """Return the length of a time partition in microseconds, or None for other partitions."""
    if not isinstance(field.field_type, ft.TimestampType | ft.TimestamptzType):
        return None
    return _MICROS.get(type(transform))


def filter_of(
    name: str, key_values: KeyValues, times: Sequence[tuple[int, KeyValues]] = (), *, is_null_safe: bool
) -> Predicate:
    """Return a filter on a key column that every row matching a row of the source satisfies.

    `times` are the numbers of the days or hours that occur, each with its unit; null may match null.
    """
    missing = is_null(name) if is_null_safe and key_values.has_null else FALSE
    low, high = key_values.bounds
    if low is None:
        return missing
    if key_values.listed is not None:
        return any_of(is_in(name, key_values.listed), missing)
    parts = [all_of(at_least(name, low), at_most(name, high))]
    for unit, values in times:
        if values.listed is not None:
            parts.append(
                any_of(
                    *(
                        all_of(at_least(name, index * unit), less_than(name, (index + 1) * unit))
                        for index in values.listed
                    )
                )
            )
    return any_of(all_of(*parts), missing)
