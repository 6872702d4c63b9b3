from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import to_arrow_type
from frazil.datafile.value_arrays import array_of, repeat_value, values_of
from frazil.errors import SchemaMismatchError
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

PAIR = StructType((NestedField(1, "a", UUID), NestedField(2, "b", ListType(3, DecimalType(5, 2)))))
CASES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, None, False]),
    (INT, [1, None, -(2**31)]),
    (LONG, [1, None, 2**63 - 1]),
    (DOUBLE, [0.5, None, -0.0]),
    (DecimalType(38, 2), [Decimal("1.50"), None]),
    (DATE, [0, None, -719162]),
    (TIME, [0, None, 86_399_999_999]),
    (TIMESTAMPTZ, [-62135596800000000, None, 253402300799999999]),
    (TIMESTAMP_NS, [-(2**63) + 1, None]),
    (STRING, ["", None, "é\U0001f600"]),
    (UUID, [uuid.UUID(int=5), None]),
    (FixedType(2), [b"ab", None]),
    (BINARY, [b"", None, b"\x00"]),
    (GeometryType(), [b"\x01", None]),
    (UNKNOWN, [None, None]),
    (VARIANT, [{"metadata": b"\x01", "value": b"\x02"}, None]),
    (PAIR, [{"a": uuid.UUID(int=1), "b": [Decimal("1.00"), None]}, None, {"a": None, "b": None}]),
    (ListType(1, PAIR), [[{"a": None, "b": []}, None], None, []]),
    (MapType(1, STRING, 2, TIMESTAMPTZ), [{"x": 1, "y": None}, None, {}]),
    (StructType(()), [{}, None]),
]


@pytest.mark.parametrize("kind, values", CASES, ids=lambda one: str(one)[:20])
def test_values_round_trip_through_arrow(kind: Type, values: list[Any]) -> None:
    array = array_of(values, kind)
    array.validate(full=True)
    assert array.type == to_arrow_type(kind)
    assert values_of(array, kind) == values


@pytest.mark.parametrize("kind, values", CASES, ids=lambda one: str(one)[:20])
def test_slices_give_their_own_values(kind: Type, values: list[Any]) -> None:
    array = array_of([*values, *values], kind)
    assert values_of(array.slice(1, len(values)), kind) == [*values, *values][1 : len(values) + 1]
    assert values_of(pa.chunked_array([array, array.slice(1)]), kind) == [*values, *values, *values[1:], *values]


@pytest.mark.parametrize("kind, values", CASES, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_one_value_fills_a_column(kind: Type, values: list[Any], length: int) -> None:
    for value in values:
        column = repeat_value(value, kind, to_arrow_type(kind), length)
        column.validate(full=True)
        assert column.type == to_arrow_type(kind)
        assert values_of(column, kind) == [value] * length


def test_values_of_another_type_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot use"):
        array_of(["text"], LONG)
