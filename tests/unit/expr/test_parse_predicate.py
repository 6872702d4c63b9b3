"""The text of filters: what parses to what, and errors that show the place."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from frazil.errors import InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.expr.extract import parse_predicate
from frazil.expr.parse import MAX_DEPTH, parse_condition
from frazil.expr.predicates import FALSE, And, Or, TypedText, is_in, leaves_of, names_of
from frazil.expr.show_sql import show_sql

PARSED = [
    ("id = 5", "id = 5"),
    ("id == 5", "id = 5"),
    ("5 < id", "id > 5"),
    ("5 >= id", "id <= 5"),
    ("id <> 5", "id != 5"),
    ("id != 5", "id != 5"),
    ("not id = 5", "id != 5"),
    ("!id = 5", "id != 5"),
    ("not (a = 1 and b = 2)", "a != 1 or b != 2"),
    ("not (a = 1 or b = 2)", "a != 1 and b != 2"),
    ("not x < 5", "not x < 5"),
    ("x between 1 and 2.50", "x >= 1 and x <= 2.50BD"),
    ("x not between 1 and 2", "not x >= 1 or not x <= 2"),
    ("kind in ('a', 'b')", "kind in ('a', 'b')"),
    ("kind not in ('a')", "kind not in ('a')"),
    ("kind in ('a', null)", "kind in ('a', null)"),
    ("kind = null", "kind = null"),
    ("x is null", "x is null"),
    ("x is not null", "x is not null"),
    ("not x is null", "x is not null"),
    ("isnull(x)", "x is null"),
    ("isnotnull(x)", "x is not null"),
    ("isnan(x)", "isnan(x)"),
    ("not isnan(x)", "not isnan(x)"),
    ("name like 'ab%'", "startswith(name, 'ab')"),
    ("name like 'ab'", "startswith(name, 'ab') and name = 'ab'"),
    ("name like '%'", "startswith(name, '')"),
    (r"name like 'a\_b\%%'", "startswith(name, 'a_b%')"),
    (r"name like 'a!_b%' escape '!'", "startswith(name, 'a_b')"),
    (r"name like 'a\\\\%'", r"startswith(name, 'a\\')"),
    ("name not like 'ab%'", "not startswith(name, 'ab')"),
    ("startswith(name, 'ab')", "startswith(name, 'ab')"),
    ("name = 'it''s'", "name = 'it''s'"),
    (r"name = 'it\'s a \"tab\": \t'", "name = 'it''s a \"tab\": \t'"),
    (r"name = 'a\\b'", r"name = 'a\\b'"),
    (r"name = r'a\b'", r"name = 'a\\b'"),
    ("name = 'a' 'b'\n'c'", "name = 'abc'"),
    ("lake.system.days(ts) = date '2024-01-01'", "system.day(ts) = date '2024-01-01'"),
    ("system.bucket(16, id) = 3", "system.bucket(16, id) = 3"),
    ("system.truncate(4, name) = 'abcd'", "system.truncate(4, name) = 'abcd'"),
    ("ts >= timestamp '2024-01-01 00:00:00'", "ts >= timestamp '2024-01-01 00:00:00'"),
    ("data = X'00fF'", "data = X'00ff'"),
    ("x = -5", "x = -5"),
    ("x = - 5", "x = -5"),
    ("x = +5", "x = 5"),
    ("x = .5", "x = 0.5BD"),
    ("x = 1e3", "x = 1000.0D"),
    ("x = 1.5F", "x = 1.5D"),
    ("x = 7L", "x = 7"),
    ("flag", "flag = true"),
    ("not flag", "flag != true"),
    ("flag is true", "flag = true"),
    ("flag is not true", "flag != true or flag is null"),
    ("x <=> 5", "x = 5"),
    ("null <=> x", "x is null"),
    ("x is not distinct from 5", "x = 5"),
    ("x is distinct from null", "x is not null"),
    ("true", "true"),
    ("not true", "false"),
    ("1 = 1", "true"),
    ("2 < 1.5", "false"),
    ("'a' <> 'b' and x = 1", "true and x = 1"),
    ("null = 1 or x = 1", "false or x = 1"),
    ("a.b.c = 1", "a.b.c = 1"),
    ("`a b`.c = 1", "`a b.c` = 1"),
    ("`größe` = 1", "`größe` = 1"),
    ("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)"),
    ("(a = 1 or b = 2) and c = 3", "(a = 1 or b = 2) and c = 3"),
    ("A = 1 -- a remark\n AND b /* and one more */ = 2", "A = 1 and b = 2"),
]


@pytest.mark.parametrize(("text", "meaning"), PARSED, ids=[text for text, _ in PARSED])
def test_filter_has_sql_semantics(text: str, meaning: str) -> None:
    parsed = parse_predicate(text)
    assert str(parsed) == meaning
    assert parse_predicate(str(parsed)) == parsed, "what it prints reads back"


REFUSED = [
    ("", "the condition is empty", 1, 1),
    ("x =", "expected a column name, a literal or a function, found the end of the text", 1, 4),
    ("x = 1 and", "expected a column name", 1, 10),
    ("(x = 1", "expected ')'", 1, 7),
    ("x = 1)", "expected `and`, `or` or the end, found ')'", 1, 6),
    ("x = 'abc", "the string does not end", 1, 5),
    ("x in ()", "expected a column name, a literal or a function, found ')'", 1, 7),
    ("x in (1", "expected `,` or `)`", 1, 8),
    ("x not 5", "after `not`", 1, 7),
    ("x is 5", "after `is`", 1, 6),
    ("x = X'0'", "pairs of hexadecimal digits", 1, 5),
    ("x is nan", "`is nan` is not Spark SQL", 1, 6),
    ("x starts with 'a'", "`starts with` is not Spark SQL", 1, 3),
    ('"x" = 1', "double quotes are not used here", 1, 1),
    ('x = "a"', "double quotes are not used here", 1, 5),
    ("größe = 1", "found 'größe'", 1, 1),
    ("x = 5and y = 1", "found 'y'", 1, 10),
    ("x = 1 /* a /* b */ c", "the comment does not end", 1, 7),
    ("x = 1 /*+ hint */", "the comment", 1, 7),
    ("x = 300Y", "does not fit 8 bits", 1, 5),
    ("x = 1e400", "does not fit a double", 1, 5),
    ("x = 1.5L", "found '.'", 1, 6),
    ("x = X'6 1'", "pairs of hexadecimal digits", 1, 5),
    ("x = uuid 'a'", "found \"'a'\"", 1, 10),
    ("x like 'a%' escape 'ab'", "one character", 1, 20),
    ("x = :y", "the parameter :y has no value", 1, 5),
    ("x ~ 5", "expected `and`, `or` or the end, found '~'", 1, 3),
    ("x § 5", "found '§'", 1, 3),
    ("a = 1 and\n  b ==", "expected a column name", 2, 7),
    ("select x", "found 'x'", 1, 8),
]


@pytest.mark.parametrize(("text", "reason", "line", "column"), REFUSED, ids=[one[0] for one in REFUSED])
def test_syntax_error_is_reported_with_its_position(text: str, reason: str, line: int, column: int) -> None:
    with pytest.raises((TextSyntaxError, UnsupportedError)) as caught:
        parse_predicate(text)
    message = str(caught.value)
    assert reason in message
    assert f"line {line}, column {column}:" in message
    assert "^" in message


OF_ROWS = [
    "x = y",
    "1 = '1'",
    "1D = 1",
    "x like 'a%b'",
    "x like '_a'",
    "foo(x) = 1",
    "year(x) = 1",
    "bucket(4, x) = 1",
    r"x like 'a\\q'",
    r"x like 'a\\'",
    "x = y + 1",
    "x = - y",
]


@pytest.mark.parametrize("text", OF_ROWS)
def test_condition_of_rows_is_parsed_but_not_a_predicate(text: str) -> None:
    parsed = parse_condition(text)
    assert parse_condition(show_sql(parsed)) == parsed
    with pytest.raises(UnsupportedError, match="only rows can decide"):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("system.bucket(0, x) = 1", "number of buckets"),
        ("system.bucket(4L, x) = 1", "the function is bucket"),
        ("system.days(4, x) = 1", "the function is days"),
    ],
)
def test_transforms_with_other_arguments_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        parse_predicate(text)


def test_caret_points_below_the_wrong_word() -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_predicate("a = 1 and x = 2 foo")
    shown, underline = caught.value.message.splitlines()[2:4]
    assert shown[underline.index("^") : underline.rindex("^") + 1] == "foo"


def test_deep_nesting_is_refused_and_long_chains_are_not() -> None:
    with pytest.raises(TextSyntaxError, match="nested deeper"):
        parse_predicate("(" * (MAX_DEPTH + 1) + "x = 1" + ")" * (MAX_DEPTH + 1))
    with pytest.raises(TextSyntaxError, match="nested deeper"):
        parse_predicate("not " * 5000 + "x")
    chain = parse_predicate(" or ".join(f"x = {at}" for at in range(20_000)))
    assert isinstance(chain, Or)
    assert len(chain.children) == 20_000


def test_huge_number_is_refused() -> None:
    with pytest.raises(TextSyntaxError, match="too many digits"):
        parse_predicate("x = " + "9" * 100_000)
    with pytest.raises(TextSyntaxError, match="too many digits"):
        parse_predicate("x = 1e" + "9" * 100 + "BD")


def test_conjunctions_are_flattened() -> None:
    parsed = parse_predicate("a = 1 and (b = 2 and (c = 3 and d = 4))")
    assert isinstance(parsed, And)
    assert len(parsed.children) == 4
    assert names_of(parsed) == {"a", "b", "c", "d"}


def test_empty_list_matches_nothing() -> None:
    assert is_in("x", []) is FALSE


def test_parameters_are_values_and_never_read_as_sql() -> None:
    given = {"x": "it's \\ or 1 = 1", "day": datetime.date(2024, 1, 1)}
    parsed = parse_predicate("kind = :x and d < :day", given)
    assert [one.literals for one in leaves_of(parsed)] == [(given["x"],), (TypedText("date", "2024-01-01"),)]
    assert parse_predicate("x in (:a, :b)", {"a": None, "b": 1}) == parse_predicate("x in (null, 1)")
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert parse_predicate("x = :m", {"m": moment}) == parse_predicate("x = timestamp '2024-01-01 00:00:00+00:00'")


def test_invalid_or_missing_parameters_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="a dict is no literal"):
        parse_predicate("x = :x", {"x": {}})
    for value in (Decimal("NaN"), Decimal("Infinity")):
        with pytest.raises(InvalidRequestError, match="is no literal"):
            parse_predicate("x = :x", {"x": value})
    with pytest.raises(InvalidRequestError, match="does not name it"):
        parse_predicate("x = 1", {"x": 1})
