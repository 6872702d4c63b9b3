"""Filters of other libraries as predicates: what is read of Arrow's expressions, and what they prune."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from frazil.expr.columns.arrow_filter import Call, Field, Literal, Meaning, push_filter, read_expression
from frazil.spec.parse_type import parse_schema

SCHEMA = parse_schema(
    "id long, x double, f float, s string, b binary, d date, ts timestamptz, n timestamp, t time, u uuid, "
    "dec decimal(9, 2), flag boolean, st struct<a: int, b: string>, l list<int>"
)
UTC = datetime.UTC
field = pc.field


def test_expression_is_parsed_into_fields_literals_and_options() -> None:
    node = read_expression((field("id") > 1) & field("st", "a").isin([1, 2]))
    assert isinstance(node, Call) and node.name == "and_kleene"
    greater, within = node.arguments
    assert greater == Call("greater", (Field(("id",)), Literal(pa.scalar(1))))
    assert isinstance(within, Call) and within.arguments == (Field(("st", "a")),)
    assert within.options["value_set"].as_py() == [1, 2]


@pytest.mark.parametrize("name", ["", "it's", "a\nb", "call: 'x'", "é", "literal"])
def test_field_names_may_contain_anything(name: str) -> None:
    assert read_expression(field(name) == 1) == Call("equal", (Field((name,)), Literal(pa.scalar(1))))


@pytest.mark.parametrize("thing", [None, 5, "id > 1", pa.array([1]), pa.scalar(True)])
def test_invalid_expression_is_not_parsed(thing: Any) -> None:
    assert read_expression(thing) is None


@pytest.mark.parametrize(
    "expression, shown",
    [
        (field("id") > 1, "id > 1"),
        (pc.scalar(1) < field("id"), "id > 1"),
        (field("id") != 1, "id != 1"),
        (~(field("id") < 5), "not id < 5"),
        ((field("id") == 1) | field("s").is_null(), "id = 1 or s is null"),
        (field("s").is_valid() & (field("s") == "a"), "s is not null and s = 'a'"),
        (pc.starts_with(field("s"), "ab"), "startswith(s, 'ab')"),
        (field("flag"), "flag = true"),
        (~field("flag"), "flag != true"),
        (field("st", "a") <= 3, "st.a <= 3"),
        (field("d") == datetime.date(2024, 1, 2), "d = date '2024-01-02'"),
        (field("ts") < datetime.datetime(2024, 1, 2, 3, tzinfo=UTC), "ts < timestamp '2024-01-02 03:00:00Z'"),
        (field("n") < datetime.datetime(1969, 1, 2, microsecond=5), "n < timestamp_ntz '1969-01-02 00:00:00.000005'"),
        (field("t") == datetime.time(1, 2, 3), "t = time '01:02:03'"),
        (field("dec") >= Decimal("1.5"), "dec >= 1.5BD"),
        (field("b") == b"\x01", "b = X'01'"),
        (field("u") == pa.scalar(uuid.UUID(int=1), pa.uuid()), "u = '00000000-0000-0000-0000-000000000001'"),
        (field("id").isin([1, 2]), "id in (1, 2)"),
        (field("id").isin(pa.array([1, None])), "id in (1) or id is null"),
        (~field("id").isin([1]), "id not in (1) or id is null"),
        (field("id").isin(pa.array([], pa.int64())), "false"),
        (pc.scalar(True), "true"),
    ],
)
def test_supported_filter_becomes_a_predicate_without_remainder(expression: Any, shown: str) -> None:
    pushed = push_filter(expression, SCHEMA, Meaning.ARROW)
    assert (str(pushed.predicate), pushed.rest) == (shown, None)


@pytest.mark.parametrize(
    "expression, shown",
    [
        ((field("id") + 1 > 3) & (field("s") == "a"), "s = 'a'"),
        ((field("id") + 1 > 3) | (field("s") == "a"), "true"),
        (~((field("id") + 1 > 3) | (field("s") == "a")), "s != 'a'"),
        (field("id") > field("x"), "true"),
        (field("id") > 1.5, "true"),
        (field("s") == 1, "true"),
        (field("ts") < datetime.datetime(2024, 1, 2), "true"),
        (field("l") == 3, "true"),
        (field("nobody") == 3, "true"),
        (field("id") == pa.scalar(None, pa.int64()), "true"),
        (field("x").is_null(nan_is_null=True), "true"),
        (field("x") > 1.5, "x > 1.5D or isnan(x)"),
        (field("x") == float("nan"), "true"),
        (~field("id").isin(pa.array([1, None])), "true"),
        (pc.is_in(field("id"), pa.array([1]), skip_nulls=True), "true"),
        (pc.starts_with(field("s"), "ab", ignore_case=True), "true"),
    ],
)
def test_unsupported_filter_prunes_nothing_and_is_left_to_arrow(expression: Any, shown: str) -> None:
    pushed = push_filter(expression, SCHEMA, Meaning.ARROW)
    assert str(pushed.predicate) == shown
    assert pushed.rest is expression


def test_nothing_is_pruned_before_a_limit() -> None:
    expression = field("id") > 1
    pushed = push_filter(expression, SCHEMA, Meaning.ARROW, may_prune=False)
    assert (str(pushed.predicate), pushed.rest) == ("true", expression)


NAN = float("nan")
ROWS = pa.table({"id": [1, 2, None], "x": [1.0, NAN, None], "f": pa.array([0.5, NAN, None], pa.float32())})


@pytest.mark.parametrize(
    "expression, ids",
    [
        (field("x") > field("f"), [1]),
        (field("x") >= field("f"), [1, 2]),
        (field("x") == field("f"), [2]),
        (field("x") != field("f"), [1]),
        (field("x") <= field("f"), [2]),
        (field("f") < field("x"), [1]),
        (field("x") > field("id"), [2]),
        ((field("id") > field("x")) | field("x").isin([NAN]), [2]),
        ((field("id") > field("id")) | ~field("id").isin([1]), [2]),
        ((field("id") > field("id")) | ~field("id").isin(pa.array([1, None])), []),
        ((field("id") > field("id")) | field("id").is_null() | pc.is_nan(field("x")), [2, None]),
    ],
)
def test_arrow_evaluation_matches_sql(expression: Any, ids: list[int | None]) -> None:
    pushed = push_filter(expression, SCHEMA, Meaning.SQL)
    assert pushed.rest is not None
    assert ROWS.filter(pushed.rest).column("id").to_pylist() == ids
