"""SQL in this process: what queries answer, which files they read, and what is refused."""

from __future__ import annotations

import datetime
import math
import re
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.errors import (
    CancelledError,
    EngineError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    TableNotFoundError,
    TextSyntaxError,
    UnsupportedError,
)
from frazil.table.lake import Lake
from tests.support.hand_off_rows import DDL, ROWS, Watched

UTC = datetime.UTC


@pytest.fixture(scope="module", params=["memory", "folder"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A lake whose files frazil reads (in memory), and one whose files DuckDB reads itself (in a folder)."""
    folder = tmp_path_factory.mktemp("lake")
    opened = frazil.connect("memory:", catalog="memory") if request.param == "memory" else frazil.connect(folder)
    with opened:
        table = opened.create_table("db.t", DDL)
        for start in range(0, 20, 5):
            table.append(ROWS[start : start + 5])
        yield opened


def values(lake: Lake, text: str, **arguments: Any) -> list[Any]:
    """Return the only column of a result."""
    result = lake.sql(text, **arguments)
    assert result.num_columns == 1
    column: list[Any] = result.column(0).to_pylist()
    return column


def test_rows_have_the_types_and_values_of_a_scan(lake: Lake) -> None:
    scan, result = lake.table("db.t").scan(), lake.sql("select * from db.t")
    expected = {field.name: field.type for field in scan.arrow_schema} | {"f": pa.binary()}
    assert {field.name: plain_type(field.type) for field in result.schema} == {
        name: plain_type(data_type) for name, data_type in expected.items()
    }
    rows, wanted = (one.to_arrow().sort_by("id").to_pylist() for one in (result, scan))
    assert repr(rows) == repr(wanted)


def plain_type(data_type: pa.DataType) -> str:
    """Return a type without the names of list elements, which mean nothing."""
    return re.sub(r"(item|element|l): ", "", str(data_type)).replace(" not null", "")


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
    "ts < timestamp '2024-01-03 00:00:00'",
    "d = date '2024-01-05'",
    "d between date '2024-01-05' and date '2024-01-07'",
    "dec >= 4.5",
    "dec = 0.25",
    "flag",
    "not flag",
    "st.a = 3",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition_selects_the_rows_of_a_scan(lake: Lake, condition: str) -> None:
    wanted = sorted(lake.table("db.t").scan(condition).to_arrow()["id"].to_pylist())
    assert sorted(values(lake, f"select id from db.t where {condition}")) == wanted
    # Nothing is pushed past a window, so that DuckDB tests every row.
    alone = f"select id from (select *, count(*) over () many from db.t) q where {condition}"
    assert sorted(values(lake, alone)) == wanted


def test_only_matching_files_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    result = lake.sql("select s from db.t where id > $low and d < '2024-02-01'", low=16)
    assert watched.paths == set()
    assert result.num_rows == 3
    assert len(watched.paths) <= 1
    assert "1 kept of 4" in result.explain()


@pytest.mark.parametrize(
    "query, kept",
    [
        ("select id from db.t where id = 3", 1),
        ("select id from (select id, s from db.t) q where q.id = 3", 1),
        ("select a.id from db.t a left join db.t b on a.id = b.id and b.id = 3 where a.id < 2", 1),
        ("select id from db.t where id = 3 union all select id from db.t where id = 3", 1),
        ("with q as (select * from db.t where id > 17) select * from q", 1),
        ("select id from db.t where id in (select id from db.t where id = 19) and id > 16", 1),
        ("select id from db.t where id + 0 = 3", 4),
        ("select * from (select id from db.t limit 10) where id = 3", 4),
        ("select * from (select id from db.t union all select 'abc') where id > '15'", 4),
        ("select id from db.t where id in (3, 1e0)", 1),
        ("select id from db.t where id in (9007199254740992, 1e0)", 4),
        ("select id from db.t where id between 9007199254740992 and 1e300", 4),
        ("select * from (select max(id) id from db.t group by s) where id = 3", 4),
        ("select t.id from db.t positional join (select 1 k) q where t.id = 3", 4),
        ("select id from db.t tablesample reservoir(20 rows) where id = 3", 4),
    ],
)
def test_conditions_prune_files_without_changing_rows(lake: Lake, query: str, kept: int) -> None:
    counts = [int(count) for count in re.findall(r"data files: (\d+) kept", lake.sql(query).explain())]
    assert min(counts) == kept


def test_whole_table_counts_and_bounds_come_from_metadata(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    text = "select count(*), min(id), max(t.d) latest, max(ts) m, min(dec) n, max(n) o from db.t"
    result = lake.sql(text)
    assert "answered from metadata" in result.explain()
    (row,) = result.to_pylist()
    assert watched.paths == set()
    (computed,) = lake.sql(text.replace("from db.t", "from (select * from db.t where id >= 0) t")).to_pylist()
    assert row == computed
    assert list(row) == ["count_star()", "min(id)", "latest", "m", "n", "o"]
    for other in ("where id > 3", "group by s", "limit 1"):
        assert "from metadata" not in lake.sql(f"select count(*) from db.t {other}").explain()
    for other in (
        "max(x)",
        "max(s)",
        "count(id)",
        "min(id) filter (where id > 3)",
        "max(id) + 1",
        "count(distinct id)",
    ):
        assert "from metadata" not in lake.sql(f"select {other} from db.t").explain()


def test_queries_join_group_and_order(lake: Lake) -> None:
    text = """
        with named as (select id, s from db.t where s is not null)
        select a.s, count(*) n, sum(b.dec) total
        from named a join lake.db.t b on a.id = b.id
        where a.id < $most group by a.s order by a.s desc
    """
    rows = lake.sql(text, most=4).to_pylist()
    assert [(row["s"], row["n"], str(row["total"])) for row in rows] == [("b", 1, "0.25"), ("a", 2, "0.75")]
    assert values(lake, "select db.t.id from db.t where db.t.id < 2 order by id") == [0, 1]
    assert values(lake, "select lake.db.t.id from lake.db.t where lake.db.t.id = 2") == [2]


def test_snapshots_and_metadata_tables_are_queryable(lake: Lake) -> None:
    table = lake.create_table("db.states", "id bigint")
    first = table.append([{"id": 1}])
    assert first is not None
    table.create_tag("one")
    moment = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, UTC)
    time.sleep(0.01)
    table.append([{"id": 2}])
    count = "select count(*) from db.states"
    assert values(lake, count) == [2]
    assert values(lake, f"{count} at (version => {first.snapshot_id}) where id > 0") == [1]
    assert values(lake, f"{count} old at (version => 'one') where old.id > 0") == [1]
    assert values(lake, f"{count} at (version => $v)", v="one") == [1]
    assert values(lake, f"{count} at (timestamp => '{moment.isoformat()}')") == [1]
    assert values(lake, f"{count} at (timestamp => $moment) where id < $most", moment=moment, most=9) == [1]
    assert values(lake, "select count(*) from db.states.tag_one") == [1]
    assert values(lake, "select count(*) from db.states.snapshots where operation = 'append'") == [2]
    assert values(lake, "select count(*) from db.states.tag_one.files") == [1]
    both = "select count(*) from db.states n join db.states o at (version => 'one') on n.id = o.id"
    assert values(lake, both) == [1]
    with pytest.raises(InvalidRequestError, match="in two states"):
        lake.sql(f"select * from db.states.tag_one at (version => {first.snapshot_id})")
    with pytest.raises(InvalidRequestError, match="not a constant"):
        lake.sql("select * from db.states at (timestamp => now() - interval 1 day)")
    lake.drop_table("db.states")


def test_names_may_have_many_parts_and_any_letters(lake: Lake) -> None:
    table = lake.create_table('a.b.`c d`.`T"x`', "`I d` bigint, `from` string, filename string, c1 int")
    table.append([{"I d": 1, "from": "x", "filename": "f", "c1": 7}])
    assert values(lake, 'select "I d" from a.b."c d"."T""x" where "from" = \'x\'') == [1]
    assert values(lake, 'select q."from" from lake.a.b."c d"."T""x" q') == ["x"]
    assert values(lake, 'select "T""x".filename from "lake.a.b"."c d"."T""x" /* a note */ where c1 = 7') == ["f"]
    lake.create_table("main.sqlite_master", "a int").append([{"a": 5}])
    assert values(lake, "select a from main.sqlite_master") == [5]
    lake.create_table("db.cases", "a int, A int").append([{"a": 1, "A": 2}])
    assert lake.sql("select * from db.cases where a_1 = 2").to_pylist() == [{"a": 1, "A_1": 2}]
    assert values(lake, "select 'é' from db.cases where 'é' = 'é'") == ["é"]


def test_parameters_are_values(lake: Lake) -> None:
    assert values(lake, "select id from db.t where s = $s and id < 3", s="a") == [0]
    assert values(lake, "select id from db.t where s = $s", s="a' or 'a' = 'a") == []
    moment = datetime.datetime(2024, 1, 3, tzinfo=UTC)
    assert sorted(values(lake, "select id from db.t where ts < $moment", moment=moment)) == [0, 1]
    assert values(lake, "select $timeout::int", parameters={"timeout": 5}) == [5]
    assert sorted(values(lake, "select id from db.t where list_contains($ids, id)", ids=[1, 2])) == [1, 2]
    with pytest.raises(InvalidRequestError, match=r"the parameter \$x has no value"):
        lake.sql("select $x")
    with pytest.raises(InvalidRequestError, match="'y': the query names neither"):
        lake.sql("select 1", y=1)
    with pytest.raises(InvalidRequestError, match="a object is not a value of SQL"):
        lake.sql("select $x", x=object())
    with pytest.raises(TextSyntaxError, match=r"Parameters are written \$name"):
        lake.sql("select :x", x=1)


def test_frames_of_the_caller_can_be_joined(lake: Lake) -> None:
    query = "select sum(k) from db.t join mine using (id)"
    frame = {"id": [1, 2, 99], "k": [10, 20, 40]}
    scan = lake.table("db.t").scan("id < 5", columns=["id"])
    for mine in (frame, pa.table(frame), pd.DataFrame(frame), pl.DataFrame(frame), pl.LazyFrame(frame)):
        assert values(lake, query, mine=mine) == [30]
    assert values(lake, query, mine=[{"id": 3, "k": 4}]) == [4]
    assert values(lake, query, frames={"mine": frame}) == [30]
    assert values(lake, "select count(*) from db.t semi join mine using (id)", mine=scan) == [5]
    assert sorted(values(lake, "table mine", mine={"a": [1, 2]})) == [1, 2]
    with pytest.raises(InvalidRequestError, match="Cannot use 'mine' as a table: it is of the type int"):
        lake.sql(query, mine=5)
    for mine, name in ((np.array([1, 2]), "ndarray"), (pd.Series([1]), "int64")):
        with pytest.raises(InvalidRequestError, match=f"Cannot use 'mine' as a table: .*{name}"):
            lake.sql(query, mine=mine)
    with pytest.raises(InvalidRequestError, match="Cannot use 'mine' as a table: it is empty"):
        lake.sql(query, mine=[])


def test_python_variables_are_not_tables(lake: Lake) -> None:
    secrets = pa.table({"a": [1]})
    assert secrets.num_rows == 1
    with pytest.raises(TableNotFoundError, match="Cannot find the table secrets"):
        lake.sql("select * from secrets")


def test_result_is_arrow_in_every_form(lake: Lake) -> None:
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
    copy = lake.create_table("db.copied", "id bigint, s string, u uuid", exist_ok=True)
    copy.append(lake.sql("select id, s, u from db.t where id < 2"))
    assert copy.scan().count() == 2


def test_result_keeps_its_snapshots(lake: Lake) -> None:
    table = lake.create_table("db.growing", "id bigint")
    table.append([{"id": 1}])
    result = lake.sql("select id from db.growing")
    table.append([{"id": 2}])
    assert result.to_arrow()["id"].to_pylist() == [1]
    assert result.to_reader().read_all()["id"].to_pylist() == [1]
    lake.drop_table("db.growing")


def test_long_result_is_computed_lazily(lake: Lake) -> None:
    batches = lake.sql("select a.range from range(100000) a, range(100000) b").to_batches()
    assert next(batches).num_rows > 0


@pytest.mark.parametrize(
    "text, error_type, message",
    [
        ("select * from db.nobody", TableNotFoundError, "db.nobody"),
        ("select * from t", TableNotFoundError, "it has no namespace.*namespace.table"),
        ("select * from db.t.changes", UnsupportedError, "changes are read on Spark"),
        ("select nobody from db.t", InvalidRequestError, 'column "nobody" not found'),
        ("select 1 +", TextSyntaxError, "Cannot parse the query"),
        ("select cast('x' as int)", InvalidRequestError, "Could not convert string 'x' to INT32"),
        ("select 'é'::bit = '1'::bit", InvalidRequestError, "Invalid character encountered in string -> bit"),
        ("select nobody(1)", InvalidRequestError, "Scalar Function with name nobody does not exist"),
        ("select * from '/etc/passwd'", TableNotFoundError, "it has no namespace"),
        ("from read_text('/etc/passwd')", InvalidRequestError, "a query reads tables only"),
        ("from pandas_scan(1)", InvalidRequestError, "Cannot use the function pandas_scan"),
        ("select 1; select 2", InvalidRequestError, "Run them one by one"),
        ("", InvalidRequestError, "contains no statement"),
        ("select * from db.t version as of 1", TextSyntaxError, r"AT \(VERSION => 5\)"),
        ("select ?", InvalidRequestError, r"Write \$name"),
        ("show tables", UnsupportedError, r"Cannot run SHOW here.*lake\.list_tables"),
        ("from (show all tables)", UnsupportedError, "what is in DuckDB, not in the lake"),
        ("pivot db.t on s using count(*)", UnsupportedError, "a PIVOT whose columns are not listed.*IN \\('a', 'b'\\)"),
        ("select '1'::bit b", UnsupportedError, "Cannot return the column 'b': it is a BIT"),
        ("select [timetz '05:00:00+02'] t", UnsupportedError, r"'t': it is a TIME WITH TIME ZONE\[\]"),
        ("select (-1)::uhugeint", InvalidRequestError, "out of range|destination"),
    ],
)
def test_invalid_input_has_a_clear_error(lake: Lake, text: str, error_type: type[FrazilError], message: str) -> None:
    with pytest.raises(error_type) as refused:
        lake.sql(text).to_arrow()
    assert re.search(message, str(refused.value), re.DOTALL), str(refused.value)


def test_error_names_the_missing_file(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append([{"id": 1}])
        kept = lake.sql("select id from db.t")
        path = table.inspect.files()["file_path"][0].as_py()
        Path(path.removeprefix("file://")).unlink()
        for query in (kept.to_arrow, lambda: lake.sql("select id from db.t").to_arrow()):
            with pytest.raises(MissingFileError, match=re.escape(Path(path).name)):
                query()


def test_time_row_and_memory_limits_are_errors(lake: Lake) -> None:
    endless = "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"
    began = time.monotonic()
    with pytest.raises(CancelledError, match=r"longer than its limit of 0.5 seconds"):
        lake.sql(endless, timeout=0.5).to_arrow()
    assert time.monotonic() - began < 20
    assert lake.sql("select id from db.t", max_rows=20).num_rows == 20
    with pytest.raises(InvalidRequestError, match="more than max_rows=19"):
        lake.sql("select id from db.t", max_rows=19).to_arrow()
    with pytest.raises(EngineError, match="more than its limit of 64 MiB"):
        lake.sql("select array_agg(range) from range(100000000)", memory_limit="64MiB").to_arrow()
    for limit in ({"timeout": 0}, {"max_rows": -1}, {"memory_limit": "lots"}, {"memory_limit": 5}):
        with pytest.raises(InvalidRequestError, match=f"Cannot run the query with {next(iter(limit))}"):
            lake.sql("select 1", **limit)


def test_ctrl_c_stops_a_query_within_a_second(lake: Lake) -> None:
    result = lake.sql("select sum(a.range * b.range) from range(10000000) a, range(10000000) b")
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        result.to_arrow()
    assert time.monotonic() - pressed[0] < 1


def test_sort_beyond_memory_spills_to_files(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        count = 600_000
        ids = [(at * 7919) % count for at in range(count)]
        table = lake.create_table("db.t", "id bigint, s string")
        table.append(pa.table({"id": ids, "s": [f"text {at:0250}" for at in ids]}))
        rows = lake.sql("select id from db.t order by s", memory_limit="128MiB").to_arrow()
        assert rows.column("id").to_pylist() == list(range(count))


def test_unions_and_cases_of_different_types_keep_every_value(tmp_path: Path) -> None:
    """Part A of the review beside the jar: each query gave other values before."""
    nan, inf = math.nan, math.inf
    with frazil.connect(tmp_path) as lake:
        lake.create_table("db.t", "id int, l long, d double").append([{"id": 1, "l": 2**40, "d": 2.5}])
        assert values(lake, "select id x from db.t union all select l from db.t") == [1, 2**40]
        assert values(lake, "select id x from db.t union all select d from db.t") == [1.0, 2.5]
        assert values(lake, "select l x from db.t union all select d from db.t") == [float(2**40), 2.5]
        assert values(lake, "select case when id = 1 then id else d end x from db.t") == [1.0]
        assert values(lake, "select case when id = 2 then id else l end x from db.t") == [2**40]
        days = values(lake, "select date '2024-02-29' x union all select timestamp '2024-02-29 05:00:00'")
        assert days == [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 5)]
        lake.create_table("db.n", "x decimal(5,2), y decimal(9,4)").append(
            [{"x": Decimal("1.25"), "y": Decimal("2.5")}]
        )
        assert values(lake, "select x from db.n union all select y from db.n") == [Decimal("1.25"), Decimal("2.5")]

        keys = lake.create_table("db.k", "k string, d double")
        keys.append([{"k": "a", "d": nan}, {"k": "a", "d": 1.0}, {"k": "b", "d": -inf}, {"k": "c", "d": inf}])
        grouped = lake.sql("select k, max(d) m, min(d) n from db.k group by k order by k").to_pylist()
        assert repr([(row["m"], row["n"]) for row in grouped]) == "[(nan, 1.0), (-inf, -inf), (inf, inf)]"
        assert sorted(values(lake, "select k from db.k group by k having max(d) > 100")) == ["a", "c"]

        keys.overwrite([{"k": "b", "d": value} for value in (inf, -inf, nan, 1.0)])
        above = "select count(*) n from db.k where d > (select avg(d) from db.k where not isnan(d))"
        assert values(lake, above) == [0]
        assert len(lake.sql("select d * 0 x, count(*) n from db.k group by d * 0")) == 2
        assert len(lake.sql("select distinct d * 0 x from db.k")) == 2

        lake.create_table("db.u", "i int").append([{"i": value} for value in (1, 2, 100, 100, 100)])
        assert sorted(values(lake, "select i from db.u except all select 100")) == [1, 2, 100, 100]
        assert values(lake, "select i from db.u intersect all select 100") == [100]


@pytest.mark.parametrize("condition", ["d > 5", "d >= 3", "d = 'nan'::double", "not d <= 2", "isnan(d)", "d + 1 > 5"])
def test_nan_is_found_despite_statistics(tmp_path: Path, condition: str) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id int, d double, s struct<d: double>, l list<double>")
        table.append(
            [{"id": at, "d": value, "s": {"d": value}, "l": [value]} for at, value in enumerate((1.0, 2.0, math.nan))]
        )
        assert values(lake, f"select id from db.t where {condition}") == [2]
        nested = re.sub(r"\bd\b", "s.d", condition)
        assert values(lake, f"select id from db.t where {nested}") == [2]
        assert values(
            lake, f"select id from db.t where {re.sub(chr(92) + 'bd' + chr(92) + 'b', 'l[1]', condition)}"
        ) == [2]
        assert math.isnan(values(lake, "select max(d) from db.t")[0])


def test_a_condition_that_is_true_of_null_drops_no_row_of_an_outer_join(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        for name in ("t", "u"):
            lake.create_table(f"db.{name}", "i int, s string, d int").append([{"i": 1, "s": "a", "d": 1}])
        joined = "select u.i from db.t t left join db.u u on t.i = u.i"
        assert values(lake, f"{joined} where (coalesce(u.i, 1) = 1 and u.s is null) or u.d = 2") == []
        assert values(lake, f"{joined} where 5 in (u.i, 5) and u.s is null or u.d = 2") == []
        assert "0 kept" in lake.sql(f"{joined} where u.s = 'b' and (u.d = 2 or u.d in (3, 4))").explain()


def test_a_literal_of_more_digits_than_a_decimal_is_a_double(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        lake.create_table("db.t", "l bigint").append([{"l": 2**60 - 3}])
        for digits in (20, 32):
            text = f"select count(*) from db.t where l = {2**60 + 1}.{'1'.zfill(digits)}"
            assert values(lake, text) == [1]


def test_condition_on_a_union_uses_the_union_type(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "i int, l long, m decimal(9,2)")
        for at in (5, 9, 12):
            big = {"i": 2**24 + 1, "l": 2**53 + 1} if at == 9 else {"i": at, "l": at}
            table.append([{**big, "m": Decimal(at)}])
        union = "select * from (select {} x from db.t union all select {}) where x {} order by x"
        assert values(lake, union.format("i", "'abc'", "> '10'")) == ["12", "16777217", "5", "abc"]
        assert values(lake, union.format("l", "'abc'", "between '10' and '6'")) == ["12", "5"]
        assert values(lake, union.format("m", "'abc'", "> '10'")) == ["12.00", "5.00", "9.00", "abc"]
        assert values(lake, union.format("i", "1::float", "= 16777216")) == [16777216.0]
        assert values(lake, union.format("l", "1::double", "= 9007199254740992")) == [9007199254740992.0]
        assert values(lake, "select l from db.t where l in (9007199254740992, 1e0)") == [2**53 + 1]


def test_duplicate_column_names_are_numbered(lake: Lake) -> None:
    assert lake.sql("select 1 as x, 2 as x").to_pylist() == [{"x": 1, "x_1": 2}]
    result = lake.sql("select a.id, b.id from db.t a join db.t b using (id) where id = 3")
    assert result.column_names == ["id", "id_1"]
    assert result.to_pandas().values.tolist() == [[3, 3]]
    assert next(result.to_batches()).schema.names == ["id", "id_1"]


NESTED = [
    ("{'a': true, 'u': $u, 'n': 1::hugeint}", {"a": True, "u": UUID(int=5), "n": Decimal(1)}),
    ("[true, null]", [True, None]),
    ("[[$u], null]", [[UUID(int=5)], None]),
    ("map {$u: sum(3)}", [(UUID(int=5), Decimal(9))]),
    ("[1::hugeint, null]::hugeint[2]", [Decimal(1), None]),
    ("list(n order by n)", [Decimal(1), Decimal(2), None]),
]


@pytest.mark.parametrize("text, value", NESTED)
@pytest.mark.parametrize("trust", ["all", "none"])
def test_types_of_duckdb_are_exact_inside_of_others(tmp_path: Path, trust: str, text: str, value: Any) -> None:
    frazil.connect(tmp_path).close()
    with frazil.connect(tmp_path, trust=trust) as lake:
        rows = "(select unnest([1, 2, null])::uhugeint n)"
        result = lake.sql(f"select {text} x, $u y from {rows}", u=UUID(int=5)).to_arrow()
        result.validate(full=True)
        assert result.to_pylist()[0] == {"x": value, "y": UUID(int=5)}


@pytest.mark.parametrize("number", ["uhugeint '340282366920938463463374607431768211455'", f"{10**38}::hugeint"])
def test_a_whole_number_of_more_digits_than_a_decimal_is_an_error(lake: Lake, number: str) -> None:
    for text in (number, f"[{number}]", f"{{'a': {number}}}"):
        with pytest.raises(EngineError, match="more than 38 digits"):
            lake.sql(f"select {text} x").to_arrow()


def test_slices_of_nested_columns_keep_their_values(lake: Lake) -> None:
    rows = lake.sql(
        f"select map {{range::hugeint: [range % 2 = 0]}} m, [range::hugeint] l from range({2**17 + 3})"
    ).to_arrow()
    rows.validate(full=True)
    assert rows.slice(2**17).to_pylist() == [
        {"m": [(Decimal(at), [at % 2 == 0])], "l": [Decimal(at)]} for at in range(2**17, 2**17 + 3)
    ]


def test_a_parameter_in_nanoseconds_reaches_a_process_of_its_own(tmp_path: Path) -> None:
    frazil.connect(tmp_path).close()
    moment = np.datetime64("2024-01-01T00:00:00.000000001", "ns")
    with frazil.connect(tmp_path, trust="none") as lake:
        assert lake.sql("select $x::varchar x", x=moment).to_pylist() == [{"x": "2024-01-01 00:00:00.000000001"}]


def test_unrepresentable_values_are_refused_by_name(lake: Lake) -> None:
    with pytest.raises(UnsupportedError, match="the column 'u': it is a UNION"):
        lake.sql("select union_value(a := 1) u")
    with pytest.raises(UnsupportedError, match="as values of Python"):
        lake.sql("select timestamp 'infinity' x").to_pylist()


def test_names_need_no_whitespace_around_them(lake: Lake) -> None:
    assert values(lake, 'select id from"db"."t"where id=3') == [3]


def test_column_names_are_the_same_with_and_without_metadata_results(lake: Lake) -> None:
    lake.create_table("db.names", "day int, x int").append([{"day": 1, "x": 2}])
    for column in ("day", "x"):
        counted = lake.sql(f"select max({column}) from db.names").column_names
        assert counted == lake.sql(f"select max({column}) from (select * from db.names limit 5)").column_names
    lake.drop_table("db.names")


def test_forked_process_can_run_queries(tmp_path: Path) -> None:
    """Threads of DuckDB are not in a forked process, as workers of PySpark are: nothing of the parent is used there."""
    code = """
import os, sys, time, warnings
import frazil
warnings.simplefilter("ignore")
lake = frazil.connect(sys.argv[1])
lake.create_table("db.t", "id int").append([{"id": 1}])
assert lake.sql("select * from db.t").num_rows == 1
time.sleep(0.3)
child = os.fork()
if child == 0:
    os._exit(0 if frazil.connect(sys.argv[1]).sql("select max(id + 1) m from db.t").to_pylist() == [{"m": 2}] else 1)
assert os.waitpid(child, 0)[1] == 0
assert lake.sql("select * from db.t").num_rows == 1
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
