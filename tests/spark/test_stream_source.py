"""Tables as streams: `spark.readStream` over a lake, as users call it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import frazil
from tests.spark.streams import Rows, Streams, add

CHANGE_NAMES = ["_change_type", "_commit_version", "_commit_timestamp"]


def test_stream_starts_with_the_whole_table_without_deleted_rows(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    add(spark, 1, 2, 3)
    add(spark, 4, 5)
    spark.sql("delete from lake.db.t where id = 2")
    stream = spark.readStream.table("lake.db.t")
    assert stream.isStreaming
    assert streams.ids(stream) == [[1, 3, 4, 5]]
    add(spark, 6)
    assert streams.ids(stream) == [[6]]
    assert streams.ids(stream) == []


def test_table_is_streamed_by_format_and_name(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    assert streams.ids(spark.readStream.format("iceberg").load("lake.db.t")) == [[1]]
    add(spark, 2)
    # The same checkpoint: it is the same stream.
    assert streams.ids(spark.readStream.table("lake.db.t")) == [[2]]


@pytest.mark.extended
def test_branch_is_streamed_by_name_and_option(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    table.create_branch("audit")
    add(spark, 2, name="lake.db.t.branch_audit")
    add(spark, 3)
    by_name = spark.readStream.table("lake.db.t.branch_audit")
    by_option = spark.readStream.option("branch", "audit").table("lake.db.t")
    by_format = spark.readStream.format("iceberg").option("branch", "audit").load("lake.db.t")
    for at, stream in enumerate((by_name, by_option, by_format)):
        assert streams.ids(stream, f"checkpoint-{at}") == [[1, 2]]
    add(spark, 4, name="lake.db.t.branch_audit")
    assert streams.ids(by_name, "checkpoint-1") == [[4]]


@pytest.mark.extended
def test_file_row_and_byte_limits_cut_batches(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    for one in range(6):
        add(spark, one * 2, one * 2 + 1)
    table.refresh()
    size = int(dict(table.snapshots[0].summary or {})["added-files-size"])
    for at, (option, value) in enumerate({"files": 2, "rows": 4, "bytes": size + 1}.items()):
        stream = spark.readStream.option(f"streaming-max-{option}-per-micro-batch", value).table("lake.db.t")
        found = streams.ids(stream, f"checkpoint-{at}")
        assert [len(one) for one in found] == [4, 4, 4], option
        assert sorted(one for batch in found for one in batch) == list(range(12))
    once = spark.readStream.option("streaming-max-files-per-micro-batch", 2).table("lake.db.t")
    assert [len(one) for one in streams.ids(once, "once", once=True)] == [12], "Trigger.Once takes all"


@pytest.mark.extended
def test_stream_starts_at_the_configured_position(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    for one in (1, 2, 3):
        add(spark, one)
    table.refresh()
    second = table.snapshots[1]
    starts = {
        "stream-from-snapshot=earliest": [[1, 2, 3]],
        "stream-from-snapshot=latest": [],
        f"stream-from-snapshot={second.snapshot_id}": [[2, 3]],
        f"stream-after-snapshot={second.snapshot_id}": [[3]],
        f"stream-from-timestamp={second.timestamp_ms}": [[2, 3]],
        "stream-from-timestamp=9999999999999": [],
    }
    for at, (option, expected) in enumerate(starts.items()):
        name, _, value = option.partition("=")
        stream = spark.readStream.option(name, value).table("lake.db.t")
        assert streams.ids(stream, f"checkpoint-{at}") == expected, option
    add(spark, 4)
    stream = spark.readStream.table("lake.db.t")
    assert streams.ids(stream, "checkpoint-1") == [[4]], "it goes on where it began, whatever the options say now"


def test_unstreamable_source_is_refused_at_definition(spark: SparkSession, table: frazil.Table) -> None:
    table.create_tag("eom") if table.current_snapshot else None
    spark.sql("create view lake.db.v as select 1 id")
    for name, options, message in (
        ("lake.db.t", {"streaming-changes": "all"}, "error, skip, added-files or changes"),
        ("lake.db.t", {"streaming-max-files": "1"}, "there is no such option"),
        ("lake.db.t", {"streaming-max-files-per-micro-batch": "0"}, "a whole number from 1"),
        ("lake.db.t", {"stream-from-snapshot": "first"}, "earliest or latest"),
        ("lake.db.t", {"snapshot-id": "1"}, "a stream has no end"),
        ("lake.db.t", {"identifier-columns": "id"}, "without streaming-changes=changes"),
        ("lake.db.t.snapshots", {}, "it is a metadata table"),
        ("lake.db.v", {}, "it is a view"),
        ("lake.db.t", {"branch": "nowhere"}, "nowhere"),
    ):
        with pytest.raises(Exception, match=message):
            spark.readStream.options(**options).table(name)
    with pytest.raises(AnalysisException):
        spark.readStream.table("lake.db.missing")
    with pytest.raises(AnalysisException, match=r"lake\.db\.missing"):
        spark.readStream.format("iceberg").load("lake.db.missing")


def test_progress_shows_the_backlog(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    for one in range(3):
        add(spark, one)
    begun = spark.readStream.option("stream-from-snapshot", "earliest")
    streams.run(begun.option("streaming-max-files-per-micro-batch", 1).table("lake.db.t"))
    first = streams.progress[0]["sources"][0]
    assert first["numInputRows"] == 1
    table.refresh()
    assert first["latestOffset"]["snapshot_id"] == table.snapshots[-1].snapshot_id
    assert first["endOffset"]["snapshot_id"] == table.snapshots[0].snapshot_id
    assert {key: first["metrics"][key] for key in ("snapshotsBehind", "filesBehind", "rowsBehind")} == {
        "snapshotsBehind": "2",
        "filesBehind": "2",
        "rowsBehind": "2",
    }


@pytest.mark.extended
def test_backlog_counts_the_initial_snapshot_and_ignores_compactions(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    for one in range(3):
        add(spark, one)
    limited = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("lake.db.t")
    streams.run(limited)
    behind = [one["sources"][0]["metrics"]["rowsBehind"] for one in streams.progress]
    assert behind[:3] == ["2", "1", "0"]
    spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    add(spark, 3)
    add(spark, 4)
    streams.run(limited)
    behind = [one["sources"][0]["metrics"]["rowsBehind"] for one in streams.progress]
    assert behind[:2] == ["1", "0"]


@pytest.mark.extended
def test_available_now_ends_at_the_table_state_of_its_start(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    add(spark, 1)
    add(spark, 2)
    seen: list[int] = []

    def keep(rows: DataFrame, number: int) -> None:
        seen.extend(row.id for row in rows.collect())
        add(spark, 100 + number)

    query = (
        spark.readStream.option("streaming-max-files-per-micro-batch", 1)
        .table("lake.db.t")
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    assert sorted(seen) == [1, 2]


@pytest.mark.extended
def test_query_filters_and_columns_prune_files_in_every_batch(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    for one in (1, 50, 60):
        add(spark, one)
    plans: list[str] = []
    found: list[int] = []

    def keep(rows: DataFrame, number: int) -> None:
        found.extend(row[0] for row in rows.collect())
        plans.append(rows._jdf.queryExecution().executedPlan().toString())

    stream = spark.readStream.table("lake.db.t").where("id > 55").select("id")
    query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "c"))
    started = query.trigger(availableNow=True).start()
    assert started.awaitTermination(300)
    assert found == [60]
    (progress,) = [one for one in started.recentProgress if one["numInputRows"]]
    assert progress["numInputRows"] == 1, "files that hold no such row are not read"


@pytest.mark.extended
def test_state_survives_batches_and_restarts(spark: SparkSession, table: frazil.Table, tmp_path: Path) -> None:
    found: dict[int, list[tuple[Any, ...]]] = {}

    def go() -> None:
        counts = spark.readStream.table("lake.db.t").groupBy("v").count()
        query = (
            counts.writeStream.outputMode("complete")
            .foreachBatch(lambda rows, n: found.update({n: sorted(map(tuple, rows.collect()))}))
            .option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)

    add(spark, 1, 2)
    spark.sql("delete from lake.db.t where id = 1")
    go()
    add(spark, 3, value="b")
    add(spark, 4, value="a")
    go()
    assert found[0] == [("a", 1)]
    assert found[max(found)] == [("a", 2), ("b", 1)]


# Changes of rows


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def changing(spark: SparkSession, attached_lake: frazil.Lake, request: pytest.FixtureRequest) -> frazil.Table:
    modes = ", ".join(f"'write.{one}.mode'='{request.param}'" for one in ("delete", "update", "merge"))
    spark.sql(f"create table lake.db.t (id bigint not null, v string) using iceberg tblproperties ({modes})")
    return attached_lake.table("db.t")


def without_times(batches: list[Rows]) -> Rows:
    return sorted(row[:-2] for rows in batches for row in rows)


def test_iceberg_2788_updates_and_merges_are_streamed_as_changes(
    spark: SparkSession, changing: frazil.Table, streams: Streams
) -> None:
    """Also #7295, #15152, #3265, #3941, #17949: what is no append is neither an error nor lost, but rows."""
    add(spark, 1, 2, 3)
    stream = spark.readStream.option("streaming-changes", "changes").table("lake.db.t")
    assert stream.columns == ["id", "v", *CHANGE_NAMES]
    assert without_times(streams.run(stream)) == [(1, "a", "insert"), (2, "a", "insert"), (3, "a", "insert")]
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    spark.sql("delete from lake.db.t where id = 2")
    spark.sql(
        "merge into lake.db.t t using (select 3L id union all select 4L) s on t.id = s.id "
        "when matched then update set v = 'm' when not matched then insert (id, v) values (s.id, 'n')"
    )
    add(spark, 5)
    changes = [
        (1, "a", "delete"),
        (1, "b", "insert"),
        (2, "a", "delete"),
        (3, "a", "delete"),
        (3, "m", "insert"),
        (4, "n", "insert"),
        (5, "a", "insert"),
    ]
    found = streams.run(stream)
    assert without_times(found) == sorted(changes)
    changing.refresh()
    versions = {row[-2]: row[-1] for rows in found for row in rows}
    assert set(versions) == {one.sequence_number for one in changing.snapshots[1:]}
    times = {one.sequence_number: one.timestamp_ms for one in changing.snapshots}
    assert all(int(when.timestamp() * 1000 + 0.5) == times[one] for one, when in versions.items())


@pytest.mark.extended
def test_updates_have_both_images_if_rows_have_identity(
    spark: SparkSession, changing: frazil.Table, streams: Streams
) -> None:
    spark.sql("alter table lake.db.t set identifier fields id")
    add(spark, 1, 2, 3)
    by_table = spark.readStream.option("streaming-changes", "changes").table("lake.db.t")
    streams.run(by_table)
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    expected = [(1, "a", "update_preimage"), (1, "b", "update_postimage")]
    assert without_times(streams.run(by_table)) == expected
    spark.sql("update lake.db.t set v = 'c' where id = 1")
    apart = spark.readStream.options(**{"streaming-changes": "changes", "compute-updates": "false"})
    assert without_times(streams.run(apart.table("lake.db.t"))) == [(1, "b", "delete"), (1, "c", "insert")]


@pytest.mark.extended
def test_change_feed_and_its_table_agree(spark: SparkSession, changing: frazil.Table, streams: Streams) -> None:
    """What is left when all changes are played is the table."""
    stream = spark.readStream.option("streaming-changes", "changes").table("lake.db.t")
    played: dict[tuple[Any, ...], int] = {}

    def play() -> None:
        for rows in streams.run(stream):
            for row in rows:
                played[row[:2]] = played.get(row[:2], 0) + (1 if row[2] == "insert" else -1)

    add(spark, *range(10))
    spark.sql("delete from lake.db.t where id % 4 = 0")
    play()
    add(spark, 20, 21)
    spark.sql("update lake.db.t set v = concat(v, 'x') where id % 2 = 1")
    spark.table("lake.db.t").where("id = 21").writeTo("lake.db.t").append()
    play()
    spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    spark.sql("insert overwrite lake.db.t select id, v from lake.db.t where id < 21")
    play()
    left = sorted(row for row, count in played.items() for _ in range(count))
    assert min(played.values()) >= 0
    assert left == sorted(map(tuple, spark.table("lake.db.t").collect()))


@pytest.mark.extended
def test_change_filters_keep_state_separate_from_the_feed(
    spark: SparkSession, changing: frazil.Table, tmp_path: Path
) -> None:
    """A dashboard: counts by a change feed, over copied rows that are no changes."""
    found: dict[int, list[tuple[Any, ...]]] = {}

    def go() -> None:
        feed = spark.readStream.option("streaming-changes", "changes").table("lake.db.t")
        counts = feed.where("id > 1").groupBy("v").agg({"*": "count"})
        query = (
            counts.writeStream.outputMode("complete")
            .foreachBatch(lambda rows, n: found.update({n: sorted(map(tuple, rows.collect()))}))
            .option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)

    add(spark, 1, 2, 3)
    go()
    spark.sql("update lake.db.t set v = 'b' where id <= 2")
    go()
    assert found[max(found)] == [("a", 3), ("b", 1)]


@pytest.mark.extended
def test_running_query_reads_concurrent_appends(spark: SparkSession, table: frazil.Table, tmp_path: Path) -> None:
    seen: list[int] = []
    query = (
        spark.readStream.table("lake.db.t")
        .writeStream.foreachBatch(lambda rows, _: seen.extend(row.id for row in rows.collect()))
        .option("checkpointLocation", str(tmp_path / "c"))
        .start()
    )
    try:
        for one in (1, 2, 3):
            add(spark, one)
            query.processAllAvailable()
            assert seen == list(range(1, one + 1))
        spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
        query.processAllAvailable()
        add(spark, 4)
        query.processAllAvailable()
    finally:
        query.stop()
    assert seen == [1, 2, 3, 4]
