"""A scan's rows in the hands of pandas, Polars, DuckDB and Arrow, and theirs in a table's."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import frazil
from frazil.errors import FieldNotFoundError, InvalidRequestError, UnsupportedError
from frazil.table.lake import Lake
from tests.support.hand_off_rows import DDL, ROWS, Watched

UTC = datetime.UTC
NAN = float("nan")


@pytest.fixture(scope="module")
def lake() -> Any:
    with frazil.connect("memory:", catalog="memory") as opened:
        table = opened.create_table("db.t", DDL)
        for start in range(0, 20, 5):
            table.append(ROWS[start : start + 5])
        yield opened


@pytest.fixture(scope="module")
def table(lake: Lake) -> frazil.Table:
    return lake.table("db.t")


def ids(rows: Any) -> list[int]:
    found: list[int] = sorted(pa.table(rows).column("id").to_pylist())
    return found


# --- by Arrow's C stream


def test_scan_and_table_are_arrow_streams(table: frazil.Table) -> None:
    scan = table.scan("id < 3", columns=["id", "s"])
    assert pa.table(scan).equals(scan.to_arrow())
    assert pa.RecordBatchReader.from_stream(scan).schema == scan.arrow_schema
    assert pa.table(table).drop(["x"]).equals(table.scan().to_arrow().drop(["x"]))
    assert pl.DataFrame(scan).rows() == [(0, "a"), (1, "b"), (2, None)]
    assert pd.DataFrame.from_arrow(scan)["id"].tolist() == [0, 1, 2]
    assert duckdb.sql("select sum(id), count(*) from scan").fetchall() == [(3, 3)]
    whole = table
    assert duckdb.sql("select count(*) from whole").fetchall() == [(whole.scan().count(),)]
    assert scan.to_reader().read_all().equals(scan.to_arrow())


def test_stream_can_be_read_again_from_the_start(table: frazil.Table) -> None:
    scan = table.scan()
    assert ids(scan) == ids(scan) == list(range(20))


def test_stream_is_read_lazily(table: frazil.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = pa.RecordBatchReader.from_stream(table.scan())
    watched = Watched(monkeypatch)
    assert watched.paths == set()
    reader.read_next_batch()
    assert watched.paths
    reader.close()


# --- whole frames


def test_data_frames_hold_the_rows(table: frazil.Table) -> None:
    scan = table.scan("id < 3")
    assert scan.to_pandas()["id"].tolist() == [0, 1, 2]
    frame = scan.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame["dec"].to_list() == [Decimal("0.00"), Decimal("0.25"), Decimal("0.50")]
    assert frame["u"].to_list() == [uuid.UUID(int=at).bytes for at in range(3)]
    assert frame["ts"].dtype == pl.Datetime("us", "UTC")


def test_nested_uuids_are_bytes() -> None:
    lake = frazil.connect("memory:", catalog="memory")
    ddl = "u uuid, l list<uuid>, s struct<u: uuid, l: list<uuid>>, m map<string, uuid>, ll list<struct<u: uuid>>"
    table = lake.create_table("db.t", ddl)
    one, two = uuid.UUID(int=1), uuid.UUID(int=2**100)
    row = {"u": one, "l": [one, None, two], "s": {"u": one, "l": [two]}, "m": {"k": two}, "ll": [{"u": two}]}
    table.append([row, dict.fromkeys(row)])
    frame = table.scan().to_pandas()
    assert frame["u"][0] == one
    assert list(frame["l"][0]) == [one.bytes, None, two.bytes]
    assert list(frame["s"][0]["l"]) == [two.bytes]
    assert frame["ll"][0][0] == {"u": two.bytes}
    assert frame["l"][1] is None
    polars = table.scan().to_polars()
    assert polars["l"].to_list() == [[one.bytes, None, two.bytes], None]
    assert polars["s"][0] == {"u": one.bytes, "l": [two.bytes]}
    assert polars["m"][0] == {"k": two.bytes}


@pytest.mark.parametrize(
    "method, what",
    [
        ("to_pandas", "a pandas data frame: pandas"),
        ("to_polars", "a Polars data frame: Polars"),
        ("to_polars_lazy", "a lazy Polars frame: Polars"),
        ("to_duckdb", "a DuckDB relation: DuckDB"),
        ("to_ray", "a Ray dataset: Ray"),
    ],
)
def test_missing_library_is_named(table: frazil.Table, monkeypatch: pytest.MonkeyPatch, method: str, what: str) -> None:
    monkeypatch.setattr("frazil.table.hand_offs.find_spec", lambda name: None)
    with pytest.raises(InvalidRequestError, match=f"Cannot make {what} is not installed") as refused:
        getattr(table.scan(), method)()
    assert "pip install" in str(refused.value)


# --- queries that prune

DUCKDB_FILTERS = [
    "x > 1",
    "x = 'nan'::double",
    "x < 1",
    "x <> 1.5",
    "x is null",
    "dec >= 4.5",
    "ts < '2024-01-03 00:00:00+00'",
    "n >= '2024-01-18'",
    "d = '2024-01-05'",
    "st.a = 3",
    "flag",
    "not flag",
    "u = '00000000-0000-0000-0000-000000000003'",
    "id in (1, 2, 3)",
    "id not in (1, 2)",
    "s in ('a', 'c')",
    "s like 'a%'",
    "s is not null and (id = 1 or id = 3)",
    "f = 'abc'::blob",
]


@pytest.mark.parametrize("condition", DUCKDB_FILTERS)
def test_duckdb_query_returns_the_same_rows_as_without_frazil(table: frazil.Table, condition: str) -> None:
    with duckdb.connect() as connection:
        wanted = connection.from_arrow(table.scan().to_arrow()).filter(condition).project("id")
        found = table.scan().to_duckdb(connection).filter(condition).project("id")
        assert ids(found) == ids(wanted)


POLARS_FILTERS = [
    pl.col("id") > 15,
    pl.col("x") > 1,
    pl.col("x").is_nan(),
    pl.col("x") == NAN,
    pl.col("x") != 1.5,
    pl.col("id") > pl.col("x"),
    pl.col("s").is_in(["a"]),
    ~pl.col("s").is_in(["a"]),
    pl.col("s").is_null(),
    pl.col("s").str.starts_with("a"),
    pl.col("dec") > 3,
    pl.col("d") == datetime.date(2024, 1, 5),
    pl.col("ts") < datetime.datetime(2024, 1, 3, tzinfo=UTC),
    pl.col("flag"),
    ~pl.col("flag"),
    pl.col("st").struct.field("a") == 3,
]


@pytest.mark.parametrize("condition", POLARS_FILTERS, ids=str)
def test_lazy_frame_equals_eager_frame(table: frazil.Table, condition: Any) -> None:
    wanted = table.scan().to_polars().filter(condition).select("id")
    found = table.scan().to_polars_lazy().filter(condition).select("id").collect()
    assert found.equals(wanted)


def test_queries_read_only_matching_files(table: frazil.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    with duckdb.connect() as connection:
        assert ids(table.scan().to_duckdb(connection).filter("id > 16").project("id")) == [17, 18, 19]
    assert len(watched.paths) == 1
    watched.paths.clear()
    lazy = table.scan().to_polars_lazy().filter(pl.col("id") == 3).select("s")
    assert watched.paths == set()
    assert lazy.collect().rows() == [("a",)]
    assert len(watched.paths) == 1
    watched.paths.clear()
    assert (
        table.scan().to_dataset().to_table(filter=pc.field("ts") < datetime.datetime(2024, 1, 2, tzinfo=UTC)).num_rows
    )
    assert len(watched.paths) == 1


def test_relation_keeps_its_snapshot(lake: Lake) -> None:
    table = lake.create_table("db.pinned", "id bigint")
    table.append([{"id": 1}])
    with duckdb.connect() as connection:
        relation = table.scan().to_duckdb(connection)
        table.append([{"id": 2}])
        assert ids(relation) == [1]


# --- the dataset


def test_dataset_counts_from_metadata(table: frazil.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    dataset = table.scan().to_dataset()
    assert isinstance(dataset, pads.Dataset)
    assert dataset.count_rows() == 20
    assert dataset.scanner(columns=[]).to_table().num_rows == 20
    assert watched.paths == set()
    assert dataset.count_rows(filter=pc.field("id") + 0 > 16) == 3


def test_dataset_has_the_requested_column_order(table: frazil.Table) -> None:
    dataset = table.scan(columns=["st.a", "_file", "id"]).to_dataset()
    assert dataset.schema.names == ["st", "_file", "id"]
    rows = dataset.to_table(columns=["id", "st"], filter=pc.field("id") < 2)
    assert rows.to_pylist() == [{"id": 0, "st": {"a": 0}}, {"id": 1, "st": {"a": 1}}]
    assert dataset.head(3, columns=["_file"]).num_rows == 3
    made = dataset.to_table(columns={"next": pc.field("id") + 1}, filter=pc.field("_file") != "")
    assert sorted(made.column("next").to_pylist()) == list(range(1, 21))
    with pytest.raises(FieldNotFoundError, match="Cannot find column 'nobody': the scan shows st, _file, id"):
        dataset.to_table(columns=["nobody"])


def test_limit_is_applied_before_a_pushed_filter(table: frazil.Table) -> None:
    scan = table.scan(limit=5)
    first = scan.to_arrow().column("id").to_pylist()
    dataset = scan.to_dataset()
    assert ids(dataset.to_table(filter=pc.field("id") > first[2])) == first[3:]
    assert dataset.count_rows(filter=pc.field("id") > first[2]) == 2


def test_filtered_dataset_can_be_filtered_further(table: frazil.Table) -> None:
    dataset = table.scan("id > 3").to_dataset().filter(pc.field("id") < 8)
    assert ids(dataset.to_table(filter=pc.field("id") != 5)) == [4, 6, 7]
    with pytest.raises(UnsupportedError, match="Cannot filter the dataset by"):
        dataset.filter(pc.field("id") + 1 > 3)


def test_passing_to_arrow_directly_is_refused_rather_than_empty(table: frazil.Table, tmp_path: Any) -> None:
    dataset = table.scan().to_dataset()
    with pytest.raises(UnsupportedError, match="Cannot read a scan's dataset from inside Arrow"):
        pads.Scanner.from_dataset(dataset).to_table()
    with pytest.raises(UnsupportedError, match="from inside Arrow"):
        pads.dataset([dataset, dataset]).to_table()
    pads.write_dataset(dataset, tmp_path / "out", format="parquet")
    assert pads.dataset(tmp_path / "out").count_rows() == 20


# --- the same back in


@pytest.mark.parametrize("form", ["scan", "table", "polars", "lazy", "pandas", "duckdb", "dataset", "reader"])
def test_rows_round_trip_through_other_libraries(lake: Lake, table: frazil.Table, form: str) -> None:
    copy = lake.create_table(f"back.{form}", DDL)
    scan = table.scan("id < 6")
    with duckdb.connect() as connection:
        data: Any = {
            "scan": lambda: scan,
            "table": lambda: table,
            "polars": scan.to_polars,
            "lazy": lambda: scan.to_polars_lazy().filter(pl.col("id") < 4),
            "pandas": scan.to_pandas,
            "duckdb": lambda: scan.to_duckdb(connection),
            "dataset": scan.to_dataset,
            "reader": scan.to_reader,
        }[form]()
        copy.append(data)
    wanted = {"table": 20, "lazy": 4}.get(form, 6)
    found = copy.scan().to_arrow().sort_by("id").to_pylist()
    assert len(found) == wanted
    for one, source in zip(found, ROWS, strict=False):
        if form != "pandas":  # to pandas NaN and null are one
            assert str(one.pop("x")) == str(source["x"])
        one.pop("x", None)
        assert one == {**{name: value for name, value in source.items() if name != "x"}, "m": [("k", source["id"])]}
