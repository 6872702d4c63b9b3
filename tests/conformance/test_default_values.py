"""The table of "Default values": what a struct's default and its fields' defaults amount to."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.spec.defaults import DefaultKind, fill_defaults
from frazil.spec.types import INT, NestedField, StructType

MISSING = object()


@pytest.mark.parametrize("kind", ["initial", "write"])
@pytest.mark.parametrize(
    "point_default, data, result",
    [
        (None, MISSING, None),
        (None, {"x": 3}, {"x": 3, "y": 0}),
        ({}, MISSING, {"x": 0, "y": 0}),
        ({}, {"y": -1}, {"x": 0, "y": -1}),
    ],
)
def test_struct_defaults_match_the_table_of_the_specification(
    kind: DefaultKind, point_default: Any, data: Any, result: Any
) -> None:
    x = NestedField(2, "x", INT, initial_default=0, write_default=0)
    y = NestedField(3, "y", INT, initial_default=0, write_default=0)
    point = NestedField(1, "point", StructType((x, y)), initial_default=point_default, write_default=point_default)
    row = {} if data is MISSING else {"point": data}
    assert fill_defaults(row, StructType((point,)), kind) == {"point": result}
