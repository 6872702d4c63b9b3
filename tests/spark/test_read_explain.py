"""What Spark knows of a relation before it plans joins: how many files a filter leaves, and their size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.spark.jvm.private_names import prune_before_joins
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.table.scan import scan_table
from tests.spark.read_cases import local_table


def explained(frame: DataFrame, mode: str = "simple") -> str:
    with redirect_stdout(io.StringIO()) as shown:
        frame.explain(mode)
    return shown.getvalue()


@pytest.fixture
def table(lake: frazil.Lake) -> frazil.Table:
    made = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    for kind in "abcde":
        made.append(pa.table({"id": pa.array(range(10)), "kind": pa.array([kind] * 10)}))
    return made


@pytest.fixture
def early(spark: SparkSession) -> Iterator[None]:
    undo = prune_before_joins(spark)
    yield
    undo()


def test_explain_shows_how_many_files_a_filter_keeps(spark: SparkSession, table: frazil.Table, early: None) -> None:
    frame = table.scan().to_spark(spark)
    assert "[2 of 5 files (" in explained(frame.filter("kind in ('a', 'b')"))


def test_statistics_of_a_filtered_table_count_remaining_files(
    spark: SparkSession, table: frazil.Table, early: None
) -> None:
    frame = table.scan().to_spark(spark)

    def size(of: DataFrame) -> int:
        plan = of._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    assert 4 * size(frame.filter("kind = 'a'")) < size(frame)


@pytest.fixture
def costs(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield
    spark.conf.unset("spark.sql.cbo.enabled")


def stats_of(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().optimizedPlan().stats()


def rows_of(frame: DataFrame) -> int:
    count = stats_of(frame).rowCount()
    assert count.isDefined()
    return int(str(count.get()))


def test_optimizer_knows_the_row_count(spark: SparkSession, table: frazil.Table, costs: None) -> None:
    assert rows_of(table.scan().to_spark(spark)) == 50
    assert rows_of(table.scan("kind = 'a'").to_spark(spark)) == 10
    table.delete("id = 3")
    assert rows_of(table.scan().to_spark(spark)) == 45


def test_position_deleted_rows_are_not_counted(spark: SparkSession, tmp_path: Path, costs: None) -> None:
    schema = Schema((NestedField(1, "id", LONG),))
    made = local_table(tmp_path, schema, format_version=3)
    file = made.write_data([{"id": at} for at in range(20)])
    made.commit(file, made.write_data([{"id": at} for at in range(5)]))
    made.commit(*made.write_vectors({file: [1, 2, 3]}))
    assert rows_of(scan_table(made.load()).to_spark(spark)) == 22


def test_row_count_of_a_filtered_table_covers_remaining_files(
    spark: SparkSession, table: frazil.Table, early: None, costs: None
) -> None:
    frame = table.scan().to_spark(spark)
    assert rows_of(frame.filter("kind in ('a', 'b')")) <= 20


@pytest.mark.extended
def test_optimizer_knows_distinct_counts_of_the_snapshot(spark: SparkSession, lake: frazil.Lake, costs: None) -> None:
    made = lake.create_table("db.s", "id bigint not null, kind string not null")
    made.append(pa.table({"id": pa.array(range(1000)), "kind": pa.array([f"k{at % 7}" for at in range(1000)])}))
    assert not stats_of(made.scan().to_spark(spark).groupBy("kind").count()).rowCount().isDefined()
    made.maintain.compute_table_stats()
    made = lake.table("db.s")
    assert rows_of(made.scan().to_spark(spark).groupBy("kind").count()) == 7
    made.append(pa.table({"id": pa.array([1]), "kind": pa.array(["new"])}))
    assert not stats_of(made.scan().to_spark(spark).groupBy("kind").count()).rowCount().isDefined()


def test_plans_name_the_table(spark: SparkSession, table: frazil.Table) -> None:
    assert f"parquet {table.name}" in explained(table.scan().to_spark(spark))


@pytest.mark.extended
def test_static_and_dynamic_filters_return_the_same_rows(spark: SparkSession, table: frazil.Table, early: None) -> None:
    frame = table.scan().to_spark(spark)
    other = frame.filter("kind = 'b' and id < 3").select("id")
    assert frame.filter("kind = 'a'").join(other, "id").count() == 3
    assert frame.filter("kind = 'a'").count() == 10


def test_detach_restores_the_optimizer(spark: SparkSession, table: frazil.Table) -> None:
    def rules() -> list[str]:
        found = spark._jsparkSession.experimental().extraOptimizations()
        return [found.apply(position).getClass().getName() for position in range(found.size())]

    # Reads of tests before this one may have left a rule of ours, which goes with the others.
    others = [name for name in rules() if not name.startswith("frazil.")]
    undo = prune_before_joins(spark)
    assert "frazil.read.PruneBeforeJoins" in rules()
    undo()
    assert rules() == others
