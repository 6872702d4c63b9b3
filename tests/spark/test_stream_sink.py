"""Tables that streams write to: `df.writeStream.toTable`, as users call it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.errors import StorageError
from frazil.sessions.remembered import REMEMBERED
from frazil.sessions.stream_compaction import Compactions
from frazil.storage.local import LocalStorage
from tests.spark.settings import settings

COLUMNS = "id bigint, v string"


class Feed:
    """Files of rows that a stream reads, one file a batch, always in the same order."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.count = 0
        folder.mkdir(parents=True)

    def add(self, *rows: tuple[int, str]) -> None:
        text = "\n".join(json.dumps({"id": one, "v": value}) for one, value in rows)
        unfinished = self.folder / f".{self.count}"
        unfinished.write_text(text)
        unfinished.rename(self.folder / f"{self.count:05}.json")
        self.count += 1

    def stream(self) -> DataFrame:
        return self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self.folder))


@pytest.fixture
def table(attached_lake: frazil.Lake) -> frazil.Table:
    return attached_lake.create_table("db.t", COLUMNS)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "feed")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def run(frame: DataFrame, checkpoint: Path, name: str = "lake.db.t", mode: str = "append", **options: Any) -> Any:
    """Run a query until it has written what is there."""
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    for key, value in options.items():
        writer = writer.option(key.replace("__", ".").replace("_", "-"), value)
    query = writer.trigger(availableNow=True).toTable(name)
    assert query.awaitTermination(300)
    return query


def rows(table: frazil.Table, **scan: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(one.values()) for one in table.refresh().scan(**scan).to_arrow().to_pylist())


def forget_last_batch(checkpoint: Path) -> int:
    """Take the last batch out of the log of what is done, as a crash right after the table's commit would."""
    last = max(int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit())
    for one in (checkpoint / "commits" / str(last), checkpoint / "commits" / f".{last}.crc"):
        one.unlink(missing_ok=True)
    return last


def test_each_batch_is_one_snapshot_with_the_summary_keys_of_the_jar(
    table: frazil.Table, feed: Feed, checkpoint: Path
) -> None:
    feed.add((1, "a"))
    feed.add((2, "b"), (3, "c"))
    query = run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a"), (2, "b"), (3, "c")]
    summaries = [dict(one.summary or ()) for one in table.snapshots]
    assert [one["spark.sql.streaming.epochId"] for one in summaries] == ["0", "1"]
    assert {one["spark.sql.streaming.queryId"] for one in summaries} == {str(query.id)}
    assert "lake.db.t" in query.lastProgress["sink"]["description"]
    feed.add((4, "d"))
    run(feed.stream(), checkpoint)
    assert len(rows(table)) == 4


@pytest.mark.extended
def test_format_iceberg_and_start_write_to_the_named_table(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    feed.add((1, "a"))
    writer = feed.stream().writeStream.format("iceberg").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start("lake.db.t")
    assert query.awaitTermination(300)
    assert rows(table) == [(1, "a")]
    again = feed.stream().writeStream.format("iceberg").option("checkpointLocation", str(checkpoint))
    feed.add((2, "b"))
    query = again.option("path", "lake.db.t").trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert rows(table) == [(1, "a"), (2, "b")]


@pytest.mark.extended
def test_missing_table_is_created(
    spark: SparkSession, attached_lake: frazil.Lake, feed: Feed, checkpoint: Path
) -> None:
    feed.add((1, "a"))
    writer = feed.stream().writeStream.format("iceberg").partitionBy("v").option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).toTable("lake.db.made").awaitTermination(300)
    made = attached_lake.table("db.made")
    assert rows(made) == [(1, "a")]
    assert [one.name for one in made.spec.fields] == ["v"]


@pytest.mark.parametrize("expires", [False, True], ids=["kept", "expired"])
def test_batch_rerun_by_spark_is_written_once(table: frazil.Table, feed: Feed, checkpoint: Path, expires: bool) -> None:
    """Exactly once, also when the query's last snapshot has expired (the jar loses it then)."""
    for number in range(3):
        feed.add((number, "x"))
    run(feed.stream(), checkpoint)
    if expires:
        table.append(pa.table({"id": [9], "v": ["other"]}))
        table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
        assert len(table.snapshots) == 1
    expected = rows(table)
    assert forget_last_batch(checkpoint) == 2
    run(feed.stream(), checkpoint)
    assert rows(table) == expected
    feed.add((3, "x"))
    run(feed.stream(), checkpoint)
    assert rows(table) == sorted([*expected, (3, "x")])


@pytest.mark.extended
@pytest.mark.parametrize("how", ["name", "option"])
def test_rerun_batch_is_looked_up_on_its_branch(table: frazil.Table, feed: Feed, checkpoint: Path, how: str) -> None:
    """The jar looks at main, and writes the batch a second time."""
    table.append(pa.table({"id": [0], "v": ["main"]}))
    table.create_branch("audit")
    feed.add((1, "a"))
    name, options = ("lake.db.t.branch_audit", {}) if how == "name" else ("lake.db.t", {"branch": "audit"})
    run(feed.stream(), checkpoint, name, **options)
    forget_last_batch(checkpoint)
    run(feed.stream(), checkpoint, name, **options)
    assert rows(table, ref="audit") == [(0, "main"), (1, "a")]
    assert rows(table) == [(0, "main")]


@pytest.mark.slow
def test_rolled_back_batch_is_written_again(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    feed.add((1, "a"))
    run(feed.stream(), checkpoint)
    first = table.refresh().metadata.current_snapshot_id
    assert first is not None
    feed.add((2, "b"))
    run(feed.stream(), checkpoint)
    table.rollback_to(first)
    forget_last_batch(checkpoint)
    run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a"), (2, "b")]


def test_complete_mode_replaces_the_result(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    counts = feed.stream().groupBy("v").agg(F.count("*").alias("id")).select("id", "v")
    feed.add((1, "a"), (2, "b"))
    run(counts, checkpoint, mode="complete")
    feed.add((3, "a"))
    run(counts, checkpoint, mode="complete")
    assert rows(table) == [(1, "b"), (2, "a")]
    forget_last_batch(checkpoint)
    run(counts, checkpoint, mode="complete")
    assert rows(table) == [(1, "b"), (2, "a")]


@pytest.mark.parametrize("by", ["identifier fields", "option"])
@pytest.mark.parametrize("write_mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.slow
def test_update_mode_upserts_by_keys(
    attached_lake: frazil.Lake, feed: Feed, checkpoint: Path, by: str, write_mode: str
) -> None:
    """Nobody has this: overwrites and merges cannot be streamed to Iceberg's tables otherwise."""
    table = attached_lake.create_table(
        "db.k", "id bigint, v string not null", properties={"write.merge.mode": write_mode}
    )
    options = {"upsert_keys": "v"}
    if by == "identifier fields":
        options = {}
        with table.update_schema() as update:
            update.set_identifier_fields(["v"])
    counts = feed.stream().groupBy(F.coalesce("v", F.lit("")).alias("v")).agg(F.count("*").alias("id"))
    feed.add((1, "a"), (2, "b"))
    run(counts, checkpoint, "lake.db.k", mode="update", **options)
    feed.add((3, "a"), (4, "c"))
    run(counts, checkpoint, "lake.db.k", mode="update", **options)
    assert rows(table) == [(1, "b"), (1, "c"), (2, "a")]
    forget_last_batch(checkpoint)
    run(counts, checkpoint, "lake.db.k", mode="update", **options)
    assert rows(table) == [(1, "b"), (1, "c"), (2, "a")]


def test_update_mode_without_keys_explains_how_to_set_them(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    feed.add((1, "a"))
    with pytest.raises(StreamingQueryException, match="upsert-keys"):
        run(feed.stream(), checkpoint, mode="update")
    assert table.refresh().current_snapshot is None


@pytest.mark.extended
def test_options_of_the_jar_are_honoured(
    spark: SparkSession, attached_lake: frazil.Lake, feed: Feed, checkpoint: Path
) -> None:
    table = attached_lake.create_table("db.p", COLUMNS, partition_by=["v"], sort_by=["id"])
    feed.add((2, "b"), (1, "a"), (3, "a"))
    run(
        feed.stream(),
        checkpoint,
        "lake.db.p",
        fanout_enabled="true",
        snapshot_property__team="orders",
        use_merge_append_for_streaming="true",
    )
    assert rows(table) == [(1, "a"), (2, "b"), (3, "a")]
    assert dict(table.snapshots[0].summary or ())["team"] == "orders"
    assert {one["partition"]["v"] for one in table.inspect.files().to_pylist()} == {"a", "b"}


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("lake.db.t.snapshots", {}, "metadata table"),
        ("lake.db.t", {"fanout_enabled": "maybe"}, "true or false"),
        ("lake.db.t", {"use_merge_append_for_streaming": "false"}, "commit.manifest-merge.enabled"),
        ("lake.db.t", {"compact_every_batches": "0"}, "whole number above 0"),
        ("lake.db.t", {"compact__min_input_files": "2"}, "no option says when"),
        ("lake.db.t", {"compact_every_batches": "2", "compact__nonsense": "2"}, "nonsense"),
        ("lake.db.t", {"mergeSchema": "true"}, "accept-any-schema"),
        ("lake.db.t", {"txnAppId": "me", "txnVersion": "1"}, "identified by their query"),
    ],
)
@pytest.mark.slow
def test_unwritable_targets_are_refused(
    table: frazil.Table, feed: Feed, checkpoint: Path, name: str, options: dict[str, str], says: str
) -> None:
    feed.add((1, "a"))
    with pytest.raises((AnalysisException, StreamingQueryException), match=says):
        run(feed.stream(), checkpoint, name, **options)
    assert table.refresh().current_snapshot is None


def test_column_missing_in_the_table_is_refused_at_query_start(
    table: frazil.Table, feed: Feed, checkpoint: Path
) -> None:
    with pytest.raises(AnalysisException, match="no column 'extra'"):
        run(feed.stream().withColumn("extra", F.lit(1)), checkpoint)


def test_continuous_trigger_is_refused(spark: SparkSession, attached_lake: frazil.Lake, checkpoint: Path) -> None:
    attached_lake.create_table("db.r", "timestamp timestamptz, value bigint")
    frame = spark.readStream.format("rate").load()
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(continuous="1 second")
    with pytest.raises(Exception, match="continuous trigger"):
        writer.toTable("lake.db.r")


@pytest.mark.slow
def test_table_recreated_under_a_running_query_is_an_error(
    attached_lake: frazil.Lake, table: frazil.Table, feed: Feed, checkpoint: Path
) -> None:
    feed.add((1, "a"))
    query = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).toTable("lake.db.t")
    query.processAllAvailable()
    attached_lake.drop_table("db.t")
    attached_lake.create_table("db.t", COLUMNS)
    feed.add((2, "b"))
    with pytest.raises(StreamingQueryException, match="another table has replaced it"):
        query.processAllAvailable()
    query.stop()
    run(feed.stream(), checkpoint)
    assert rows(attached_lake.table("db.t")) == [(2, "b")]


@pytest.mark.extended
def test_stream_compacts_while_running_and_keeps_its_rows(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    for number in range(8):
        feed.add((number, "x"))
    query = run(feed.stream(), checkpoint, compact_every_batches="3", compact__min_input_files="2")
    finished, gave_way, problems = REMEMBERED.compactions.recall(str(query.id), Compactions).wait()
    assert (finished > 0, problems) == (True, []), gave_way
    assert rows(table) == [(number, "x") for number in range(8)]
    assert "replace" in [one.operation for one in table.snapshots]
    assert len(table.inspect.files()) < 8
    assert table.check().ok


@pytest.mark.slow
def test_background_compaction_by_bytes_yields_to_update_mode(
    table: frazil.Table, feed: Feed, checkpoint: Path
) -> None:
    counts = feed.stream().groupBy("v").agg(F.count("*").alias("id")).select("id", "v")
    for number in range(6):
        feed.add((number, "x"), (number, f"y{number}"))
    options = {"upsert_keys": "v", "compact_every_bytes": "1", "compact__min_input_files": "2"}
    query = run(counts, checkpoint, mode="update", **options)
    assert REMEMBERED.compactions.recall(str(query.id), Compactions).wait()[2] == []
    assert rows(table) == sorted([(6, "x"), *((1, f"y{number}") for number in range(6))])


@pytest.mark.slow
def test_two_queries_with_one_checkpoint_write_no_duplicates(
    spark: SparkSession, table: frazil.Table, feed: Feed, checkpoint: Path, tmp_path: Path
) -> None:
    for number in range(3):
        feed.add((number, "x"))
    run(feed.stream(), checkpoint)
    copied = tmp_path / "copy"
    shutil.copytree(checkpoint, copied)
    for number in range(3, 6):
        feed.add((number, "x"))
    first = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    second = feed.stream().writeStream.option("checkpointLocation", str(copied)).trigger(availableNow=True)
    one = first.toTable("lake.db.t")
    assert one.awaitTermination(300)
    # The same query, from a copy of where it was: it finds its batches done.
    two = second.toTable("lake.db.t")
    assert two.awaitTermination(300)
    assert one.id == two.id
    assert rows(table) == [(number, "x") for number in range(6)]


@pytest.mark.extended
def test_diverged_checkpoint_copy_is_refused_before_losing_rows(
    spark: SparkSession, table: frazil.Table, feed: Feed, checkpoint: Path, tmp_path: Path
) -> None:
    """Its batches have the numbers of others that are done: they would count as written."""
    feed.add((0, "x"))
    run(feed.stream(), checkpoint)
    copied = tmp_path / "copy"
    shutil.copytree(checkpoint, copied)
    for number in (1, 2, 3):
        feed.add((number, "x"))
    run(feed.stream(), checkpoint)
    for one in feed.folder.glob("*.json"):
        one.unlink()
    feed.add((9, "y"))
    with pytest.raises(StreamingQueryException, match=r"Cannot write batch 1 of the query .* other input"):
        run(feed.stream(), copied)
    # Only the last batch is known any more.
    record = next(one for one in table.refresh().properties if one.startswith("frazil.once."))
    table.set_properties({record: json.dumps(json.loads(table.properties[record])[-1:])})
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    with pytest.raises(StreamingQueryException, match=r"Cannot write batch 1 of the query .* a later one"):
        run(feed.stream(), copied)
    assert rows(table) == [(number, "x") for number in range(4)]
    run(feed.stream(), checkpoint)
    assert rows(table)[-1] == (9, "y")


@pytest.mark.extended
def test_stale_checkpoint_with_different_batches_is_refused(
    spark: SparkSession, attached_lake: frazil.Lake, table: frazil.Table, checkpoint: Path, tmp_path: Path
) -> None:
    source = attached_lake.create_table("db.s", COLUMNS)
    source.append(pa.table({"id": [0], "v": ["x"]}))
    run(spark.readStream.table("lake.db.s"), checkpoint)
    shutil.copytree(checkpoint, tmp_path / "old")
    for number in (1, 2):
        source.append(pa.table({"id": [number], "v": ["x"]}))
        run(spark.readStream.table("lake.db.s"), checkpoint)
    with pytest.raises(StreamingQueryException, match=r"Cannot write batch 1 of the query .* other input"):
        run(spark.readStream.table("lake.db.s"), tmp_path / "old")
    assert rows(table) == [(number, "x") for number in range(3)]


def test_checkpoint_cannot_be_used_twice_in_a_session(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    feed.add((1, "a"))
    first = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).toTable("lake.db.t")
    first.processAllAvailable()
    second = feed.stream().writeStream.option("checkpointLocation", str(checkpoint)).toTable("lake.db.t")
    # Spark ends the first one, and the second goes on where it was.
    feed.add((2, "b"))
    second.processAllAvailable()
    assert not first.isActive
    second.stop()
    assert rows(table) == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_damaged_offset_is_an_error_without_duplicates(table: frazil.Table, feed: Feed, checkpoint: Path) -> None:
    feed.add((1, "a"))
    feed.add((2, "b"))
    run(feed.stream(), checkpoint)
    (checkpoint / "offsets" / "1").write_text("v1\n{")
    (checkpoint / "offsets" / ".1.crc").unlink()
    feed.add((3, "c"))
    with pytest.raises(StreamingQueryException):
        run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a"), (2, "b")]


@pytest.mark.extended
def test_lost_catalog_is_a_clear_error_and_the_query_resumes(
    attached_lake: frazil.Lake, table: frazil.Table, feed: Feed, checkpoint: Path, tmp_path: Path
) -> None:
    feed.add((1, "a"))
    run(feed.stream(), checkpoint)
    feed.add((2, "b"))
    query = feed.stream().writeStream.option("checkpointLocation", str(checkpoint))
    started = query.trigger(processingTime="0 seconds").toTable("lake.db.t")
    started.processAllAvailable()
    database = next((tmp_path / "lake").rglob("*.db"))
    away = database.with_suffix(".away")
    database.rename(away)
    database.mkdir()
    feed.add((3, "c"))
    with pytest.raises(StreamingQueryException, match=r"(?i)cannot"):
        started.processAllAvailable()
    started.stop()
    database.rmdir()
    away.rename(database)
    run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.extended
def test_full_disk_fails_the_batch_and_the_query_resumes(
    table: frazil.Table, feed: Feed, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.add((1, "a"))
    run(feed.stream(), checkpoint)
    feed.add((2, "b"))
    create = LocalStorage.create

    def full(self: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith(".avro"):
            raise StorageError(f"Cannot write {path}: No space left on device")
        create(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "create", full)
        with pytest.raises(StreamingQueryException, match="No space left"):
            run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a")]
    run(feed.stream(), checkpoint)
    assert rows(table) == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_iceberg_8809_foreach_batch_with_once_writes_each_batch_once(
    attached_lake: frazil.Lake, table: frazil.Table, feed: Feed, checkpoint: Path
) -> None:
    """As Delta's txnAppId and txnVersion."""
    for number in range(3):
        feed.add((number, "x"))

    def by_verb(frame: DataFrame, number: int) -> None:
        attached_lake.table("db.t").append(frame, once=("verb", number))

    def by_options(frame: DataFrame, number: int) -> None:
        frame.write.format("iceberg").option("txnAppId", "dfw").option("txnVersion", number).mode("append").save(
            "lake.db.t"
        )

    for write in (by_verb, by_options):
        for _ in range(2):
            writer = feed.stream().writeStream.foreachBatch(write).trigger(availableNow=True)
            assert writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination(300)
            shutil.rmtree(checkpoint)
    assert rows(table) == sorted([(number, "x") for number in range(3)] * 2)


@pytest.mark.extended
def test_once_applies_to_statements_and_writers_by_option_and_setting(
    spark: SparkSession, attached_lake: frazil.Lake, table: frazil.Table
) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "b")], COLUMNS)
    for _ in range(2):
        frame.writeTo("lake.db.t").option("once-application", "w").option("once-version", "d1").append()
    assert len(rows(table)) == 2
    settings = {"spark.frazil.once-application": "sql", "spark.frazil.once-version": "v1"}
    statements = {
        "v1": "insert into lake.db.t values (3, 'c')",
        "v2": "update lake.db.t set v = concat(v, '!') where id < 3",
        "v3": "merge into lake.db.t t using (select 1L as id) s on t.id = s.id "
        "when matched then update set v = t.v || '?'",
        "v4": "delete from lake.db.t where id = 2",
    }
    try:
        for version, statement in statements.items():
            for name, value in {**settings, "spark.frazil.once-version": version}.items():
                spark.conf.set(name, value)
            for _ in range(2):
                spark.sql(statement)
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert rows(table) == [(1, "a!?"), (3, "c")]
    with pytest.raises(AnalysisException, match="once-application alone"):
        frame.writeTo("lake.db.t").option("once-application", "w").append()
    with pytest.raises(AnalysisException, match="whole number"):
        frame.writeTo("lake.db.t").option("txnAppId", "w").option("txnVersion", "x").append()


def test_stream_files_have_column_ids_and_merged_manifests(
    attached_lake: frazil.Lake, feed: Feed, checkpoint: Path
) -> None:
    table = attached_lake.create_table("db.t", COLUMNS, properties={"commit.manifest.min-count-to-merge": "3"})
    for number in range(5):
        feed.add((number, "v"))
    run(feed.stream(), checkpoint)
    assert rows(table) == [(number, "v") for number in range(5)]
    assert table.inspect.manifests().num_rows < 5
    for path in table.inspect.files().column("file_path").to_pylist():
        fields = pq.read_schema(path.removeprefix("file://"))
        ids = [int(field.metadata[b"PARQUET:field_id"]) for field in fields]
        assert ids == [field.field_id for field in table.schema.fields]


@pytest.mark.usefixtures("attached_lake")
@pytest.mark.parametrize("generates_code", [True, False], ids=["one-piece-of-code", "operators"])
def test_batch_rows_are_written_as_computed(
    spark: SparkSession, tmp_path: Path, checkpoint: Path, generates_code: bool
) -> None:
    """Rows in Spark's binary format need no copy. Others, of plans that generate no code, are written all the same."""
    made = spark.range(3000).selectExpr(
        "id",
        "if(id % 7 = 0, null, concat('v', id)) as v",
        "if(id % 5 = 0, null, named_struct('a', cast(id as int), 'b', binary(concat('b', id)))) as s",
        "cast(id as decimal(30, 4)) as d",
        "timestamp_micros(id) as at",
    )
    made.write.parquet(str(tmp_path / "rows"))
    types = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in made.schema)
    spark.sql(f"create table lake.db.typed ({types}) using iceberg")
    frame = spark.readStream.schema(types).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    with settings(spark, {"spark.sql.codegen.wholeStage": str(generates_code).lower()}):
        run(frame.where("id % 11 <> 0"), checkpoint, "lake.db.typed")
    plans = spark._jsparkSession.sharedState().statusStore().executionsList()
    plan = plans.apply(plans.size() - 1).physicalPlanDescription()
    expected = made.where("id % 11 <> 0").orderBy("id").collect()
    assert spark.table("lake.db.typed").orderBy("id").collect() == expected
    for (path,) in spark.sql("select file_path from lake.db.typed.files").collect():
        parts = pq.read_schema(path.removeprefix("file://")).field("s").type
        assert [int(part.metadata[b"PARQUET:field_id"]) for part in parts] == [6, 7]
    assert ("Scan Computed" in plan) == generates_code
