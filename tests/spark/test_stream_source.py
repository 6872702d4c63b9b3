"""Tables as streams: `spark.readStream` over a lake, as users call it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import frazil

CHANGE_NAMES = ["_change_type", "_commit_version", "_commit_timestamp"]


@pytest.fixture
def attached(spark: SparkSession, lake: frazil.Lake) -> Iterator[frazil.Lake]:
    frazil.attach(spark, lake)
    yield lake
    frazil.detach(spark)


@pytest.fixture
def table(spark: SparkSession, attached: frazil.Lake) -> frazil.Table:
    spark.sql("create table lake.db.t (id bigint, v string) using iceberg")
    return attached.table("db.t")


def add(spark: SparkSession, *ids: int, name: str = "lake.db.t", value: str = "a") -> None:
    rows = [(one, value) for one in ids]
    spark.createDataFrame(rows, "id bigint, v string").coalesce(1).writeTo(name).append()


Batches = list[tuple[int, list[tuple[Any, ...]]]]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Batches]:
    """Run a stream until it has read what is there; return its batches with their rows in order."""

    def run(frame: DataFrame, checkpoint: str = "checkpoint", **trigger: Any) -> Batches:
        seen: Batches = []

        def keep(rows: DataFrame, number: int) -> None:
            seen.append((number, sorted(tuple(row) for row in rows.collect())))

        query = (
            frame.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(**(trigger or {"availableNow": True}))
            .start()
        )
        assert query.awaitTermination(300)
        run.progress = [json.loads(one.json) for one in query.recentProgress]  # type: ignore[attr-defined]
        return seen

    return run


def ids(batches: Batches) -> list[list[int]]:
    return [[row[0] for row in rows] for _, rows in batches]


def test_the_whole_table_comes_first_without_deleted_rows_and_then_what_is_new(
    spark: SparkSession, table: frazil.Table, run: Callable[..., Batches]
) -> None:
    add(spark, 1, 2, 3)
    add(spark, 4, 5)
    spark.sql("delete from lake.db.t where id = 2")
    stream = spark.readStream.table("lake.db.t")
    assert stream.isStreaming
    assert ids(run(stream)) == [[1, 3, 4, 5]]
    add(spark, 6)
    assert ids(run(stream)) == [[6]]
    assert ids(run(stream)) == []


def test_a_table_is_streamed_by_format_and_name(
    spark: SparkSession, table: frazil.Table, run: Callable[..., Batches]
) -> None:
    add(spark, 1)
    assert ids(run(spark.readStream.format("iceberg").load("lake.db.t"))) == [[1]]
    add(spark, 2)
    # The same checkpoint: it is the same stream.
    assert ids(run(spark.readStream.table("lake.db.t"))) == [[2]]
