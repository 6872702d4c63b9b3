"""What a change of rows costs: Spark jobs for few rows, memory of the driver for many."""

from __future__ import annotations

import sys
import traceback
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa
import pyspark.errors.utils as sites
import pyspark.sql.types as st
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.codec.deletion_vector import DeletionVector
from frazil.errors import EngineError, InvalidRequestError
from frazil.expr.predicates import FALSE, all_of, any_of, at_least, at_most, is_in, is_null
from frazil.spark.change.source_keys import JoinKey, read_keys
from frazil.spark.read.kept_rows import checkpoint_rows, collect_few, start_over_if_lost
from frazil.spark.read.row_positions import ACTION_COLUMN, FILE_COLUMN, POS_COLUMN, read_positions
from frazil.spec.partitioning import UNPARTITIONED
from frazil.spec.types import LongType, NestedField
from tests.spark.settings import settings


def count_jobs(spark: SparkSession, run: Callable[[], Any]) -> int:
    """Return how many jobs a call has run."""
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counted", "a change whose jobs are counted")
    before = len(tracker.getJobIdsForGroup("counted"))
    try:
        run()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    return len(tracker.getJobIdsForGroup("counted")) - before


def few_rows(start: int, end: int, letter: str) -> pa.Table:
    return pa.table({"id": pa.array(range(start, end)), "name": [f"{letter}{at}" for at in range(start, end)]})


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_small_changes_take_few_jobs(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", "id bigint, name string", properties=properties)
    table.append(few_rows(0, 2000, "a"))
    source = spark.range(1000, 3000, numPartitions=2).selectExpr("id", "concat('b', id) as name")

    def merge() -> None:
        merging = table.merge(source, on="target.id = source.id")
        merging.when_matched().update_all().when_not_matched().insert_all().execute()

    # The source's keys, sending rows to the join, the join, the files: one job each.
    assert count_jobs(spark, lambda: table.upsert(source, keys=["id"])) <= 4
    assert count_jobs(spark, merge) <= 4
    assert count_jobs(spark, lambda: table.update({"name": "upper(name)"}, where="id % 7 = 1")) <= 2
    assert count_jobs(spark, lambda: table.delete("id % 7 = 2")) <= 2
    rows = table.scan().to_arrow().to_pylist()
    expected = {
        at: ("A" if at < 1000 else "B") + str(at) if at % 7 == 1 else ("a" if at < 1000 else "b") + str(at)
        for at in range(3000)
        if at % 7 != 2
    }
    assert len(rows) == len(expected)
    assert {row["id"]: row["name"] for row in rows} == expected


@pytest.mark.extended
def test_few_source_rows_join_a_large_table_without_shuffling_it(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, name string", properties={"write.merge.mode": "merge-on-read"})
    table.append(spark.range(0, 50_000, numPartitions=2).selectExpr("id", "concat('a', id) as name"))
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "1000"}):
        source = spark.range(0, 100_000, 250, numPartitions=2).selectExpr("id", "'b' as name")
        table.upsert(source, keys=["id"])
        matched = table.merge(source.filter("id < 5000"), on="target.id = source.id").when_matched()
        matched.update({"name": "'c'"}).execute()
    found = table.scan().to_arrow().to_pylist()
    assert len(found) == 50_000 + 200
    assert sum(row["name"] == "c" for row in found) == 20
    assert sum(row["name"] == "b" for row in found) == 380


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_statements_merge_few_keys_into_a_large_table(
    spark: SparkSession, attached_lake: frazil.Lake, mode: str
) -> None:
    table = attached_lake.create_table("db.t", "id bigint, name string", properties={"write.merge.mode": mode})
    table.append(spark.range(0, 1000, numPartitions=2).selectExpr("id", "concat('a', id) as name"))
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "1"}):
        spark.sql(
            "merge into lake.db.t t using (select id, concat('b', id) as name from range(990, 1010)) s on t.id = s.id "
            "when matched and s.id < 995 then update set name = t.name || s.name "
            "when matched and s.name = 'b999' then delete when not matched and s.id < 1005 then insert *"
        )
    expected = {number: f"a{number}" for number in range(999)}
    expected |= {number: f"a{number}b{number}" for number in range(990, 995)}
    expected |= {number: f"b{number}" for number in range(1000, 1005)}
    found = table.refresh().scan().to_arrow().to_pylist()
    assert len(found) == len(expected)
    assert {row["id"]: row["name"] for row in found} == expected


@pytest.mark.extended
def test_internal_columns_record_no_call_site(
    spark: SparkSession, lake: frazil.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PySpark decides once in a process, and against it where the first column is made before there is a session.
    monkeypatch.setattr(sites, "_enable_debugging_cache", True)
    source = spark.range(5, 15).selectExpr("id", "'b' as name")
    noted: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is sites._capture_call_site.__code__:
            noted.append("".join(traceback.format_stack(frame, 8)))

    sys.setprofile(watch)
    try:
        table = lake.create_table("db.t", "id bigint, name string", partition_by=["bucket(2, id)"])
        table.append(spark.range(10).selectExpr("id", "'a' as name"))
        table.upsert(source, keys=["id"])
        table.merge(source, on="target.id = source.id").when_matched().update({"name": "'c'"}).execute()
        table.update({"name": "upper(name)"}, where="id = 1")
        table.delete("id % 7 = 2")
        frame = table.scan("id > 1").to_spark()
        frame.collect()
    finally:
        sys.setprofile(None)
    assert noted == []
    with pytest.raises(AnalysisException) as caught:
        frame.select(F.col("id") / F.col("absent"))
    assert "test_write_jobs.py" in caught.value.getQueryContext()[0].callSite()


def places_of(spark: SparkSession, rows: list[tuple[int | None, int | None, int]]) -> DataFrame:
    schema = st.StructType(
        [
            st.StructField(FILE_COLUMN, st.IntegerType()),
            st.StructField(POS_COLUMN, st.LongType()),
            st.StructField(ACTION_COLUMN, st.IntegerType()),
        ]
    )
    return checkpoint_rows(spark.createDataFrame(rows, schema).repartition(2))


@pytest.mark.extended
@pytest.mark.parametrize("few", [1 << 16, 1])
def test_row_positions_are_the_same_for_few_and_many_rows(spark: SparkSession, few: int) -> None:
    at = [0, 1, 63, 64, 65, 127, 128, 4095, 1 << 20, (1 << 32) + 5]
    rows: list[tuple[int | None, int | None, int]] = [(0, one, 1) for one in at]
    rows += [(7, one, 2) for one in range(200)]
    rows += [(None, None, 3)] * 40 + [(7, 500, -1), (9, 1, -1)]
    found = read_positions(places_of(spark, rows), few_rows=few)
    assert dict(found.positions) == {0: DeletionVector(at), 7: DeletionVector(range(200))}
    assert dict(found.counts) == {1: len(at), 2: 200, 3: 40, -1: 2}
    assert not found.is_twice
    again = read_positions(places_of(spark, [*rows, (7, 500, 2)]), few_rows=few)
    assert again.is_twice
    nothing = read_positions(places_of(spark, [(None, None, 3)] * 40), few_rows=few)
    assert (dict(nothing.positions), dict(nothing.counts)) == ({}, {3: 40})


@pytest.mark.extended
@pytest.mark.parametrize("few", [1 << 16, 1])
def test_source_is_evaluated_alike_for_few_and_many_rows(spark: SparkSession, few: int) -> None:
    part = NestedField(1, "id", LongType())

    def look(query: str, unique: tuple[str, ...] = ()) -> Any:
        key = JoinKey(part, F.col("id"), is_null_safe=True)
        return read_keys(checkpoint_rows(spark.sql(query)), [key], UNPARTITIONED, unique, few_rows=few)

    wide = "select explode(sequence(5L, 5000L)) as id"
    assert look(wide).prune == all_of(at_least("id", 5), at_most("id", 5000))
    assert look(f"{wide} union all select null").prune == any_of(
        all_of(at_least("id", 5), at_most("id", 5000)), is_null("id")
    )
    narrow = look("select id % 3 as id from range(100)").prune
    assert narrow in [is_in("id", [0, 1, 2]), any_of(is_in("id", [0, 1, 2]), FALSE)]
    assert look(f"{wide} union all select 17L", ("id",)).twice == [(17,)]
    assert look(f"{wide} union all select null", ("id",)).twice == []
    assert look("select cast(null as bigint) as id from range(40)", ("id",)).twice == [(None,)]


@pytest.mark.extended
def test_changes_above_the_row_limit_stay_on_executors(spark: SparkSession) -> None:
    kept = checkpoint_rows(spark.range(0, 400, numPartitions=2))
    assert collect_few(kept, [F.col("id")], 399) is None
    whole = collect_few(kept, [F.col("id")], 400)
    assert whole is not None
    assert sorted(whole.column(0).to_pylist()) == list(range(400))


@pytest.mark.extended
def test_driver_memory_does_not_grow_with_changed_rows(spark: SparkSession) -> None:
    peaks = {}
    for by in (200, 2):
        rows = spark.range(0, 4_000_000, numPartitions=2).filter(f"id % {by} = 1")
        kept = checkpoint_rows(rows.selectExpr(f"1 as {FILE_COLUMN}", f"id as {POS_COLUMN}", f"1 as {ACTION_COLUMN}"))
        read_positions(kept)
        tracemalloc.start()
        found = read_positions(kept)
        peaks[by] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.positions[1].cardinality == 4_000_000 // by
        assert found.counts == {1: 4_000_000 // by}
    print(f"peak of the driver: {peaks[200]:,} bytes for 20,000 rows, {peaks[2]:,} for 2,000,000")
    # The rows themselves would be 32 MB.
    assert peaks[2] < 16_000_000


@pytest.mark.extended
def test_change_restarts_only_if_cached_rows_are_lost() -> None:
    said = ["Cannot merge: Spark failed: Checkpoint block rdd_4_0 not found!"] * 2

    def lose() -> str:
        if said:
            raise EngineError(said.pop())
        return "done"

    assert start_over_if_lost(lose) == "done"
    said.extend(["Checkpoint block rdd_4_0 not found!"] * 3)
    with pytest.raises(EngineError):
        start_over_if_lost(lose)
    runs = []

    def refuse() -> None:
        runs.append(1)
        raise InvalidRequestError("Cannot merge: no")

    with pytest.raises(InvalidRequestError):
        start_over_if_lost(refuse)
    assert len(runs) == 1
