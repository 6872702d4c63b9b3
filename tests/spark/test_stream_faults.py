"""Streams of tables where something went wrong or changed: each ends in a clear error, or goes on with every row.

Names that begin with iceberg_ are complaints about Iceberg Java's streams.
"""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.errors import CommitConflictError
from frazil.sessions.stream_source import StreamSource
from tests.spark.streams import Streams, add


def stream(spark: SparkSession, **options: str) -> DataFrame:
    return spark.readStream.options(**{one.replace("_", "-"): value for one, value in options.items()}).table(
        "lake.db.t"
    )


def expire(table: frazil.Table, keep: int = 1) -> None:
    table.refresh()
    table.expire_snapshots(older_than=datetime.datetime.now(datetime.UTC), retain_last=keep)


def fails(streams: Streams, frame: DataFrame, checkpoint: str = "checkpoint") -> str:
    with pytest.raises(StreamingQueryException) as failed:
        streams.run(frame, checkpoint)
    return str(failed.value)


# Snapshots that are gone


@pytest.mark.extended
def test_iceberg_18000_expired_first_snapshot_does_not_stop_a_later_checkpoint(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    """Also #18008: AvailableNow looked at the snapshot that the query began with."""
    for one in (1, 2, 3):
        add(spark, one)
    limited = stream(spark, stream_from_snapshot="earliest", streaming_max_files_per_micro_batch="1")
    assert streams.ids(limited) == [[1], [2], [3]]
    expire(table)
    add(spark, 4)
    assert streams.ids(limited) == [[4]]


@pytest.mark.extended
def test_iceberg_9504_completed_batch_may_expire(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    """Spark asks for the last batch again when a query goes on, and does not read it."""
    add(spark, 1)
    streams.ids(stream(spark))
    add(spark, 2)
    assert streams.ids(stream(spark)) == [[2]]
    add(spark, 3)
    expire(table)
    assert streams.ids(stream(spark)) == [[3]]


@pytest.mark.extended
def test_iceberg_9504_completed_batch_may_expire_after_compaction(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    add(spark, 1)
    add(spark, 2)
    assert streams.ids(stream(spark)) == [[1, 2]]
    spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    expire(table)
    assert [one.operation for one in table.refresh().snapshots] == ["replace"]
    add(spark, 3)
    assert streams.ids(stream(spark)) == [[3]]


@pytest.mark.extended
def test_iceberg_6388_unread_expired_snapshots_are_reported_with_a_remedy(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    """Also #6480: neither a null pointer nor silence."""
    add(spark, 1)
    streams.ids(stream(spark))
    for one in (2, 3, 4):
        add(spark, one)
    expire(table)
    message = fails(streams, stream(spark))
    assert "have expired; the oldest remaining is" in message
    assert "stream-from-snapshot=" in message and "Start with a new checkpoint" in message
    assert streams.ids(stream(spark), "new") == [[1, 2, 3, 4]]


@pytest.mark.extended
@pytest.mark.parametrize("query", ["rows", "filter", "null", "join", "count", "distinct"])
def test_iceberg_6388_batch_expired_before_completion_is_an_error(
    spark: SparkSession, table: frazil.Table, streams: Streams, tmp_path: Path, query: str
) -> None:
    """Never a batch without rows: the query would go on behind rows that it has not read."""
    frame = {
        "rows": lambda rows: rows,
        "filter": lambda rows: rows.where("id > 0"),
        "null": lambda rows: rows.where("v is not null").select("id"),
        "join": lambda rows: rows.join(spark.range(5), "id"),
        "count": lambda rows: rows.groupBy().count(),
        "distinct": lambda rows: rows.select("id").distinct(),
    }[query](stream(spark))
    mode = "complete" if query == "count" else "append"

    def run() -> None:
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert (
            writer.foreachBatch(lambda rows, _: rows.collect()).trigger(availableNow=True).start().awaitTermination(300)
        )

    add(spark, 1)
    run()
    add(spark, 2)
    run()
    for one in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / one).unlink()
    add(spark, 3)
    expire(table)
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"Cannot continue the stream of .* has expired"):
            run()


def test_guard_keeps_snapshots_needed_by_a_stopped_stream(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    add(spark, 0)
    add(spark, 1)
    guarded = stream(spark, stream_guard="orders")
    assert streams.ids(guarded) == [[0, 1]]
    for one in (2, 3, 4):
        add(spark, one)
    table.refresh()
    assert table.properties["frazil.stream.orders"] == str(table.snapshots[1].snapshot_id)
    expire(table)
    assert len(table.refresh().snapshots) == 4
    assert streams.ids(guarded) == [[2, 3, 4]]
    expire(table)
    assert len(table.refresh().snapshots) == 1


@pytest.mark.extended
def test_guard_keeps_all_snapshots_of_a_table_that_was_empty_at_the_start(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    guarded = stream(spark, stream_guard="orders")
    assert streams.ids(guarded) == []
    for one in (1, 2, 3):
        add(spark, one)
    expire(table)
    assert streams.ids(guarded) == [[1, 2, 3]]
    expire(table)
    assert len(table.refresh().snapshots) == 1


@pytest.mark.extended
def test_stream_does_not_start_at_a_snapshot_that_expired_before_its_guard(
    spark: SparkSession, table: frazil.Table, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(spark, 1)
    guard, races = StreamSource._guard, [2, 3]

    def late(self: StreamSource, *given: Any) -> Any:
        if races:
            add(spark, races.pop(0))
            expire(table)
        return guard(self, *given)

    monkeypatch.setattr(StreamSource, "_guard", late)
    assert streams.ids(stream(spark, stream_guard="orders")) == [[1, 2, 3]]
    assert races == []


@pytest.mark.extended
def test_failure_to_move_a_guard_does_not_stop_the_stream(
    spark: SparkSession, table: frazil.Table, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(spark, 1)
    guarded = stream(spark, stream_guard="orders")
    assert streams.ids(guarded) == [[1]]
    held = table.refresh().properties["frazil.stream.orders"]
    add(spark, 2)

    def lost(*_: Any) -> None:
        raise CommitConflictError("others came first")

    with monkeypatch.context() as patched:
        patched.setattr(StreamSource, "_guard", lost)
        assert streams.ids(guarded) == [[2]]
    assert table.refresh().properties["frazil.stream.orders"] == held


# Snapshots that are passed over


@pytest.mark.extended
def test_iceberg_8902_skipped_snapshots_cost_no_trigger(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    """A compaction was a trigger for each of its files."""
    for one in (1, 2, 3):
        add(spark, one)
    limited = stream(spark, streaming_max_files_per_micro_batch="1", streaming_changes="skip")
    assert len(streams.ids(limited)) == 3
    spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    spark.sql("delete from lake.db.t where id = 1")
    assert streams.ids(limited) == []
    add(spark, 4)
    assert streams.ids(limited) == [[4]]


@pytest.mark.extended
def test_iceberg_2788_non_append_error_names_snapshot_and_options(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    add(spark, 1, 2)
    streams.ids(stream(spark))
    add(spark, 3)
    spark.sql("delete from lake.db.t where id = 1")
    table.refresh()
    message = fails(streams, stream(spark))
    assert str(table.snapshots[-1].snapshot_id) in message
    assert "streaming-changes: changes" in message
    for one in ("overwrite", "delete", "added"):
        shutil.copytree(streams.folder / "checkpoint", streams.folder / one)
    # What was before it is read, and not again.
    assert table.snapshots[-1].operation == "overwrite"
    assert streams.ids(stream(spark, streaming_skip_overwrite_snapshots="true"), "overwrite") == []
    assert "not an append (overwrite)" in fails(
        streams, stream(spark, streaming_skip_delete_snapshots="true"), "delete"
    )
    assert streams.ids(stream(spark, streaming_changes="added-files"), "added") == [[2]]


@pytest.mark.extended
def test_iceberg_13188_initial_snapshot_is_complete_despite_earlier_expiry(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    """Also #16679, #18068, #15472: Iceberg Java reads only files that snapshots still there have added."""
    for one in (1, 2, 3):
        add(spark, one)
    spark.sql("delete from lake.db.t where id = 2")
    expire(table)
    assert streams.ids(stream(spark)) == [[1, 3]]


# Tables that changed behind the stream


@pytest.mark.extended
def test_added_columns_appear_after_restart(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    old = stream(spark)
    streams.run(old)
    spark.sql("alter table lake.db.t add column more int")
    spark.sql("insert into lake.db.t values (2, 'b', 7)")
    assert streams.run(old) == [[(2, "b")]]
    spark.sql("insert into lake.db.t values (3, 'c', 8)")
    assert streams.run(stream(spark)) == [[(3, "c", 8)]]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("drop column v", "column 'v' was dropped"),
        ("rename column v to w", "column 'v' was renamed to 'w'"),
        ("alter column n type bigint", "column 'n' is now long, and was int"),
        ("alter column k drop not null", "column 'k' may now be null"),
    ],
)
def test_incompatible_schema_changes_are_reported_before_reading(
    spark: SparkSession, table: frazil.Table, streams: Streams, change: str, message: str
) -> None:
    spark.sql("create or replace table lake.db.t (id bigint, v string, n int, k int not null) using iceberg")
    spark.sql("insert into lake.db.t values (1, 'a', 1, 1)")
    old = stream(spark)
    streams.run(old)
    spark.sql(f"alter table lake.db.t {change}")
    assert message in fails(streams, old)
    assert streams.run(stream(spark)) == []


def test_rolled_back_source_is_reported(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    add(spark, 2)
    streams.ids(stream(spark))
    table.refresh()
    table.rollback_to(table.snapshots[0].snapshot_id)
    add(spark, 3)
    assert "was set back or replaced" in fails(streams, stream(spark))


@pytest.mark.extended
def test_replaced_source_table_is_reported(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    streams.ids(stream(spark))
    spark.sql("create or replace table lake.db.t using iceberg as select 5L id, 'z' v")
    message = fails(streams, stream(spark))
    assert "set back or replaced" in message or "another table" in message


def test_checkpoint_of_another_table_is_refused(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    streams.ids(stream(spark))
    spark.sql("create table lake.db.other (id bigint, v string) using iceberg")
    add(spark, 1, name="lake.db.other")
    message = fails(streams, spark.readStream.table("lake.db.other"))
    assert "the checkpoint is of lake.db.t, another table" in message


@pytest.mark.extended
def test_table_name_taken_over_by_another_table_is_refused(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    add(spark, 1)
    old = stream(spark)
    streams.ids(old)
    spark.sql("drop table lake.db.t")
    spark.sql("create table lake.db.t (id bigint, v string) using iceberg")
    assert "another table has replaced it" in fails(streams, old)
    assert "another table" in fails(streams, stream(spark))


@pytest.mark.parametrize(
    "damage", ["{}", "not json", '{"version":3,"snapshot_id":1,"position":0,"scan_all_files":false}']
)
def test_damaged_offset_is_reported(
    spark: SparkSession, table: frazil.Table, streams: Streams, tmp_path: Path, damage: str
) -> None:
    add(spark, 1)
    streams.ids(stream(spark))
    log = tmp_path / "checkpoint" / "offsets" / "0"
    version, metadata, _ = log.read_text().split("\n")
    log.write_text(f"{version}\n{metadata}\n{damage}")
    log.with_name(".0.crc").unlink(missing_ok=True)
    assert "Cannot continue a stream from the offset" in fails(streams, stream(spark))


@pytest.mark.extended
def test_uncommitted_batch_is_reread_unchanged(
    spark: SparkSession, table: frazil.Table, streams: Streams, tmp_path: Path
) -> None:
    add(spark, 1)
    add(spark, 2)
    first = streams.ids(stream(spark, streaming_max_files_per_micro_batch="1"), "again")
    for one in (tmp_path / "again" / "commits").iterdir():
        one.unlink()
    last = max(int(one.name) for one in (tmp_path / "again" / "offsets").iterdir() if one.name.isdigit())
    add(spark, 3)
    # No commits: the last batch in the log is run again, and then what is new.
    assert streams.ids(stream(spark), "again") == [first[last], [3]]


@pytest.mark.extended
def test_stream_start_is_stored_before_the_first_batch(
    spark: SparkSession, table: frazil.Table, streams: Streams, tmp_path: Path
) -> None:
    add(spark, 1)
    begun = stream(spark, stream_from_snapshot="latest")
    assert streams.ids(begun) == []
    add(spark, 2)
    assert streams.ids(stream(spark)) == [[2]]
    kept = json.loads((tmp_path / "checkpoint" / "sources" / "0" / "offsets" / "0").read_text())
    assert kept["scan_all_files"] is False


@pytest.mark.extended
def test_future_start_time_is_stored_and_wins_over_options(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    late = stream(spark, stream_from_timestamp="9999999999999")
    assert streams.ids(late, "late") == streams.ids(stream(spark), "whole") == []
    add(spark, 1)
    assert streams.ids(stream(spark), "late") == []
    assert streams.ids(stream(spark, stream_from_snapshot="earliest"), "late") == []
    assert streams.ids(late, "whole") == [[1]]
