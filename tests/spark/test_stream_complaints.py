"""What users of other streams complained about, and faults from outside, while a stream runs.

Names with iceberg_ and delta_ are threads of those projects. `docs/streaming.md` lists the complaints with their tests;
most are in `test_stream_source.py`, `test_stream_faults.py` and `test_stream_sink.py`.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.sessions.remembered import REMEMBERED
from frazil.sessions.stream_compaction import Compactions
from frazil.storage.local import LocalStorage
from tests.spark.streams import Streams, add


@pytest.fixture
def into(spark: SparkSession, attached_lake: frazil.Lake, tmp_path: Path) -> Callable[..., Any]:
    """Stream one table into another until all is written; return the query."""

    def run(source: str, target: str, checkpoint: str = "into", **options: str) -> Any:
        writer = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table(source).writeStream
        for key, value in options.items():
            writer = writer.option(key.replace("__", ".").replace("_", "-"), value)
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        started = query.toTable(target)
        assert started.awaitTermination(300)
        return started

    return run


def ids(table: frazil.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


# Iceberg's jar


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_iceberg_3941_change_feed_of_a_table_maintains_a_copy(
    spark: SparkSession, attached_lake: frazil.Lake, streams: Streams, mode: str
) -> None:
    """Also #17949: inserts, updates and deletes as the rows of a stream."""
    modes = ", ".join(f"'write.{one}.mode'='{mode}'" for one in ("delete", "update", "merge"))
    spark.sql(f"create table lake.db.t (id bigint, v string) using iceberg tblproperties ({modes})")
    feed = spark.readStream.option("streaming-changes", "changes").option("identifier-columns", "id")
    stream = feed.table("lake.db.t")
    copy: dict[int, str] = {}

    def follow() -> None:
        for batch in streams.run(stream):
            for row in sorted(batch, key=lambda one: (one[3], one[2] in ("insert", "update_postimage"))):
                if row[2] in ("delete", "update_preimage"):
                    assert copy.pop(row[0]) == row[1]
                else:
                    assert copy.setdefault(row[0], row[1]) == row[1]

    add(spark, 1, 2, 3)
    follow()
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    spark.sql("delete from lake.db.t where id = 2")
    spark.sql("update lake.db.t set v = 'c' where id = 1")
    add(spark, 4)
    follow()
    assert copy == {1: "c", 3: "a", 4: "a"}
    assert copy == {row.id: row.v for row in spark.table("lake.db.t").collect()}


@pytest.mark.extended
def test_iceberg_13188_new_rows_follow_the_whole_table(
    spark: SparkSession, table: frazil.Table, streams: Streams
) -> None:
    """Also #16679, #18068, #15472."""
    for one in (1, 2, 3):
        add(spark, one)
    spark.sql("delete from lake.db.t where id = 2")
    limited = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("lake.db.t")
    assert sorted(streams.ids(limited)) == [[1], [3]]
    add(spark, 4)
    add(spark, 5)
    assert streams.ids(limited) == [[4], [5]]


@pytest.mark.extended
@pytest.mark.parametrize(("skipped", "kept"), [("delete", "overwrite"), ("overwrite", "delete")])
def test_snapshots_the_jar_skips_are_skipped_by_kind(
    spark: SparkSession, table: frazil.Table, streams: Streams, skipped: str, kept: str
) -> None:
    add(spark, 1)
    add(spark, 2)
    statements = {
        "delete": "delete from lake.db.t where id = 1",
        "overwrite": "insert overwrite lake.db.t select 3L, 'o'",
    }
    stream = spark.readStream.option(f"streaming-skip-{skipped}-snapshots", "true").table("lake.db.t")
    streams.ids(stream)
    spark.sql(statements[skipped])
    assert [table.refresh().snapshots[-1].operation] == [skipped]
    assert streams.ids(stream) == []
    add(spark, 4)
    assert streams.ids(stream) == [[4]]
    spark.sql(statements[kept] if kept == "overwrite" else "delete from lake.db.t where id = 4")
    assert [table.refresh().snapshots[-1].operation] == [kept]
    with pytest.raises(StreamingQueryException, match=str(table.snapshots[-1].snapshot_id)):
        streams.run(stream)


@pytest.mark.extended
def test_new_checkpoint_is_not_confused_with_an_old_query(
    spark: SparkSession, attached_lake: frazil.Lake, table: frazil.Table, into: Callable[..., Any]
) -> None:
    """The query's id is the checkpoint's: the numbers of its batches begin anew, and so does what was written."""
    attached_lake.create_table("db.out", "id bigint, v string")
    for one in (1, 2, 3):
        add(spark, one)
    first = into("lake.db.t", "lake.db.out", "first")
    assert ids(attached_lake.table("db.out")) == [1, 2, 3]
    second = into("lake.db.t", "lake.db.out", "second")
    assert first.id != second.id
    assert ids(attached_lake.table("db.out")) == [1, 1, 2, 2, 3, 3]


# Delta's


def test_delta_4391_stream_starts_after_a_snapshot(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    """Delta has `startingVersion`, which is inclusive, and nothing for what came after."""
    for one in (1, 2, 3):
        add(spark, one)
    second, last = (one.snapshot_id for one in table.refresh().snapshots[1:])
    after = spark.readStream.option("stream-after-snapshot", second).table("lake.db.t")
    assert streams.ids(after) == [[3]]
    newest = spark.readStream.option("stream-after-snapshot", last).table("lake.db.t")
    assert streams.ids(newest, "newest") == []
    add(spark, 4)
    assert (streams.ids(after), streams.ids(newest, "newest")) == ([[4]], [[4]])


@pytest.mark.extended
def test_delta_6050_schema_is_checked_at_restart(spark: SparkSession, table: frazil.Table, streams: Streams) -> None:
    add(spark, 1)
    old = spark.readStream.table("lake.db.t")
    streams.run(old)
    spark.sql("alter table lake.db.t rename column v to w")
    spark.sql("alter table lake.db.t add column v string")
    spark.sql("insert into lake.db.t values (2, 'in w', 'in v')")
    with pytest.raises(StreamingQueryException, match="column 'v' was renamed to 'w'"):
        streams.run(old)
    assert streams.run(spark.readStream.table("lake.db.t")) == [[(2, "in w", "in v")]]


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_delta_6472_commits_that_change_rows_are_skipped_without_repeats(
    spark: SparkSession, attached_lake: frazil.Lake, streams: Streams, mode: str
) -> None:
    """Also #1616: `ignoreChanges` told rows again that a change had merely copied; `skipChangeCommits` does not."""
    spark.sql(
        "create table lake.db.t (id bigint, v string) using iceberg "
        f"tblproperties ('write.update.mode'='{mode}', 'write.delete.mode'='{mode}')"
    )
    add(spark, 1, 2, 3)
    stream = spark.readStream.option("streaming-changes", "skip").table("lake.db.t")
    assert streams.ids(stream) == [[1, 2, 3]]
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    add(spark, 4)
    spark.sql("delete from lake.db.t where id = 2")
    add(spark, 5)
    assert streams.ids(stream) == [[4, 5]]


# Queries that run while something happens


@contextmanager
def running(frame: DataFrame, checkpoint: Path, seen: list[tuple[Any, ...]]) -> Iterator[Any]:
    """Run a query that keeps its rows."""
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: seen.extend(sorted(map(tuple, rows.collect()))))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    try:
        query.processAllAvailable()
        yield query
    finally:
        query.stop()


@pytest.mark.extended
def test_column_added_under_a_running_query_appears_after_restart(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    seen: list[tuple[Any, ...]] = []
    add(spark, 1)
    with running(spark.readStream.table("lake.db.t"), tmp_path / "c", seen) as query:
        spark.sql("alter table lake.db.t add column more int")
        spark.sql("insert into lake.db.t values (2, 'b', 7)")
        query.processAllAvailable()
    assert seen == [(1, "a"), (2, "b")]
    spark.sql("insert into lake.db.t values (3, 'c', 8)")
    with running(spark.readStream.table("lake.db.t"), tmp_path / "c", seen):
        assert seen[2:] == [(3, "c", 8)]


@pytest.mark.extended
def test_source_reports_a_lost_catalog_and_resumes_afterwards(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    seen: list[tuple[Any, ...]] = []
    add(spark, 1)
    database = next((tmp_path / "lake").rglob("*.db"))
    away = database.with_suffix(".away")
    with running(spark.readStream.table("lake.db.t"), tmp_path / "c", seen) as query:
        add(spark, 2)
        query.processAllAvailable()
        database.rename(away)
        database.mkdir()
        try:
            with pytest.raises(StreamingQueryException, match=r"Cannot .*catalog"):
                query.awaitTermination(120)
        finally:
            database.rmdir()
            away.rename(database)
    add(spark, 3)
    with running(spark.readStream.table("lake.db.t"), tmp_path / "c", seen):
        assert seen == [(1, "a"), (2, "a"), (3, "a")]


@pytest.mark.extended
def test_filters_and_columns_reach_every_appended_batch(
    spark: SparkSession, table: frazil.Table, tmp_path: Path
) -> None:
    add(spark, 1)
    seen: list[tuple[Any, ...]] = []
    stream = spark.readStream.table("lake.db.t").where("id > 55").select("id")
    with running(stream, tmp_path / "c", seen) as query:
        for one in (60, 70):
            add(spark, one - 50)
            add(spark, one)
            query.processAllAvailable()
            plan = query._jsq.explainInternal(False)
            (read,) = [part for part in plan.splitlines() if "ReadSchema" in part]
            shown = read.partition("ReadSchema: ")[2]
            assert shown.startswith("struct<") and shown.count(":bigint") == 1 and "string" not in shown, plan
        batches = [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]
    assert seen == [(60,), (70,)]
    assert sum(batches) == 2, "files that hold no such row are not read"


@pytest.mark.extended
def test_slow_compaction_does_not_delay_batches(
    spark: SparkSession,
    attached_lake: frazil.Lake,
    table: frazil.Table,
    into: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a compaction writes waits until the query has ended."""
    out = attached_lake.create_table("db.out", "id bigint, v string")
    for one in range(6):
        add(spark, one)
    ended, waited = threading.Event(), threading.Event()
    create = LocalStorage.create

    def slow(self: LocalStorage, path: str, data: bytes) -> None:
        if threading.current_thread().name.startswith("compaction"):
            waited.set()
            assert ended.wait(120)
        create(self, path, data)

    monkeypatch.setattr(LocalStorage, "create", slow)
    try:
        query = into("lake.db.t", "lake.db.out", compact_every_batches="2", compact__min_input_files="2")
        assert waited.wait(60), "nothing was compacted"
        assert ids(out) == list(range(6))
        assert {one.operation for one in out.snapshots} == {"append"}
    finally:
        ended.set()
    assert REMEMBERED.compactions.recall(str(query.id), Compactions).wait()[::2] == (1, [])
    assert ids(out) == list(range(6))
    assert out.snapshots[-1].operation == "replace"


# How a sink writes


def shuffled_stages(spark: SparkSession, query: Any) -> int:
    """Return how many stages of a query's jobs came after a shuffle."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(str(query.runId))]
    assert jobs
    return sum(len(one.stageIds) - 1 for one in jobs if one is not None)


@pytest.mark.extended
def test_fanout_writes_sorted_files_without_a_shuffle(
    spark: SparkSession, attached_lake: frazil.Lake, table: frazil.Table, into: Callable[..., Any], tmp_path: Path
) -> None:
    out = attached_lake.create_table("db.out", "id bigint, v string", partition_by=["v"], sort_by=["id"])
    rows = pa.table({"id": [5, 3, 9, 1, 7, 2], "v": ["a", "b", "a", "b", "a", "b"]})
    table.append(rows)
    shuffled = into("lake.db.t", "lake.db.out", "shuffled")
    assert shuffled_stages(spark, shuffled) > 0, "nothing would show a shuffle"
    table.append(rows)
    fanout = into("lake.db.t", "lake.db.out", "shuffled", fanout_enabled="true")
    assert shuffled_stages(spark, fanout) == 0
    assert ids(out) == sorted([*range(1, 4), 5, 7, 9] * 2)
    files = out.inspect.files().to_pylist()
    assert len(files) == 4
    for one in files:
        found = pq.ParquetFile(one["file_path"].removeprefix("file://")).read()["id"].to_pylist()
        assert found == sorted(found) and len(found) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.extended
def test_full_data_disk_fails_the_batch_without_loss_or_duplicates(
    spark: SparkSession, attached_lake: frazil.Lake, table: frazil.Table, into: Callable[..., Any], small_disk: Path
) -> None:
    out = attached_lake.create_table(
        "db.out", "id bigint, v string", properties={"write.data.path": f"file://{small_disk}/data"}
    )
    add(spark, 1)
    into("lake.db.t", "lake.db.out")
    (small_disk / "filler").write_bytes(bytes(_room(small_disk)))
    add(spark, 2)
    with pytest.raises(StreamingQueryException, match="No space left"):
        into("lake.db.t", "lake.db.out")
    assert ids(out) == [1]
    (small_disk / "filler").unlink()
    into("lake.db.t", "lake.db.out")
    assert ids(out) == [1, 2]
    assert out.check().ok


def _room(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
