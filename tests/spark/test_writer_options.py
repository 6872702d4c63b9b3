"""What PySpark's writers are told is done or refused, never passed over; and what waits for a write hears of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.errors import UnsupportedOperationException as Unsupported
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

import frazil


@pytest.fixture
def frame(attached: SparkSession) -> DataFrame:
    return attached.createDataFrame([(4, "c"), (5, "a")], "id bigint, kind string")


def test_writer_creates_the_table_with_its_buckets_and_path(
    frame: DataFrame, lake: frazil.Lake, tmp_path: Path
) -> None:
    writer = frame.write.partitionBy("kind").bucketBy(4, "id").option("path", f"{tmp_path}/elsewhere")
    writer.option("snapshot-property.who", "me").saveAsTable("lake.db.made")
    made = lake.table("db.made")
    assert [str(part.transform) for part in made.spec.fields] == ["identity", "bucket[4]"]
    assert made.location.endswith("/elsewhere")
    assert made.current_snapshot is not None and made.current_snapshot.summary is not None
    assert made.current_snapshot.summary["who"] == "me"


def test_writer_may_repeat_the_partitioning_of_a_table(frame: DataFrame, lake: frazil.Lake) -> None:
    """As scripts have it that run every day: the first day makes the table, the others append to it."""
    for _ in range(3):
        frame.write.partitionBy("kind").mode("append").saveAsTable("lake.db.made")
    assert frame.sparkSession.table("lake.db.made").count() == 6
    for _ in range(2):
        frame.write.partitionBy("kind").bucketBy(4, "id").mode("append").saveAsTable("lake.db.buckets")
    assert frame.sparkSession.table("lake.db.buckets").count() == 4
    with pytest.raises(IllegalArgumentException, match="do not match the existing table's"):
        frame.write.partitionBy("id").mode("append").saveAsTable("lake.db.made")
    assert [one.name for one in lake.table("db.made").spec.fields] == ["kind"]


def test_path_option_names_a_table_or_a_new_location(frame: DataFrame, lake: frazil.Lake, tmp_path: Path) -> None:
    elsewhere = f"{tmp_path}/elsewhere"
    writer = frame.write.format("iceberg")
    with pytest.raises(AnalysisException, match="it is a path, and only catalog tables can be written"):
        writer.option("path", lake.create_table("db.there", "id bigint, kind string").location).mode("append").save()
    for path in (elsewhere, f"{elsewhere}/", f"file:{elsewhere}", f"file://{elsewhere}"):
        # Where the table is, however it is written.
        frame.write.format("iceberg").mode("append").option("path", path).saveAsTable("lake.db.made")
    assert lake.table("db.made").location.endswith(elsewhere)
    frame.write.format("iceberg").mode("append").option("path", "lake.db.made").save()
    assert frame.sparkSession.table("lake.db.made").count() == 10
    frame.write.format("iceberg").mode("overwrite").option("path", f"{elsewhere}-2").saveAsTable("lake.db.made")
    assert lake.table("db.made").location.endswith(f"{elsewhere}-2")
    frame.writeTo("lake.db.v2").using("iceberg").option("path", f"{elsewhere}-3").create()
    assert lake.table("db.v2").location.endswith(f"{elsewhere}-3")


@pytest.mark.parametrize("path", ["/elsewhere", "s3://bucket/elsewhere", "lake.db.other"])
def test_path_of_a_different_table_is_refused(frame: DataFrame, lake: frazil.Lake, path: str) -> None:
    table, spark = lake.create_table("db.t", "id bigint, kind string"), frame.sparkSession
    wrong: Any = pytest.raises(AnalysisException, match=rf"Cannot use lake.db.t at the path '{path}'")
    with wrong:
        frame.write.format("iceberg").mode("append").option("path", path).saveAsTable("lake.db.t")
    with wrong:
        frame.write.option("path", path).insertInto("lake.db.t")
    with wrong:
        frame.writeTo("lake.db.t").option("path", path).append()
    with wrong:
        spark.read.option("path", path).table("lake.db.t").collect()
    with wrong:
        spark.readStream.option("path", path).table("lake.db.t")
    assert table.refresh().current_snapshot is None


@pytest.mark.extended
@pytest.mark.parametrize(
    "write",
    [
        lambda frame: frame.write.mode("overwrite").option("snapshot-property.who", "me").saveAsTable("lake.db.t"),
        lambda frame: frame.write.mode("append").option("snapshot-property.who", "me").saveAsTable("lake.db.t"),
        lambda frame: frame.write.option("snapshot-property.who", "me").insertInto("lake.db.t"),
        lambda frame: frame.writeTo("lake.db.t").option("snapshot-property.who", "me").createOrReplace(),
        lambda frame: frame.writeTo("lake.db.t").option("snapshot-property.who", "me").overwritePartitions(),
    ],
)
def test_snapshot_properties_are_kept_by_every_writer(frame: DataFrame, lake: frazil.Lake, write: Any) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    write(frame)
    table.refresh()
    assert table.current_snapshot is not None and table.current_snapshot.summary is not None
    assert table.current_snapshot.summary["who"] == "me"


@pytest.mark.extended
@pytest.mark.parametrize("option", ["partitionOverwriteMode", "overwrite-mode"])
def test_dynamic_overwrite_keeps_partitions_without_new_rows(
    frame: DataFrame, attached: SparkSession, option: str
) -> None:
    attached.sql("create table lake.db.p (id bigint, kind string) partitioned by (kind)")
    attached.sql("insert into lake.db.p values (1, 'a'), (2, 'b')")
    frame.write.mode("overwrite").option(option, "dynamic").insertInto("lake.db.p")
    assert sorted(map(tuple, attached.table("lake.db.p").collect())) == [(2, "b"), (4, "c"), (5, "a")]
    frame.write.mode("overwrite").option(option, "static").insertInto("lake.db.p")
    assert sorted(map(tuple, attached.table("lake.db.p").collect())) == [(4, "c"), (5, "a")]


@pytest.mark.parametrize(
    "write, kind, reason",
    [
        (
            lambda f: f.write.bucketBy(4, "id", "kind").saveAsTable("lake.db.no"),
            Unsupported,
            "one column",
        ),
        (
            lambda f: f.write.bucketBy(4, "id").sortBy("id").saveAsTable("lake.db.no"),
            Unsupported,
            "sortBy",
        ),
        (lambda f: f.write.clusterBy("id").saveAsTable("lake.db.no"), Unsupported, "clustering"),
        (lambda f: f.writeTo("lake.db.no").clusterBy("id").create(), Unsupported, "clustering"),
        (lambda f: f.write.bucketBy(4, "id").insertInto("lake.db.t"), AnalysisException, "bucketBy"),
        (lambda f: f.writeTo("lake.db.no").option("branch", "b").create(), AnalysisException, "branch"),
    ],
)
def test_unsupported_layouts_are_refused(
    frame: DataFrame, lake: frazil.Lake, write: Any, kind: type[PySparkException], reason: str
) -> None:
    lake.create_table("db.t", "id bigint, kind string")
    with pytest.raises(kind, match=reason):
        write(frame)
    assert not lake.table_exists("db.no")
    assert lake.table("db.t").current_snapshot is None


@pytest.mark.extended
def test_observation_can_be_requested_for_writes(frame: DataFrame, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])

    def observed(name: str) -> tuple[Observation, DataFrame]:
        made = Observation(name)
        return made, frame.observe(made, F.count(F.lit(1)).alias("n"), F.max("id").alias("most"))

    for write in (
        lambda rows: rows.writeTo("lake.db.t").append(),
        lambda rows: table.append(rows),
        lambda rows: table.overwrite(rows),
        lambda rows: rows.writeTo("lake.db.t").createOrReplace(),
    ):
        # The same name again is another observation.
        waiting, rows = observed("counted")
        write(rows)
        assert _answer(waiting) == {"n": 2, "most": 5}


def _answer(waiting: Observation) -> dict[str, Any]:
    """Return what was observed; `get` alone would wait for ever."""
    assert waiting._jo is not None
    jvm: Any = waiting._jvm
    seconds = jvm.scala.concurrent.duration.Duration.apply(60, "s")
    getattr(getattr(jvm.scala.concurrent, "Await$"), "MODULE$").ready(waiting._jo.future(), seconds)
    return waiting.get
