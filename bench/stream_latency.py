"""How soon a stream has read what was appended to its table: small batches, by Iceberg's jar and by frazil.

    .venv-spark-4.1/bin/python -m bench.stream_latency [--batches 100] [--runs 3]

A query follows a table and throws the rows away. A hundred rows are appended, and the next ones when the query has read
them. What counts is the time from the end of the append to the end of the batch that has its rows, and the part of it
that Spark reports as the batch's own: the median and the 99th of all. Every run has a table of its own, written by
frazil: its catalog of files is the jar's Hadoop catalog, so both read the same kind of table in one session. Who
appends shares nothing with who reads. Runs alternate; the first of them warms up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.engines import JAR_VERSION, JAVA, OURS, contenders, session
from bench.measure import Results, percentile, scaled
from pyspark.sql import SparkSession

import frazil

COLUMNS = "id bigint, small int, score double, kind string"
ROWS = 100
WITHIN_SECONDS = 60.0


def append(table: frazil.Table, at: int) -> float:
    """Append rows; return when that was done, in seconds from 1970."""
    ids = range(at * ROWS, (at + 1) * ROWS)
    rows = {
        "id": list(ids),
        "small": pa.array([one % 1000 for one in ids], pa.int32()),
        "score": [one * 0.001 for one in ids],
        "kind": [f"kind-{one % 50}" for one in ids],
    }
    table.append(pa.table(rows))
    return time.time()


def batch_after(query: Any, number: int) -> Any:
    """Wait for a batch with rows after that of a number; return its progress. The waiting itself takes little."""
    until = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < until and query.isActive:
        time.sleep(0.02)
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > number and progress["numInputRows"]:
            return progress
    raise ValueError(f"no batch after {number} was read: {query.exception()}")


def follow(spark: SparkSession, table: frazil.Table, name: str, checkpoint: Path, batches: int) -> list[list[float]]:
    """Append, and wait for the query to read it, so many times; return the seconds from append and from trigger."""
    append(table, 0)
    query = (
        spark.readStream.table(name).writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    )
    since_append, since_trigger = [], []
    try:
        number = batch_after(query, -1)["batchId"]
        for at in range(1, batches + 1):
            appended = append(table, at)
            progress = batch_after(query, number)
            if progress["numInputRows"] != ROWS:
                raise ValueError(f"{name}: {progress['numInputRows']} rows were read, not {ROWS}")
            number = progress["batchId"]
            own = progress["durationMs"]["triggerExecution"] / 1000
            since_trigger.append(own)
            since_append.append(datetime.fromisoformat(progress["timestamp"]).timestamp() + own - appended)
    finally:
        query.stop()
    return [since_append, since_trigger]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    batches = scaled(given.batches)
    names = contenders(JAVA, OURS)
    catalogs = {JAVA: "java", OURS: "lake"}
    results = Results("stream_latency", names, versions={"iceberg-spark-runtime": JAR_VERSION})
    workloads = ("from the append to the end of the batch", "the batch alone")
    times: list[dict[str, list[float]]] = [{one: [] for one in names} for _ in workloads]
    with (
        tempfile.TemporaryDirectory() as place,
        session(Path(place)) as spark,
        frazil.connect(Path(place) / "java", catalog="filesystem") as writer,
        frazil.connect(Path(place) / "java", catalog="filesystem") as lake,
    ):
        folder = Path(place)
        frazil.attach(spark, lake)
        writer.create_namespace("db")
        for run in range(given.runs + 1):
            for who in names:
                own = f"db.{catalogs[who]}_{run}"
                table = writer.create_table(own, COLUMNS)
                checkpoint = folder / f"checkpoint-{catalogs[who]}-{run}"
                found = follow(spark, table, f"{catalogs[who]}.{own}", checkpoint, batches)
                for kept, seconds in zip(times, found, strict=True):
                    kept[who] += seconds if run else []
        for workload, kept in zip(workloads, times, strict=True):
            results.add(f"{workload}, median", ROWS, "rows", kept)
            late = {who: [percentile(seconds, 99)] for who, seconds in kept.items()}
            results.add(f"{workload}, 99th", ROWS, "rows", late)
    results.write()


if __name__ == "__main__":
    main()
