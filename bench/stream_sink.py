"""A stream that appends to a table, by Iceberg's jar and by frazil, in one session: a backlog, and many small batches.

    .venv-spark-4.1/bin/python -m bench.stream_sink [--rows 4000000] [--batches 100] [--runs 3]

Both read the same Parquet files by Spark's own file source, one file a batch, and write to a table of their own in a
catalog of files (the jar's `hadoop`, frazil's `filesystem`). The backlog is timed from start to end of the query. Of
small batches what counts is the time of a batch from its trigger to its end, as Spark reports it: the median and the
99th of all. Runs alternate; the first of them warms up.
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
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
        backlog: dict[str, list[float]] = {one: [] for one in contenders}
        batches: dict[str, list[float]] = {one: [] for one in contenders}
        for name in contenders.values():
            spark.sql(f"create namespace if not exists {name}.db")
        for run in range(asked.runs + 1):
            for who, name in contenders.items():
                for what, files in (("large", large), ("small", small)):
                    target = f"{name}.db.{what}_{run}"
                    spark.sql(f"create table {target} ({COLUMNS}) using iceberg")
                    passed, each = stream(spark, files, target, folder / f"checkpoint-{who}-{what}-{run}")
                    count = large_rows if what == "large" else small_files * 100
                    assert spark.table(target).count() == count, (who, what)
                    if run and what == "large":
                        backlog[who].append(passed)
                    elif run:
                        batches[who] += each
        results.add(f"backlog in {FILES} batches", large_rows, "rows", backlog)
        results.add("a batch of 100 rows, median", 100, "rows", batches)
        late = {who: [percentile(seconds, 99)] for who, seconds in batches.items()}
        results.add("a batch of 100 rows, 99th", 100, "rows", late)
        lake.close()
    results.write()


if __name__ == "__main__":
    main()
