"""Parameters of every kind, through every verb in this process, against comparisons in plain Python."""

from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidRequestError
from frazil.table.lake import Lake
from frazil.table.table import Table

UTC = dt.UTC
NOON = dt.datetime(2024, 1, 1, 12, 30, 0, 123456)
LATE = dt.datetime(2300, 1, 1)
ONE, TWO = uuid.UUID(int=1), uuid.UUID("ffffffff-0000-4000-8000-000000000001")
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "i": ("int", [0, 5, -7]),
    "l": ("bigint", [0, 2**53 + 1, 2**63 - 1]),
    "f": ("float", [-0.0, math.nan, 0.5]),
    "d": ("double", [-0.0, 0.0, math.nan]),
    "n": ("decimal(9,2)", [Decimal("34.56"), Decimal("0.10"), Decimal("-1.25")]),
    "m": ("decimal(30,18)", [Decimal("34.56"), Decimal("0.1"), Decimal("-1.25")]),
    "s": ("string", ["a", "it's", 'a\\b\t"$']),
    "o": ("boolean", [True, False, True]),
    "day": ("date", [dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1)]),
    "ts": ("timestamp", [dt.datetime(2024, 1, 1), NOON, LATE]),
    "tz": ("timestamptz", [dt.datetime(2024, 1, 1, tzinfo=UTC), NOON.replace(tzinfo=UTC), LATE.replace(tzinfo=UTC)]),
    "tm": ("time", [dt.time(5, 30), dt.time(5, 30, 0, 1), dt.time(0)]),
    "u": ("uuid", [ONE, TWO, uuid.UUID(int=0)]),
    "b": ("binary", [b"", b"\0\xff", b"ab'"]),
}
ROWS = [{"id": row, **{name: values[row] for name, (_, values) in COLUMNS.items()}} for row in range(3)]
ROWS.append({"id": 3})


class Word(str, enum.Enum):  # noqa: UP042 - StrEnum's `str()` is its value
    """Its `str()` is not its value."""

    A = "a"


class Number(enum.IntEnum):
    """Its `repr()` is not its value."""

    FIVE = 5


# A parameter, what it is compared as, and the columns that it is compared with.
GIVEN: list[tuple[Any, Any, str]] = [
    *((value, value, "i l f d n m") for value in (0, 5, -0.0, 0.0, 0.5, 34.56, Decimal("34.560"), Decimal("-0"))),
    (Number.FIVE, 5, "i l f d n m"),
    (np.int8(5), 5, "i l f d n m"),
    (np.float32(0.1), float(np.float32(0.1)), "i f d n m"),
    (math.nan, math.nan, "f d"),
    (np.float64(math.nan), math.nan, "f d"),
    (-math.inf, -math.inf, "f d"),
    (2**53 + 1, 2**53 + 1, "i l"),
    (Word.A, "a", "s"),
    *((value, value, "s") for value in ("it's", 'a\\b\t"$', "")),
    (np.str_("a"), "a", "s"),
    (np.bool_(True), True, "o"),
    *((value, value, "b") for value in (b"", b"\0\xff", b"ab'")),
    (dt.date(2024, 1, 1), dt.date(2024, 1, 1), "day ts tz"),
    (np.datetime64("2024-01-01"), dt.date(2024, 1, 1), "day ts tz"),
    *((value, value, "ts tz") for value in (NOON, LATE, dt.datetime(1600, 1, 1))),
    (pd.Timestamp(NOON), NOON, "ts tz"),
    (np.datetime64(NOON), NOON, "ts tz"),
    (dt.datetime(2024, 1, 1, 18, 0, 0, 123456, dt.timezone(dt.timedelta(hours=5, minutes=30))), NOON, "ts tz"),
    (dt.time(5, 30), dt.time(5, 30), "tm"),
    (dt.time(5, 30, 0, 1), dt.time(5, 30, 0, 1), "tm"),
    (ONE, ONE, "u"),
    (TWO, TWO, "u"),
    (None, None, " ".join(COLUMNS)),
]
OPERATORS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    ">=": lambda order: order >= 0,
    "<=>": lambda order: order == 0,
    "in": lambda order: order == 0,
    "not in": lambda order: order != 0,
}


def plain(value: Any, other: Any) -> Any:
    """Return a value as what it is compared by with another: NaN is above all numbers, and times are in UTC."""
    if isinstance(value, float) or (isinstance(value, Decimal) and isinstance(other, float)):
        return (1, 0.0) if math.isnan(value) else (0, float(value))
    if isinstance(value, int | Decimal) and isinstance(other, float) and not isinstance(value, bool):
        return (0, float(value))
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime) and isinstance(other, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def wanted(name: str, operator: str, value: Any) -> list[int]:
    """Return the ids of the rows that a comparison keeps."""
    found = []
    for row in ROWS:
        mine = row.get(name)
        if mine is None or value is None:
            holds = operator == "<=>" and mine is value
        else:
            one, two = plain(mine, value), plain(value, mine)
            holds = OPERATORS[operator]((one > two) - (one < two))
        if holds:
            found.append(row["id"])
    return found


def condition(name: str, operator: str) -> str:
    """Return a text with the parameter `:x`; lists are long, since short ones are read as comparisons."""
    return f"{name} {operator} ({', '.join([':x'] * 5)})" if "in" in operator else f"{name} {operator} :x"


@pytest.fixture(scope="module")
def lake() -> Any:
    with frazil.connect("memory:", catalog="memory") as opened:
        table = opened.create_table(
            "db.t", "id int, k int, " + ", ".join(f"{name} {text}" for name, (text, _) in COLUMNS.items())
        )
        for row in ROWS:
            table.append([row])
        yield opened


@pytest.mark.parametrize("given, value, names", GIVEN)
def test_parameter_finds_the_rows_plain_python_finds(lake: Lake, given: Any, value: Any, names: str) -> None:
    table = lake.table("db.t")
    for name in names.split():
        for operator in OPERATORS:
            text = condition(name, operator)
            rows = wanted(name, operator, value)
            query = text.replace(":x", "$x").replace("<=>", "is not distinct from")
            found = lake.sql(f"select id from db.t where {query}", x=given).column(0).to_pylist()
            assert sorted(found) == rows, query
            if (name == "u" and operator in ("<", ">=")) or (name == "m" and isinstance(value, float)):
                continue  # errors of scans
            found = table.scan(text, columns=["id"], x=given).to_arrow()["id"].to_pylist()
            assert sorted(found) == rows, text


def marked(lake: Lake, change: Callable[[Table, str], Any]) -> list[int]:
    """Return the rows of which a change on a branch of its own sets k."""
    table = lake.table("db.t")
    branch = f"b{len(table.refs)}"
    table.create_branch(branch)
    change(table, branch)
    rows = table.scan(ref=branch, columns=["id", "k"]).to_arrow().to_pylist()
    return sorted(row["id"] for row in rows if row["k"] == 1)


@pytest.mark.parametrize(
    "given, name, operator",
    [
        (dt.time(5, 30), "tm", "="),
        (dt.time(5, 30), "tm", "<"),
        (dt.time(5, 30), "tm", "not in"),
        (ONE, "u", "="),
        (ONE, "u", ">="),
        (ONE, "u", "<=>"),
        (TWO, "u", "in"),
        (-0.0, "d", "in"),
        (0.0, "f", "<=>"),
        (math.nan, "d", "in"),
        (math.nan, "f", "<"),
        (Word.A, "s", "="),
        (Number.FIVE, "i", "<>"),
        (None, "tm", "<=>"),
        (None, "u", "not in"),
    ],
)
def test_changing_verbs_accept_the_same_parameters(lake: Lake, given: Any, name: str, operator: str) -> None:
    text, ids = condition(name, operator), pa.table({"id": pa.array(range(4), pa.int32())})
    computed = f"{text} and id * 1 >= 0"

    def update(table: Table, branch: str) -> None:
        table.update({"k": "1"}, where=computed, branch=branch, engine="local", x=given)

    def merge(table: Table, branch: str) -> None:
        merging = table.merge(ids, on="target.id = source.id", branch=branch, engine="local", x=given)
        merging.when_matched(f"target.{text}").update({"k": "1"}).execute()

    value = given.value if isinstance(given, enum.Enum) else given
    assert marked(lake, update) == marked(lake, merge) == wanted(name, operator, value)
    table = lake.table("db.t")
    branch = f"b{len(table.refs)}"
    table.create_branch(branch)
    if not (name == "u" and operator == ">="):
        table.delete(text, branch=branch, engine="local", x=given)
        left = table.scan(ref=branch, columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted({0, 1, 2, 3} - set(left)) == wanted(name, operator, value)


@pytest.mark.parametrize(
    "name, given, kept",
    [
        ("tm", dt.time(7, 0, 0, 5), dt.time(7, 0, 0, 5)),
        ("u", TWO, TWO),
        ("s", Word.A, "a"),
        ("s", dt.time(7), "07:00:00.000000"),
        ("i", Number.FIVE, 5),
        ("d", np.float32(0.5), 0.5),
    ],
)
def test_parameter_is_written_with_its_value(lake: Lake, name: str, given: Any, kept: Any) -> None:
    table = lake.table("db.t")
    branch = f"b{len(table.refs)}"
    table.create_branch(branch)
    table.update({name: ":x"}, where="id = 0", branch=branch, engine="local", x=given)
    assert table.scan("id = 0", ref=branch, columns=[name]).to_arrow()[name].to_pylist() == [kept]


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 2]),
        object(),
        1 + 2j,
        enum.Enum("Plain", "A"),
        "a\ud800",
        Decimal("NaN"),
        Decimal("Infinity"),
        dt.time(5, tzinfo=UTC),
        pd.NaT,
        pd.NA,
        10**80,
    ],
)
def test_invalid_parameter_is_named_in_the_error(lake: Lake, given: Any) -> None:
    table = lake.table("db.t")
    with pytest.raises(FrazilError, match=r"'x'|:x|digits"):
        table.scan("i = :x", x=given).to_arrow()
    with pytest.raises(FrazilError, match=r"'x'|:x|digits"):
        table.delete("i = :x", x=given, engine="local")
    with pytest.raises(InvalidRequestError, match="Cannot use the parameter 'x'"):
        lake.sql("select id from db.t where i = $x", x=given)


def test_integers_beyond_64_bits_are_decimals(lake: Lake) -> None:
    assert lake.sql("select count(*) from db.t where l < $x", x=2**70).column(0).to_pylist() == [3]
    assert lake.sql("select $x as x", x=2**70).to_pylist() == [{"x": Decimal(2**70)}]


def test_null_beside_another_condition_matches_nothing(lake: Lake) -> None:
    for text in ("i = $x and s = 'a'", "i not in ($x) and s = 'a' and l = 0", "not (i <> $x) and d = 0"):
        assert lake.sql(f"select id from db.t where {text}", x=None).to_pylist() == []
    assert lake.sql("select id from db.t where null and s = 'a'").to_pylist() == []
    assert lake.sql("select id from db.t where i = $x or s = 'a'", x=None).to_pylist() == [{"id": 0}]


@pytest.mark.parametrize(
    "text, answer",
    [
        ("select id from db.t where d + 0e0 in (0e0, 5e0, 6e0, 7e0, 8e0) order by id", [0, 1]),
        ("select d in (0e0, 5e0, 6e0, 7e0, 8e0) from db.t where id < 2", [True, True]),
        ("select case d when 0e0 then 1 else 0 end from db.t where id < 2", [1, 1]),
        ("select nullif(d, 0e0) from db.t where id < 2", [None, None]),
        ("select count(*) over (partition by d) from db.t where id < 2", [2, 2]),
        ("select rank() over (order by d) from db.t where id < 2", [1, 1]),
        ("select id from db.t where id < 2 order by d, id desc", [1, 0]),
        ("select count(*) from db.t where id < 2 group by d", [2]),
        ("select count(distinct d) from db.t", [2]),
        ("select count(*) from db.t a join db.t b on a.d = b.d and a.id < 2", [4]),
        ("select count(*) from db.t a join db.t b on a.d is not distinct from b.d", [6]),
        ("select id from db.t where d in (select d from db.t where id = 1) order by id", [0, 1]),
        ("select list_contains([d], 0e0) from db.t where id < 2", [True, True]),
    ],
)
def test_both_zeros_are_equal_in_queries(lake: Lake, text: str, answer: list[Any]) -> None:
    assert lake.sql(text).column(0).to_pylist() == answer


def test_plain_selection_preserves_the_sign_of_zero(lake: Lake) -> None:
    assert [str(value) for value in lake.sql("select d from db.t where id = 0").column(0).to_pylist()] == ["-0.0"]


FINE = (pd.Timestamp("2026-01-01 00:00:00.000001500"), np.datetime64("2026-01-01T00:00:00.000001500", "ns"))


@pytest.mark.parametrize("value", FINE, ids=["pandas", "numpy"])
def test_nanoseconds_match_in_local_queries_and_are_never_truncated(tmp_path: Path, value: Any) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        fine = lake.create_table("db.fine", "id int, t timestamp_ns", format_version=3)
        fine.append([{"id": number, "t": FINE[0] + pd.Timedelta(number, "ns")} for number in range(-1, 2)])
        for condition, ids in [("t = $x", [0]), ("t < $x", [-1]), ("t >= $x", [0, 1]), ("t in ($x)", [0])]:
            rows = lake.sql(f"select id from db.fine where {condition} order by id", x=value)
            assert [row["id"] for row in rows.to_pylist()] == ids, condition
        lake.create_table("db.coarse", "t timestamp").append([{"t": dt.datetime(2026, 1, 1, 0, 0, 0, 1)}])
        assert len(lake.sql("select * from db.coarse where t = $x", x=value)) == 0
        assert len(lake.sql("select * from db.coarse where t < $x", x=value)) == 1
