"""A stream that appends to a table, by Iceberg's jar and by frazil, in one session: a backlog, and many small batches.

    .venv-spark-4.1/bin/python -m bench.stream_sink [--rows 4000000] [--batches 100] [--runs 9]

Both read the same Parquet files by Spark's own file source, one file a batch, and write to a table of their own in a
catalog of files (the jar's `hadoop`, frazil's `filesystem`). The backlog is timed from start to end of the query, and
each of its batches from its trigger to its end, as Spark reports it; so are small batches: the median and the 99th of
all. Runs alternate, and so does who begins; the first rounds warm up. Small batches have half of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.engines import JAR_VERSION, JAVA, OURS, has_jar, session
from bench.measure import Results, percentile, scaled
from pyspark.sql import SparkSession

import frazil

COLUMNS = "id bigint, small int, score double, kind string, name string"
FILES = 8
WARM_UPS = 3


def write_files(spark: SparkSession, folder: Path, files: int, rows: int) -> None:
    """Write Parquet files of so many rows each."""
    frame = spark.range(0, files * rows, numPartitions=files).selectExpr(
        "id",
        "cast(id % 1000 as int) as small",
        "rand(1) as score",
        "concat('kind-', id % 50) as kind",
        "concat('name-', hex(id * 7919)) as name",
    )
    frame.write.parquet(str(folder))


def stream(spark: SparkSession, files: Path, target: str, checkpoint: Path) -> tuple[float, list[float]]:
    """Run a query over all files, one a batch; return its seconds, and those of each batch."""
    schema = spark.read.parquet(str(files)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    started = time.perf_counter()
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query: Any = writer.toTable(target)
    query.awaitTermination()
    seconds = time.perf_counter() - started
    batches = [one for one in query.recentProgress if one["numInputRows"]]
    return seconds, [one["durationMs"]["triggerExecution"] / 1000 for one in batches]


def fill(spark: SparkSession, files: Path, target: str, rows: int) -> tuple[float, list[float]]:
    """Stream files into a new table, which has so many rows then; return the seconds, and those of each batch."""
    spark.sql(f"create table {target} ({COLUMNS}) using iceberg")
    passed, each = stream(spark, files, target, files.with_name(f"checkpoint-{target}"))
    assert spark.table(target).count() == rows, target
    return passed, each


def _turns(contenders: dict[str, str], run: int) -> list[tuple[str, str]]:
    """Return who runs, in the order of this round."""
    return list(contenders.items())[:: 1 if run % 2 == 0 else -1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    large_rows, small_files = scaled(asked.rows) // FILES * FILES, scaled(asked.batches)
    contenders = {JAVA: "java", OURS: "lake"} if has_jar() else {OURS: "lake"}
    results = Results("stream_sink", list(contenders), versions={"iceberg-spark-runtime": JAR_VERSION})
    with tempfile.TemporaryDirectory() as place, session(Path(place)) as spark:
        folder = Path(place)
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
        lake = frazil.connect(folder / "ours", catalog="filesystem")
        frazil.attach(spark, lake)
        large, small = folder / "large", folder / "small"
        write_files(spark, large, FILES, large_rows // FILES)
        write_files(spark, small, small_files, 100)
        for name in contenders.values():
            spark.sql(f"create namespace if not exists {name}.db")
        backlog: dict[str, list[float]] = {who: [] for who in contenders}
        large_batches: dict[str, list[float]] = {who: [] for who in contenders}
        batches: dict[str, list[float]] = {who: [] for who in contenders}
        for run in range(-WARM_UPS, asked.runs):
            for who, name in _turns(contenders, run):
                passed, each = fill(spark, large, f"{name}.db.large_{run + WARM_UPS}", large_rows)
                if run >= 0:
                    backlog[who].append(passed)
                    large_batches[who] += each
        for run in range(-1, (asked.runs + 1) // 2):
            for who, name in _turns(contenders, run):
                _, each = fill(spark, small, f"{name}.db.small_{run + 1}", small_files * 100)
                if run >= 0:
                    batches[who] += each
        results.add(f"backlog in {FILES} batches", large_rows, "rows", backlog)
        rows = large_rows // FILES
        results.add(f"a batch of {rows:,} rows, median", rows, "rows", large_batches)
        results.add("a batch of 100 rows, median", 100, "rows", batches)
        late = {who: [percentile(seconds, 99)] for who, seconds in batches.items()}
        results.add("a batch of 100 rows, 99th", 100, "rows", late)
        lake.close()
    results.write()


if __name__ == "__main__":
    main()
