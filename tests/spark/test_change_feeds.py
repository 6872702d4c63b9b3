"""Change feeds in Spark's own words: `CHANGES FROM VERSION …`, `spark.read.changes`, and by options on every Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import frazil
from tests.spark.streams import Streams, add

NAMES = ["_change_type", "_commit_version", "_commit_timestamp"]


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(spark: SparkSession, lake: frazil.Lake, request: pytest.FixtureRequest) -> Iterator[frazil.Table]:
    """Versions: 1 adds 1, 2, 3; 2 changes 1; 3 removes 2; 4 adds 4; 5 changes 1 back."""
    frazil.attach(spark, lake)
    modes = ", ".join(f"'write.{one}.mode'='{request.param}'" for one in ("delete", "update", "merge"))
    spark.sql(f"create table lake.db.t (id bigint not null, v string) using iceberg tblproperties ({modes})")
    add(spark, 1, 2, 3)
    spark.sql("update lake.db.t set v = 'b' where id = 1")
    spark.sql("delete from lake.db.t where id = 2")
    add(spark, 4)
    spark.sql("update lake.db.t set v = 'a' where id = 1")
    yield lake.table("db.t")
    frazil.detach(spark)


@pytest.fixture
def has_words(spark: SparkSession) -> None:
    if not hasattr(spark.read, "changes"):
        pytest.skip("Spark before 4.2 has no words for changes")


def feed(spark: SparkSession, **options: Any) -> DataFrame:
    return spark.read.option("readChangeFeed", "true").options(**options).table("lake.db.t")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["v"], row["_change_type"], row["_commit_version"]) for row in frame.collect())


ALL = sorted(
    [
        (1, "a", "insert", 1),
        (2, "a", "insert", 1),
        (3, "a", "insert", 1),
        (1, "a", "delete", 2),
        (1, "b", "insert", 2),
        (2, "a", "delete", 3),
        (4, "a", "insert", 4),
        (1, "b", "delete", 5),
        (1, "a", "insert", 5),
    ]
)


def of(*versions: int) -> list[tuple[Any, ...]]:
    return [row for row in ALL if row[-1] in versions]


@pytest.mark.extended
def test_changes_are_read_by_options_on_every_spark(spark: SparkSession, table: frazil.Table) -> None:
    assert feed(spark).columns == ["id", "v", *NAMES]
    assert rows(feed(spark)) == ALL
    assert rows(feed(spark, startingVersion=0)) == ALL
    assert rows(feed(spark, startingVersion=2, endingVersion=3)) == of(2, 3)
    assert rows(feed(spark, startingVersion=2, endingVersion=4, startingBoundInclusive="false")) == of(3, 4)
    assert rows(feed(spark, startingVersion=2, endingVersion=4, endingBoundInclusive="false")) == of(2, 3)
    snapshots = {one.sequence_number: one for one in table.snapshots}
    by_id = feed(spark, startingVersion=snapshots[3].snapshot_id, endingVersion=snapshots[4].snapshot_id)
    assert rows(by_id) == of(3, 4)
    text = [f"{snapshots[one].timestamp_ms / 1000:.3f}" for one in (2, 3)]
    start, end = (spark.sql(f"select cast(timestamp_seconds({one}) as string) t").collect()[0]["t"] for one in text)
    assert rows(feed(spark, startingTimestamp=start, endingTimestamp=end)) == of(2, 3)
    sql = "select * from lake.db.t with (readChangeFeed = true, startingVersion = 4)"
    assert rows(spark.sql(sql)) == of(4, 5)


@pytest.mark.extended
def test_change_feed_has_updates_and_net_changes(spark: SparkSession, table: frazil.Table) -> None:
    spark.sql("alter table lake.db.t set identifier fields id")
    updates = rows(feed(spark, startingVersion=2, endingVersion=2, computeUpdates="true"))
    assert updates == [(1, "a", "update_preimage", 2), (1, "b", "update_postimage", 2)]
    net = rows(feed(spark, deduplicationMode="netChanges"))
    assert [row[:3] for row in net] == [(1, "a", "insert"), (3, "a", "insert"), (4, "a", "insert")]
    since = rows(feed(spark, startingVersion=2, deduplicationMode="netChanges", computeUpdates="true"))
    assert [row[:3] for row in since] == [(2, "a", "delete"), (4, "a", "insert")]
    copied = rows(feed(spark, startingVersion=2, endingVersion=2, deduplicationMode="none"))
    assert set(of(2)) <= set(copied)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": 77}, "no such snapshot"),
        ({"startingVersion": 4, "endingVersion": 2}, "the end is not later"),
        ({"endingVersion": 2}, "the start is missing"),
        ({"startingVersion": 1, "startingTimestamp": "2026-01-01"}, "by versions and by times at once"),
        ({"startingTimestamp": "yesterday-ish"}, "it is not a time"),
        ({"deduplicationMode": "some"}, "none, dropCarryovers or netChanges"),
        ({"computeUpdates": "true"}, "no identifier fields"),
        ({"computeUpdates": "true", "identifier-columns": "nope"}, "no such column"),
    ],
)
def test_invalid_change_feeds_are_refused(
    spark: SparkSession, table: frazil.Table, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        feed(spark, **options).collect()


@pytest.mark.extended
def test_change_feed_by_path_is_refused(spark: SparkSession, table: frazil.Table) -> None:
    with pytest.raises(Exception, match="Name the table"):
        spark.read.format("iceberg").option("readChangeFeed", "true").load("lake.db.t").collect()


@pytest.mark.extended
def test_changes_from_version_in_sql(spark: SparkSession, table: frazil.Table) -> None:
    """Spark 4.2 and newer have these words; before, the parser says them as options."""
    sql = "select * from lake.db.t changes from version {} {} to version {} {}"
    assert rows(spark.sql(sql.format(2, "inclusive", 3, "inclusive"))) == of(2, 3)
    assert rows(spark.sql(sql.format(2, "exclusive", 4, "exclusive"))) == of(3)
    assert rows(spark.sql("select * from lake.db.t changes from version 4")) == of(4, 5)
    joined = spark.sql(
        "select c.id, c.v, c._change_type, c._commit_version from lake.db.t changes from version 1 c "
        "join lake.db.t t on c.id = t.id where c._commit_version = 5"
    )
    assert rows(joined) == of(5)
    spark.sql("use lake.db")
    try:
        assert rows(spark.sql("select * from t changes from version 4")) == of(4, 5)
    finally:
        spark.sql("use spark_catalog.default")
    spark.sql("create table lake.db.kept as select * from lake.db.t changes from version 4")
    assert rows(spark.table("lake.db.kept")) == of(4, 5)
    at = next(one.timestamp_ms for one in table.snapshots if one.sequence_number == 4)
    time = spark.sql(f"select cast(timestamp_millis({at}) as string) t").collect()[0]["t"]
    assert rows(spark.sql(f"select * from lake.db.t changes from timestamp '{time}'")) == of(4, 5)
    updates = spark.sql(
        "select * from lake.db.t changes from version 5 with (computeUpdates = true, `identifier-columns` = 'id')"
    )
    assert {row["_change_type"] for row in updates.collect()} == {"update_preimage", "update_postimage"}


@pytest.mark.extended
def test_changes_of_a_view_or_metadata_table_are_refused(spark: SparkSession, table: frazil.Table) -> None:
    """Rows that are no changes must never come instead."""
    spark.range(3).createOrReplaceTempView("some_rows")
    spark.sql("create view lake.db.v as select * from lake.db.t")
    for text in (
        "select * from some_rows changes from version 1",
        "select * from lake.db.v changes from version 1",
        "with t as (select 1) select * from t changes from version 1",
        "select * from lake.db.t.snapshots changes from version 1",
        "select * from identifier('some_rows') changes from version 1",
    ):
        with pytest.raises(PySparkException):
            spark.sql(text).collect()
    with pytest.raises(PySparkException, match="it is a view"):
        spark.read.option("readChangeFeed", "true").table("lake.db.v").collect()
    with pytest.raises(PySparkException, match="it is a view"):
        spark.read.option("branch", "main").table("lake.db.v").collect()


def test_spark_read_changes(spark: SparkSession, table: frazil.Table, has_words: None) -> None:
    read: Any = spark.read
    assert rows(read.option("startingVersion", "2").option("endingVersion", "3").changes("lake.db.t")) == of(2, 3)
    spark.sql("alter table lake.db.t set identifier fields id")
    found = spark.read.options(startingVersion="5", computeUpdates="true")
    assert rows(found.changes("lake.db.t")) == [(1, "a", "update_postimage", 5), (1, "b", "update_preimage", 5)]


@pytest.mark.extended
def test_spark_read_stream_changes(spark: SparkSession, table: frazil.Table, has_words: None, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    reader: Any = spark.readStream.option("startingVersion", "2")
    stream = reader.changes("lake.db.t")
    assert stream.columns == ["id", "v", *NAMES]
    found = sorted(row[:4] for batch in streams.run(stream) for row in batch)
    assert found == of(2, 3, 4, 5)
    add(spark, 9)
    assert [row[:3] for batch in streams.run(stream) for row in batch] == [(9, "a", "insert")]
