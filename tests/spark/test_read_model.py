"""Reading on Spark against a model: random histories, every snapshot and random filters, on v1 to v3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.expr.bind import bind
from frazil.expr.evaluate_row import evaluate_row
from frazil.expr.extract import parse_predicate
from frazil.loaded import LoadedTable
from frazil.spec.schema import Schema
from frazil.spec.types import StructType
from frazil.table.scan import scan_table
from tests.spark.history_model import (
    History,
    Row,
    arrow_rows,
    make_history,
    plain_frame,
    random_filter,
    random_scan_filter,
    shown_rows,
    spark_rows,
)
from tests.support.scan_model import same_rows

ALL = ["*", "_file", "_pos", "_row_id", "_last_updated_sequence_number", "_spec_id"]
SEEDS = int(os.environ.get("FRAZIL_READ_MODEL_SEEDS", "12"))
"""How many histories the slow test makes."""
FIRST_SEED = int(os.environ.get("FRAZIL_READ_MODEL_FIRST_SEED", "100"))
"""The first of their seeds."""


def check_snapshots(spark: SparkSession, history: History, loaded: LoadedTable) -> None:
    """Check that every snapshot, and the present state, read as they were."""
    now = history.rows()
    states: list[tuple[int | None, Schema, list[Row]]] = [(None, history.table.schema, now)]
    states += [(one.snapshot_id, one.schema, one.rows) for one in history.checkpoints]
    for snapshot_id, schema, rows in states:
        scan = scan_table(loaded, columns=ALL, snapshot_id=snapshot_id)
        expected = shown_rows(rows, schema)
        found = spark_rows(scan.to_spark(spark))
        assert same_rows(found, expected), explain(history, f"snapshot {snapshot_id}", found, expected)
        here = arrow_rows(scan.to_arrow(), scan.schema)
        assert same_rows(here, expected), explain(history, f"snapshot {snapshot_id}, in Arrow", here, expected)


def check_filters(spark: SparkSession, history: History, loaded: LoadedTable, count: int) -> None:
    """Check that filters added to the DataFrame keep the rows that they keep in a plain one."""
    rng = history.rng
    scan = scan_table(loaded, columns=[*ALL, "_partition"])
    kind = scan.schema.fields[-1].field_type
    assert isinstance(kind, StructType)
    rows = shown_rows(history.with_partitions(history.rows(), kind), scan.schema)
    # An unpartitioned table's `_partition` has no parts, and such a column cannot cross into Spark.
    schema = scan.schema if kind.fields else Schema(scan.schema.fields[:-1])
    plain = plain_frame(spark, rows, schema)
    texts = [random_filter(rng, rows, schema) for _ in range(count)]
    tested = plain.select(*[F.expr(text).alias(f"f{at}") for at, text in enumerate(texts)]).collect()
    frame: DataFrame = scan.to_spark(spark)
    for at, text in enumerate(texts):
        expected = [row for row, test in zip(rows, tested, strict=True) if test[at]]
        found = spark_rows(frame.filter(text))
        assert same_rows(found, expected), explain(history, text, found, expected)
    counted = random_filter(rng, rows, schema)
    assert frame.filter(counted).count() == plain.filter(counted).count(), counted


def check_scan_filters(spark: SparkSession, history: History, loaded: LoadedTable, count: int) -> None:
    """Check that a scan's own filter keeps the same rows on Spark, in this process and in the model."""
    schema, rows = history.table.schema, history.rows()
    for _ in range(count):
        text = random_scan_filter(history.rng, rows, schema)
        predicate = bind(schema, parse_predicate(text))
        expected = shown_rows([row for row in rows if evaluate_row(predicate, row)], schema)
        scan = scan_table(loaded, text, columns=ALL)
        here = arrow_rows(scan.to_arrow(), scan.schema)
        assert same_rows(here, expected), explain(history, f"{text}, in Arrow", here, expected)
        found = spark_rows(scan.to_spark(spark))
        assert same_rows(found, expected), explain(history, text, found, expected)


def check_deleted_rows(spark: SparkSession, history: History, loaded: LoadedTable) -> None:
    """Check that deleted rows can be shown, and are told from the others."""
    scan = scan_table(loaded, columns=["id", "_file", "_pos", "_deleted"])
    live = {(row["_file"], row["_pos"]) for row in history.rows()}
    found = spark_rows(scan.to_spark(spark))
    here = arrow_rows(scan.to_arrow(), scan.schema)
    assert same_rows(found, here), explain(history, "_deleted", found, here)
    assert {(row["_file"], row["_pos"]) for row in found if not row["_deleted"]} == live
    assert len(found) == sum(len(one.rows) for one in history.files)


def explain(history: History, what: str, found: list[Row], expected: list[Row]) -> str:
    """Return what differs."""
    keys = [(row["_file"], row["_pos"]) for row in expected]
    seen = [(row["_file"], row["_pos"]) for row in found]
    by_key = dict(zip(seen, found, strict=True))
    lines = [f"{what}; after {history.done}", f"{len(found)} rows, not {len(expected)}"]
    lines += [f"missing {key}" for key in keys if key not in seen][:5]
    lines += [f"extra {key}" for key in seen if key not in keys][:5]
    for key, row in zip(keys, expected, strict=True):
        other = by_key.get(key, row)
        lines += [
            f"{key} {name}: {other.get(name)!r}, not {row[name]!r}"
            for name in row
            if not same_value(other.get(name), row[name])
        ][:5]
    return "\n".join(lines[:40])


def same_value(one: object, other: object) -> bool:
    """Return whether two values are the same, NaN being the same as NaN."""
    return repr(one) == repr(other)


def check_history(spark: SparkSession, history: History, *, filters: int = 6) -> None:
    """Check everything that can be read of a history."""
    loaded = history.table.load()
    check_snapshots(spark, history, loaded)
    check_filters(spark, history, loaded, filters)
    check_scan_filters(spark, history, loaded, 3)
    check_deleted_rows(spark, history, loaded)


@pytest.mark.extended
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_snapshot_and_filter_reads_as_the_model(spark: SparkSession, tmp_path: Path, version: int) -> None:
    check_history(spark, make_history(tmp_path, 1, version, steps=6))


@pytest.mark.extended
def test_mixed_file_formats_read_as_the_model(spark: SparkSession, tmp_path: Path) -> None:
    check_history(spark, make_history(tmp_path, 2, 2, steps=5, formats=("parquet", "orc", "avro")), filters=2)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_more_histories_read_as_the_model(spark: SparkSession, tmp_path: Path) -> None:
    """Read FRAZIL_READ_MODEL_SEEDS histories, from FRAZIL_READ_MODEL_FIRST_SEED on."""
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        formats = ("parquet",) if seed % 3 else ("parquet", "orc", "avro")
        check_history(spark, make_history(tmp_path / str(seed), seed, 1 + seed % 3, formats=formats))
