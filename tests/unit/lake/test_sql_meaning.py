"""Which conditions metadata may decide on without Spark: only those that mean the same in SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

import frazil
from frazil.expr.predicates import TRUE, equal, not_equal
from frazil.lake.sql_meaning import plain_predicate, takes_files_whole
from frazil.spec.parse_type import parse_schema

SCHEMA = parse_schema(
    "id bigint, f double, k string, day date, ts timestamptz, local timestamp, price decimal(9,2), s struct<a: int>"
)


@pytest.mark.parametrize(
    "where",
    [
        "id = 5",
        "id >= 1 and (k = 'a' or k is null)",
        "k in ('a', 'b')",
        "day < '2024-01-01'",
        "ts < '2024-01-01T00:00:00Z'",
        "ts < '2024-01-01 00:00:00+05:30'",
        "local >= '2024-01-01 12:00:00'",
        "price > 5",
        "s.a = 1",
        "true",
        " TRUE ",
    ],
)
def test_plain_comparisons_mean_the_same_in_both_languages(where: str) -> None:
    assert plain_predicate(where, SCHEMA) is not None


@pytest.mark.parametrize(
    "where",
    [
        "k <> 'a'",
        "not (k = 'a')",
        "k not in ('a')",
        "f > 1.0",
        "f = 1.0",
        "k = 5",
        "id = '5'",
        "id < 2.5",
        "day(ts) = 5",
        "upper(k) = 'A'",
        "id in (select id from other)",
        "day < '2024-1-1'",
        "local < '2024-01-01T00:00:00Z'",
        "nope = 1",
        "id = ",
    ],
)
def test_everything_else_is_sparks_to_read(where: str) -> None:
    assert plain_predicate(where, SCHEMA) is None


def test_predicates_mean_what_they_say() -> None:
    assert plain_predicate(not_equal("k", "a"), SCHEMA) == not_equal("k", "a")
    assert plain_predicate(TRUE, SCHEMA) == TRUE
    assert plain_predicate(7, SCHEMA) is None


def test_files_are_whole_only_where_no_other_row_can_be_in_them() -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"])
        table.append(pa.table({"id": [1, 2, 3], "k": ["a", "a", "b"]}))
        loaded = table._loaded
        assert takes_files_whole(loaded, "main", equal("k", "a"))
        assert takes_files_whole(loaded, "main", equal("k", "none"))
        assert takes_files_whole(loaded, "main", TRUE)
        assert not takes_files_whole(loaded, "main", equal("id", 1))
        assert takes_files_whole(loaded, "main", equal("id", 3))
