"""Binding: columns found, literals placed among a column's values, what the schema decides decided."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from frazil.errors import FieldNotFoundError, FrazilError, InvalidRequestError, SchemaMismatchError
from frazil.expr.bind import bind
from frazil.expr.evaluate_row import evaluate_row
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import (
    Predicate,
    at_least,
    at_most,
    equal,
    greater_than,
    is_in,
    is_nan,
    is_null,
    less_than,
    not_,
    not_equal,
    not_null,
    push_not,
    starts_with,
)
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    ListType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    (
        NestedField(1, "i", INT),
        NestedField(2, "r", INT, required=True),
        NestedField(3, "l", LONG),
        NestedField(4, "f", FLOAT),
        NestedField(5, "d", DOUBLE),
        NestedField(6, "dec", DecimalType(5, 2)),
        NestedField(7, "day", DATE),
        NestedField(8, "ts", TIMESTAMP),
        NestedField(9, "tz", TIMESTAMPTZ),
        NestedField(10, "ns", TIMESTAMP_NS),
        NestedField(11, "s", STRING),
        NestedField(12, "u", UUID),
        NestedField(13, "b", BINARY),
        NestedField(14, "flag", BOOLEAN),
        NestedField(15, "none", UNKNOWN),
        NestedField(16, "v", VARIANT),
        NestedField(17, "p", StructType((NestedField(18, "X", INT, required=True),))),
        NestedField(19, "tags", ListType(20, STRING)),
    )
)
DAY_2024 = 19_723

PLACED = [
    ("i < 2.5", "i <= 2"),
    ("i <= 2.5", "i <= 2"),
    ("i > 2.5", "i >= 3"),
    ("i >= -2.5", "i >= -2"),
    ("i = 2.5", "false"),
    ("i = 2.0", "i = 2"),
    ("i < 2147483648", "i is not null"),
    ("r < 2147483648", "true"),
    ("i > 2147483648", "false"),
    ("i >= -99999999999", "i is not null"),
    ("i in (1, 2.5, 99999999999)", "i = 1"),
    ("i in (3, 1, 2, 1)", "i in (1, 2, 3)"),
    ("i = '7'", "i = 7"),
    ("l > 9223372036854775808", "false"),
    ("not l > 9223372036854775808", "true"),
    ("l < 9223372036854775808", "true"),
    ("i >= -9223372036854775809", "true"),
    ("l <= 9223372036854775807", "l <= 9223372036854775807"),
    ("dec = 1.005", "false"),
    ("dec < 1.005", "dec <= 1.00"),
    ("dec > 1.005", "dec >= 1.01"),
    ("dec < 1000000", "dec is not null"),
    ("dec > 999.99", "dec > 999.99"),
    ("dec = 1", "dec = 1.00"),
    ("day >= '2024-01-01'", f"day >= {DAY_2024}"),
    ("day = timestamp '2024-01-01 12:00:00'", "false"),
    ("day < timestamp '2024-01-01 12:00:00'", f"day <= {DAY_2024}"),
    ("day = timestamp '2024-01-01 01:00:00+01:00'", f"day = {DAY_2024}"),
    ("ts = '2024-01-01'", f"ts = {DAY_2024 * 86_400_000_000}"),
    ("ts = date '2024-01-01'", f"ts = {DAY_2024 * 86_400_000_000}"),
    ("ts = timestamp '2024-01-01 00:00:00Z'", f"ts = {DAY_2024 * 86_400_000_000}"),
    ("ns = '2024-01-01T00:00:00.000000001'", f"ns = {DAY_2024 * 86_400_000_000_000 + 1}"),
    ("ns > '9999-01-01'", "false"),
    ("ns < '9999-01-01'", "ns is not null"),
    ("tz = '2024-01-01T01:00:00+01:00'", f"tz = {DAY_2024 * 86_400_000_000}"),
    ("tz = '2024-01-01'", f"tz = {DAY_2024 * 86_400_000_000}"),
    ("f > 1e300", "f >= inf or f is nan"),
    ("not f > 1e300", "f <= 3.4028234663852886e+38"),
    ("not f < 1e300", "f >= inf or f is nan"),
    ("f = 0.1", "false"),
    ("f != 0.1", "f is not null"),
    ("f < 0.1", "f <= 0.09999999403953552"),
    ("f >= 0.1D", "f >= 0.10000000149011612 or f is nan"),
    ("f = 0.1F", "f = 0.10000000149011612"),
    ("f > 1e-60", "f >= 1.401298464324817e-45 or f is nan"),
    ("f < -1e-60", "f <= -1.401298464324817e-45"),
    ("f in (0.5, 0.1F, 0.1)", "f in (0.10000000149011612, 0.5)"),
    ("dec = 1.25D", "dec = 1.25"),
    ("dec < 0.1D", "dec < 0.10"),
    ("dec = '1.25'", "dec = 1.25"),
    ("l = 5D", "l = 5"),
    ("s like 'ab'", "s starts with 'ab' and s = 'ab'"),
    ("s like '%'", "s is not null"),
    ("s not like '%'", "false"),
    ("not s = null", "false"),
    ("s in ('a', null)", "s = 'a'"),
    ("s not in ('a', null)", "false"),
    ("s in (null)", "false"),
    ("s <=> null", "s is null"),
    ("not s <=> 'a'", "(s is not null and s != 'a') or s is null"),
    ("s is distinct from null", "s is not null"),
    ("flag is not true", "(flag is not null and flag != true) or flag is null"),
    ("flag = 'yes'", "flag = true"),
    ("u = '0f8fad5b-d9cb-469f-a165-70867728950e'", "u = '0f8fad5b-d9cb-469f-a165-70867728950e'"),
    ("f < 1e300", "f <= 3.4028234663852886e+38"),
    ("f = 0.5", "f = 0.5"),
    ("isnan(i)", "false"),
    ("not isnan(i)", "true"),
    ("r is null", "false"),
    ("r is not null", "true"),
    ("p.X is null", "p.X is null"),
    ("none = 5", "false"),
    ("none is null", "true"),
    ("v is null", "v is null"),
    ("tags is not null", "tags is not null"),
    ("flag = true", "flag = true"),
]


@pytest.mark.parametrize(("text", "bound"), PLACED, ids=[text for text, _ in PLACED])
def test_literals_are_converted_exactly(text: str, bound: str) -> None:
    assert str(bind(SCHEMA, parse_predicate(text))) == bound


REFUSED_TEXT = [
    ("s = 5", "string values are not compared with 5"),
    ("s < date '2024-01-01'", "string values are not compared with"),
    ("i = 'x'", "int values are not compared with 'x'"),
    ("i = '5.0'", "int values are not compared with '5.0'"),
    ("i in (1, '2')", "different types"),
    ("l in (1, 2D)", "different types"),
    ("l = 1e17", "as doubles, which are not exact there"),
    ("dec = 0.00000000000000000000000000000000000001", "more than 38 digits"),
    ("i like '5'", "int values are no text"),
    ("isnan(s)", "it holds string values"),
    ("flag = 1", "boolean values are not compared with 1"),
    ("flag = 'maybe'", "boolean values are not compared with 'maybe'"),
    ("i is true", "int values are not compared with True"),
    ("i", "int values are not compared with True"),
    ("day = 19723", "date values are not compared with 19723"),
    ("day = '2024-01-01 05:00:00'", "a date has no time of day"),
    ("day = '2024-1-1'", "date values are not compared with '2024-1-1'"),
    ("ts = '2024-01-01 00:00:00.0000001'", "finer than microseconds"),
    ("ts = '2024-01-01 00:00:00Z'", "has a zone"),
    ("tz = timestamp_ntz '2024-01-01 00:00:00Z'", "has a zone"),
    ("tz = 5", "timestamptz values are not compared with 5"),
    ("u = '0F8FAD5B-D9CB-469F-A165-70867728950E'", "is not the text of a uuid"),
    ("u < '0f8fad5b-d9cb-469f-a165-70867728950e'", "the order of uuids"),
    (r"s like '\ud800%'", "surrogate"),
    (r"s = '\ud800'", "surrogate"),
    ("v = 1", "no order"),
    ("true or s = 5", "string values are not compared with 5"),
    ("not (false and nope = 5)", "nope"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED_TEXT, ids=[text for text, _ in REFUSED_TEXT])
def test_text_that_only_spark_could_convert_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FrazilError, match=reason):
        bind(SCHEMA, parse_predicate(text))


@pytest.mark.parametrize("predicate", [equal("flag", np.bool_(1)), is_in("flag", [np.True_])], ids=repr)
def test_numpy_booleans_are_booleans(predicate: Predicate) -> None:
    assert str(bind(SCHEMA, predicate)) == "flag = true"


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (equal("dec", 34.56), "dec = 34.56"),
        (at_most("dec", 0.3), "dec <= 0.30"),
        (less_than("dec", 0.1), "dec < 0.10"),
        (greater_than("dec", 0.005), "dec >= 0.01"),
        (is_in("dec", [0.1, 0.125]), "dec = 0.10"),
    ],
    ids=str,
)
def test_float_is_compared_with_decimals_as_written(predicate: Predicate, found: str) -> None:
    assert str(bind(SCHEMA, predicate)) == found


@pytest.mark.parametrize(
    "predicate", [equal("s", "\ud800"), starts_with("s", "\ud800"), not_(starts_with("s", "a\udfff"))], ids=repr
)
def test_invalid_unicode_is_refused_in_every_comparison(predicate: Predicate) -> None:
    with pytest.raises(SchemaMismatchError):
        bind(SCHEMA, predicate)


@pytest.mark.parametrize(
    ("predicate", "error", "reason"),
    [
        (equal("nope", 1), FieldNotFoundError, "nope"),
        (equal("P.x", 1), FieldNotFoundError, "P.x"),
        (equal("i", "abc"), SchemaMismatchError, "int"),
        (equal("i", True), SchemaMismatchError, "int"),
        (equal("flag", 1), SchemaMismatchError, "boolean"),
        (equal("s", 5), SchemaMismatchError, "string"),
        (equal("ts", "2024-01-01T00:00:00Z"), SchemaMismatchError, "zone"),
        (equal("day", "yesterday"), SchemaMismatchError, "date"),
        (equal("u", "not-a-uuid"), SchemaMismatchError, "uuid"),
        (equal("v", 1), InvalidRequestError, "no order"),
        (equal("p", 1), InvalidRequestError, "no order"),
        (equal("tags.element", "x"), InvalidRequestError, "inside a list or map"),
        (starts_with("i", "1"), InvalidRequestError, "no such prefix"),
    ],
    ids=str,
)
def test_incomparable_values_are_refused(predicate: Predicate, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        bind(SCHEMA, predicate)


def test_names_match_in_any_case_on_request() -> None:
    assert str(bind(SCHEMA, equal("P.x", 1), case_sensitive=False)) == "p.X = 1"


@pytest.mark.parametrize(
    ("literal", "below", "above"),
    [
        (Decimal("1e400000"), "i is not null", "false"),
        (Decimal("-1e400000"), "false", "i is not null"),
        (Decimal("1e-400000"), "i <= 0", "i >= 1"),
        (10**1000, "i is not null", "false"),
        (-math.inf, "false", "i is not null"),
    ],
)
def test_numbers_outside_the_type_range_still_compare(literal: Any, below: str, above: str) -> None:
    assert str(bind(SCHEMA, less_than("i", literal))) == below
    assert str(bind(SCHEMA, greater_than("i", literal))) == above
    assert str(bind(SCHEMA, equal("i", literal))) == "false"


@pytest.mark.parametrize("literal", [None, math.nan])
def test_null_and_nan_are_not_literals(literal: Any) -> None:
    with pytest.raises(InvalidRequestError, match="Use `is"):
        equal("i", literal)


def test_python_dates_are_literals() -> None:
    assert str(bind(SCHEMA, at_least("day", datetime.date(2024, 1, 1)))) == f"day >= {DAY_2024}"
    aware = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert str(bind(SCHEMA, equal("tz", aware))) == f"tz = {DAY_2024 * 86_400_000_000}"


@pytest.mark.parametrize("value", [None, 1, 5, 9, math.nan])
@pytest.mark.parametrize(
    "predicate",
    [less_than("d", 5), at_most("d", 5), greater_than("d", 5), at_least("d", 5), equal("d", 5), not_equal("d", 5),
     is_in("d", [1, 5]), is_null("d"), not_null("d"), is_nan("d")],
    ids=str,
)  # fmt: skip
def test_pushed_down_negation_equals_the_negation(predicate: Predicate, value: Any) -> None:
    row = {"d": value}
    plain = evaluate_row(bind(SCHEMA, predicate), row)
    assert evaluate_row(bind(SCHEMA, not_(predicate)), row) is not plain
    assert evaluate_row(bind(SCHEMA, push_not(not_(predicate))), row) is not plain


def test_predicate_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(equal("i", 1))


def test_operators_combine_predicates() -> None:
    combined = (equal("i", 1) | equal("i", 2)) & ~is_null("s")
    assert str(combined) == "(i = 1 or i = 2) and not (s is null)"
