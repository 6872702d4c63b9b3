"""Changes of rows beside other writers: what must stop them does, and no change is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.verbs import on_spark
from frazil.verbs.live_state import LiveState
from tests.support.races import overtaken

MODES = ["copy-on-write", "merge-on-read"]
Change = Callable[[frazil.Table], Any]


def numbers(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end, numPartitions=1).select("id", F.col("id").cast("int").alias("v"))


def make(spark: SparkSession, lake: frazil.Lake, mode: str, version: int, isolation: str) -> frazil.Table:
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    properties |= {f"write.{verb}.isolation-level": isolation for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", "id bigint, v int", properties=properties, format_version=version)
    table.append(numbers(spark, 0, 10))
    return table


def update(table: frazil.Table) -> Any:
    return table.update({"v": "v + 100"}, where="id in (1, 2)")


def delete(table: frazil.Table) -> Any:
    return table.delete("id in (2, 3)")


def upsert(table: frazil.Table) -> Any:
    spark = on_spark.choose_session()
    return table.upsert(numbers(spark, 2, 4).withColumn("v", F.lit(-1)), keys=["id"])


def values(table: frazil.Table) -> dict[int, int]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("first", [update, upsert, delete])
@pytest.mark.parametrize("second", [update, upsert])
def test_second_of_two_changes_to_the_same_rows_is_refused(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int, first: Change, second: Change
) -> None:
    table = make(spark, lake, mode, version, "snapshot")
    with pytest.raises(frazil.ConcurrentChangeError):
        second(overtaken(table, first))
    expected = make_expected(first)
    assert values(table) == expected
    assert table.check().ok


def make_expected(first: Change) -> dict[int, int]:
    rows = {one: one for one in range(10)}
    if first is update:
        rows |= {1: 101, 2: 102}
    elif first is upsert:
        rows |= {2: -1, 3: -1}
    else:
        del rows[2], rows[3]
    return rows


@pytest.mark.parametrize("mode", MODES)
def test_delete_never_loses_to_an_update_of_the_same_row(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    table = make(spark, lake, mode, 2, "snapshot")
    with pytest.raises(frazil.ConcurrentChangeError):
        delete(overtaken(table, update))
    assert values(table)[2] == 102


@pytest.mark.extended
@pytest.mark.parametrize("version", [2, 3])
def test_two_deletes_in_one_file_are_both_applied(spark: SparkSession, lake: frazil.Lake, version: int) -> None:
    table = make(spark, lake, "merge-on-read", version, "serializable")
    delete(overtaken(table, lambda other: other.delete("id in (3, 4)")))
    assert sorted(values(table)) == [0, 1, 5, 6, 7, 8, 9]
    assert table.check().ok


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", [update, delete, upsert])
def test_rows_added_under_a_condition_conflict_only_if_serializable(
    spark: SparkSession, lake: frazil.Lake, mode: str, change: Change
) -> None:
    table = make(spark, lake, mode, 2, "serializable")

    def append(low: int, high: int) -> Change:
        return lambda other: other.append(numbers(spark, low, high).withColumn("v", F.lit(7)))

    with pytest.raises(frazil.ConcurrentChangeError, match="was added"):
        change(overtaken(table, append(2, 3)))
    # Rows that the condition rules out are no conflict.
    table.delete("v = 7")
    assert change(overtaken(table, append(50, 60))) is not None
    assert len([one for one in values(table) if one >= 50]) == 10
    table.set_properties({f"write.{verb}.isolation-level": "snapshot" for verb in ("delete", "update", "merge")})
    table.append(numbers(spark, 100, 101))
    assert table.delete("id = 100") is not None


def test_two_merges_inserting_the_same_key_do_not_both_commit(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(spark, lake, "merge-on-read", 2, "serializable")

    def insert(target: frazil.Table) -> Any:
        source = numbers(spark, 20, 22)
        return target.merge(source, on="target.id = source.id").when_not_matched().insert_all().execute()

    with pytest.raises(frazil.ConcurrentChangeError):
        insert(overtaken(table, insert))
    assert sorted(values(table)) == [*range(10), 20, 21]


@pytest.mark.extended
def test_overtaken_sql_merge_names_its_table_and_remedy(
    spark: SparkSession, lake: frazil.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(spark, lake, "merge-on-read", 2, "serializable")
    commit = LiveState._commit

    def overtaken_once(self: LiveState, base: Any, actions: Any, written: Any) -> Any:
        monkeypatch.setattr(LiveState, "_commit", commit)
        lake.table("db.t").append(pa.table({"id": pa.array([20], pa.int64()), "v": pa.array([7], pa.int32())}))
        return commit(self, base, actions, written)

    monkeypatch.setattr(LiveState, "_commit", overtaken_once)
    frazil.attach(spark, lake)
    try:
        with pytest.raises(PySparkException) as caught:
            spark.sql(
                """merge into lake.db.t t using (select * from range(20, 22)) s on t.id = s.id
                   when not matched then insert (id) values (s.id)"""
            )
        assert "Cannot commit to db.t: data that can match" in str(caught.value)
        assert "nothing was committed. Run it again." in str(caught.value)
        assert caught.value.getSqlState() == "40001"
    finally:
        frazil.detach(spark)
    assert sorted(values(table)) == [*range(10), 20]


@pytest.mark.extended
def test_refused_change_leaves_no_files(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(spark, lake, "copy-on-write", 2, "snapshot")
    storage = table.state.storage
    with pytest.raises(frazil.ConcurrentChangeError):
        update(overtaken(table, update))
    live = set(table.refresh().inspect.all_files().column("file_path").to_pylist())
    assert {one.path for one in storage.list(f"{table.location}/data")} == live
