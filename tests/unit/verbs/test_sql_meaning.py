"""Which conditions metadata may decide on without Spark: those of the language, which mean what Spark says."""

from __future__ import annotations

import pyarrow as pa
import pytest

import frazil
from frazil.expr.predicates import TRUE, equal, not_equal
from frazil.spec.parse_type import parse_schema
from frazil.verbs.sql_meaning import plain_predicate, takes_files_whole

SCHEMA = parse_schema(
    "id bigint, f double, k string, day date, ts timestamptz, local timestamp, price decimal(9,2), s struct<a: int>, "
    "u uuid, ns timestamp_ns"
)


@pytest.mark.parametrize(
    "where",
    [
        "id = 5",
        "ID = 5",
        "id >= 1 and (k = 'a' or k is null)",
        "k in ('a', 'b')",
        "k <> 'a'",
        "not (k = 'a')",
        "k not in ('a')",
        "k not like 'a%'",
        r"k = 'a\tb'",
        "f > 1.0",
        "f = 1.0",
        "id = '5'",
        "id < 2.5",
        "day < '2024-01-01'",
        "ts < '2024-01-01T00:00:00Z'",
        "ts < '2024-01-01 00:00:00+05:30'",
        "ts < '2024-01-01'",
        "local >= '2024-01-01 12:00:00'",
        "price > 5",
        "s.a = 1",
        "S.A = 1",
        "u = '0f8fad5b-d9cb-469f-a165-70867728950e'",
        "ns is null",
        "lake.system.bucket(2, id) = 0",
        "1 = 1",
        "true",
        " TRUE ",
    ],
)
def test_known_sql_needs_no_spark(where: str) -> None:
    assert plain_predicate(where, SCHEMA) is not None


@pytest.mark.parametrize(
    "where",
    [
        "k = 5",
        "\"k\" = 'a'",
        'k = "a"',
        "upper(k) = 'A'",
        "k like '%a'",
        "id = id",
        "id in (select id from other)",
        "day < '2024-1-1'",
        "local < '2024-01-01T00:00:00Z'",
        "ns = '2024-01-01 00:00:00'",
        "nope = 1",
        "id = ",
    ],
)
def test_other_sql_is_left_to_spark(where: str) -> None:
    assert plain_predicate(where, SCHEMA) is None


@pytest.mark.parametrize(
    ("where", "depends"),
    [
        ("ts < '2024-01-01'", True),
        ("ts < date '2024-01-01'", True),
        ("ts < timestamp_ntz '2024-01-01 00:00:00'", True),
        ("ts < '2024-01-01 00:00:00Z'", False),
        ("ts is null", False),
        ("local < '2024-01-01'", False),
        ("local < timestamp '2024-01-01 00:00:00Z'", True),
        ("day < timestamp '2024-01-01 00:00:00'", True),
        ("day < '2024-01-01'", False),
    ],
)
def test_times_depending_on_the_session_zone_are_left_to_spark(
    where: str, depends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain_predicate(where, SCHEMA) is not None
    monkeypatch.setattr("frazil.verbs.sql_meaning.session_zone", lambda: "Europe/Paris")
    assert (plain_predicate(where, SCHEMA) is None) is depends


def test_names_are_case_insensitive_and_keep_the_schema_spelling() -> None:
    assert str(plain_predicate("ID = 1 and not S.a < 2", SCHEMA)) == "id = 1 and s.a >= 2"


def test_predicates_mean_the_same() -> None:
    assert plain_predicate(not_equal("k", "a"), SCHEMA) == not_equal("k", "a")
    assert plain_predicate(TRUE, SCHEMA) == TRUE
    assert plain_predicate(7, SCHEMA) is None


def test_whole_file_match_requires_every_row_to_match() -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"])
        table.append(pa.table({"id": [1, 2, 3], "k": ["a", "a", "b"]}))
        loaded = table.state
        assert takes_files_whole(loaded, "main", equal("k", "a"))
        assert takes_files_whole(loaded, "main", equal("k", "none"))
        assert takes_files_whole(loaded, "main", TRUE)
        assert not takes_files_whole(loaded, "main", equal("id", 1))
        assert takes_files_whole(loaded, "main", equal("id", 3))
