from __future__ import annotations

import pytest

from frazil.sql.rewrite import (
    cte_names,
    fill_defaults,
    fill_parameters,
    has_default,
    is_default,
    replace_spans,
    requalify,
    spell_identifiers,
)

QUALIFIERS = {("t",): "target", ("db", "t"): "target", ("lake", "db", "t"): "target", ("s",): "source"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("t.id = s.id", "target.id = source.id"),
        ("T.id = `s`.id", "target.id = source.id"),
        ("db.t.id = lake.db.t.id", "target.id = target.id"),
        ("a.t.id", "a.t.id"),
        ("t", "t"),
        ("f(t.a.b, 't.a')", "f(target.a.b, 't.a')"),
        ("t.id + t . y", "target.id + target . y"),
        ("t.t.id", "target.t.id"),
        ("case when t.a then s.b end", "case when target.a then source.b end"),
        ("t.`odd name`", "target.`odd name`"),
    ],
)
def test_qualifiers_are_replaced_where_they_start_a_name(text: str, expected: str) -> None:
    assert requalify(text, QUALIFIERS) == expected


def test_names_that_a_subquery_defines_stay_inside_it() -> None:
    text = "t.a in (select t.b from u t where db.t.c = (t.d)) and f(t.e)"
    assert requalify(text, QUALIFIERS, {"t"}) == (
        "target.a in (select t.b from u t where target.c = (t.d)) and f(target.e)"
    )
    assert requalify(text, QUALIFIERS).count("target.") == 5


@pytest.mark.parametrize(
    "text, expected",
    [
        ("values (1, default)", "values (1, d1)"),
        ("VALUES (DEFAULT, (1 + 2), DEFAULT), (f(1, 2), 3, default)", "VALUES (d0, (1 + 2), d2), (f(1, 2), 3, d2)"),
        ("values default, 2, default", "values d0, 2, d0"),
        ("select 1, default", "select 1, d1"),
        ("select default as x, 'default', f(default) from t", "select d0 as x, 'default', f(default) from t"),
        ("select a from default", "select a from default"),
        ("(select default)", "(select d0)"),
        ("table default", "table default"),
    ],
)
def test_default_is_replaced_where_it_is_a_whole_value(text: str, expected: str) -> None:
    assert fill_defaults(text, lambda place: f"d{place}") == expected


def test_default_is_recognised() -> None:
    assert is_default(" Default ")
    assert not is_default("default + 1")
    assert has_default("values (DEFAULT)")
    assert not has_default("values (my_defaults)")


def test_spans_are_replaced_in_any_order() -> None:
    assert replace_spans("abcdef", [(4, 5, "E"), (0, 2, "")]) == "cdEf"


def test_names_of_common_tables_are_found() -> None:
    assert cte_names("a as (select 1, 2), `b c` (x, y) as (select * from a)") == ["a", "b c"]
    assert cte_names("recursive r as (select 1)") == ["r"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a = :x and b = :y", "a = 1 and b = 'b'"),
        ("a = :nope", "a = :nope"),
        ("v:x", "v:x"),
        ("f(v):x", "f(v):x"),
        ("f(:x,:y)", "f(1,'b')"),
        ("a::int = :x", "a::int = 1"),
        ("':x'", "':x'"),
    ],
)
def test_named_parameters_become_values(text: str, expected: str) -> None:
    assert fill_parameters(text, {"x": "1", "y": "'b'"}) == expected


def test_parameters_by_place_become_values() -> None:
    assert fill_parameters("values (?, '?', ?)", ["1", "2"]) == "values (1, '?', 2)"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("select * from identifier('lake.db.t') x", "select * from lake.db.t x"),
        ("select * from IDENTIFIER( :name ) where a = :b", "select * from lake.`a b` where a = :b"),
        ("select * from identifier('other.t')", "select * from identifier('other.t')"),
        ("select identifier('lake' || '.t')", "select identifier('lake' || '.t')"),
        ("select identifier('lake; drop table x')", "select identifier('lake; drop table x')"),
        ("select identifier from lake.t", "select identifier from lake.t"),
    ],
)
def test_identifiers_of_lakes_are_spelled_out(text: str, expected: str) -> None:
    values = {"name": "lake.`a b`", "b": 1}
    assert spell_identifiers(text, values, lambda name: name.startswith("lake")) == expected
