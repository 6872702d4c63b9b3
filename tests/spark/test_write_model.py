"""Random histories of every verb, on Spark and by both engines in turns: each snapshot is what the model says."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.spec.snapshot import Summary
from tests.support.write_history import SPECS, VERSIONS_AND_MODES, Hand, History, Row, new_table, rows_of, run_history

SPARK_DDL = "id bigint, k string, v int, s struct<a: int>, at timestamp"


def spark_hand(spark: SparkSession) -> Hand:
    def frame(rows: list[Row]) -> Any:
        given = [(a, b, c, None if d is None else (d,), e) for a, b, c, d, e in rows]
        return spark.createDataFrame(given, SPARK_DDL).coalesce(1)

    return Hand("spark", frame)


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_random_history_equals_the_model_at_every_snapshot(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int, seed: int
) -> None:
    order = seed * 4 + version * 2 + len(mode)
    table = new_table(lake, version, mode, order)
    run_history(History(table, order, spark_hand(spark)), 8)
    on_spark = table.scan().to_spark(spark).toArrow().to_pylist()
    assert rows_of(on_spark) == rows_of(table.scan().to_arrow().to_pylist())


@pytest.mark.extended
@pytest.mark.parametrize(("version", "mode"), VERSIONS_AND_MODES)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_history_alternating_between_engines_equals_the_model(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int, seed: int
) -> None:
    order = seed * 7 + version * 2 + len(mode)
    table = new_table(lake, version, mode, order)
    run_history(History(table, order, spark_hand(spark), Hand("local")), 8)
    on_spark = table.scan().to_spark(spark).toArrow().to_pylist()
    assert rows_of(on_spark) == rows_of(table.scan().to_arrow().to_pylist())


def all_specs() -> list[Any]:
    """Return every spec in every version and mode; of each spec one of them is quick."""
    return [
        pytest.param(version, mode, spec, marks=[] if (at + place) % len(VERSIONS_AND_MODES) == 0 else pytest.mark.slow)
        for at, spec in enumerate(SPECS)
        for place, (version, mode) in enumerate(VERSIONS_AND_MODES)
    ]


@pytest.mark.extended
@pytest.mark.parametrize(("version", "mode", "spec"), all_specs())
def test_both_engines_produce_the_same_row_ids_and_deletes(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int, spec: list[str]
) -> None:
    order = 3 + version * 2 + len(mode) + SPECS.index(spec)
    tables = [new_table(lake, version, mode, order, f"db.t{at}", spec) for at in range(2)]
    histories = [
        History(table, order, hand, evolves=True)
        for table, hand in zip(tables, (spark_hand(spark), Hand("local")), strict=True)
    ]
    for _ in range(6):
        steps = [one.step() for one in histories]
        assert steps[0].split()[0] == steps[1].split()[0]
        assert shown(tables[0]) == shown(tables[1]), steps
        assert tables[0].scan().to_arrow().num_rows == len(histories[0].rows), steps


@pytest.mark.extended
@pytest.mark.parametrize(("version", "mode", "spec"), all_specs())
def test_alternating_engines_agree_on_any_partition_spec(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int, spec: list[str]
) -> None:
    order = 5 + version * 2 + len(mode) + SPECS.index(spec)
    table = new_table(lake, version, mode, order, spec=spec)
    run_history(History(table, order, spark_hand(spark), Hand("local"), evolves=True), 6)


def shown(table: frazil.Table) -> list[str]:
    """Return the rows with what a change must keep, which deletes there are, and what the snapshot counts.

    How many rows are copied depends on how rows lie in files; how many become what does not.
    """
    lineage = ["_last_updated_sequence_number"] if table.format_version >= 3 else []
    rows = table.scan(columns=["id", "k", "v", "s", "at", *lineage]).to_arrow().to_pylist()
    found = sorted(map(str, rows))
    snapshot = table.current_snapshot
    if snapshot is None or snapshot.summary is None:
        return found
    # Where files are written again, it depends on how rows lie in files how many of them are.
    is_copied = table.properties["write.merge.mode"] == "copy-on-write"
    asked = ("total-",) if is_copied else ("total-", "added-", "removed-", "deleted-")
    counted = {
        name: value
        for name, value in snapshot.summary.items()
        if (name.startswith(asked) and name.endswith(("-records", "-deletes")))
        or (name.startswith(Summary.MERGED_ROWS_PREFIX) and not name.endswith("copied"))
    }
    return [*found, snapshot.operation or "", str(sorted(counted.items()))]
