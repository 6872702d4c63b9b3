"""A session with a lake attached: statements, queries and everything else that names tables."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.errors import (
    InvalidRequestError,
)
from tests.spark.settings import settings


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def sql(attached: SparkSession) -> Any:
    """Run a statement and return its rows, sorted."""
    return lambda text, args=None: rows(attached.sql(text, args) if args is not None else attached.sql(text))


ALL = [(1, "a"), (2, "b"), (3, "a")]


# Queries


@pytest.mark.parametrize(
    "query, expected",
    [
        ("select * from lake.db.t", ALL),
        ("select lake.db.t.id, db.t.kind from lake.db.t where t.id = 1", [(1, "a")]),
        ("select x.id from lake.db.t x where x.kind = 'b'", [(2,)]),
        ("select x.n from lake.db.t as x(n, k) where k = 'b'", [(2,)]),
        ("select count(*) from lake.db.t a join lake.db.t b on a.kind = b.kind", [(5,)]),
        ("with t as (select 9 id) select t.id, u.id from t, lake.db.t u where u.id = 1", [(9, 1)]),
        ("with u as (select * from lake.db.t), v as (select id from u) select max(id) from v", [(3,)]),
        ("select id from lake.db.t where id in (select max(id) from lake.db.t)", [(3,)]),
        ("select (select max(id) from lake.db.t) m", [(3,)]),
        ("select id from lake.db.t t where exists (select 1 from lake.db.t u where u.id = t.id + 1)", [(1,), (2,)]),
        ("select id from (select * from lake.db.t union all select * from lake.db.t) where kind = 'b'", [(2,), (2,)]),
        ("from lake.db.t |> where id > 1 |> select id", [(2,), (3,)]),
        ("table lake.db.t", ALL),
        ("select id from lake.db.`t` where kind = 'b'", [(2,)]),
        ("select id from identifier('lake.db.t') where kind = 'b'", [(2,)]),
        ("select 'lake.db.t' x", [("lake.db.t",)]),
        ("select id from lake.db.t lateral view explode(array(1, 2)) e as n where id = 1 and n = 2", [(1,)]),
        ("select * from (select kind, id from lake.db.t) pivot (sum(id) for kind in ('a', 'b'))", [(4, 2)]),
        ("select /*+ broadcast(t) */ t.id from lake.db.t t -- why\n where id = 1;", [(1,)]),
        ("values (1), (2)", [(1,), (2,)]),
    ],
)
def test_query_resolves_lake_tables(filled: SparkSession, query: str, expected: list[Any]) -> None:
    assert rows(filled.sql(query)) == expected


def test_parameters_are_passed_on(filled: SparkSession, sql: Any) -> None:
    assert sql("select id from lake.db.t where kind = :k and id > :n", {"k": "a", "n": 1}) == [(3,)]
    assert sql("select id from lake.db.t where kind = ? and id < ?", ["a", 3]) == [(1,)]
    assert rows(filled.sql("select id from {x} where id = {n}", x=filled.table("lake.db.t"), n=2)) == [(2,)]
    assert sql("select id from identifier(:t) where id = :n", {"t": "lake.db.t", "n": 2}) == [(2,)]
    sql("insert into lake.db.t values (:id, :kind)", {"id": 4, "kind": "it's"})
    assert sql("select kind from lake.db.t where id = 4") == [("it's",)]
    assert sql("select :x", {"x": datetime.date(2024, 1, 1)}) == [(datetime.date(2024, 1, 1),)]


def test_errors_give_the_position_in_the_text(filled: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMN"):
        filled.sql("select nope from lake.db.t")
    with pytest.raises(ParseException):
        filled.sql("select * from lake.db.t where id =")
    with pytest.raises(AnalysisException, match=r"TABLE_OR_VIEW_NOT_FOUND.*nope"):
        filled.sql("select * from lake.db.nope")
    with pytest.raises(AnalysisException, match=r"column 25"):
        filled.sql("alter table lake.db.t  frobnicate".replace("  ", "   "))


def test_spark_tables_still_work(filled: SparkSession, sql: Any) -> None:
    sql("create or replace temp view lake_free as select 1 a")
    assert sql("select * from lake_free") == [(1,)]
    sql("create table plain (id bigint) using parquet")
    try:
        sql("insert into plain select id from lake.db.t where kind = 'a'")
        assert sql("select p.id from plain p join lake.db.t t on p.id = t.id") == [(1,), (3,)]
        assert ("default", "plain", False) in sql("show tables in default")
    finally:
        sql("drop table plain")
    assert sql("select current_catalog()") == [("spark_catalog",)]
    with pytest.raises(AnalysisException):
        filled.sql("drop table nope.nope")


def test_use_switches_into_the_lake_and_back(filled: SparkSession, sql: Any) -> None:
    sql("use lake.db")
    assert sql("select id from t where kind = 'b'") == [(2,)]
    assert sql("select t.id from db.t where kind = 'b'") == [(2,)]
    assert sql("with t as (select 7 id) select * from t") == [(7,)]
    filled.range(1).createOrReplaceTempView("temporary")
    assert sql("select * from temporary") == [(0,)]
    assert sql("select 1") == [(1,)]
    sql("create table u as select * from t")
    sql("insert into u select id + 10, kind from t")
    assert sql("select count(*) from u") == [(6,)]
    assert filled.catalog.currentCatalog() == "lake"
    assert filled.catalog.currentDatabase() == "db"
    assert [one.name for one in filled.catalog.listTables()] == ["t", "u"]
    sql("use spark_catalog.default")
    assert filled.catalog.currentCatalog() == "spark_catalog"
    with pytest.raises(AnalysisException):
        filled.sql("select * from u")


def test_tables_of_two_lakes_are_joined(attached: SparkSession, sql: Any, tmp_path: Any) -> None:
    with frazil.connect(tmp_path / "other") as other:
        frazil.attach(attached, other, name="other")
        sql("create table lake.db.a as select 1 id, 'x' v")
        sql("create table other.db.a as select 1 id, 'y' v")
        assert sql("select a.v, b.v from lake.db.a a join other.db.a b using (id)") == [("x", "y")]
        assert {one.name for one in attached.catalog.listCatalogs()} == {"spark_catalog", "lake", "other"}


@pytest.mark.extended
def test_temporary_views_show_current_rows(filled: SparkSession, sql: Any) -> None:
    sql("create or replace temporary view v as select id from lake.db.t where kind = 'a'")
    assert sql("select * from v") == [(1,), (3,)]
    sql("insert into lake.db.t values (5, 'a')")
    assert sql("select * from v") == [(1,), (3,), (5,)]
    assert rows(filled.table("v")) == [(1,), (3,), (5,)]
    filled.range(1).createOrReplaceTempView("v")
    assert sql("select * from v") == [(0,)]
    sql("cache table cached as select * from lake.db.t")
    assert sql("select count(*) from cached") == [(4,)]
    sql("uncache table cached")
    sql("drop view cached")
    sql("drop view v")


# Time travel and metadata tables


def test_time_travel_in_sql(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    table = lake.table("db.t")
    first = table.current_snapshot
    assert first is not None
    sql("alter table lake.db.t create tag v1")
    sql("insert into lake.db.t values (4, 'c')")
    sql("alter table lake.db.t create branch b")
    sql("insert into lake.db.t.branch_b values (5, 'd')")
    then = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, datetime.UTC) + datetime.timedelta(milliseconds=1)
    local = then.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30))).strftime("%F %T.%f")
    count = "select count(*) from lake.db.t"
    assert sql(count) == [(4,)]
    for spelled, expected in {
        f"{count} version as of {first.snapshot_id}": 3,
        f"{count} for version as of {first.snapshot_id}": 3,
        f"{count} for system_version as of {first.snapshot_id}": 3,
        f"{count} version as of 'v1'": 3,
        f"{count} version as of 'b'": 5,
        f"{count} timestamp as of '{local}'": 3,
        f"{count} for system_time as of timestamp '{local}'": 3,
        f"{count} timestamp as of current_timestamp()": 4,
        f"{count}.snapshot_id_{first.snapshot_id}": 3,
        f"{count}.at_timestamp_{first.timestamp_ms}": 3,
        f"{count}.tag_v1": 3,
        f"{count}.branch_b": 5,
        "select count(*) from lake.db.t.branch_b.files": 4,
        "select count(*) from lake.db.t.snapshots": 3,
    }.items():
        assert sql(spelled) == [(expected,)], spelled
    reads: dict[str, int | str] = {
        "snapshot-id": first.snapshot_id,
        "tag": "v1",
        "versionAsOf": "v1",
        "as-of-timestamp": first.timestamp_ms,
    }
    for option, value in reads.items():
        assert filled.read.option(option, value).table("lake.db.t").count() == 3
    assert filled.read.format("iceberg").option("branch", "b").load("lake.db.t").count() == 5
    assert filled.read.option("timestampAsOf", local).table("lake.db.t").count() == 3
    with pytest.raises(AnalysisException, match="two states"):
        sql("select * from lake.db.t.tag_v1 version as of 'b'")
    with pytest.raises(AnalysisException):
        sql("select * from lake.db.t version as of 'nope'")
    with pytest.raises(AnalysisException):
        sql("insert into lake.db.t.tag_v1 values (1, 'a')")


def test_metadata_tables_are_queryable(filled: SparkSession, sql: Any) -> None:
    assert sql("select operation, summary['added-records'] from lake.db.t.snapshots") == [("append", "3")]
    assert sql("select name, type from lake.db.t.refs") == [("main", "BRANCH")]
    assert sql("select partition.kind, record_count from lake.db.t.partitions") == [("a", 2), ("b", 1)]
    assert sql("select sum(record_count) from lake.db.t.files") == [(3,)]
    assert filled.table("lake.db.t.history").columns == [
        "made_current_at",
        "snapshot_id",
        "parent_id",
        "is_current_ancestor",
    ]
    assert sql("select readable_metrics.id.upper_bound from lake.db.t.files") == [(2,), (3,)]
    for name in ("entries", "manifests", "metadata_log_entries", "position_deletes", "all_data_files", "all_manifests",
                 "delete_files", "data_files", "all_entries", "all_delete_files", "all_files"):  # fmt: skip
        assert filled.table(f"lake.db.t.{name}").columns, name


@pytest.mark.extended
def test_incremental_appends_are_read_separately(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    first = lake.table("db.t").current_snapshot
    assert first is not None
    sql("insert into lake.db.t values (4, 'c')")
    reader = filled.read.option("start-snapshot-id", first.snapshot_id)
    assert rows(reader.table("lake.db.t")) == [(4, "c")]
    option = f"`start-snapshot-id` = {first.snapshot_id}"
    assert sql(f"select * from lake.db.t with ({option}) where id > 0") == [(4, "c")]


def test_star_excludes_metadata_columns(filled: SparkSession, sql: Any) -> None:
    assert filled.sql("select id, _file, _pos from lake.db.t").columns == ["id", "_file", "_pos"]
    assert sql("select _partition.kind, count(*) from lake.db.t x group by 1") == [("a", 2), ("b", 1)]
    assert sql("select * from lake.db.t where _spec_id = 0 and _pos >= 0 and _file like '%parquet'") == ALL
    assert filled.sql("select *, _pos from lake.db.t").columns == ["id", "kind", "_pos"]


# Rows


def fewer(spark: SparkSession, text: str, every: str) -> None:
    """Run an INSERT that names some columns; Spark 4.0 wants all of them for tables of catalogs, whoever's they are."""
    if spark.version.startswith("4.0."):
        with pytest.raises(AnalysisException, match="CANNOT_FIND_DATA"):
            spark.sql(text)
        text = every
    spark.sql(text)


def test_insert_matches_by_position_name_and_column_list(filled: SparkSession, sql: Any) -> None:
    sql("insert into lake.db.t (kind, id) values ('c', 4)")
    sql("insert into lake.db.t by name select 'd' kind, 5 id")
    fewer(filled, "insert into lake.db.t (id) select 6", "insert into lake.db.t (id, kind) select 6, null")
    sql("with s as (select 7 id) insert into lake.db.t select id, 'e' from s")
    sql("insert into lake.db.t partition (kind = 'f') select 8")
    sql("insert into lake.db.t select * from lake.db.t where id = 8")
    assert sql("select * from lake.db.t where id > 3") == [
        (4, "c"), (5, "d"), (6, None), (7, "e"), (8, "f"), (8, "f"),
    ]  # fmt: skip
    with pytest.raises(AnalysisException, match="not enough data columns"):
        sql("insert into lake.db.t select 1")
    with pytest.raises(AnalysisException):
        sql("insert into lake.db.t select 'x', 'y'")
    with pytest.raises(AnalysisException):
        sql("insert into lake.db.t (nope) values (1)")


def test_insert_overwrite_follows_the_overwrite_mode(filled: SparkSession, sql: Any) -> None:
    sql("insert overwrite lake.db.t partition (kind = 'a') values (10)")
    assert sql("select * from lake.db.t") == [(10, "a"), (2, "b")]
    with settings(filled, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        sql("insert overwrite lake.db.t values (20, 'b'), (21, 'c')")
    assert sql("select * from lake.db.t") == [(10, "a"), (20, "b"), (21, "c")]
    sql("insert into lake.db.t replace where kind = 'c' values (30, 'c')")
    assert sql("select * from lake.db.t") == [(10, "a"), (20, "b"), (30, "c")]
    sql("insert overwrite lake.db.t values (1, 'z')")
    assert sql("select * from lake.db.t") == [(1, "z")]


def test_default_keyword_inserts_defaults(attached: SparkSession, sql: Any) -> None:
    sql(
        """create table lake.db.d (id int, n int default 40 + 2, s string default 'it''s',
        d date default current_date(), m decimal(9,2) default 1.5, ts timestamp default timestamp '2024-01-01 00:00:00')
        tblproperties ('format-version' = '3')"""
    )
    every = "insert into lake.db.d values (1, default, default, default, default, default)"
    fewer(attached, "insert into lake.db.d (id) values (1)", every)
    sql("insert into lake.db.d values (2, default, 'x', default, default, default)")
    sql("insert into lake.db.d select 3, default, default, date '2020-01-01', 2, null")
    found = sql("select id, n, s, m from lake.db.d")
    assert found == [(1, 42, "it's", Decimal("1.50")), (2, 42, "x", Decimal("1.50")), (3, 42, "it's", Decimal("2.00"))]
    assert sql("select count(*) from lake.db.d where ts = timestamp '2024-01-01 00:00:00'") == [(2,)]
    sql("alter table lake.db.d add column e int default 7")
    assert sql("select distinct e from lake.db.d") == [(7,)]


@pytest.mark.extended
def test_structs_are_inserted_by_position(attached: SparkSession, sql: Any) -> None:
    sql("create table lake.db.n (s struct<a: int, b: string>, l array<struct<x: int>>, m map<string, int>)")
    sql("insert into lake.db.n values (named_struct('p', 1, 'q', 'x'), array(named_struct('y', 2)), map('k', 3))")
    assert sql("select s.a, s.b, l[0].x, m['k'] from lake.db.n") == [(1, "x", 2, 3)]


@pytest.mark.extended
def test_create_table_as_select_is_one_commit(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    sql("create table lake.db.c using iceberg partitioned by (bucket(2, id)) as select id, kind from lake.db.t")
    made = lake.table("db.c")
    assert made.scan().count() == 3
    assert len(made.metadata.metadata_log) == 0
    first = made.current_snapshot
    sql("create or replace table lake.db.c as select id + 1 id from lake.db.c")
    assert sql("select * from lake.db.c") == [(2,), (3,), (4,)]
    made.refresh()
    assert first in list(made.snapshots)
    assert len(made.metadata.metadata_log) == 1
    sql("replace table lake.db.c as select 1 id")
    with pytest.raises(AnalysisException):
        sql("create table lake.db.c as select 1 id")
    sql("create table if not exists lake.db.c as select 2 id")
    assert sql("select * from lake.db.c") == [(1,)]
    with pytest.raises(AnalysisException):
        sql("create table lake.db.broken as select nope")
    assert not lake.table_exists("db.broken")


# Views


@pytest.mark.extended
def test_views_resolve_names_at_their_creation(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    sql("use lake.db")
    sql("create view v (n comment 'number', k) comment 'about' as select id, kind from t where kind = 'a'")
    sql("use spark_catalog.default")
    assert sql("select * from lake.db.v") == [(1, "a"), (3, "a")]
    assert sql("select v.n from lake.db.v where k = 'a' and n > 1") == [(3,)]
    assert rows(filled.table("lake.db.v")) == [(1, "a"), (3, "a")]
    sql("insert into lake.db.t values (5, 'a')")
    assert sql("select count(*) from lake.db.v") == [(3,)]
    assert sql("show views in lake.db") == [("db", "v", False)]
    assert sql("describe lake.db.v") == [("k", "string", None), ("n", "bigint", "number")]
    assert "CREATE VIEW lake.db.v" in sql("show create table lake.db.v")[0][0]
    sql("create or replace view lake.db.w as select n * 2 m from lake.db.v")
    assert sql("select sum(m) from lake.db.w") == [(18,)]
    with pytest.raises(AnalysisException, match="itself"):
        sql("create or replace view lake.db.v as select m n from lake.db.w")
    filled.range(1).createOrReplaceTempView("temporary")
    with pytest.raises(AnalysisException, match="temporary view"):
        sql("create view lake.db.x as select * from temporary")
    with pytest.raises(AnalysisException, match="names 2 columns"):
        sql("create view lake.db.x (a, b) as select 1")
    with pytest.raises(UnsupportedOperationException):
        sql("alter view lake.db.v as select 1")
    sql("alter view lake.db.w rename to lake.db.w2")
    sql("alter view lake.db.w2 set tblproperties (k = 'v')")
    assert sql("show tblproperties lake.db.w2 (k)") == [("k", "v")]
    sql("drop view lake.db.w2")
    with pytest.raises(AnalysisException):
        sql("select * from lake.db.w2")
    lake.create_view("db.python", "select max(id) m from t", schema="m bigint")
    assert sql("select * from lake.db.python") == [(5,)]
    lake.create_view("db.trino", {"trino": "select 1"}, schema="a int")
    with pytest.raises(UnsupportedOperationException, match="dialect"):
        sql("select * from lake.db.trino")


# Procedures


@pytest.mark.extended
def test_call_arguments_are_evaluated(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    first = lake.table("db.t").current_snapshot
    assert first is not None
    sql("insert into lake.db.t values (4, 'c')")
    frame = filled.sql(
        "call lake.system.rollback_to_snapshot(snapshot_id => :id, table => concat('db', '.t'))",
        {"id": first.snapshot_id},
    )
    assert frame.columns == ["previous_snapshot_id", "current_snapshot_id"]
    assert sql("select count(*) from lake.db.t") == [(3,)]
    found = filled.sql("call lake.system.expire_snapshots('db.t', timestamp '1999-01-01 00:00:00', 1 + 1)").first()
    assert found is not None
    assert found["deleted_data_files_count"] == 0


# PySpark's other entry points


@pytest.mark.extended
def test_writer_v2_writes(filled: SparkSession, sql: Any, lake: frazil.Lake) -> None:
    frame = filled.createDataFrame([(4, "c"), (5, "d")], "id bigint, kind string")
    frame.writeTo("lake.db.t").append()
    assert sql("select count(*) from lake.db.t") == [(5,)]
    frame.writeTo("lake.db.t").option("snapshot-property.who", "me").overwritePartitions()
    assert sql("select count(*) from lake.db.t") == [(5,)]
    assert sql("select summary['who'] from lake.db.t.snapshots where summary['who'] is not null") == [("me",)]
    frame.writeTo("lake.db.t").overwrite(F.col("kind").isin("c", "d"))
    assert sql("select count(*) from lake.db.t") == [(5,)]
    frame.select("kind", "id").writeTo("lake.db.w").using("iceberg").partitionedBy(
        "kind", F.partitioning.bucket(4, "id")
    ).tableProperty("k", "v").create()
    made = lake.table("db.w")
    assert [field.name for field in made.spec.fields] == ["kind", "id_bucket"]
    assert made.properties["k"] == "v"
    with pytest.raises(AnalysisException):
        frame.writeTo("lake.db.w").create()
    frame.limit(1).writeTo("lake.db.w").createOrReplace()
    frame.limit(1).writeTo("lake.db.w").replace()
    assert filled.table("lake.db.w").count() == 1
    with pytest.raises(AnalysisException):
        frame.writeTo("lake.db.nope").append()


@pytest.mark.extended
def test_writer_v1_writes(filled: SparkSession, sql: Any) -> None:
    frame = filled.createDataFrame([(4, "c")], "id bigint, kind string")
    frame.write.format("iceberg").mode("append").save("lake.db.t")
    frame.write.mode("append").saveAsTable("lake.db.t")
    frame.toDF("x", "y").write.insertInto("lake.db.t")
    assert sql("select count(*) from lake.db.t where id = 4") == [(3,)]
    frame.write.saveAsTable("lake.db.new", format="iceberg", partitionBy=["kind"])
    assert sql("show partitions lake.db.new") == [("kind=c",)]
    with pytest.raises(AnalysisException, match="there is a table of that name"):
        frame.write.saveAsTable("lake.db.new")
    frame.write.mode("ignore").saveAsTable("lake.db.new")
    frame.write.mode("overwrite").saveAsTable("lake.db.t")
    assert sql("select * from lake.db.t") == [(4, "c")]
    frame.write.insertInto("lake.db.t", overwrite=True)
    assert sql("select * from lake.db.t") == [(4, "c")]
    frame.selectExpr("id * 2 twice").write.mode("overwrite").saveAsTable("lake.db.t")
    assert filled.table("lake.db.t").columns == ["twice"]


def test_catalog_api_knows_the_lake(filled: SparkSession) -> None:
    catalog = filled.catalog
    assert catalog.tableExists("lake.db.t")
    assert not catalog.tableExists("lake.db.nope")
    assert catalog.databaseExists("lake.db")
    assert [(one.name, one.catalog) for one in catalog.listTables("lake.db")] == [("t", "lake")]
    assert [(one.name, one.dataType, one.isPartition) for one in catalog.listColumns("lake.db.t")] == [
        ("id", "bigint", False),
        ("kind", "string", True),
    ]
    catalog.setCurrentCatalog("lake")
    assert [one.name for one in catalog.listDatabases()] == ["db"]
    catalog.setCurrentDatabase("db")
    assert catalog.currentDatabase() == "db"
    catalog.setCurrentCatalog("spark_catalog")
    assert catalog.currentDatabase() == "default"
    assert not catalog.tableExists("nope")


def test_detach_restores_everything(spark: SparkSession, lake: frazil.Lake) -> None:
    before = (SparkSession.__dict__["sql"], DataFrame.writeTo, SparkSession.__dict__["table"])
    frazil.attach(spark, lake)
    assert lake.attached_spark is spark
    spark.sql("use lake.db")
    other = spark.newSession()
    assert other.sql("select current_catalog()").first() == ("spark_catalog",)
    frazil.detach(spark)
    frazil.detach(spark)
    assert (SparkSession.__dict__["sql"], DataFrame.writeTo, SparkSession.__dict__["table"]) == before
    assert lake.attached_spark is None
    with pytest.raises(AnalysisException):
        spark.sql("select * from lake.db.t")


def test_only_a_lake_can_be_attached(spark: SparkSession, lake: frazil.Lake) -> None:
    with pytest.raises(InvalidRequestError):
        frazil.attach(spark, "lake")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError):
        frazil.attach(spark, lake, name="spark_catalog")
