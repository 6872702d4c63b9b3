"""Several lakes in one session, what goes away under a statement, errors, and what a session is after `detach`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.spark.jvm.door import _field


@pytest.fixture
def two(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> Iterator[SparkSession]:
    """A session with two lakes, one of them under two names."""
    with frazil.connect(tmp_path / "pond") as pond:
        pond.create_namespace("db")
        frazil.attach(spark, lake)
        frazil.attach(spark, pond, "pond")
        frazil.attach(spark, lake, "same")
        spark.sql("create table lake.db.t (id bigint, kind string)")
        spark.sql("create table pond.db.t (id bigint, kind string)")
        spark.sql("insert into lake.db.t values (1, 'a'), (2, 'b')")
        spark.sql("insert into pond.db.t values (2, 'p'), (3, 'q')")
        yield spark
        frazil.detach(spark)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_tables_of_two_lakes_join_in_one_statement(two: SparkSession) -> None:
    joined = "select l.id, l.kind, p.kind from lake.db.t l join pond.db.t p on l.id = p.id"
    assert rows(two.sql(joined)) == [(2, "b", "p")]
    two.sql(
        """merge into lake.db.t t using pond.db.t s on t.id = s.id
           when matched then update set kind = s.kind when not matched then insert *"""
    )
    assert rows(two.table("lake.db.t")) == [(1, "a"), (2, "p"), (3, "q")]
    two.sql("create table pond.db.copied as select * from lake.db.t where id in (select id from pond.db.t)")
    assert rows(two.table("pond.db.copied")) == [(2, "p"), (3, "q")]
    two.sql("insert overwrite pond.db.t select id + 10, kind from lake.db.t")
    assert rows(two.table("pond.db.t")) == [(11, "a"), (12, "p"), (13, "q")]
    two.sql("delete from lake.db.t where exists (select 1 from pond.db.t p where p.id - 10 = t.id and p.id > 11)")
    assert rows(two.table("lake.db.t")) == [(1, "a")]


def test_lake_attached_under_two_names_is_one_lake(two: SparkSession, lake: frazil.Lake) -> None:
    two.sql("insert into lake.db.t select id + 10, kind from same.db.t")
    two.sql("update same.db.t set kind = 'z' where id = 1")
    assert rows(two.table("lake.db.t")) == [(1, "z"), (2, "b"), (11, "a"), (12, "b")]
    two.sql("merge into lake.db.t t using same.db.t s on t.id = s.id + 10 when matched then update set kind = s.kind")
    assert rows(two.table("same.db.t")) == [(1, "z"), (2, "b"), (11, "z"), (12, "b")]
    assert lake.table("db.t").scan().count() == 4


@pytest.mark.extended
def test_frame_keeps_reading_a_replaced_table(two: SparkSession, lake: frazil.Lake) -> None:
    frame = two.table("lake.db.t")
    two.sql("create or replace table lake.db.t (other int)")
    assert rows(frame) == [(1, "a"), (2, "b")]
    lake.drop_table("db.t")
    lake.create_table("db.t", "id string")
    assert rows(frame) == [(1, "a"), (2, "b")]
    assert two.table("lake.db.t").columns == ["id"]


def test_view_over_dropped_tables_names_them(two: SparkSession, lake: frazil.Lake) -> None:
    two.sql("create view lake.db.v as select id from lake.db.t")
    two.sql("create view pond.db.w as select id from lake.db.v")
    two.sql("create temporary view passing as select id from lake.db.t")
    two.sql("create view default.kept as select id from lake.db.t")
    try:
        lake.drop_table("db.t")
        for name in ("lake.db.v", "pond.db.w", "passing", "default.kept"):
            with pytest.raises(AnalysisException) as caught:
                two.table(name).collect()
            assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND", name
            assert "lake.db.t" in str(caught.value).replace("`", ""), name
        two.sql("create table lake.db.t as select 5L id")
        assert rows(two.table("pond.db.w")) == [(5,)]
    finally:
        two.sql("drop view if exists default.kept")
        two.catalog.dropTempView("passing")


@pytest.mark.extended
@pytest.mark.parametrize(
    "text",
    [
        "select nocol from lake.db.t",
        "select t.nocol from lake.db.t t",
        "select id from lake.db.t a join lake.db.t b on a.id = b.id",
        "insert into lake.db.t select 1L",
        "insert into lake.db.t (id, nocol) values (1, 'x')",
        "insert into lake.db.t values ('x', 'y')",
        "update lake.db.t set id = kind",
        "update lake.db.t set id = 'x'",
        "update lake.db.t set nocol = 1",
        "delete from lake.db.t where 1 / (id - 1) > 0",
        "delete from lake.db.t where cast(kind as int) = 1",
        "merge into lake.db.t t using pond.db.t s on t.id > 0 when matched then update set kind = s.kind",
        "merge into lake.db.t t using pond.db.t s on t.id = s.id when matched then update set nocol = 1",
        "merge into lake.db.t t using pond.db.t s on t.id = s.id when matched then update set id = cast(s.kind as int)",
        "merge into lake.db.t t using pond.db.t s on t.id = s.id when not matched then insert (id) values (s.nocol)",
    ],
)
def test_errors_name_the_query_and_no_frazil_internals(two: SparkSession, text: str) -> None:
    before = rows(two.table("lake.db.t"))
    with pytest.raises(PySparkException) as caught:
        two.sql(text).collect()
    assert "__frazil" not in str(caught.value)
    assert "frazil_" not in str(caught.value)
    assert rows(two.table("lake.db.t")) == before


def held(spark: SparkSession) -> dict[str, Any]:
    """Return what a session and its context hold that an `attach` could leave behind."""
    state = spark._jsparkSession.sessionState()
    analyzer, manager = state.analyzer(), state.catalogManager()
    experimental = spark._jsparkSession.experimental()

    def kinds(items: Any) -> list[str]:
        return [items.apply(at).getClass().getName() for at in range(items.size())]

    rules = ("hintResolutionRules", "extendedResolutionRules", "postHocResolutionRules")
    return {
        "settings": {key: value for key, value in spark.conf.getAll.items() if "frazil" in key or "catalog." in key},
        "context": sorted(key for key, _ in spark.sparkContext.getConf().getAll() if "catalog." in key),
        "catalogs": sorted(map(str, _field(manager, "catalogs").get(manager).keys().toList().mkString(",").split(","))),
        "current": str(manager.currentCatalog().name()),
        "rules": {name: kinds(_field(analyzer, name).get(analyzer)) for name in rules},
        "parser": str(state.sqlParser().getClass().getName()),
        "strategies": kinds(experimental.extraStrategies()),
        "optimizations": kinds(experimental.extraOptimizations()),
        "listeners": spark._jsparkSession.listenerManager().listListeners().__len__()
        if hasattr(spark._jsparkSession.listenerManager(), "listListeners")
        else None,
    }


def test_detach_restores_the_session(spark: SparkSession, lake: frazil.Lake) -> None:
    """But for one rule, which frames need that outlive their lake; it is there once, however often one attaches."""
    # The first round compiles classes and starts the server of callbacks, which stay.
    frazil.attach(spark, lake)
    frazil.detach(spark)
    before = held(spark)
    threads = threading.active_count()
    for turn in range(3):
        frazil.attach(spark, lake)
        frazil.attach(spark, lake, "again")
        spark.sql(f"create table lake.db.t{turn} as select 1 id")
        spark.sql("use again.db")
        spark.sql(f"delete from t{turn}")
        frame = spark.table(f"lake.db.t{turn}")
        frazil.detach(spark)
        assert frame.count() == 0
    assert held(spark) == before
    assert threading.active_count() <= threads
    found = [one for names in before["rules"].values() for one in names if one.startswith("frazil.")]
    assert found == ["frazil.rules.ShowHiddenColumns"]
    assert not [one for one in before["strategies"] + before["optimizations"] if one.startswith("frazil.")]
    assert not [key for key in before["settings"] if "lake" in key]
    with pytest.raises(AnalysisException):
        spark.sql("select * from lake.db.t0")
    with pytest.raises(AnalysisException):
        spark.newSession().sql("select * from lake.db.t0")
