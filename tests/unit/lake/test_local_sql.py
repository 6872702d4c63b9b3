"""Queries in this process: what they answer, what they read, and what they refuse."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import frazil
from frazil.errors import (
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.lake import local_sql
from frazil.lake.lake import Lake
from tests.hand_off_rows import DDL, ROWS, Watched

UTC = datetime.UTC


@pytest.fixture(scope="module")
def lake() -> Any:
    with frazil.connect("memory:", catalog="memory") as opened:
        table = opened.create_table("db.t", DDL)
        for start in range(0, 20, 5):
            table.append(ROWS[start : start + 5])
        yield opened


def values(lake: Lake, text: str, **parameters: Any) -> list[Any]:
    """Return the only column of an answer."""
    result = lake.sql(text, **parameters)
    assert result.num_columns == 1
    found: list[Any] = result.column(0).to_pylist()
    return found


def test_rows_have_the_types_and_values_of_a_scan(lake: Lake) -> None:
    scan, result = lake.table("db.t").scan(), lake.sql("select * from db.t")
    assert result.schema.equals(scan.arrow_schema, check_metadata=True)
    found, wanted = (one.to_arrow().sort_by("id") for one in (result, scan))
    assert found.drop(["x"]).equals(wanted.drop(["x"]))
    assert str(found["x"].to_pylist()) == str(wanted["x"].to_pylist())


CONDITIONS = [
    "id > 15",
    "id in (1, 2, 30)",
    "id not in (1, 2)",
    "x > 1",
    "x <= 1.5",
    "x = 1.5",
    "x <> 1.5",
    "not x < 1",
    "x in (1.5, -2.0)",
    "x not in (1.5)",
    "x is null",
    "s = 'a'",
    "s <> 'a'",
    "s in ('a', null)",
    "s not in ('a', null)",
    "s like 'a%'",
    "s is not null and (id = 1 or id = 3)",
    "ts < timestamp '2024-01-03T00:00:00Z'",
    "d = date '2024-01-05'",
    "d between date '2024-01-05' and date '2024-01-07'",
    "dec >= 4.5",
    "dec = 0.25",
    "flag",
    "not flag",
    "st.a = 3",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_has_the_rows_of_a_scan(lake: Lake, condition: str) -> None:
    wanted = sorted(lake.table("db.t").scan(condition).to_arrow()["id"].to_pylist())
    assert sorted(values(lake, f"select id from db.t where {condition}")) == wanted
    # Nothing is pushed down past a window, so that the engine answers by itself.
    alone = f"select id from (select *, count(*) over () many from db.t) q where {condition}"
    assert sorted(values(lake, alone)) == wanted


def test_only_files_that_can_match_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    result = lake.sql("select s from db.t where id > :low and d < date '2024-02-01'", low=16)
    assert watched.paths == set()
    assert result.num_rows == 3
    assert len(watched.paths) == 1
    assert "id > Int64(16)" in result.explain()


def test_rows_are_counted_from_metadata(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    assert values(lake, "select count(*) from db.t") == [20]
    assert watched.paths == set()


def test_queries_join_group_and_order(lake: Lake) -> None:
    text = """
        with named as (select id, s from db.t where s is not null)
        select a.s, count(*) n, sum(b.dec) total
        from named a join lake.db.t b on a.id = b.id
        where a.id < :most group by a.s order by a.s desc
    """
    rows = lake.sql(text, most=4).to_pylist()
    assert [(one["s"], one["n"], str(one["total"])) for one in rows] == [("b", 1, "0.25"), ("a", 2, "0.75")]
    assert values(lake, "select s from db.t group by s order by s") == [None, "a", "b"]
    assert values(lake, "select db.t.id from db.t where db.t.id < 2 order by id") == [0, 1]


def test_states_and_metadata_tables_are_read(lake: Lake) -> None:
    table = lake.create_table("db.states", "id bigint")
    first = table.append([{"id": 1}])
    assert first is not None
    table.create_tag("one")
    before = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, UTC).isoformat()
    table.append([{"id": 2}])
    count = "select count(*) from db.states"
    assert values(lake, count) == [2]
    assert values(lake, f"{count} version as of {first.snapshot_id} where id > 0") == [1]
    assert values(lake, f"{count} for version as of 'one' old where old.id > 0") == [1]
    assert values(lake, f"{count} timestamp as of '{before}'") == [1]
    assert values(lake, "select count(*) from db.states.tag_one") == [1]
    assert values(lake, "select count(*) from db.states.snapshots where operation = 'append'") == [2]
    both = "select count(*) from db.states n join db.states version as of 'one' o on n.id = o.id"
    assert values(lake, both) == [1]
    with pytest.raises(InvalidRequestError, match="in two states"):
        lake.sql(f"select * from db.states.tag_one version as of {first.snapshot_id}")


def test_names_may_have_many_parts_and_any_letters(lake: Lake) -> None:
    table = lake.create_table('a.b.`c d`.`T"x`', "`I d` bigint, `from` string")
    table.append([{"I d": 1, "from": "x"}])
    assert values(lake, "select `I d` from a.b.`c d`.`T\"x` where `from` = 'x'") == [1]
    assert values(lake, 'select q.`from` from lake.a.b.`c d`.`T"x` q') == ["x"]
    lake.create_table("public.frazil_0", "a int").append([{"a": 5}])
    assert values(lake, "select a from public.frazil_0") == [5]


def test_parameters_are_values(lake: Lake) -> None:
    assert values(lake, "select id from db.t where s = :s and id < 3", s="a") == [0]
    assert values(lake, "select id from db.t where s = :s", s="a' or 'a' = 'a") == []
    moment = datetime.datetime(2024, 1, 3, tzinfo=UTC)
    assert sorted(values(lake, "select id from db.t where ts < :query", query=moment)) == [0, 1]
    with pytest.raises(InvalidRequestError, match=r"the parameter :x has no value"):
        lake.sql("select :x")
    with pytest.raises(InvalidRequestError, match="'y': the query does not name it"):
        lake.sql("select 1", y=1)
    with pytest.raises(InvalidRequestError, match="a object is no value of SQL"):
        lake.sql("select :x", x=object())


def test_an_answer_is_arrow_in_every_form(lake: Lake) -> None:
    result = lake.sql("select id, s from db.t where id < 2 order by id")
    rows = [{"id": 0, "s": "a"}, {"id": 1, "s": "b"}]
    assert result.to_pylist() == pa.table(result).to_pylist() == rows
    assert pa.RecordBatchReader.from_stream(result).read_all().to_pylist() == rows
    assert result.to_reader().read_all().to_pylist() == rows
    assert (len(result), result.num_rows, result.num_columns, result.column_names) == (2, 2, 2, ["id", "s"])
    assert result.to_pydict() == {"id": [0, 1], "s": ["a", "b"]}
    assert isinstance(result.to_pandas(), pd.DataFrame)
    assert result.to_polars().rows() == [(0, "a"), (1, "b")]
    assert repr(result) == "QueryResult(id, s)"
    copy = lake.create_table("db.copied", "id bigint, s string")
    copy.append(lake.sql("select id, s from db.t where id < 2"))
    assert copy.scan().count() == 2


def test_an_answer_stays_with_its_snapshots(lake: Lake) -> None:
    table = lake.create_table("db.growing", "id bigint")
    table.append([{"id": 1}])
    result = lake.sql("select id from db.growing")
    table.append([{"id": 2}])
    assert result.to_arrow()["id"].to_pylist() == [1]


def test_a_long_answer_is_read_as_it_is_asked_for(lake: Lake) -> None:
    batches = lake.sql("select a.value from range(100000) a, range(100000) b").to_batches()
    assert next(batches).num_rows > 0


@pytest.mark.parametrize(
    "text, kind, says",
    [
        ("select * from db.nobody", TableNotFoundError, "db.nobody"),
        ("select * from t", TableNotFoundError, "it has no namespace.*namespace.table"),
        ("select * from db.t.changes", UnsupportedError, "changes are read on Spark"),
        ("select nobody from db.t", InvalidRequestError, "No field named nobody"),
        ("select 1 +", InvalidRequestError, "Cannot run the query"),
        ("select cast('x' as int)", InvalidRequestError, "Cannot cast string 'x' to value of Int32"),
        ("select nobody(1)", InvalidRequestError, "Invalid function 'nobody'"),
        ("select * from '/etc/passwd'", InvalidRequestError, "Cannot run the query"),
        ("select * from `/etc/passwd`", TableNotFoundError, "it has no namespace"),
        ("drop table db.t", UnsupportedError, "Cannot run DROP here.*drop_table"),
    ],
)
def test_what_cannot_be_run_is_an_error_that_says_why(
    lake: Lake, text: str, kind: type[FrazilError], says: str
) -> None:
    with pytest.raises(kind) as refused:
        lake.sql(text).to_arrow()
    assert re.search(says, str(refused.value), re.DOTALL), str(refused.value)


def test_a_file_that_is_missing_is_named_by_its_own_error(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append([{"id": 1}])
        path = table.inspect.files()["file_path"][0].as_py()
        Path(path.removeprefix("file://")).unlink()
        with pytest.raises(MissingFileError, match=re.escape(Path(path).name)):
            lake.sql("select id from db.t").to_arrow()


@pytest.mark.parametrize(
    "condition",
    [
        "n = 34.56",
        "n >= 34.56 and n <= 34.56",
        "n in (34.56, 1.0)",
        "coalesce(n, 0.0) = 34.56",
        "n = 34.56 and d = 34.56",
        "n between 34.56 and 34.56 and d not in (34.57, 0.1)",
        "d = 34.56 and not n < 34.56 and i > 0.5",
        "not n > 34.56 and n <> 0.1",
    ],
)
def test_numbers_with_a_point_are_what_they_are_compared_with(condition: str) -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "n decimal(9,2), d double, i int")
        table.append([{"n": Decimal("34.56"), "d": 34.56, "i": 1}, {"n": Decimal("9999999.99"), "d": 0.1, "i": 2}])
        lake.create_view("db.v", f"select i from db.t where {condition}")
        assert values(lake, f"select i from db.t where {condition}") == [1]
        assert values(lake, "select i from db.v") == [1]


PAGE = Path(__file__).parents[3] / "docs" / "local-sql.md"
DIFFERENCES = re.findall(r"^\| `(select .*?)` \| (.*?) \| .*? \|$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def page_lake() -> Any:
    with frazil.connect("memory:", catalog="memory") as opened:
        opened.create_table("db.t", "s string, big bigint").append(
            [{"s": "hello", "big": 2**63 - 1}, {"s": "world", "big": 1}]
        )
        yield opened


def test_the_page_has_its_table() -> None:
    assert len(DIFFERENCES) >= 20


@pytest.mark.parametrize("text, answer", DIFFERENCES)
def test_the_page_says_what_is_answered_here(page_lake: Lake, text: str, answer: str) -> None:
    if answer == "an error":
        with pytest.raises(FrazilError):
            page_lake.sql(text).to_arrow()
    else:
        assert [str(one) for one in values(page_lake, text)] == [answer]


def test_a_query_that_needs_more_memory_than_it_may_have_goes_on_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_sql, "MEMORY_BYTES", 12 << 20)
    lake = frazil.connect("memory:", catalog="memory")
    table = lake.create_table("db.t", "id bigint, s string")
    count = 200_000
    ids = [(at * 7919) % count for at in range(count)]
    table.append(pa.table({"id": ids, "s": [f"text {at:050}" for at in ids]}))
    found = lake.sql("select id from db.t order by s").to_arrow()
    assert found.column("id").to_pylist() == list(range(count))
    joined = lake.sql("select count(*) n from db.t a join db.t b on a.s = b.s")
    with pytest.raises(frazil.InvalidRequestError, match=r"(?s)Resources exhausted.*The memory of a query is bounded"):
        joined.to_arrow()
