"""Tables that others drop while a statement runs: it is said, nothing is written anywhere, and no file is left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil

ROWS = "select id, gone(id) kind from range(0, 4, 1, 2)"
CHANGES = {
    "insert": f"insert into lake.db.t {ROWS}",
    "overwrite": f"insert overwrite lake.db.t {ROWS}",
    "replace where": f"insert into lake.db.t replace where kind = 'x' {ROWS}",
    "merge": f"merge into lake.db.t t using ({ROWS}) s on t.id = s.id "
    "when matched then update set kind = s.kind when not matched then insert *",
    "update": "update lake.db.t set kind = gone(id)",
    "replace": f"replace table lake.db.t as {ROWS}",
}


@pytest.fixture
def filled(attached: SparkSession) -> Iterator[SparkSession]:
    attached.sql("create table lake.db.t (id bigint, kind string)")
    attached.sql("insert into lake.db.t values (1, 'a'), (2, 'b')")
    yield attached
    attached.sql("drop temporary function if exists gone")


def go(spark: SparkSession, folder: Path, other: str = "") -> None:
    """Make a function of SQL that drops the table where it is called first, and may give its name to another one.

    It runs in Python's workers, which have nothing of frazil: so it changes the catalog's rows.
    """
    mark, database = str(folder.parent / "gone"), str(folder / "catalog.db")

    def gone(_: int) -> str:
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return "x"
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("DELETE FROM iceberg_tables WHERE table_name = 't'")
            connection.execute("UPDATE iceberg_tables SET table_name = 't' WHERE table_name = ?", (other,))
            connection.commit()
        return "x"

    spark.udf.register("gone", F.udf(gone, "string", useArrow=False).asNondeterministic())


def data_files(folder: Path) -> set[Path]:
    return {one for one in folder.rglob("*") if "/data/" in str(one) and one.is_file() and one.suffix != ".crc"}


@pytest.mark.parametrize("change", CHANGES)
def test_table_dropped_during_a_statement_is_reported_and_leaves_no_files(
    filled: SparkSession, lake: frazil.Lake, tmp_path: Path, change: str
) -> None:
    before = data_files(tmp_path)
    go(filled, tmp_path / "lake")
    with pytest.raises(PySparkException) as caught:
        filled.sql(CHANGES[change]).collect()
    assert (tmp_path / "gone").exists()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert caught.value.getSqlState() == "42P01"
    assert not lake.table_exists("db.t")
    assert data_files(tmp_path) == before


@pytest.mark.parametrize("change", CHANGES)
def test_recreated_table_receives_nothing_of_an_earlier_statement(
    filled: SparkSession, lake: frazil.Lake, tmp_path: Path, change: str
) -> None:
    lake.create_table("db.other", "id bigint, kind string").append([{"id": 9, "kind": "other"}])
    before = data_files(tmp_path)
    go(filled, tmp_path / "lake", "other")
    with pytest.raises(PySparkException, match=r"lake\.db\.t|db\.t"):
        filled.sql(CHANGES[change]).collect()
    assert lake.table("db.t").scan().to_arrow().to_pylist() == [{"id": 9, "kind": "other"}]
    assert data_files(tmp_path) == before


def test_query_reads_a_table_dropped_since_it_was_planned(
    filled: SparkSession, lake: frazil.Lake, tmp_path: Path
) -> None:
    go(filled, tmp_path / "lake")
    filled.sql("create table lake.db.made as select id, gone(id) kind from lake.db.t")
    assert not lake.table_exists("db.t")
    assert lake.table("db.made").scan().count() == 2
    frame = filled.table("lake.db.made")
    lake.drop_table("db.made", purge=True)
    with pytest.raises(PySparkException):
        frame.collect()
