"""What Spark knows of a relation before it plans joins: how many files a filter leaves, and their size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.spark.jvm import prune_before_joins


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


def test_explain_shows_how_many_files_a_filter_leaves(spark: SparkSession, table: frazil.Table, early: None) -> None:
    frame = table.scan().to_spark(spark)
    assert "[2 of 5 files (" in explained(frame.filter("kind in ('a', 'b')"))


def test_the_size_of_a_filtered_table_is_that_of_the_files_left(
    spark: SparkSession, table: frazil.Table, early: None
) -> None:
    frame = table.scan().to_spark(spark)

    def size(of: DataFrame) -> int:
        plan = of._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    assert 4 * size(frame.filter("kind = 'a'")) < size(frame)


def test_filters_known_early_and_late_give_the_same_rows(spark: SparkSession, table: frazil.Table, early: None) -> None:
    frame = table.scan().to_spark(spark)
    other = frame.filter("kind = 'b' and id < 3").select("id")
    assert frame.filter("kind = 'a'").join(other, "id").count() == 3
    assert frame.filter("kind = 'a'").count() == 10


def test_undoing_leaves_the_optimiser_as_it_was(spark: SparkSession, table: frazil.Table) -> None:
    rules = spark._jsparkSession.experimental()
    before = rules.extraOptimizations().size()
    prune_before_joins(spark)()
    assert rules.extraOptimizations().size() == before
