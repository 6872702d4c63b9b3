"""Variant values. Specification: "Semi-structured Types"."""

from __future__ import annotations

import pickle
import uuid
from decimal import Decimal
from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.spec.variant import MAX_VARIANT_DEPTH, VARIANT_NULL, VariantKind, VariantValue, decimal_parts
from tests.support.variants import variant_of


@pytest.mark.parametrize(
    "value, kind",
    [
        (None, "null"),
        (True, "boolean"),
        (0, "int8"),
        (-128, "int8"),
        (128, "int16"),
        (-32769, "int32"),
        (2**31, "int64"),
        (2**63, "decimal16"),
        (1.5, "double"),
        (Decimal("1.50"), "decimal4"),
        (Decimal("1234567890.1"), "decimal8"),
        (Decimal(10**37), "decimal16"),
        (Decimal("1E+3"), "decimal4"),
        ("", "string"),
        (b"", "binary"),
        (uuid.UUID(int=1), "uuid"),
        ({}, "object"),
        ([], "array"),
    ],
)
def test_python_values_use_the_smallest_type(value: Any, kind: str) -> None:
    made = variant_of(value)
    assert made.kind == kind
    assert made.to_python() == value


def test_nested_values_are_converted_recursively() -> None:
    made = variant_of({"a": [1, {"b": None}], "c": VariantValue(VariantKind.DATE, 5)})
    assert made.value["a"].value[1].value["b"] is VARIANT_NULL
    assert made.value["c"].kind is VariantKind.DATE
    assert made.to_python() == {"a": [1, {"b": None}], "c": 5}


def test_equal_values_of_different_types_are_different_variants() -> None:
    assert VariantValue(VariantKind.INT8, 1) != VariantValue(VariantKind.INT16, 1)
    assert VariantValue(VariantKind.BOOLEAN, True) != VariantValue(VariantKind.INT8, 1)


@pytest.mark.parametrize(
    "kind, value",
    [
        (VariantKind.INT8, 128),
        (VariantKind.INT8, True),
        (VariantKind.INT64, 2**63),
        (VariantKind.DATE, "2020-01-01"),
        (VariantKind.DECIMAL4, Decimal(10**9)),
        (VariantKind.DECIMAL16, Decimal(10**38)),
        (VariantKind.DECIMAL16, Decimal("1E-39")),
        (VariantKind.DECIMAL4, Decimal("1E+1")),
        (VariantKind.DECIMAL4, Decimal("NaN")),
        (VariantKind.FLOAT, 1e39),
        (VariantKind.FLOAT, 3.4028235677973366e38),
        (VariantKind.DOUBLE, 1),
        (VariantKind.STRING, b"x"),
        (VariantKind.BINARY, "x"),
        (VariantKind.UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (VariantKind.NULL, 0),
        (VariantKind.OBJECT, {"a": 1}),
        (VariantKind.OBJECT, {1: VARIANT_NULL}),
        (VariantKind.ARRAY, (1,)),
    ],
)
def test_value_of_another_type_is_refused(kind: VariantKind, value: Any) -> None:
    with pytest.raises(InvalidRequestError, match=f"Cannot make a variant {kind}") as caught:
        VariantValue(kind, value)
    assert caught.value.context["heading"] == "Semi-structured Types"


@pytest.mark.parametrize("value", [{1, 2}, object(), 10**38, Decimal("Infinity"), Decimal(1).scaleb(40)])
def test_unsupported_python_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot make a variant of"):
        variant_of(value)


def test_decimals_are_decomposed_losslessly() -> None:
    assert decimal_parts(Decimal("-12.340")) == (-12340, 3)
    assert decimal_parts(Decimal("0.00")) == (0, 2)


def test_deepest_value_can_be_compared_hashed_printed_and_pickled() -> None:
    def nested() -> VariantValue:
        value = VARIANT_NULL
        for level in range(MAX_VARIANT_DEPTH):
            part = {"a": value} if level % 2 else [value]
            value = VariantValue(VariantKind.OBJECT if level % 2 else VariantKind.ARRAY, part)
        return value

    one, other = nested(), nested()
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert pickle.loads(pickle.dumps(one)) == one
