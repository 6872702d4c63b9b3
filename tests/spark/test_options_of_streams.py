"""Options of streams do what they say; what they do not do is said when a stream is named or started."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

import frazil
from tests.spark.streams import Streams, add


@pytest.fixture
def table(spark: SparkSession, lake: frazil.Lake) -> Iterator[frazil.Table]:
    """Versions: 1 adds 1, 2; 2 adds 3; 3 changes 1."""
    frazil.attach(spark, lake)
    spark.sql("create table lake.db.t (id bigint not null, v string) using iceberg")
    add(spark, 1, 2)
    add(spark, 3)
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    yield lake.table("db.t")
    frazil.detach(spark)


def _named(reader: DataStreamReader, way: str) -> DataFrame:
    return reader.table("lake.db.t") if way == "name" else reader.format("iceberg").load("lake.db.t")


@pytest.mark.parametrize("way", ["name", "format"])
def test_misspelt_or_row_changing_stream_options_are_refused_at_definition(
    spark: SparkSession, table: frazil.Table, way: str
) -> None:
    for name, value, said in (
        ("split-sizes", "1", "Did you mean split-size"),
        ("identifier-column", "id", "Did you mean identifier-columns"),
        ("startingVersion", "2", "with readChangeFeed"),
        ("ignoreChanges", "true", "streaming-changes=added-files"),
        ("skipChangeCommits", "true", "streaming-changes=skip"),
        ("filter", "id = 1", "use where"),
        ("streaming-max-files-per-micro-batch", "0", "a whole number from 1"),
    ):
        with pytest.raises(PySparkException, match=said):
            _named(spark.readStream.option(name, value), way)


@pytest.mark.parametrize("way", ["name", "format"])
def test_ineffective_stream_options_are_named_in_one_warning(
    spark: SparkSession, table: frazil.Table, streams: Streams, way: str
) -> None:
    reader = spark.readStream.option("maxFilesPerTrigger", "1").option("locality", "true").option("lookback", "3")
    with pytest.warns(UserWarning, match=r"To stream a table.*locality.*lookback.*maxFilesPerTrigger") as found:
        stream = _named(reader.option("streaming-changes", "skip"), way)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(one for batch in streams.ids(stream) for one in batch) == [1, 2, 3]


@pytest.mark.extended
@pytest.mark.parametrize("way", ["name", "format"])
def test_change_feed_options_apply_to_streams(
    spark: SparkSession, table: frazil.Table, streams: Streams, way: str
) -> None:
    reader = spark.readStream.option("readChangeFeed", "true").option("startingVersion", 2)
    stream = _named(reader.option("streaming-max-files-per-micro-batch", 1), way)
    assert stream.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    found = [sorted(row[:4] for row in batch) for batch in streams.run(stream)]
    assert found == [[(3, "a", "insert", 2)], [(1, "a", "delete", 3), (1, "b", "insert", 3)]]
    add(spark, 9)
    assert [[row[:4] for row in batch] for batch in streams.run(stream)] == [[(9, "a", "insert", 4)]]
    for name, value, said in (
        ("endingVersion", "3", "a stream has no end"),
        ("deduplicationMode", "netChanges", "never ends"),
        ("stream-from-snapshot", "earliest", "startingVersion"),
        ("startingVersions", "1", "Did you mean startingVersion"),
        ("computeUpdates", "true", "no identifier fields"),
    ):
        with pytest.raises(PySparkException, match=said):
            _named(
                spark.readStream.option("readChangeFeed", "true").option("startingVersion", 2).option(name, value), way
            )


@pytest.mark.extended
def test_change_feed_stream_without_a_start_begins_with_the_whole_table(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    stream = spark.readStream.option("readChangeFeed", "true").table("lake.db.t")
    found = [sorted(row[:3] for row in batch) for batch in streams.run(stream)]
    assert found == [[(1, "b", "insert"), (2, "a", "insert"), (3, "a", "insert")]]


@pytest.mark.extended
def test_session_settings_apply_to_streams(
    spark: SparkSession, table: frazil.Table, streams: Streams, tmp_path: Path
) -> None:
    rows = spark.range(20_000).selectExpr("id", "sha2(cast(id as string), 256) v").coalesce(1)
    rows.sortWithinPartitions("id").writeTo("lake.db.big").tableProperty(
        "write.parquet.row-group-size-bytes", "65536"
    ).create()

    def parts(checkpoint: str) -> int:
        seen: list[int] = []
        query = (
            spark.readStream.table("lake.db.big")
            .writeStream.foreachBatch(lambda batch, _: seen.append(batch.rdd.getNumPartitions()))
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        return seen[0]

    assert parts("whole") == 1
    spark.conf.set("spark.sql.iceberg.read.split-size", "100000")
    try:
        assert parts("cut") > 3
        spark.conf.set("spark.sql.iceberg.locality.enabled", "false")
        with pytest.warns(UserWarning, match=r"settings do nothing.*locality\.enabled"):
            spark.readStream.table("lake.db.big")
        spark.conf.set("spark.sql.iceberg.read.split-sizes", "100000")
        with pytest.raises(PySparkException, match=r"Did you mean spark\.sql\.iceberg\.read\.split-size"):
            spark.readStream.table("lake.db.big")
    finally:
        for one in ("read.split-size", "read.split-sizes", "locality.enabled"):
            spark.conf.unset(f"spark.sql.iceberg.{one}")


@pytest.fixture
def changed(spark: SparkSession, table: frazil.Table) -> frazil.Table:
    """Versions: 1 adds 1, 2; 2 adds 3; 3 changes 1 and copies 2; 4 removes the file of 3."""
    spark.sql("delete from lake.db.t where id = 3")
    table.refresh()
    assert [str(one.operation) for one in table.snapshots] == ["append", "append", "overwrite", "delete"]
    return table


@pytest.mark.extended
def test_stream_start_options_select_rows(spark: SparkSession, changed: frazil.Table, streams: Streams) -> None:
    def ids(**options: str) -> list[int]:
        reader = spark.readStream.option("stream-from-snapshot", "earliest").options(**options)
        return sorted(
            one
            for batch in streams.ids(reader.table("lake.db.t"), "-".join(map("-".join, options.items())))
            for one in batch
        )

    skips = ("streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots")
    assert ids(**dict.fromkeys(skips, "true")) == [1, 2, 3]
    assert ids(**{"streaming-changes": "skip"}) == [1, 2, 3]
    assert ids(**{"streaming-changes": "added-files"}) == [1, 1, 2, 2, 3]
    overwritten, removed = (str(one.snapshot_id) for one in changed.snapshots[2:])
    for options, snapshot in (
        ({"streaming-changes": "error"}, overwritten),
        ({"streaming-skip-delete-snapshots": "true"}, overwritten),
        ({"streaming-skip-overwrite-snapshots": "true"}, removed),
    ):
        with pytest.raises(StreamingQueryException, match=snapshot):
            ids(**options)


@pytest.mark.extended
@pytest.mark.parametrize("limit", ["files", "rows", "bytes"])
def test_stream_limit_options_cut_batches(
    spark: SparkSession, changed: frazil.Table, streams: Streams, limit: str
) -> None:
    """streaming-max-files-per-micro-batch, streaming-max-rows-per-micro-batch, streaming-max-bytes-per-micro-batch"""
    reader = spark.readStream.option("stream-from-snapshot", "earliest").option("streaming-changes", "skip")
    stream = reader.option(f"streaming-max-{limit}-per-micro-batch", "1").table("lake.db.t")
    assert streams.ids(stream) == [[1, 2], [3]]


@pytest.mark.extended
def test_change_stream_options_decide_on_updates_and_copied_rows(
    spark: SparkSession, changed: frazil.Table, streams: Streams
) -> None:
    def kinds(**options: str) -> list[tuple[Any, ...]]:
        before = str(changed.snapshots[1].snapshot_id)
        reader = spark.readStream.option("stream-after-snapshot", before).option("streaming-changes", "changes")
        stream = reader.options(**options).table("lake.db.t").where("_commit_version = 3")
        return sorted(row[:3] for batch in streams.run(stream, "-".join(["changes", *options])) for row in batch)

    plain = [(1, "a", "delete"), (1, "b", "insert")]
    images = [(1, "a", "update_preimage"), (1, "b", "update_postimage")]
    assert kinds() == plain
    assert kinds(**{"identifier-columns": "id"}) == images
    assert kinds(**{"identifier-columns": "id", "compute-updates": "false"}) == plain
    assert kinds(deduplicationMode="none") == [*plain, (2, "a", "delete"), (2, "a", "insert")]


@pytest.mark.extended
def test_guard_option_stores_a_named_guard(spark: SparkSession, changed: frazil.Table, streams: Streams) -> None:
    reader = spark.readStream.option("streaming-changes", "skip").option("stream-guard", "nightly")
    assert streams.ids(reader.table("lake.db.t")) == [[1, 2]]
    head = changed.current_snapshot
    assert head is not None
    assert changed.refresh().properties["frazil.stream.nightly"] == str(head.snapshot_id)


@pytest.mark.extended
def test_sink_options_are_respected(spark: SparkSession, table: frazil.Table, tmp_path: Path) -> None:
    spark.sql("create table lake.db.counts (v string, n bigint) using iceberg")

    def count() -> Any:
        rows = spark.readStream.option("streaming-changes", "skip").table("lake.db.t")
        writer = rows.groupBy("v").count().withColumnRenamed("count", "n").writeStream.outputMode("update")
        query = (
            writer.option("checkpointLocation", str(tmp_path / "counts"))
            .option("queryName", "counting")
            .option("upsert-keys", "v")
            .option("compact-every-batches", "1")
            .option("compact.min-input-files", "1000")
            .trigger(availableNow=True)
            .toTable("lake.db.counts")
        )
        assert query.awaitTermination(300)
        return query

    assert count().name == "counting"
    add(spark, 7, value="b")
    count()
    assert sorted(map(tuple, spark.table("lake.db.counts").collect())) == [("a", 2), ("b", 2)]
    summaries = [row["operation"] for row in spark.table("lake.db.counts.snapshots").collect()]
    assert "replace" not in summaries, "too few files for a compaction, as compact.min-input-files says"
    assert len(summaries) == 2, "the checkpoint says what was counted before"


def _wrong(spark: SparkSession, tmp_path: Path, name: str, value: str) -> Any:
    rows = spark.readStream.option("streaming-changes", "skip").table("lake.db.t")
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / name)).option(name, value)
    return writer.trigger(availableNow=True)


@pytest.mark.extended
def test_unsupported_sink_options_are_refused_without_writing(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    spark.sql("create table lake.db.sink (id bigint, v string) using iceberg")
    for name, value, said in (
        ("upsert-key", "id", "Did you mean upsert-keys"),
        ("compact-every-batches", "0", "not a positive integer"),
        ("overwrite-mode", "dynamic", "output mode"),
        ("target-file-size-bytes", "big", "a whole number of bytes"),
        ("filter", "id = 1", "use where"),
    ):
        with pytest.raises(PySparkException, match=said):
            # By its format, a sink knows its options when it is started.
            _wrong(spark, tmp_path, name, value).format("iceberg").start("lake.db.sink")
        query = _wrong(spark, tmp_path, name, value).toTable("lake.db.sink")
        with pytest.raises(StreamingQueryException, match=said):
            query.awaitTermination(300)
    assert spark.table("lake.db.sink").count() == 0


@pytest.mark.extended
def test_stream_and_source_options_do_not_leak(spark: SparkSession, table: frazil.Table) -> None:
    with pytest.raises(PySparkException, match="use MERGE"):
        spark.table("lake.db.t").writeTo("lake.db.t").option("upsert-keys", "id").append()
    for name, options, said in (
        ("lake.db.t", {"filter": "id = 1"}, "use where"),
        ("lake.db.t", {"columns": "id"}, "use select"),
        ("lake.db.t", {"startingVersion": "1"}, "with readChangeFeed"),
        ("lake.db.t", {"readChangeFeed": "true", "startingVersions": "1"}, "Did you mean startingVersion"),
        ("lake.db.t.files", {"start-snapshot-id": "1"}, "an option of reads"),
        ("lake.db.t.files", {"snapshots-id": "1"}, "Did you mean snapshot-id"),
    ):
        with pytest.raises(PySparkException, match=said):
            spark.read.options(**options).table(name).collect()
    with pytest.warns(UserWarning, match=r"To read a metadata table.*split-size"):
        assert spark.read.option("split-size", "1000").table("lake.db.t.snapshots").count() == 3
    spark.sql("create view lake.db.v as select * from lake.db.t")
    with pytest.warns(UserWarning, match=r"To read a view.*split-size"):
        assert spark.read.option("split-size", "1000").table("lake.db.v").count() == 3
