"""A stream reads the backlog of a table: `Trigger.AvailableNow` over many snapshots, by Iceberg's jar and by frazil.

    .venv-spark-4.1/bin/python -m bench.stream_backlog [--snapshots 1000] [--rows 20000000] [--runs 2]

Both read the same files of the same table, in one session: frazil's catalog of files is the jar's Hadoop catalog. Every
run has a checkpoint of its own and throws the rows away. Once in one batch, and once in batches of a tenth of the
files. `whole` is how frazil begins where nothing is said: all rows that are there, of whichever snapshot.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench.engines import JAR_VERSION, JAVA, OURS, contenders, session
from bench.measure import Results, alternate, scaled
from pyspark.sql import SparkSession

import frazil

COLUMNS = "id bigint, small int, score double, kind string"
MOST = "streaming-max-files-per-micro-batch"


def fill(warehouse: Path, snapshots: int, rows: int) -> None:
    """Append rows in many snapshots, each of one file; the reader knows nothing of what is written here."""
    each = max(rows // snapshots, 1)
    with frazil.connect(warehouse, catalog="filesystem") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", COLUMNS)
        for at in range(snapshots):
            ids = np.arange(at * each, (at + 1) * each, dtype=np.int64)
            data = {
                "id": ids,
                "small": (ids % 1000).astype(np.int32),
                "score": ids * 0.001,
                "kind": np.char.add("kind-", (ids % 50).astype(str)),
            }
            table.append(pa.table(data))


def read(spark: SparkSession, folder: Path, name: str, options: dict[str, str], expected: int) -> None:
    """Read all there is as a stream."""
    checkpoint = Path(tempfile.mkdtemp(dir=folder))
    query = (
        spark.readStream.options(**options)
        .table(name)
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = sum(one["numInputRows"] for one in query.recentProgress)
    shutil.rmtree(checkpoint)
    if found != expected:
        raise ValueError(f"{name}: {found} rows were read, not {expected}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    snapshots, rows = scaled(given.snapshots), scaled(given.rows)
    rows = rows // snapshots * snapshots
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        with session(folder) as spark, frazil.connect(folder / "java", catalog="filesystem") as lake:
            frazil.attach(spark, lake)
            fill(folder / "java", snapshots, rows)
            names = contenders(JAVA, OURS)
            results = Results("stream_backlog", names, versions={"iceberg-spark-runtime": JAR_VERSION})
            begin = {JAVA: {}, OURS: {"stream-from-snapshot": "earliest"}}
            tables = {JAVA: "java.db.t", OURS: "lake.db.t"}
            tenth = {MOST: str(max(snapshots // 10, 1))}
            for workload, more in (("in one batch", {}), ("in ten batches", tenth)):
                work: dict[str, Callable[[], None]] = {
                    one: partial(read, spark, folder, tables[one], {**begin[one], **more}, rows) for one in names
                }
                results.add(f"backlog {workload}", rows, "rows", alternate(work, given.runs))
            whole = {OURS: partial(read, spark, folder, tables[OURS], {}, rows)}
            results.add("backlog, whole table first", rows, "rows", alternate(whole, given.runs))
            print(f"{snapshots} snapshots, Spark {spark.version}, local[2], median of {given.runs} runs")
            results.write()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
