"""Writes WITH SCHEMA EVOLUTION: the schema changes with the rows, in one commit, and not before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil

MERGE = (
    "merge with schema evolution into lake.db.t t using (select 1 as id, 'x' as extra) s on t.id = s.id "
    "when matched then update set * when not matched then insert *"
)
INSERT = "insert with schema evolution into lake.db.t by name select 2 as id, 'y' as extra"


@pytest.fixture
def table(spark: SparkSession, lake: frazil.Lake) -> Iterator[frazil.Table]:
    frazil.attach(spark, lake)
    made = lake.create_table("db.t", "id int")
    spark.sql("insert into lake.db.t values (1)")
    yield made
    frazil.detach(spark)


def columns(table: frazil.Table) -> list[str]:
    return [one.name for one in table.refresh().schema.fields]


def versions(table: frazil.Table) -> int:
    return len(table.refresh().metadata.metadata_log)


@pytest.mark.parametrize("statement", [MERGE, INSERT])
def test_statement_changes_schema_and_rows_in_one_commit(
    spark: SparkSession, table: frazil.Table, statement: str
) -> None:
    before = versions(table)
    spark.sql(statement)
    assert columns(table) == ["id", "extra"]
    assert versions(table) == before + 1


@pytest.mark.parametrize("statement", [MERGE, INSERT])
def test_explain_changes_nothing(spark: SparkSession, table: frazil.Table, statement: str) -> None:
    before = versions(table)
    assert "db.t" in spark.sql(f"explain {statement}").first()[0]  # type: ignore[index]
    assert columns(table) == ["id"]
    assert versions(table) == before


def test_failed_merge_leaves_the_schema_unchanged(spark: SparkSession, table: frazil.Table) -> None:
    with pytest.raises(PySparkException, match="more than one row"):
        spark.sql(
            "merge with schema evolution into lake.db.t t using (select explode(array(1, 1)) as id, 'x' as extra) s "
            "on t.id = s.id when matched then update set *"
        )
    assert columns(table) == ["id"]


def test_schema_problems_of_a_source_are_reported(spark: SparkSession, table: frazil.Table) -> None:
    with pytest.raises(PySparkException, match="missing"):
        spark.sql(
            "merge with schema evolution into lake.db.t t using lake.db.missing s on t.id = s.id "
            "when matched then update set *"
        )


@pytest.mark.extended
def test_dataframe_merge_evolves_the_schema(spark: SparkSession, table: frazil.Table) -> None:
    source = spark.createDataFrame([(1, "x"), (3, "z")], "id int, extra string").alias("s")
    merge = source.mergeInto("lake.db.t", F.expr("t.id = s.id")).whenMatched().updateAll()
    merge.whenNotMatched().insertAll().withSchemaEvolution().merge()
    assert sorted(tuple(row) for row in spark.table("lake.db.t").collect()) == [(1, "x"), (3, "z")]


def test_multi_insert_into_one_table_runs_its_inserts_in_order(spark: SparkSession, table: frazil.Table) -> None:
    spark.sql(
        "from lake.db.t insert into lake.db.t select id + 10 insert overwrite lake.db.t select id + 20 "
        "insert into lake.db.t select id + 30"
    )
    assert sorted(row[0] for row in spark.table("lake.db.t").collect()) == [21, 31]


def test_sql_functions_are_listed_and_described(spark: SparkSession, table: frazil.Table) -> None:
    assert "bucket" in str(spark.sql("show functions in lake.system").collect())
    assert "bucket(number, column)" in str(spark.sql("describe function lake.system.bucket").collect())
