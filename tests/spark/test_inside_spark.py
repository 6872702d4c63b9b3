"""What fails where lakes are beside Spark and not inside it: each is a use that Spark's own tables know."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.sessions.remembered import REMEMBERED
from frazil.spark.jvm import door
from frazil.spark.jvm.private_names import incompatible_spark_error

ALL = [(1, "a"), (2, "b"), (3, "a")]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(one) for one in frame.collect()), key=repr)


@pytest.mark.parametrize("comment", ["/* c */ ", "-- c\n", "/* lake.db.x */ -- d\n"])
def test_comment_before_a_temporary_view_is_ignored(filled: SparkSession, comment: str) -> None:
    filled.sql(f"{comment}create or replace temporary view y as select * from lake.db.t")
    assert rows(filled.sql("select * from y")) == ALL
    filled.sql("insert into lake.db.t values (4, 'd')")
    assert rows(filled.sql(f"{comment}select count(*) from y")) == [(4,)]
    filled.sql("drop view y")


@pytest.mark.extended
def test_streaming_batches_are_written_like_in_tutorials(filled: SparkSession, tmp_path: Path) -> None:
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


@pytest.mark.extended
def test_new_sessions_share_lakes(filled: SparkSession) -> None:
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


def test_observation_metrics_are_reported_for_writes(filled: SparkSession) -> None:
    seen = Observation("m")
    frame = filled.range(5).selectExpr("id", "'o' kind").observe(seen, F.count(F.lit(1)).alias("n"))
    frame.writeTo("lake.db.t").append()
    waiting: Any = seen
    jvm = waiting._jvm
    seconds = jvm.scala.concurrent.duration.Duration.apply(60, "s")
    getattr(getattr(jvm.scala.concurrent, "Await$"), "MODULE$").ready(waiting._jo.future(), seconds)
    assert seen.get == {"n": 5}


def test_missing_table_raises_an_analysis_exception_with_its_condition(filled: SparkSession) -> None:
    for use in (
        lambda: filled.table("lake.db.nope").collect(),
        lambda: filled.sql("select * from lake.db.nope"),
        lambda: filled.range(1).writeTo("lake.db.nope").append(),
        lambda: filled.sql("delete from lake.db.nope"),
        lambda: filled.sql("drop table lake.db.nope"),
    ):
        with pytest.raises(AnalysisException, match=r"^\[TABLE_OR_VIEW_NOT_FOUND\] ") as caught:
            use()
        assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        assert caught.value.getSqlState() == "42P01"
    with pytest.raises(AnalysisException) as caught:
        filled.sql("create table lake.db.t (id int)")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert caught.value.getSqlState() == "42P07"
    for text in ("show tables in lake.nope", "show table extended in lake.nope like '*'"):
        with pytest.raises(AnalysisException, match=r"^\[SCHEMA_NOT_FOUND\] ") as caught:
            filled.sql(text)
        assert caught.value.getCondition() == "SCHEMA_NOT_FOUND"


def test_catalog_api_lists_lakes(filled: SparkSession) -> None:
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


def test_show_tables_without_a_namespace_is_empty(filled: SparkSession) -> None:
    assert rows(filled.sql("show tables in lake")) == []
    assert ("db",) in rows(filled.sql("show namespaces in lake"))


@pytest.mark.extended
@pytest.mark.parametrize("write", ["insert", "delete", "update", "merge", "writeTo", "truncate"])
def test_cache_is_invalidated_by_a_write(filled: SparkSession, write: str) -> None:
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


@pytest.mark.extended
def test_permanent_views_of_the_spark_catalog_read_lakes(filled: SparkSession) -> None:
    filled.sql("create view default.over_lake as select kind, count(*) n from lake.db.t group by kind")
    try:
        assert rows(filled.table("default.over_lake")) == [("a", 2), ("b", 1)]
        filled.sql("insert into lake.db.t values (4, 'b')")
        assert rows(filled.newSession().table("default.over_lake")) == [("a", 2), ("b", 2)]
    finally:
        filled.sql("drop view default.over_lake")


@pytest.mark.extended
def test_temporary_view_names_are_bound_at_creation(filled: SparkSession) -> None:
    filled.sql("use lake")
    filled.sql("create temporary view bound as select * from db.t")
    filled.sql("use spark_catalog.default")
    assert rows(filled.table("bound")) == ALL
    filled.catalog.dropTempView("bound")


@pytest.mark.extended
def test_lake_can_be_the_default_catalog(filled: SparkSession) -> None:
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


LEFT_BY_A_JAR: dict[str, Any] = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
    "spark.sql.catalog.spark_catalog.type": "hive",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.defaultCatalog": "lake",
}


def settings_of(spark: SparkSession) -> dict[str, str | None]:
    return {key: spark.conf.get(key, None) for key in LEFT_BY_A_JAR}


def new_session(spark: SparkSession, settings: dict[str, Any]) -> SparkSession:
    """A session of its own that begins with settings."""
    if pyspark.__version__ >= "4.2":
        return SparkSession.builder.config(map=settings).create()
    jvm: Any = spark._jvm
    return SparkSession(
        spark.sparkContext,
        jvm.org.apache.spark.sql.classic.SparkSession(spark._jsparkSession.sparkContext(), settings),
    )


@pytest.mark.extended
@pytest.mark.parametrize("default", [True, False])
def test_session_started_with_jar_settings_works_with_lakes_and_restores_them(
    spark: SparkSession, lake: frazil.Lake, *, default: bool
) -> None:
    left: dict[str, Any] = {
        key: value for key, value in LEFT_BY_A_JAR.items() if default or key != "spark.sql.defaultCatalog"
    }
    session = new_session(spark, left)
    before = settings_of(session)
    table = "db.t" if default else "lake.db.t"
    for _ in range(2):
        # Cells of notebooks run again.
        frazil.attach(session, lake)
        frazil.attach(session, lake)
        for one in (session, session.newSession()):
            one.sql(f"create table {table} (id bigint)")
            one.sql(f"insert into {table} values (1), (2)")
            one.sql(f"update {table} set id = 3 where id = 2")
            one.range(5, 6).writeTo(table).append()
            assert rows(one.table(table)) == rows(one.sql("select * from lake.db.t")) == [(1,), (3,), (5,)]
            assert rows(one.sql("select current_catalog()")) == [("lake" if default else "spark_catalog",)]
            assert one.sql("show databases in spark_catalog").count()
            one.sql(f"drop table {table}")
        frazil.detach(session)
        assert settings_of(session) == before
        assert settings_of(session.newSession()) == before
    assert spark.sparkContext.getConf().get("spark.sql.catalog.lake") is None


@pytest.mark.extended
@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="before Spark 4.2 a builder creates sessions on Connect alone")
def test_builder_session_can_use_a_lake_as_default(spark: SparkSession, tmp_path: Path) -> None:
    session = frazil.session(tmp_path / "other").config(map=LEFT_BY_A_JAR).create()
    try:
        session.sql("create namespace db")
        session.sql("create table db.t as select 7 id")
        assert rows(session.table("lake.db.t")) == rows(session.newSession().table("db.t")) == [(7,)]
        session.sql("use spark_catalog.default")
        session.sql("use lake.db")
        assert rows(session.table("t")) == [(7,)]
    finally:
        frazil.detach(session)


def test_unexpected_errors_while_reading_a_statement_are_reported(filled: SparkSession) -> None:
    # Warnings are errors in tests.
    with pytest.raises(PySparkException, match=r"Cannot parse: UserWarning: char\(n\) and varchar\(n\) are string"):
        filled.sql("create table lake.db.lengths (a varchar(3))")


def test_missing_spark_internal_is_reported_by_name(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    lacks: list[tuple[str, Callable[[], Any]]] = [
        ("jvm.org.apache.spark.sql.NoSuchRelation", lambda: jvm.org.apache.spark.sql.NoSuchRelation(1)),
        ("noSuchPlan", lambda: spark._jsparkSession.noSuchPlan(1)),
        ("noSuchRules", lambda: door._field(spark._jsparkSession, "noSuchRules")),
        ("NO_SUCH_NAME", lambda: jvm.org.apache.spark.sql.SparkSession.NO_SUCH_NAME),
    ]
    for name, ask in lacks:
        with pytest.raises((TypeError, AttributeError, Py4JError)) as caught:
            ask()
        error = incompatible_spark_error("attach a lake", caught.value)
        assert isinstance(error, frazil.UnsupportedError)
        assert re.match(rf"Cannot attach a lake with Spark 4\S+: it lacks \S*{re.escape(name)}$", error.message)
        assert "Use a newer frazil" in str(error)


def test_misspelt_lake_is_reported(filled: SparkSession) -> None:
    words = "no lake 'lak' is attached; attached are: lake"
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


def test_planning_errors_give_the_position_in_the_query(filled: SparkSession, lake: frazil.Lake) -> None:
    before = "select count(*)\nfrom lake.db.t a\n  join "
    with pytest.raises(AnalysisException) as caught:
        filled.sql(f"{before}lak.db.t b on a.id = b.id")
    assert "no lake 'lak' is attached" in str(caught.value)
    assert "== SQL (line 3, position 8) ==\n  join lak.db.t b on" in str(caught.value)
    assert "^^^^^^^^" in str(caught.value)
    broken = lake.create_table("db.broken", "id bigint")
    Path(unquote(str(broken.metadata_location)).removeprefix("file://")).write_text("{")
    with pytest.raises(PySparkException, match="metadata") as failed:
        filled.sql(f"{before}lake.db.broken b on a.id = b.id")
    assert "== SQL (line 3, position 8) ==" in str(failed.value)
    with pytest.raises(PySparkException, match="metadata"):
        filled.table("lake.db.broken")
    # A statement that is refused as a whole says its own text to nobody.
    with pytest.raises(PySparkException) as refused:
        filled.sql("alter table lake.db.t alter column id type string")
    assert "== SQL" not in str(refused.value)


def test_lake_names_are_case_sensitive(filled: SparkSession, lake: frazil.Lake) -> None:
    for text in (
        "select * from LAKE.DB.T",
        "insert into LAKE.DB.T values (1, 'a')",
        "delete from LAKE.DB.T",
        "create table LAKE.DB.U (id int)",
        "alter table LAKE.DB.T add column x int",
        "describe LAKE.DB.T",
        "drop table LAKE.DB.T",
    ):
        with pytest.raises(AnalysisException, match="no lake 'LAKE' is attached; attached are: lake"):
            filled.sql(text)
    for text in ("select * from lake.DB.T", "delete from lake.db.T", "drop table lake.DB.t"):
        with pytest.raises(AnalysisException) as caught:
            filled.sql(text)
        assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert lake.list_tables("db") == [("db", "t")]


@pytest.mark.extended
def test_user_threads_see_the_lakes(filled: SparkSession, lake: frazil.Lake) -> None:
    failed: list[BaseException] = []
    seen: list[int] = []

    def work(at: int) -> None:
        try:
            filled.sql(f"insert into lake.db.t values ({at}, 'thread')")
            filled.createDataFrame([(at + 1, "thread")], "id bigint, kind string").writeTo("lake.db.t").append()
            filled.sql(f"delete from lake.db.t where id = {at}")
            seen.append(filled.table("lake.db.t").where(f"id = {at + 1}").count())
            with pytest.raises(AnalysisException, match="nope"):
                filled.sql("select * from lake.db.nope")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in (100, 200, 300)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    assert seen == [1, 1, 1]
    assert rows(filled.table("lake.db.t").select("id")) == [(1,), (101,), (2,), (201,), (3,), (301,)]


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
def test_explain_does_not_execute(filled: SparkSession, lake: frazil.Lake, statement: str) -> None:
    before = lake.table("db.t").metadata_location
    for mode in ("", "extended ", "formatted "):
        ((plan,),) = filled.sql(f"explain {mode}{statement}").collect()
        assert plan
    assert lake.table("db.t").metadata_location == before
    assert not lake.table_exists("db.planned")


def plain(paths: Any) -> set[str]:
    """Paths in one spelling: Spark writes local files with one slash here and with three there."""
    return {one.replace("file:///", "file:/") for one in paths}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_input_file_name_is_the_data_file(filled: SparkSession, lake: frazil.Lake, file_format: str) -> None:
    filled.sql(
        f"create table lake.db.named (id bigint, `a b#` string) partitioned by (`a b#`) "
        f"tblproperties ('write.format.default' = '{file_format}')"
    )
    filled.sql("insert into lake.db.named values (1, 'x y#z'), (2, null)")
    known = plain(lake.table("db.named").inspect.files().column("file_path").to_pylist())
    (sizes,) = {tuple(lake.table("db.named").inspect.files().column("file_size_in_bytes").to_pylist())}
    table = "lake.db.named"
    assert plain(one[0] for one in filled.sql(f"select _file from {table}").collect()) == known
    for expression in ("input_file_name()", "_metadata.file_path", "concat(_metadata.file_path, '')"):
        shown = plain(one[0] for one in filled.sql(f"select {expression} from {table}").collect())
        assert set(map(unquote, shown)) == known, expression
        assert not any("#" in one for one in shown), expression
    counted = filled.sql(f"select input_file_name() f, count(*) n from {table} where id > 0 group by 1").collect()
    assert plain(unquote(one.f) for one in counted) == known
    assert plain(map(unquote, filled.table(table).inputFiles())) == known
    assert "_metadata" not in filled.table(table).columns
    # As frames of Python verbs have it, which no rule of the analyser has seen.
    frame = lake.table("db.named").scan().to_spark(filled)
    for column in (F.input_file_name(), F.col("_metadata.file_path")):
        assert plain(unquote(one[0]) for one in frame.select(column).collect()) == known
    facts = filled.sql(f"select _metadata.file_name, _metadata.file_size, _metadata.file_block_length n from {table}")
    for one in facts.collect():
        assert one.file_size in sizes and one.n == one.file_size
        assert any(each.endswith(unquote(one.file_name)) for each in known)
    # Files that are no lake's have theirs.
    filled.range(1).write.mode("overwrite").parquet(f"{lake.table('db.named').location.removeprefix('file:')}/p #q")
    other = filled.read.parquet(f"{lake.table('db.named').location.removeprefix('file:')}/p #q")
    ((name,),) = other.select(F.input_file_name()).collect()
    assert "/p%20%23q/" in name


@pytest.mark.extended
def test_multi_insert_writes_several_tables(filled: SparkSession) -> None:
    filled.sql("create table lake.db.u (id bigint, kind string)")
    filled.sql(
        """from lake.db.t insert into lake.db.u select id, kind where kind = 'a'
           insert into lake.db.u select id + 10, kind where kind = 'b'"""
    )
    assert rows(filled.table("lake.db.u")) == [(1, "a"), (12, "b"), (3, "a")]


@pytest.mark.extended
def test_identifier_expressions_name_tables(filled: SparkSession) -> None:
    assert rows(filled.sql("select * from identifier('lake.db.' || 't')")) == ALL
    assert rows(filled.sql("select * from identifier(:c || '.db.t')", {"c": "lake"})) == ALL


def test_errors_show_names_as_the_user_wrote_them(filled: SparkSession) -> None:
    for text in (
        "delete from lake.db.t where nocol = 1",
        "update lake.db.t set kind = nocol",
        "merge into lake.db.t t using (select 1L id) s on t.nocol = s.id when matched then delete",
    ):
        with pytest.raises(AnalysisException, match="nocol") as caught:
            filled.sql(text)
        assert "__frazil" not in str(caught.value)
        assert "`source`" not in str(caught.value)


@pytest.mark.slow
def test_sessions_can_be_restarted_many_times(tmp_path: Path) -> None:
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


def test_lake_is_listed_before_first_use(spark: SparkSession, lake: frazil.Lake) -> None:
    frazil.attach(spark, lake, "unused")
    try:
        assert ("unused",) in [tuple(row) for row in spark.sql("show catalogs").collect()]
        assert "unused" in [one.name for one in spark.catalog.listCatalogs()]
    finally:
        frazil.detach(spark)


def test_detaching_one_lake_keeps_the_others(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "other") as other:
        lake.create_table("db.t", "id bigint")
        frazil.attach(spark, lake)
        frazil.attach(spark, other, "other")
        frazil.attach(spark, lake, "again")
        with pytest.raises(frazil.InvalidRequestError, match="Attached are: again, lake, other"):
            frazil.detach(spark, "nope")
        frazil.detach(spark, "other")
        assert spark.table("lake.db.t").count() == 0
        frazil.detach(spark, name="lake")
        assert spark.table("again.db.t").count() == 0
        assert lake.attached_spark is spark
        with pytest.raises(AnalysisException):
            spark.table("lake.db.t")
        frazil.detach(spark)
        assert lake.attached_spark is None
        frazil.detach(spark)


@pytest.mark.parametrize("name", ["default", "spark_catalog", "global_temp", "system", "", "Session"])
def test_spark_catalog_names_cannot_be_lake_names(spark: SparkSession, lake: frazil.Lake, name: str) -> None:
    with pytest.raises(frazil.InvalidRequestError, match="reserved by Spark"):
        frazil.attach(spark, lake, name)


@pytest.mark.extended
def test_plans_of_detached_sessions_are_released(spark: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id bigint")
    frazil.attach(spark, lake)
    spark.table("lake.db.t").collect()
    own = str(spark._jsparkSession.sessionUUID())
    assert own in {key[0] for key in REMEMBERED.plans}
    frazil.detach(spark)
    assert own not in {key[0] for key in REMEMBERED.plans}


@pytest.mark.extended
def test_table_accepting_any_schema_is_merged_into(filled: SparkSession) -> None:
    filled.sql("alter table lake.db.t set tblproperties ('write.spark.accept-any-schema' = 'true')")
    filled.sql(
        """merge into lake.db.t t using (select 1L id, 'z' kind union all select 9L, 'n') s on t.id = s.id
           when matched then update set * when not matched then insert *"""
    )
    assert rows(filled.table("lake.db.t")) == [(1, "z"), *ALL[1:], (9, "n")]
    filled.sql(
        """merge into lake.db.t t using (select 9 id) s on t.id = s.id
           when matched then update set kind = 'm' when not matched then insert (id) values (s.id)"""
    )
    assert rows(filled.table("lake.db.t")) == [(1, "z"), *ALL[1:], (9, "m")]
    source = filled.createDataFrame([("k", 20)], "kind string, id int")
    source.mergeInto("lake.db.t", F.expr("false")).whenNotMatched().insertAll().merge()
    assert (20, "k") in rows(filled.table("lake.db.t"))
    with pytest.raises(AnalysisException):
        filled.sql("merge into lake.db.t t using (select 1L id) s on t.id = s.id when matched then update set *")


@pytest.mark.extended
def test_identifier_expressions_work_in_views(filled: SparkSession) -> None:
    # What is in a lake's view is known when it is made, by whoever may read it.
    with pytest.raises(AnalysisException, match=r"(?s)uses IDENTIFIER\(\).*trusted-views"):
        filled.sql("create view lake.db.spelt as select * from identifier('lake.db.' || 't') where id > 1")
    assert not filled.catalog.tableExists("lake.db.spelt")
    filled.sql("create temporary view spelt_here as select count(*) n from identifier('lake.db.' || 't')")
    assert rows(filled.table("spelt_here")) == [(3,)]
    filled.catalog.dropTempView("spelt_here")


def test_show_create_table_recreates_the_table(filled: SparkSession, lake: frazil.Lake) -> None:
    filled.sql(
        """create table lake.db.first (id bigint not null comment 'key', ts timestamp,
           s struct<a: int, b: array<string>>, m map<string, decimal(9, 2)>, d int default 7)
           using iceberg partitioned by (bucket(4, id), days(ts)) comment 'about'
           tblproperties ('a.b' = 'c', 'format-version' = '3')"""
    )
    filled.sql("alter table lake.db.first write distributed by partition locally ordered by s.a desc, days(ts)")
    filled.sql("alter table lake.db.first set identifier fields id")
    filled.sql("alter table lake.db.first add partition field truncate(9, d) as nine")
    filled.sql("alter table lake.db.first alter column d set default 8")
    ((text,),) = filled.sql("show create table lake.db.first").collect()
    filled.sql(text.replace("lake.db.first", "lake.db.second").replace("/first'", "/second'"))
    first, second = (lake.table(f"db.{one}") for one in ("first", "second"))
    assert first.schema.same_columns(second.schema)
    assert [(one.name, str(one.transform)) for one in first.spec.fields] == [
        (one.name, str(one.transform)) for one in second.spec.fields
    ]
    assert [str(one) for one in first.sort_order.fields] == [str(one) for one in second.sort_order.fields]
    assert len(second.sort_order.fields) == 2 and second.schema.identifier_field_ids
    assert first.format_version == second.format_version == 3
    assert dict(first.properties) == dict(second.properties)
    ((again,),) = filled.sql("show create table lake.db.second").collect()
    assert again.replace("lake.db.second", "lake.db.first").replace("/second'", "/first'") == text


def test_show_create_view_recreates_the_view(filled: SparkSession, lake: frazil.Lake) -> None:
    filled.sql(
        """create view lake.db.first (`the n` comment 'it''s', k) comment 'about' tblproperties ('a.b' = 'c')
           with schema type evolution as select count(*), kind from lake.db.t group by kind"""
    )
    ((text,),) = filled.sql("show create table lake.db.first").collect()
    filled.sql(text.replace("lake.db.first", "lake.db.second"))
    first, second = (lake.view(f"db.{one}") for one in ("first", "second"))
    assert first.schema.same_columns(second.schema)
    assert dict(first.properties) == dict(second.properties)
    assert first.metadata.current_version.sql_representations == second.metadata.current_version.sql_representations
    assert rows(filled.table("lake.db.second")) == rows(filled.table("lake.db.first")) == [(1, "b"), (2, "a")]
    ((again,),) = filled.sql("show create table lake.db.second").collect()
    assert again.replace("lake.db.second", "lake.db.first") == text


def test_hive_partition_statements_are_refused_by_name(filled: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("9,z\n")
    before = lake.table("db.t").metadata_location
    for words, text in {
        "MSCK REPAIR TABLE is not supported": "msck repair table lake.db.t",
        "REPAIR TABLE is not supported": "repair table lake.db.t sync partitions",
        "RECOVER PARTITIONS is not supported": "alter table lake.db.t recover partitions",
        "LOAD DATA is not supported": f"load data local inpath '{tmp_path}/rows.csv' overwrite into table lake.db.t",
        "SERDE(.*) is not supported": "alter table lake.db.t set serde 'x'",
        "partition management": "alter table lake.db.t add partition (kind = 'x')",
        "(?s)not support.*partition management": "alter table lake.db.t drop if exists partition (kind = 'a')",
    }.items():
        with pytest.raises(AnalysisException, match=words) as caught:
            filled.sql(text)
        assert caught.value.getSqlState() in ("0A000", "42601")
        with pytest.raises(AnalysisException) as caught:
            filled.sql(text.replace("lake.db.t", "lake.db.nope"))
        assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(AnalysisException, match="RECOVER PARTITIONS"):
        filled.catalog.recoverPartitions("lake.db.t")
    assert lake.table("db.t").metadata_location == before
    assert (tmp_path / "rows.csv").exists()


@pytest.mark.extended
def test_scripts_report_spark_errors(filled: SparkSession) -> None:
    for text, condition in {
        "begin a: begin select 1; leave nope; end; end": "INVALID_LABEL_USAGE.DOES_NOT_EXIST",
        "begin select 1; declare x int; end": "INVALID_VARIABLE_DECLARATION.ONLY_AT_BEGINNING",
    }.items():
        with pytest.raises((PySparkException, Py4JError), match=re.escape(condition)) as caught:
            filled.sql(text)
        assert "UndeclaredThrowable" not in str(caught.value)
