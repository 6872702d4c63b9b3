"""`spark.read.format("iceberg")` and `df.write.format("iceberg")`: names, paths, states, modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

import frazil

NOW = [(1, "a", None), (2, "b", None), (3, "c", 7)]
THEN = [(1, "a"), (2, "b")]


def rows(frame: DataFrame) -> list[Any]:
    return sorted((tuple(one) for one in frame.collect()), key=repr)


@pytest.fixture
def filled(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    """A table of three snapshots whose first had a column less, with a branch and a tag at the first."""
    frazil.attach(spark, lake)
    spark.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
    spark.sql("insert into lake.db.t values (1, 'a'), (2, 'b')")
    spark.sql("alter table lake.db.t create branch b")
    spark.sql("alter table lake.db.t create tag v1")
    spark.sql("insert into lake.db.t.branch_b values (9, 'z')")
    spark.sql("alter table lake.db.t add column x int")
    spark.sql("insert into lake.db.t values (3, 'c', 7)")
    yield spark
    frazil.detach(spark)


@pytest.fixture
def frame(filled: SparkSession) -> DataFrame:
    return filled.createDataFrame([(4, "c", 1), (5, "a", 2)], "id bigint, kind string, x int")


def test_table_is_read_by_name_folder_and_metadata_file(filled: SparkSession, lake: frazil.Lake) -> None:
    table = lake.table("db.t")
    for path in ("lake.db.t", table.location, table.location.removeprefix("file://"), table.metadata_location):
        assert rows(filled.read.format("iceberg").load(path)) == NOW
    for path in ("lake.db.t.snapshots", f"{table.location}#snapshots"):
        assert filled.read.format("iceberg").load(path).count() == 3
    assert rows(filled.read.format("org.apache.iceberg.spark.source").load("lake.db.t")) == NOW
    assert rows(filled.read.load("lake.db.t", format="iceberg")) == NOW
    filled.sql("use lake.db")
    try:
        assert rows(filled.read.format("iceberg").load("t")) == NOW
    finally:
        filled.sql("use spark_catalog.default")


@pytest.mark.extended
def test_read_option_selects_snapshot_and_its_schema(filled: SparkSession, lake: frazil.Lake) -> None:
    first = lake.table("db.t").snapshots[0]
    states: dict[str, Any] = {
        "snapshot-id": first.snapshot_id,
        "as-of-timestamp": first.timestamp_ms,
        "tag": "v1",
        "versionAsOf": "v1",
    }
    for option, value in states.items():
        assert rows(filled.read.format("iceberg").option(option, value).load("lake.db.t")) == THEN, option
        assert rows(filled.read.option(option, value).table("lake.db.t")) == THEN, option
        if option != "versionAsOf":
            query = f"select * from lake.db.t with (`{option}` = '{value}') where id > 0"
            assert rows(filled.sql(query)) == THEN, option
    branch = [(1, "a", None), (2, "b", None), (9, "z", None)]
    assert rows(filled.read.format("iceberg").option("branch", "b").load("lake.db.t")) == branch
    files = filled.read.format("iceberg").option("branch", "b").load("lake.db.t.files")
    assert files.count() == 3
    folder = lake.table("db.t").location
    assert rows(filled.read.format("iceberg").option("tag", "v1").load(folder)) == THEN
    appended = filled.read.format("iceberg").option("start-snapshot-id", first.snapshot_id)
    assert rows(appended.load("lake.db.t")) == [(3, "c", 7)]
    nested = f"""select (select max(id) from lake.db.t with (`snapshot-id` = {first.snapshot_id})),
                        (select max(id) from lake.db.t with (branch = 'b')), (select max(id) from lake.db.t)"""
    assert rows(filled.sql(nested)) == [(2, 9, 3)]


def test_two_snapshot_options_are_refused(filled: SparkSession) -> None:
    reader = filled.read.format("iceberg").option("tag", "v1")
    with pytest.raises(AnalysisException, match="both branch and tag"):
        reader.option("branch", "b").load("lake.db.t")
    with pytest.raises(AnalysisException, match="two states"):
        filled.read.format("iceberg").option("tag", "v1").load("lake.db.t.branch_b")
    with pytest.raises(AnalysisException, match="two states"):
        filled.read.format("iceberg").option("tag", "v1").option("versionAsOf", "b").load("lake.db.t")


def test_rows_are_saved_in_each_mode(filled: SparkSession, frame: DataFrame, lake: frazil.Lake) -> None:
    def writer() -> DataFrameWriter:
        return frame.write.format("iceberg")

    writer().mode("append").save("lake.db.t")
    assert filled.table("lake.db.t").count() == 5
    writer().mode("append").option("branch", "b").save("lake.db.t")
    assert (filled.table("lake.db.t").count(), filled.table("lake.db.t.branch_b").count()) == (5, 5)
    writer().mode("ignore").save("lake.db.t")
    with pytest.raises(AnalysisException) as caught:
        writer().save("lake.db.t")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert filled.table("lake.db.t").count() == 5
    writer().mode("overwrite").option("overwrite-mode", "dynamic").save("lake.db.t")
    assert rows(filled.table("lake.db.t")) == [(2, "b", None), (4, "c", 1), (5, "a", 2)]
    writer().mode("overwrite").save("lake.db.t")
    assert rows(filled.table("lake.db.t")) == [(4, "c", 1), (5, "a", 2)]
    writer().partitionBy("kind").save("lake.db.made")
    assert [one.name for one in lake.table("db.made").spec.fields] == ["kind"]
    assert filled.table("lake.db.made").count() == 2


def test_unreadable_and_unwritable_targets_are_reported(
    filled: SparkSession, frame: DataFrame, lake: frazil.Lake
) -> None:
    location = lake.table("db.t").location
    with pytest.raises(AnalysisException, match="it is a path, and only catalog tables can be written"):
        frame.write.format("iceberg").mode("append").save(location)
    with pytest.raises(AnalysisException, match="the name or path is missing"):
        filled.read.format("iceberg").load()
    with pytest.raises(AnalysisException, match="no lake 'pond' is attached; attached are: lake"):
        filled.read.format("iceberg").load("pond.db.t")
    with pytest.raises(AnalysisException) as caught:
        filled.read.format("iceberg").load("lake.db.nope")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(AnalysisException, match="no metadata"):
        filled.read.format("iceberg").load(f"{location}/nowhere")
    assert lake.table("db.t").inspect.snapshots().num_rows == 3
