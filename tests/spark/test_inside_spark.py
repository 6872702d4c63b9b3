"""What fails where lakes are beside Spark and not inside it: each is a use that Spark's own tables know."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import frazil

ALL = [(1, "a"), (2, "b"), (3, "a")]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(one) for one in frame.collect()), key=repr)


@pytest.fixture
def filled(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    spark.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
    spark.sql("insert into lake.db.t values (1, 'a'), (2, 'b'), (3, 'a')")
    yield spark
    spark.sql("use spark_catalog.default")
    spark.catalog.clearCache()
    frazil.detach(spark)


@pytest.mark.parametrize("comment", ["/* c */ ", "-- c\n", "/* lake.db.x */ -- d\n"])
def test_a_comment_before_a_temporary_view_changes_nothing(filled: SparkSession, comment: str) -> None:
    filled.sql(f"{comment}create or replace temporary view y as select * from lake.db.t")
    assert rows(filled.sql("select * from y")) == ALL
    filled.sql("insert into lake.db.t values (4, 'd')")
    assert rows(filled.sql(f"{comment}select count(*) from y")) == [(4,)]
    filled.sql("drop view y")


def test_batches_of_a_stream_are_written_as_every_tutorial_does(filled: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    filled.range(10, 12).selectExpr("id", "'s' kind").coalesce(1).write.mode("append").json(f"{tmp_path}/in")
    stream = filled.readStream.schema("id bigint, kind string").json(f"{tmp_path}/in")

    def write(batch: Any, _: int) -> None:
        batch.writeTo("lake.db.t").append()
        batch.createOrReplaceTempView("news")
        batch.sparkSession.sql(
            "merge into lake.db.t t using news s on t.id = s.id when matched then update set kind = 'm'"
        )

    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{tmp_path}/state")
    query.trigger(availableNow=True).start().awaitTermination(120)
    assert rows(filled.table("lake.db.t")) == [*ALL[:1], (10, "m"), (11, "m"), *ALL[1:]]


def test_sessions_of_a_session_have_its_lakes(filled: SparkSession) -> None:
    other = filled.newSession()
    assert rows(other.table("lake.db.t")) == ALL
    other.sql("insert into lake.db.t values (4, 'd')")
    other.sql("delete from lake.db.t where id = 1")
    assert rows(filled.sql("select id from lake.db.t")) == [(2,), (3,), (4,)]
    other.sql("use lake.db")
    assert rows(other.sql("select count(*) from t")) == [(3,)]
    assert filled.catalog.currentCatalog() == "spark_catalog"
    (called,) = other.sql("call lake.system.rewrite_data_files('db.t')").collect()
    assert "rewritten_data_files_count" in called.asDict()


def test_what_is_observed_of_rows_that_are_written_is_told(filled: SparkSession) -> None:
    seen = Observation("m")
    frame = filled.range(5).selectExpr("id", "'o' kind").observe(seen, F.count(F.lit(1)).alias("n"))
    frame.writeTo("lake.db.t").append()
    waiting: Any = seen
    jvm = waiting._jvm
    seconds = jvm.scala.concurrent.duration.Duration.apply(60, "s")
    getattr(getattr(jvm.scala.concurrent, "Await$"), "MODULE$").ready(waiting._jo.future(), seconds)
    assert seen.get == {"n": 5}


def test_a_missing_table_is_an_analysis_exception_with_its_condition(filled: SparkSession) -> None:
    for use in (
        lambda: filled.table("lake.db.nope").collect(),
        lambda: filled.sql("select * from lake.db.nope"),
        lambda: filled.range(1).writeTo("lake.db.nope").append(),
        lambda: filled.sql("delete from lake.db.nope"),
        lambda: filled.sql("drop table lake.db.nope"),
    ):
        with pytest.raises(AnalysisException) as caught:
            use()
        assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        assert caught.value.getSqlState() == "42P01"
    with pytest.raises(AnalysisException) as caught:
        filled.sql("create table lake.db.t (id int)")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert caught.value.getSqlState() == "42P07"
    with pytest.raises(AnalysisException) as caught:
        filled.sql("show tables in lake.nope")
    assert caught.value.getCondition() == "SCHEMA_NOT_FOUND"


def test_the_catalog_api_knows_lakes(filled: SparkSession) -> None:
    catalog = filled.catalog
    found = catalog.getTable("lake.db.t")
    assert (found.name, found.catalog, found.namespace, found.isTemporary) == ("t", "lake", ["db"], False)
    assert catalog.getDatabase("lake.db").name == "db"
    assert "lake" in [one.name for one in catalog.listCatalogs()]
    assert not catalog.isCached("lake.db.t")
    catalog.cacheTable("lake.db.t")
    assert catalog.isCached("lake.db.t")
    assert rows(filled.table("lake.db.t")) == ALL
    catalog.uncacheTable("lake.db.t")
    assert not catalog.isCached("lake.db.t")
    catalog.createTable("lake.db.made", schema=filled.table("lake.db.t").schema, source="iceberg")
    assert filled.table("lake.db.made").columns == ["id", "kind"]
    assert catalog.tableExists("lake.db.made")
    catalog.setCurrentCatalog("lake")
    catalog.setCurrentDatabase("db")
    assert "upper" in [one.name for one in catalog.listFunctions()]
    assert ("lake",) in rows(filled.sql("show catalogs"))


def test_tables_of_a_lake_without_a_namespace_are_none(filled: SparkSession) -> None:
    assert rows(filled.sql("show tables in lake")) == []
    assert ("db",) in rows(filled.sql("show namespaces in lake"))


@pytest.mark.parametrize("write", ["insert", "delete", "update", "merge", "writeTo", "truncate"])
def test_what_is_cached_does_not_outlive_a_write(filled: SparkSession, write: str) -> None:
    filled.sql("cache table lake.db.t")
    filled.sql("create or replace temporary view over as select kind, count(*) n from lake.db.t group by kind")
    filled.catalog.cacheTable("over")
    assert filled.table("lake.db.t").count() == 3
    statements = {
        "insert": "insert into lake.db.t values (4, 'd')",
        "delete": "delete from lake.db.t where id = 1",
        "update": "update lake.db.t set kind = 'z' where id = 1",
        "merge": "merge into lake.db.t t using (select 1L id) s on t.id = s.id when matched then delete",
        "truncate": "truncate table lake.db.t",
    }
    if write == "writeTo":
        filled.range(9, 10).selectExpr("id", "'w' kind").writeTo("lake.db.t").append()
    else:
        filled.sql(statements[write])
    shown = rows(filled.table("lake.db.t"))
    expected = {
        "insert": [(1, "a"), (2, "b"), (3, "a"), (4, "d")],
        "delete": ALL[1:],
        "update": [(1, "z"), *ALL[1:]],
        "merge": ALL[1:],
        "writeTo": [*ALL, (9, "w")],
        "truncate": [],
    }[write]
    assert shown == expected
    assert sum(one.n for one in filled.table("over").collect()) == len(expected)
    filled.catalog.dropTempView("over")


def test_permanent_views_of_sparks_own_catalog_read_lakes(filled: SparkSession) -> None:
    filled.sql("create view default.over_lake as select kind, count(*) n from lake.db.t group by kind")
    try:
        assert rows(filled.table("default.over_lake")) == [("a", 2), ("b", 1)]
        filled.sql("insert into lake.db.t values (4, 'b')")
        assert rows(filled.newSession().table("default.over_lake")) == [("a", 2), ("b", 2)]
    finally:
        filled.sql("drop view default.over_lake")


def test_names_of_a_temporary_view_are_bound_where_it_is_made(filled: SparkSession) -> None:
    filled.sql("use lake")
    filled.sql("create temporary view bound as select * from db.t")
    filled.sql("use spark_catalog.default")
    assert rows(filled.table("bound")) == ALL
    filled.catalog.dropTempView("bound")


def test_the_default_catalog_may_be_a_lake(filled: SparkSession) -> None:
    filled.conf.set("spark.sql.defaultCatalog", "lake")
    try:
        other = filled.newSession()
        other.conf.set("spark.sql.defaultCatalog", "lake")
        assert other.catalog.currentCatalog() == "lake"
        assert rows(other.sql("select * from db.t")) == ALL
        other.sql("insert into db.t values (4, 'd')")
        assert other.table("db.t").count() == 4
    finally:
        filled.conf.unset("spark.sql.defaultCatalog")


def test_settings_that_a_jar_left_give_way(spark: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id bigint")
    spark.conf.set("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
    try:
        frazil.attach(spark, lake)
        assert spark.table("lake.db.t").count() == 0
        spark.sql("insert into lake.db.t values (1)")
        spark.sql("update lake.db.t set id = 2")
        assert rows(spark.table("lake.db.t")) == [(2,)]
    finally:
        frazil.detach(spark)
        spark.conf.unset("spark.sql.catalog.lake.type")


def test_a_misspelt_lake_is_said(filled: SparkSession) -> None:
    words = "there is no lake 'lak'; attached are: lake"
    for text in (
        "select * from lak.db.t",
        "insert into lak.db.t values (1)",
        "delete from lak.db.t",
        "drop table lak.db.t",
    ):
        with pytest.raises(AnalysisException, match=words):
            filled.sql(text)
    with pytest.raises(AnalysisException, match=words):
        filled.table("lak.db.t")
    with pytest.raises(AnalysisException, match=words):
        filled.range(1).writeTo("lak.db.t").append()


@pytest.mark.parametrize(
    "statement",
    [
        "insert into lake.db.t values (9, 'x')",
        "delete from lake.db.t where id = 1",
        "update lake.db.t set kind = 'x'",
        "merge into lake.db.t t using (select 1L id) s on t.id = s.id when matched then delete",
        "create table lake.db.planned as select * from lake.db.t",
        "call lake.system.rewrite_data_files('db.t')",
        "drop table lake.db.t",
    ],
)
def test_to_explain_is_not_to_run(filled: SparkSession, lake: frazil.Lake, statement: str) -> None:
    before = lake.table("db.t").metadata_location
    for mode in ("", "extended ", "formatted "):
        ((plan,),) = filled.sql(f"explain {mode}{statement}").collect()
        assert plan
    assert lake.table("db.t").metadata_location == before
    assert not lake.table_exists("db.planned")


def test_a_file_has_its_own_name(filled: SparkSession, lake: frazil.Lake) -> None:
    known = set(lake.table("db.t").inspect.files().column("file_path").to_pylist())
    for expression in ("_file",):
        shown = {
            one[0].replace("file:///", "file:/") for one in filled.sql(f"select {expression} from lake.db.t").collect()
        }
        assert shown == {one.replace("file:///", "file:/") for one in known}, expression


def test_one_query_inserts_into_several_tables(filled: SparkSession) -> None:
    filled.sql("create table lake.db.u (id bigint, kind string)")
    filled.sql(
        """from lake.db.t insert into lake.db.u select id, kind where kind = 'a'
           insert into lake.db.u select id + 10, kind where kind = 'b'"""
    )
    assert rows(filled.table("lake.db.u")) == [(1, "a"), (12, "b"), (3, "a")]


def test_names_are_spelt_by_expressions(filled: SparkSession) -> None:
    assert rows(filled.sql("select * from identifier('lake.db.' || 't')")) == ALL
    assert rows(filled.sql("select * from identifier(:c || '.db.t')", {"c": "lake"})) == ALL


def test_errors_name_what_the_user_wrote(filled: SparkSession) -> None:
    for text in (
        "delete from lake.db.t where nocol = 1",
        "update lake.db.t set kind = nocol",
        "merge into lake.db.t t using (select 1L id) s on t.nocol = s.id when matched then delete",
    ):
        with pytest.raises(AnalysisException, match="nocol") as caught:
            filled.sql(text)
        assert "__frazil" not in str(caught.value)
        assert "`source`" not in str(caught.value)


@pytest.mark.timeout(600)
def test_sessions_are_stopped_and_started_again_many_times(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import frazil
        from pyspark.sql import SparkSession

        with frazil.connect({str(tmp_path / "lake")!r}) as lake:
            lake.create_namespace("db")
            lake.create_table("db.t", "id bigint")
            for turn in range(5):
                spark = (
                    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()
                )
                frazil.attach(spark, lake)
                spark.sql("insert into lake.db.t values (" + str(turn) + ")")
                spark.sql("update lake.db.t set id = id where id = 0")
                assert spark.table("lake.db.t").count() == turn + 1, turn
                if turn % 2:
                    frazil.detach(spark)
                spark.stop()
        print("done")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=500, cwd=tmp_path, check=False
    )
    assert done.stdout.strip().endswith("done"), done.stderr[-3000:]


def test_a_lake_is_listed_before_its_first_use(spark: SparkSession, lake: frazil.Lake) -> None:
    frazil.attach(spark, lake, "unused")
    try:
        assert ("unused",) in [tuple(row) for row in spark.sql("show catalogs").collect()]
        assert "unused" in [one.name for one in spark.catalog.listCatalogs()]
    finally:
        frazil.detach(spark)
