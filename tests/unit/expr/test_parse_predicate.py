"""The text of filters: what parses to what, and errors that show the place."""

from __future__ import annotations

import pytest

from frazil.errors import TextSyntaxError
from frazil.expr.parse import MAX_DEPTH, parse_predicate
from frazil.expr.predicates import FALSE, And, Op, Or, Unbound, is_in, names_of

PARSED = [
    ("id = 5", "id = 5"),
    ("id == 5", "id = 5"),
    ("5 < id", "id > 5"),
    ("5 >= id", "id <= 5"),
    ("id <> 5", "id is not null and id != 5"),
    ("id != 5", "id is not null and id != 5"),
    ("not id = 5", "id is not null and id != 5"),
    ("not (a = 1 and b = 2)", "(a is not null and a != 1) or (b is not null and b != 2)"),
    ("not (a = 1 or b = 2)", "a is not null and a != 1 and b is not null and b != 2"),
    ("not x < 5", "x >= 5 or x is nan"),
    ("x between 1 and 2.50", "x >= 1 and x <= 2.50"),
    ("x not between 1 and 2", "x < 1 or x is nan or x > 2"),
    ("kind in ('a', 'b')", "kind in ('a', 'b')"),
    ("kind not in ('a')", "kind is not null and kind not in ('a')"),
    ("kind in ('a', null)", "kind in ('a')"),
    ("kind not in ('a', null)", "false"),
    ("kind = null", "false"),
    ("not kind = null", "false"),
    ("x is null", "x is null"),
    ("x is not null", "x is not null"),
    ("not x is null", "x is not null"),
    ("x is nan", "x is nan"),
    ("x is not nan", "x is not nan"),
    ("name like 'ab%'", "name starts with 'ab'"),
    ("name like 'ab'", "name = 'ab'"),
    ("name like '%'", "name is not null"),
    (r"name like 'a\_b\%%'", "name starts with 'a_b%'"),
    ("name not like 'ab%'", "name is not null and name not starts with 'ab'"),
    ("name starts with 'ab'", "name starts with 'ab'"),
    ("name = 'it''s'", "name = 'it''s'"),
    ("day(ts) = date '2024-01-01'", "day(ts) = '2024-01-01'"),
    ("days(ts) = '2024-01-01'", "day(ts) = '2024-01-01'"),
    ("bucket(16, id) = 3", "bucket(16, id) = 3"),
    ("truncate(4, name) = 'abcd'", "truncate(4, name) = 'abcd'"),
    ("ts >= timestamp '2024-01-01 00:00:00'", "ts >= '2024-01-01 00:00:00'"),
    ("data = X'00fF'", "data = X'00ff'"),
    ("x = -5", "x = -5"),
    ("x = +5", "x = 5"),
    ("x = .5", "x = 0.5"),
    ("x = 1e3", "x = 1E+3"),
    ("flag", "flag = true"),
    ("not flag", "flag = false"),
    ("flag is true", "flag = true"),
    ("flag is not true", "flag != true"),
    ("true", "true"),
    ("not true", "false"),
    ("a.b.c = 1", "a.b.c = 1"),
    ("`a b`.c = 1", "`a b.c` = 1"),
    ('"a b" = 1', "`a b` = 1"),
    ("größe = 1", "`größe` = 1"),
    ("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)"),
    ("(a = 1 or b = 2) and c = 3", "(a = 1 or b = 2) and c = 3"),
    ("A = 1 -- a remark\n AND b = 2", "A = 1 and b = 2"),
]


@pytest.mark.parametrize(("text", "meaning"), PARSED, ids=[text for text, _ in PARSED])
def test_a_filter_means_what_sql_says(text: str, meaning: str) -> None:
    assert str(parse_predicate(text)) == meaning


REFUSED = [
    ("", "the filter is empty", 1, 1),
    ("x =", "expected a column name, but the text ends", 1, 4),
    ("x = 1 and", "expected a column name", 1, 10),
    ("(x = 1", "expected ')'", 1, 7),
    ("x = 1)", "expected `and`, `or` or the end, found ')'", 1, 6),
    ("x = 'abc", "the quoted text does not end", 1, 5),
    ("x = y", "compares a column with a literal, not two columns", 1, 1),
    ("1 = 1", "not two literals", 1, 1),
    ("x like 'a%b'", "wildcard before its end", 1, 8),
    ("x like '_a'", "wildcard before its end", 1, 8),
    ("x in ()", "expected a literal", 1, 7),
    ("x in (1", "expected `,` or `)`", 1, 8),
    ("x not 5", "after `not`", 1, 7),
    ("x is 5", "after `is`", 1, 6),
    ("x = X'0'", "pairs of hexadecimal digits", 1, 5),
    ("foo(x) = 1", "'foo' is not a function a filter can use", 1, 1),
    ("bucket(0, x) = 1", "bucket", 1, 1),
    ("x <=> 5", "is not supported here", 1, 3),
    ("x ~ 5", "unexpected '~'", 1, 3),
    ("a = 1 and\n  b ==", "expected a column name", 2, 7),
    ("select x", "expected a comparison after 'select'", 1, 8),
    ("x = - y", "expected a number", 1, 7),
]


@pytest.mark.parametrize(("text", "reason", "line", "column"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_does_not_parse_is_refused_with_the_place(text: str, reason: str, line: int, column: int) -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_predicate(text)
    message = str(caught.value)
    assert reason in message
    assert f"line {line}, column {column}:" in message
    assert "^" in message


def test_the_underline_stands_below_the_wrong_word() -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_predicate("a = 1 and foo(x) = 2")
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


def test_a_vast_number_is_refused() -> None:
    with pytest.raises(TextSyntaxError, match="too many digits"):
        parse_predicate("x = " + "9" * 100_000)
    with pytest.raises(TextSyntaxError, match="exponent is too large"):
        parse_predicate("x = 1e" + "9" * 100)


def test_conjunctions_flatten() -> None:
    parsed = parse_predicate("a = 1 and (b = 2 and (c = 3 and d = 4))")
    assert isinstance(parsed, And)
    assert len(parsed.children) == 4
    assert names_of(parsed) == {"a", "b", "c", "d"}


def test_an_empty_set_matches_nothing() -> None:
    assert is_in("x", []) is FALSE


def test_typed_and_plain_literals_are_the_same_leaf() -> None:
    assert parse_predicate("d = date '2024-01-01'") == parse_predicate("d = '2024-01-01'")
    leaf = parse_predicate("d = '2024-01-01'")
    assert isinstance(leaf, Unbound)
    assert leaf.op is Op.EQ
