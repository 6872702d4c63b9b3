"""A filter that another library hands down keeps the rows that its own words keep.

Random filters over random rows: what the predicate lets through and the rest of the filter then keeps are, in Arrow's
words, the rows that Arrow keeps, and in SQL's those of a model of SQL's three truth values.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.expr.bind import bind
from frazil.expr.columns.arrow_filter import Meaning, push_filter
from frazil.expr.columns.masks import row_mask
from frazil.spec.parse_type import parse_schema

SCHEMA = parse_schema("i int, x double, s string, d date, n decimal(5, 1), b boolean")
ARROW = to_arrow_schema(SCHEMA, with_ids=False)
NAN = math.nan
VALUES: dict[str, list[Any]] = {
    "i": [-2, 0, 1, 7],
    "x": [-math.inf, -1.5, 0.0, 2.0, NAN, math.inf],
    "s": ["", "a", "ab", "b", "é"],
    "d": [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)],
    "n": [Decimal("-0.5"), Decimal("0.0"), Decimal("12.3")],
    "b": [True, False],
}
COMPARE = {
    "==": (lambda left, right: left == right, lambda order: order == 0),
    "!=": (lambda left, right: left != right, lambda order: order != 0),
    "<": (lambda left, right: left < right, lambda order: order < 0),
    "<=": (lambda left, right: left <= right, lambda order: order <= 0),
    ">": (lambda left, right: left > right, lambda order: order > 0),
    ">=": (lambda left, right: left >= right, lambda order: order >= 0),
}


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({name: st.sampled_from([None, *known]) for name, known in VALUES.items()})
    return st.lists(row, max_size=12)


def filters() -> st.SearchStrategy[tuple[Any, ...]]:
    names = st.sampled_from(list(VALUES))
    compared = names.flatmap(
        lambda name: st.tuples(
            st.sampled_from(["=="] if name == "b" else list(COMPARE)), st.just(name), st.sampled_from(VALUES[name])
        )
    )
    within = names.flatmap(
        lambda name: st.tuples(
            st.just("in"), st.just(name), st.lists(st.sampled_from([None, *VALUES[name]]), max_size=3)
        )
    )
    others = st.tuples(st.sampled_from(["null", "valid"]), names, st.none())
    columns = st.tuples(st.sampled_from(list(COMPARE)), st.just("i"), st.just("x"))
    leaf = st.one_of(
        compared, within, others, st.just(("flag", "b", None)), st.tuples(st.just("columns"), columns, st.none())
    )
    return st.recursive(
        leaf,
        lambda part: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), part, part), st.tuples(st.just("not"), part, st.none())
        ),
        max_leaves=6,
    )


def in_arrow(test: tuple[Any, ...]) -> Any:
    word, left, right = test
    if word == "and":
        return in_arrow(left) & in_arrow(right)
    if word == "or":
        return in_arrow(left) | in_arrow(right)
    if word == "not":
        return ~in_arrow(left)
    if word == "columns":
        return COMPARE[left[0]][0](pc.field(left[1]), pc.field(left[2]))
    column = pc.field(left)
    kind = ARROW.field(left).type
    if word == "flag":
        return column
    if word == "in":
        return column.isin(pa.array(right, kind))
    if word in ("null", "valid"):
        return column.is_null() if word == "null" else column.is_valid()
    return COMPARE[word][0](column, pa.scalar(right, kind))


def order_of(left: Any, right: Any) -> int:
    """Return how SQL orders two values: NaN is equal to itself and greater than every number."""
    left_nan, right_nan = left != left, right != right
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return int(left > right) - int(left < right)


def in_sql(test: tuple[Any, ...], row: dict[str, Any]) -> bool | None:
    word, left, right = test
    if word in ("and", "or"):
        parts = {in_sql(left, row), in_sql(right, row)}
        strong = word == "or"
        return strong if strong in parts else (None if None in parts else not strong)
    if word == "not":
        inner = in_sql(left, row)
        return None if inner is None else not inner
    if word == "columns":
        one, other = row[left[1]], row[left[2]]
        return None if one is None or other is None else bool(COMPARE[left[0]][1](order_of(one, other)))
    value = row[left]
    if word in ("null", "valid"):
        return (value is None) is (word == "null")
    if value is None:
        return False if word == "in" and not right else None
    if word == "flag":
        return bool(value)
    if word == "in":
        if any(one is not None and order_of(value, one) == 0 for one in right):
            return True
        return None if None in right else False
    return bool(COMPARE[word][1](order_of(value, right)))


def kept(table: pa.Table, expression: Any, meaning: Meaning) -> list[int]:
    pushed = push_filter(expression, SCHEMA, meaning)
    mask = row_mask(bind(SCHEMA, pushed.predicate), table)
    left = table.filter(mask)
    left = left if pushed.rest is None else left.filter(pushed.rest)
    found: list[int] = left.column("at").to_pylist()
    return found


def table_of(many: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(many, schema=ARROW).append_column("at", pa.array(range(len(many)), pa.int64()))


@pytest.mark.extended
@given(rows(), filters())
def test_arrow_filter_keeps_the_rows_arrow_keeps(many: list[dict[str, Any]], test: tuple[Any, ...]) -> None:
    table, expression = table_of(many), in_arrow(test)
    assert kept(table, expression, Meaning.ARROW) == table.filter(expression).column("at").to_pylist()


@given(rows(), filters())
def test_sql_filter_follows_three_valued_logic(many: list[dict[str, Any]], test: tuple[Any, ...]) -> None:
    wanted = [at for at, row in enumerate(many) if in_sql(test, row)]
    assert kept(table_of(many), in_arrow(test), Meaning.SQL) == wanted
