"""DELETE, UPDATE and MERGE by SQL on an attached session, and `df.mergeInto`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil


@pytest.fixture
def sql(spark: SparkSession, lake: frazil.Lake) -> Iterator[Any]:
    """Run a statement and return its rows, sorted."""
    frazil.attach(spark, lake)

    def run(text: str, args: Any = None) -> list[tuple[Any, ...]]:
        frame = spark.sql(text) if args is None else spark.sql(text, args)
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    run("create table lake.db.t (id bigint, kind string, s struct<a: int, b: string>)")
    run("insert into lake.db.t values (1, 'a', named_struct('a', 1, 'b', 'x')), (2, 'b', null), (3, 'a', null)")
    run("create table lake.db.u (id bigint, kind string)")
    run("insert into lake.db.u values (2, 'B'), (3, 'C'), (4, 'D')")
    yield run
    frazil.detach(spark)


def ids(sql: Any) -> list[int]:
    return [row[0] for row in sql("select id from lake.db.t")]


@pytest.mark.parametrize(
    "text, left",
    [
        ("delete from lake.db.t where id = 1", [2, 3]),
        ("delete from lake.db.t x where x.id > 1", [1]),
        ("delete from lake.db.t where t.id > 1 and lake.db.t.kind = 'a'", [1, 2]),
        ("delete from lake.db.t where id in (select id from lake.db.u)", [1]),
        ("delete from lake.db.t where id not in (select t.id from lake.db.u t)", [2, 3]),
        ("delete from lake.db.t a where exists (select 1 from lake.db.u u where u.id = a.id and u.kind = 'B')", [1, 3]),
        ("delete from lake.db.t where id = (select max(id) from lake.db.t)", [1, 2]),
        ("with g as (select id from lake.db.u where kind = 'C') delete from lake.db.t where id in (select * from g)",
         [1, 2]),
        ("delete from lake.db.t where s.a = 1", [2, 3]),
        ("delete from lake.db.t where id in (select id from lake.db.u version as of 'main' v where v.kind = 'B')",
         [1, 3]),
        ("delete from lake.db.t", []),
        ("truncate table lake.db.t", []),
    ],
)  # fmt: skip
def test_delete_removes_rows(sql: Any, text: str, left: list[int]) -> None:
    sql(text)
    assert ids(sql) == left


def test_parameters_reach_conditions(sql: Any) -> None:
    sql("delete from lake.db.t where id = :id and kind = :kind", {"id": 1, "kind": "a"})
    sql("update lake.db.t set kind = ? where id = ?", ["it's", 3])
    assert sql("select id, kind from lake.db.t") == [(2, "b"), (3, "it's")]


def test_update_changes_rows(sql: Any) -> None:
    sql("update lake.db.t set kind = upper(kind) where id < 3")
    sql("update lake.db.t x set x.kind = x.kind || '!', id = x.id + 10 where x.id = 3")
    sql("update lake.db.t set s.b = 'y' where s is not null")
    sql("update lake.db.t set kind = (select max(kind) from lake.db.u) where id in (select id from lake.db.u)")
    assert sql("select id, kind, s.b from lake.db.t") == [(1, "A", "y"), (13, "a!", None), (2, "D", None)]
    sql("update lake.db.t set kind = default where id = 1")
    assert sql("select kind from lake.db.t where id = 1") == [(None,)]
    with pytest.raises(PySparkException):
        sql("update lake.db.t set nope = 1")
    with pytest.raises(AnalysisException, match="Multiple assignments for 'kind'"):
        sql("update lake.db.t set kind = 'x', kind = 'y'")


def test_merge_applies_its_clauses(sql: Any, lake: frazil.Lake) -> None:
    sql(
        """merge into lake.db.t using (select * from lake.db.u where id > 1) s on t.id = s.id
        when matched and s.kind = 'B' then delete
        when matched then update set t.kind = s.kind || t.kind
        when not matched then insert (id, kind) values (s.id, lower(s.kind))
        when not matched by source and t.id = 1 then update set kind = 'left'"""
    )
    assert sql("select id, kind from lake.db.t") == [(1, "left"), (3, "Ca"), (4, "d")]
    current = lake.table("db.t").current_snapshot
    assert current is not None
    assert (current.summary or {})["spark.merge-into.num-target-rows-inserted"] == "1"  # type: ignore[index]


@pytest.mark.extended
def test_merge_accepts_tables_stars_and_common_table_expressions(sql: Any, spark: SparkSession) -> None:
    sql("alter table lake.db.t drop column s")
    sql(
        """merge into lake.db.t using lake.db.u on t.id = u.id
        when matched then update set * when not matched then insert *"""
    )
    assert sql("select * from lake.db.t") == [(1, "a"), (2, "B"), (3, "C"), (4, "D")]
    sql(
        """with s as (select 9 id, 'z' kind) merge into lake.db.t as a using s as b on a.id = b.id
        when not matched then insert (id, kind) values (b.id, default)"""
    )
    assert sql("select * from lake.db.t where id = 9") == [(9, None)]
    spark.createDataFrame([(9, "q")], "id bigint, kind string").createOrReplaceTempView("updates")
    sql("merge into lake.db.t t using updates s on t.id = s.id when matched then update set kind = s.kind")
    assert sql("select * from lake.db.t where id = 9") == [(9, "q")]
    with pytest.raises(PySparkException, match="more than one row"):
        sql(
            """merge into lake.db.t t using (select explode(array(1, 1)) id) s on t.id = s.id
            when matched then update set kind = 'x'"""
        )


@pytest.mark.extended
def test_merge_may_add_columns(sql: Any, lake: frazil.Lake) -> None:
    before = len(lake.table("db.u").metadata.metadata_log)
    sql(
        """merge with schema evolution into lake.db.u using (select 4 id, 'new' kind, 1.5D extra) s on u.id = s.id
        when matched then update set * when not matched then insert *"""
    )
    assert sql("select * from lake.db.u where id = 4") == [(4, "new", 1.5)]
    assert len(lake.table("db.u").metadata.metadata_log) == before + 1
    sql(
        """merge with schema evolution into lake.db.u using (select 4 id, 'x' unused, 'y' `a.b`, 'z' Note) s
        on u.id = s.id
        when matched then update set note = s.note, `a.b` = s.`a.b` when not matched then insert (id) values (s.id)"""
    )
    assert [part.name for part in lake.table("db.u").schema.fields][-2:] == ["a.b", "Note"]
    assert sql("select note, `a.b` from lake.db.u where id = 4") == [("z", "y")]
    sql(
        """merge with schema evolution into lake.db.u using (select 4 id, 1 unused) s on u.id = s.id
        when matched then delete"""
    )
    assert "unused" not in [part.name for part in lake.table("db.u").schema.fields]
    sql("insert with schema evolution into lake.db.u by name select 5 id, true flag")
    assert sql("select id, flag from lake.db.u where flag") == [(5, True)]


def test_change_on_a_branch_leaves_others_unchanged(sql: Any) -> None:
    sql("alter table lake.db.t create branch b")
    sql("delete from lake.db.t.branch_b where id = 1")
    sql("update lake.db.t.branch_b set kind = 'z' where id = 2")
    assert sql("select id, kind from lake.db.t.branch_b") == [(2, "z"), (3, "a")]
    assert ids(sql) == [1, 2, 3]
    with pytest.raises(PySparkException):
        sql("delete from lake.db.t.branch_nope where id = 1")


@pytest.mark.extended
def test_session_branch_setting_directs_writes(sql: Any, spark: SparkSession) -> None:
    sql("alter table lake.db.u set tblproperties ('write.wap.enabled' = 'true')")
    sql("alter table lake.db.u create branch audit")
    spark.conf.set("spark.wap.branch", "audit")
    try:
        sql("insert into lake.db.u values (100, 'w')")
        assert sql("select count(*) from lake.db.u") == [(4,)]
    finally:
        spark.conf.unset("spark.wap.branch")
    assert sql("select count(*) from lake.db.u") == [(3,)]
    spark.conf.set("spark.wap.id", "w1")
    try:
        sql("insert into lake.db.u values (200, 'w')")
    finally:
        spark.conf.unset("spark.wap.id")
    assert sql("select count(*) from lake.db.u") == [(3,)]
    sql("call lake.system.publish_changes('db.u', 'w1')")
    assert sql("select count(*) from lake.db.u") == [(4,)]


@pytest.mark.extended
def test_dataframe_merge(sql: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([(2, "x"), (7, "y")], "id bigint, kind string").alias("s")
    (
        source.mergeInto("lake.db.u", F.expr("u.id = s.id"))
        .whenMatched(F.col("s.kind") == "x")
        .update({"kind": F.concat(F.col("s.kind"), F.col("u.kind"))})
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(F.col("u.id") == 4)
        .delete()
        .merge()
    )
    assert sql("select * from lake.db.u") == [(2, "xB"), (3, "C"), (7, "y")]


def test_no_temporary_objects_remain(sql: Any, spark: SparkSession) -> None:
    before = {one.name for one in spark.catalog.listTables() if one.isTemporary}
    sql("delete from lake.db.t where id in (select id from lake.db.u)")
    assert {one.name for one in spark.catalog.listTables() if one.isTemporary} == before


@pytest.mark.extended
@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark before 4.2 hides them behind names for all columns")
def test_metadata_columns_resolve_behind_a_column_alias_list(sql: Any) -> None:
    assert sql("select *, _spec_id from lake.db.u as h(x, y) where x = 2") == [(2, "B", 0)]
