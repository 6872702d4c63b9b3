"""Conditions built with `frazil.col`: the same predicates as text, taken wherever text is."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import Condition, col
from frazil.expr.extract import parse_predicate
from tests.support.conditions_page import DDL, page_rows

NASTY = [
    "",
    "it's",
    'a"b',
    "a\\b",
    "a\\'b",
    "--",
    "/* x */",
    ":x",
    "`",
    "\t\n\0",
    "Ä雪🧊",
    "%",
    "' or 1 = 1 or '",
    "\\",
]

BUILT: list[tuple[Condition, str, set[int]]] = [
    (col("id") == 1, "id = 1", {1}),
    (col("id") != 1, "id != 1", {2, 3, 4}),
    (col("id") < 2, "id < 2", {1}),
    (col("id") <= 2, "id <= 2", {1, 2}),
    (col("id") > 2, "id > 2", {3, 4}),
    (col("id") >= 3, "id >= 3", {3, 4}),
    (col("id").isin(1, 2), "id in (1, 2)", {1, 2}),
    (col("id").isin([1, 2]), "id in (1, 2)", {1, 2}),
    (col("id").isin(range(1, 3)), "id in (1, 2)", {1, 2}),
    (col("id").isin(), "false", set()),
    (~col("id").isin(1, 2), "not (id in (1, 2))", {3, 4}),
    (col("id").between(2, 3), "id between 2 and 3", {2, 3}),
    (col("kind").is_null(), "kind is null", {4}),
    (col("kind").is_not_null(), "kind is not null", {1, 2, 3}),
    (col("kind") == "it's", "kind = 'it''s'", {2}),
    (col("kind") != "a", "kind != 'a'", {2, 3}),
    (~(col("kind") == "a"), "not (kind = 'a')", {2, 3}),
    (col("kind").starts_with("it"), "startswith(kind, 'it')", {2}),
    (~col("kind").starts_with("a"), "not startswith(kind, 'a')", {2}),
    (col("score").is_nan(), "isnan(score)", {2}),
    (col("score") > 1000.0, "score > 1000.0D", {2}),
    (col("price") == Decimal("34.56"), "price = 34.56BD", {2}),
    (col("day") == dt.date(2024, 2, 29), "day = date '2024-02-29'", {2}),
    (
        col("at") == dt.datetime(2024, 1, 1, 5, 30, tzinfo=dt.UTC),
        "at = timestamp '2024-01-01 05:30:00+00:00'",
        {2},
    ),
    (col("flag") == False, "flag = false", {2}),  # noqa: E712 - a condition, not a comparison
    (col("flag").is_true(), "flag is true", {1, 4}),
    ((col("id") == 1) | (col("id") == 2) | (col("id") == 3), "id = 1 or id = 2 or id = 3", {1, 2, 3}),
    (((col("id") == 1) | (col("id") == 2)) & col("flag").is_true(), "(id = 1 or id = 2) and flag is true", {1}),
    ((col("id") == 1) | ((col("id") > 2) & (col("id") < 4)), "id = 1 or (id > 2 and id < 4)", {1, 3}),
    (~((col("id") == 1) | (col("id") == 2)), "not (id = 1 or id = 2)", {3, 4}),
    ((col("id").between(1, 2)) & (col("id") != 1), "(id between 1 and 2) and id != 1", {2}),
    ((col("id") > 1) & "id < 3 or id = 9", "id > 1 and (id < 3 or id = 9)", {2}),
    ("id = 1 or id = 2" & (col("id") > 1), "(id = 1 or id = 2) and id > 1", {2}),
]


@pytest.fixture(scope="module")
def lake() -> Any:
    with frazil.connect("memory:") as made:
        table = made.create_table("db.page", DDL)
        table.append(page_rows())
        yield made


@pytest.mark.parametrize(("built", "text", "rows"), BUILT, ids=[text for _, text, _ in BUILT])
def test_built_condition_equals_its_text(lake: Any, built: Condition, text: str, rows: set[int]) -> None:
    assert parse_predicate(built) == parse_predicate(text)
    assert set(lake.table("db.page").scan(built).to_arrow()["id"].to_pylist()) == rows


def test_values_are_never_read_as_sql() -> None:
    with frazil.connect("memory:") as made:
        table = made.create_table("db.t", "id int, `a``b c` string, x struct<`select`: string>")
        table.append(pa.table({"id": pa.array(range(len(NASTY)), pa.int32()), "a`b c": NASTY,
                               "x": [{"select": one} for one in NASTY]}))  # fmt: skip
        for number, one in enumerate(NASTY):
            for column in (col("a`b c"), col("x.select"), col("`x`.`select`")):
                assert table.scan(column == one).to_arrow()["id"].to_pylist() == [number], (column, one)
                assert table.scan(column.isin([one])).count() == 1
            assert number in table.scan(col("x.select").starts_with(one)).to_arrow()["id"].to_pylist()


def test_sql_keywords_can_be_names() -> None:
    with frazil.connect("memory:") as made:
        table = made.create_table("db.t", "`null` int, `true` int, `order` int")
        table.append(pa.table({one: pa.array([1, 2], pa.int32()) for one in ("null", "true", "order")}))
        for name in ("null", "true", "order"):
            assert table.scan(col(name) == 1).count() == 1


def test_conditions_are_accepted_wherever_text_is() -> None:
    with frazil.connect("memory:") as made:
        table = made.create_table("db.t", "id bigint, kind string")
        table.append(pa.table({"id": range(10), "kind": ["a", "b"] * 5}))
        table.delete(col("id") >= 8)
        table.update({"kind": "'c'"}, where=col("id").isin(0, 1))
        table.overwrite(pa.table({"id": [7], "kind": ["new"]}), where=col("id") == 7)
        assert table.explain.delete(col("id") == 1).startswith("delete from db.t")
        source = pa.table({"id": [5, 6], "kind": ["x", "y"]})
        matched = table.merge(source, "target.id = source.id").when_matched(col("source.kind") == "x")
        matched.update({"kind": "source.kind"}).execute()
        table.maintain.rewrite_data_files(where=col("id") > 0, options={"rewrite-all": "true"})
        with table.transaction() as changes:
            assert changes.scan(col("kind") == "c").count() == 2
            changes.delete(col("kind") == "c")
        found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
        assert [(row["id"], row["kind"]) for row in found] == [
            (2, "a"), (3, "b"), (4, "a"), (5, "x"), (6, "a"), (7, "new"),
        ]  # fmt: skip


def test_ten_thousand_alternatives_are_one_flat_condition() -> None:
    made = col("id") == 0
    for number in range(1, 10_000):
        made = made | (col("id") == number)
    assert "(" not in made
    assert parse_predicate(made) == parse_predicate(" or ".join(f"id = {number}" for number in range(10_000)))


def test_infinity_is_an_ordinary_value() -> None:
    for value in (float("inf"), -float("inf")):
        made = parse_predicate(col("a") < value)
        assert made == parse_predicate("a < :x", {"x": value})
        assert parse_predicate(str(made)) == made


def test_meaningless_conditions_are_refused() -> None:
    for value in (None, [1, None]):
        with pytest.raises(frazil.InvalidRequestError, match=r"with None(?s:.*)is_null\(\)"):
            _ = col("a").isin(value) if isinstance(value, list) else col("a") == value
    for odd in (float("nan"), object(), {"a": 1}):
        with pytest.raises(frazil.InvalidRequestError, match="Cannot"):
            _ = col("a") == odd
    for name in ("", None, 5):
        with pytest.raises(frazil.InvalidRequestError, match="Cannot name a column"):
            col(name)  # type: ignore[arg-type]
    with pytest.raises(frazil.InvalidRequestError, match="not text"):
        col("a").starts_with(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no truth value"):
        _ = (col("a") > 1) and (col("b") > 1)
    with pytest.raises(TypeError, match="no truth value"):
        _ = 1 < col("a") < 5
    with pytest.raises(TypeError, match="no truth value"):
        _ = not col("a")
    with pytest.raises(TypeError, match="brackets"):
        _ = (col("a") > 1) & 5  # type: ignore[operator]


def test_condition_round_trips_through_text_and_pickle() -> None:
    made = (col("id") > 5) & (col("key") == uuid.UUID(int=7))
    assert str(made) == "`id` > 5 and `key` = '00000000-0000-0000-0000-000000000007'"
    again = pickle.loads(pickle.dumps(made))
    assert str(again | "id = 1") == f"({made}) or (id = 1)"
    assert repr(col("a.b")) == "col(`a`.`b`)"


def test_columns_can_be_compared_in_changes() -> None:
    with frazil.connect("memory:") as made:
        table = made.create_table("db.t", "a bigint, b bigint")
        table.append(pa.table({"a": [1, 5], "b": [2, 2]}))
        table.delete(col("a") > col("b"))
        assert table.scan().to_arrow()["a"].to_pylist() == [1]
