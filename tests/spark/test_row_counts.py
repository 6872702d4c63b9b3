"""Statements that change rows answer how many there were, and read nothing for it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil


def answer(spark: SparkSession, text: str) -> dict[str, Any]:
    (row,) = spark.sql(text).collect()
    return {name.removeprefix("num_").removesuffix("_rows"): value for name, value in row.asDict().items()}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_every_statement_returns_its_row_counts(attached: SparkSession, mode: str, version: str) -> None:
    run = attached.sql
    run(
        "create table lake.db.t (id bigint, kind string) partitioned by (kind) tblproperties ("
        f"'format-version' = '{version}', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}', "
        f"'write.merge.mode' = '{mode}')"
    )
    text = "insert into lake.db.t select id, cast(id % 4 as string) from range(100)"
    assert answer(attached, text) == {"affected": 100, "inserted": 100}
    assert answer(attached, "insert into lake.db.t select 1, 'a' where false") == {"affected": 0, "inserted": 0}
    assert answer(attached, "update lake.db.t set id = id + 1000 where id < 10") == {"affected": 10}
    assert answer(attached, "update lake.db.t set id = 0 where id = -1") == {"affected": 0}
    assert answer(attached, "delete from lake.db.t where id between 10 and 19") == {"affected": 10}
    assert answer(attached, "delete from lake.db.t where id = -1") == {"affected": 0}
    # The partition has 25 rows, of which some are gone.
    left = run("select count(*) from lake.db.t where kind = '3'").first()[0]  # type: ignore[index]
    found = answer(attached, "delete from lake.db.t where kind = '3'")["affected"]
    # Files go whole, and nobody looks which of their rows were deleted before.
    assert found == (left if mode == "copy-on-write" else None)
    merge = """
        merge into lake.db.t t using (select id + 20 as id, 'm' as kind from range(100)) s on t.id = s.id
        when matched and s.id % 2 = 0 then update set kind = s.kind
        when matched then delete
        when not matched then insert *
    """
    met = run("select id from lake.db.t where id between 20 and 119").collect()
    even = sum(one.id % 2 == 0 for one in met)
    assert answer(attached, merge) == {
        "affected": 100,
        "updated": even,
        "deleted": len(met) - even,
        "inserted": 100 - len(met),
    }
    assert answer(attached, "insert overwrite lake.db.t values (1, 'x'), (2, 'y')") == {"affected": 2, "inserted": 2}
    run("insert into lake.db.t values (3, 'x')")
    text = "insert into lake.db.t replace where id = 1 values (1, 'z')"
    assert answer(attached, text) == {"affected": 1, "inserted": 1}
    assert sorted(map(tuple, run("select * from lake.db.t").collect())) == [(1, "z"), (2, "y"), (3, "x")]


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_python_verbs_return_the_same_counts(attached: SparkSession, lake: frazil.Lake, mode: str) -> None:
    modes = {f"write.{one}.mode": mode for one in ("delete", "update", "merge")}
    table = lake.create_table("db.t", "id bigint, kind string", properties=modes)

    def counts(made: Any) -> tuple[int | None, ...]:
        return made.num_affected_rows, made.num_inserted_rows, made.num_updated_rows, made.num_deleted_rows

    frame = attached.range(100).selectExpr("id", "'a' kind")
    assert counts(table.append(frame)) == (100, 100, None, None)
    assert counts(table.update({"kind": "'b'"}, where="id < 7", engine="spark")) == (7, None, 7, None)
    assert counts(table.delete("id >= 95", engine="spark")) == (5, None, None, 5)
    source = attached.range(90, 105).selectExpr("id", "'c' kind")
    assert counts(table.upsert(source, ["id"], engine="spark")) == (15, 10, 5, None)
    assert counts(table.overwrite(source, where="id >= 90", engine="spark")) == (15, 15, None, None)
    made = table.delete("id = -1", engine="spark")
    assert made is None or made.num_affected_rows == 0


def test_multi_insert_returns_one_count_row_per_insert(attached: SparkSession) -> None:
    attached.sql("create table lake.db.a (id bigint)")
    attached.sql("create table lake.db.b (id bigint)")
    text = "from range(10) insert into lake.db.a select id where id < 3 insert into lake.db.b select id where id >= 3"
    assert [tuple(row) for row in attached.sql(text).collect()] == [(3, 3), (7, 7)]


def test_dataframe_writers_and_create_statements_return_no_rows(attached: SparkSession) -> None:
    assert attached.sql("create table lake.db.t as select 1 as id").collect() == []
    attached.range(3).writeTo("lake.db.t").append()
    assert attached.sql("truncate table lake.db.t").collect() == []
