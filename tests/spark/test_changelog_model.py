"""Change feeds on Spark against a model: random histories, windows and filters, on v1 to v3."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.scan.changelog import Changelog
from frazil.spec.schema import Schema
from frazil.storage.local import LocalStorage
from frazil.table.scan import scan_table
from tests.spark.history_model import SPECS, History, Row, arrow_rows, shown_rows, spark_rows
from tests.support.changelog_model import Feed
from tests.support.scan_model import SCHEMA, same_rows
from tests.support.tables import TableBuilder

pytestmark = pytest.mark.extended

STEPS = 9


def make_feed(folder: Path, seed: int, version: int, formats: tuple[str, ...]) -> Feed:
    """Make a table with a random history in a folder, and note what every snapshot held."""
    rng = random.Random(f"changes-{seed}-{version}-{formats}")
    table = TableBuilder(
        SCHEMA,
        partition_by=rng.choice(SPECS),
        format_version=version,
        storage=LocalStorage(),
        location=f"file://{folder}/t",
    )
    history = History(table, rng, formats)
    feed = Feed(history)
    history.run(0)
    feed.watch()
    for _ in range(STEPS):
        history.step()
        feed.watch()
    return feed


def check_window(spark: SparkSession, feed: Feed, schema: Schema, window: Changelog) -> None:
    """Check that a window's changes on Spark, and here, are those that snapshots differ by."""
    loaded = feed.model.table.load()
    scan = replace(scan_table(loaded, columns=["*", "_file", "_pos"]), changelog=window)
    rows = feed.changes(schema, window.after_snapshot_id, window.to_snapshot_id)
    expected = shown_rows(rows, schema)
    found = spark_rows(scan.to_spark(spark))
    assert same_rows(found, expected), explain(feed, window, found, expected)
    assert same_rows(arrow_rows(scan.to_arrow(), scan.schema), expected)
    kept: list[Row] = [row for row in expected if row["_change_type"] == "DELETE" and row["part"] == 1]
    filtered = spark_rows(scan.to_spark(spark).filter("_change_type = 'DELETE' and part = 1"))
    assert same_rows(filtered, kept), explain(feed, window, filtered, kept)


def explain(feed: Feed, window: Changelog, found: list[Row], expected: list[Row]) -> str:
    assert isinstance(feed.model, History)
    return f"{window} of {feed.model.done}\nfound {found}\nexpected {expected}"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("formats", [("parquet",), ("parquet", "orc", "avro")])
def test_change_windows_equal_the_difference_of_their_snapshots(
    spark: SparkSession, tmp_path: Path, version: int, formats: tuple[str, ...]
) -> None:
    feed = make_feed(tmp_path, 1, version, formats)
    schema = feed.model.table.schema
    ids = [one for one, _ in feed.states]
    middle = ids[len(ids) // 2]
    for window in (Changelog(), Changelog(ids[0], middle), Changelog(middle)):
        check_window(spark, feed, schema, window)
