"""Sort orders: building, comparing, sorting rows."""

from __future__ import annotations

import math
import pickle
import random
from decimal import Decimal
from typing import Any
from uuid import UUID as UuidValue

import pytest

from frazil.errors import FieldNotFoundError, InvalidRequestError, UnsupportedError
from frazil.spec.schema import Schema
from frazil.spec.sorting import (
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    build_sort_order,
    check_sort_order,
    sort_key,
)
from frazil.spec.transforms import IDENTITY, VOID, Bucket, Truncate, UnknownTransform
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    GeometryType,
    NestedField,
    StructType,
    Type,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "data", STRING),
        NestedField(3, "d", DATE),
        NestedField(4, "ts", TIMESTAMP),
        NestedField(5, "s", StructType((NestedField(6, "x", INT), NestedField(7, "v", VARIANT)))),
        NestedField(8, "geom", GeometryType()),
        NestedField(9, "u", UNKNOWN),
        NestedField(10, "f", DOUBLE),
    )
)


def order(*terms: str) -> SortOrder:
    return build_sort_order(SCHEMA, terms)


def test_order_is_built_from_terms() -> None:
    built = build_sort_order(SCHEMA, ["s.x nulls last", "bucket(4, id) desc"], 10)
    assert built == SortOrder(
        10,
        (
            SortField((6,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_LAST),
            SortField((1,), Bucket(4), SortDirection.DESC, NullOrder.NULLS_LAST),
        ),
    )
    assert built.is_sorted
    assert str(built) == "[\n  identity(6) asc nulls last\n  bucket[4](1) desc nulls last\n]"
    assert pickle.loads(pickle.dumps(built)) == built
    assert built.order_preserving_source_ids == (6,)


def test_no_terms_make_the_unsorted_order() -> None:
    assert build_sort_order(SCHEMA, [], 5) is UNSORTED
    assert UNSORTED.is_unsorted
    assert str(UNSORTED) == "[]"


def test_id_zero_is_the_unsorted_order() -> None:
    with pytest.raises(InvalidRequestError, match="the id 0 is reserved"):
        build_sort_order(SCHEMA, ["id"], 0)


@pytest.mark.parametrize(
    "term, reason",
    [
        ("s", "not a primitive type"),
        ("s.v", "not a primitive type"),
        ("geom", "does not accept 'geom'"),
        ("day(data)", "day does not accept 'data' of type string"),
    ],
)
def test_sort_column_must_be_primitive_and_accepted(term: str, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        order(term)


def test_sort_column_must_exist() -> None:
    with pytest.raises(FieldNotFoundError):
        order("ID")
    assert build_sort_order(SCHEMA, ["ID"], case_sensitive=False).fields[0].source_id == 1
    assert order("u").fields[0].source_id == 9
    gone = SortOrder(1, (SortField((99,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_FIRST),))
    with pytest.raises(InvalidRequestError, match="no column with the id 99"):
        check_sort_order(SCHEMA, gone)


def test_order_satisfies_its_prefixes_and_the_unsorted_order() -> None:
    one = order("s.x nulls last")
    two = order("s.x nulls last", "truncate(10, data) desc nulls first")
    other_nulls = order("s.x nulls last", "truncate(10, data) desc nulls last")
    other_direction = order("s.x nulls last", "truncate(10, data) asc nulls first")
    reverse = order("s.x desc nulls last")
    assert UNSORTED.satisfies(UNSORTED)
    for some in (one, two, other_nulls, other_direction, reverse):
        assert some.satisfies(UNSORTED) and not UNSORTED.satisfies(some)
    assert two.satisfies(one) and not one.satisfies(two)
    assert not one.satisfies(reverse) and not two.satisfies(reverse)
    assert not two.satisfies(other_nulls) and not two.satisfies(other_direction)


def test_finer_orders_satisfy_coarser_ones() -> None:
    units = [order(term) for term in ("ts", "hour(ts)", "day(ts)", "month(ts)", "year(ts)")]
    for at, fine in enumerate(units):
        for to, coarse in enumerate(units):
            assert fine.satisfies(coarse) is (at <= to)
    value, four, two = order("data"), order("truncate(4, data)"), order("truncate(2, data)")
    assert value.satisfies(two) and not two.satisfies(value)
    assert four.satisfies(two, SCHEMA) and not two.satisfies(four, SCHEMA)
    assert not four.satisfies(two)
    assert order("truncate(5, id)").satisfies(order("truncate(10, id)"), SCHEMA)
    assert not order("truncate(10, id)").satisfies(order("truncate(5, id)"), SCHEMA)


def test_same_order_may_have_two_ids() -> None:
    assert order("id").same_order(order("id").with_order_id(7))
    assert order("id") != order("id").with_order_id(7)
    assert not order("id").same_order(order("id", "data"))
    assert not order("data").same_order(order("truncate(4, data)"))


def test_multi_source_field_has_an_unknown_transform() -> None:
    several = SortField((1, 2), UnknownTransform("zorder"), SortDirection.ASC, NullOrder.NULLS_FIRST)
    with pytest.raises(UnsupportedError, match="takes 2 columns"):
        _ = several.source_id
    with pytest.raises(UnsupportedError, match="the transform zorder is not supported"):
        sort_key(SortOrder(1, (several,)), SCHEMA)
    with pytest.raises(InvalidRequestError, match="takes one source column, not 2"):
        SortField((1, 2), Truncate(4), SortDirection.ASC, NullOrder.NULLS_FIRST)


# --- rows


def sorted_values(values: list[Any], kind: Type, text: str) -> list[Any]:
    schema = Schema((NestedField(1, "x", kind),))
    rows = [{"x": value} for value in values]
    random.Random(7).shuffle(rows)
    rows.sort(key=sort_key(build_sort_order(schema, [text]), schema))
    return [row["x"] for row in rows]


@pytest.mark.parametrize(
    "kind, values",
    [
        (BOOLEAN, [False, True]),
        (INT, [-5, 0, 3]),
        (DOUBLE, [-math.inf, -1.5, 0.0, 5e-324, 1.0, math.inf]),
        (STRING, ["", "A", "Z", "a", "é", "\uffff", "\U0001f600"]),
        (BINARY, [b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff"]),
        (DecimalType(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("1.49")]),
        (UUID, [UuidValue(int=1), UuidValue(int=2**64), UuidValue(int=2**127), UuidValue(int=2**128 - 1)]),
    ],
)
def test_rows_sort_by_the_order_of_their_type(kind: Type, values: list[Any]) -> None:
    assert sorted_values([None, *values], kind, "x") == [None, *values]
    assert sorted_values([None, *values], kind, "x nulls last") == [*values, None]
    assert sorted_values([None, *values], kind, "x desc") == [*values[::-1], None]
    assert sorted_values([None, *values], kind, "x desc nulls first") == [None, *values[::-1]]


def test_nans_and_zeros_sort_as_specified() -> None:
    values = [-math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    for text, expected in (("x", values), ("x desc", values[::-1])):
        signs = [(math.copysign(1, one), str(one)) for one in sorted_values(values, DOUBLE, text)]
        assert signs == [(math.copysign(1, one), str(one)) for one in expected]


def test_rows_sort_by_several_and_nested_fields() -> None:
    rows: list[dict[str, Any]] = [
        {"id": 25, "s": {"x": 1}},
        {"id": 21, "s": {"x": 2}},
        {"id": 11, "s": None},
        {"id": 12, "s": {"x": None}},
        {"id": 13},
        {"id": None, "s": {"x": 9}},
    ]
    key = sort_key(order("truncate(10, id) desc", "s.x nulls last"), SCHEMA)
    assert [row["id"] for row in sorted(rows, key=key)] == [25, 21, 11, 12, 13, None]


def test_void_field_does_not_change_the_order() -> None:
    only_void = SortOrder(1, (SortField((1,), VOID, SortDirection.DESC, NullOrder.NULLS_LAST),))
    rows = [{"id": 3}, {"id": 1}, {"id": 2}]
    assert sorted(rows, key=sort_key(only_void, SCHEMA)) == rows
