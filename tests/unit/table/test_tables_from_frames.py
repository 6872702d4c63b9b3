"""Tables made of frames in one call: `create_table` with data, and `Lake.write`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.spec.snapshot import Operation

ROWS = [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}]
COLUMNS = {"id": [1, 2], "kind": ["a", "b"]}
FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS, index=[7, 8]),
    "Polars": lambda: pl.DataFrame(COLUMNS),
    "lazy Polars": lambda: pl.LazyFrame(COLUMNS),
    "Arrow table": lambda: pa.table(COLUMNS),
    "Arrow batch": lambda: pa.record_batch(COLUMNS),
    "Arrow reader": lambda: pa.table(COLUMNS).to_reader(),
    "DuckDB": lambda: duckdb.sql("select * from (values (1::bigint, 'a'), (2, 'b')) t(id, kind)"),
    "columns": lambda: COLUMNS,
    "rows": lambda: ROWS,
}


@pytest.fixture
def lake(tmp_path: Path) -> frazil.Lake:
    return frazil.connect(str(tmp_path / "wh"))


@pytest.mark.parametrize("kind", FRAMES)
def test_table_of_a_frame_has_its_columns_and_rows(lake: frazil.Lake, kind: str) -> None:
    table = lake.create_table("s.t", FRAMES[kind](), partition_by=["bucket(4, id)"], sort_by=["id desc"])
    assert [field.name for field in table.schema.fields] == ["id", "kind"]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS
    assert [snapshot.operation for snapshot in table.snapshots] == [Operation.APPEND]
    assert not table.spec.is_unpartitioned and table.sort_order.fields


@pytest.mark.parametrize("kind", FRAMES)
def test_table_of_a_frame_stays_empty_unless_it_is_to_be_filled(lake: frazil.Lake, kind: str) -> None:
    table = lake.create_table("s.t", FRAMES[kind](), fill=False)
    assert [field.name for field in table.schema.fields] == ["id", "kind"]
    assert table.current_snapshot is None


def test_rows_with_different_keys_make_a_column_for_each(lake: frazil.Lake) -> None:
    table = lake.create_table("s.t", [{"a": 1}, {"b": Decimal("1.50")}])
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": Decimal("1.50")}]


def test_nanoseconds_become_microseconds_unless_digits_are_lost(lake: frazil.Lake) -> None:
    moment = pa.array([1_700_000_000_000_000_000], pa.timestamp("ns"))
    assert lake.create_table("s.t", pa.table({"at": moment})).scan().to_arrow().to_pylist() == [
        {"at": datetime.datetime(2023, 11, 14, 22, 13, 20)}
    ]
    lossy = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(frazil.SchemaMismatchError, match="at"):
        lake.create_table("s.u", lossy)
    assert not lake.table_exists("s.u")
    assert lake.create_table("s.v", lossy, format_version=3).scan().to_arrow().column("at").type == pa.timestamp("ns")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"n": [None]}, "type unknown needs format version 3"),
        ([], "no columns"),
        (5, "of type builtins.int"),
        ({"a": [1], "b": [1, 2]}, "dict of columns"),
        ({"t": [datetime.timedelta(1)]}, "duration"),
        (iter(ROWS), "iterator"),
    ],
)
def test_data_that_makes_no_table_is_refused_and_leaves_none(lake: frazil.Lake, data: Any, reason: str) -> None:
    with pytest.raises(frazil.FrazilError, match=reason):
        lake.create_table("s.t", data)
    assert not lake.table_exists("s.t")


def test_table_whose_rows_fail_midway_is_not_created(lake: frazil.Lake, tmp_path: Path) -> None:
    def batches() -> Any:
        yield pa.record_batch(COLUMNS)
        raise OSError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.table(COLUMNS).schema, batches())
    with pytest.raises((frazil.FrazilError, OSError), match="the source broke"):
        lake.create_table("s.t", reader)
    assert not lake.table_exists("s.t")
    assert not list((tmp_path / "wh").rglob("*.parquet"))


def test_existing_table_is_returned_unchanged_if_it_may_exist(lake: frazil.Lake) -> None:
    lake.create_table("s.t", ROWS)
    assert len(lake.create_table("s.t", ROWS, exist_ok=True)) == 2
    with pytest.raises(frazil.TableAlreadyExistsError):
        lake.create_table("s.t", ROWS)


def test_write_creates_appends_and_overwrites(lake: frazil.Lake) -> None:
    assert len(lake.write("s.t", ROWS, partition_by=["kind"])) == 2
    assert len(lake.write("s.t", pd.DataFrame(COLUMNS))) == 4
    assert lake.write("s.t", ROWS[:1], mode="overwrite").scan().to_arrow().to_pylist() == ROWS[:1]
    with pytest.raises(frazil.TableAlreadyExistsError):
        lake.write("s.t", ROWS, mode="error")
    with pytest.raises(frazil.InvalidRequestError, match="in the mode"):
        lake.write("s.t", ROWS, mode="upsert")  # type: ignore[arg-type]
    with pytest.raises(frazil.InvalidRequestError, match="the table exists"):
        lake.write("s.t", ROWS, partition_by=["id"])
    assert len(lake.table("s.t")) == 1


def test_create_table_as_is_one_commit(lake: frazil.Lake) -> None:
    lake.create_table("s.t", ROWS)
    lake.sql("create table s.u as select id * 10 as n from s.t")
    table = lake.table("s.u")
    assert sorted(row["n"] for row in table.head()) == [10, 20]
    assert len(table.metadata.metadata_log) == 0
    with pytest.raises(frazil.FrazilError):
        lake.sql("create table s.v as select error('no') as n")
    assert not lake.table_exists("s.v")
