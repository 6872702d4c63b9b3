"""A process that is killed: streams from one table into others, on a Spark of its own.

    stream_kill_worker.py WAREHOUSE CHECKPOINTS PIPELINES run|drain

It says that it is ready, and begins when it is told so. `run` streams until the process ends; `drain` ends when all
that is there has been read. Each pipeline has two queries over the same source: one appends its rows, the other counts
them by key and upserts the counts. A query that fails ends the process, with the whole of its error.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil


def start(spark: SparkSession, checkpoints: Path, number: int, *, drains: bool) -> list[Any]:
    trigger: dict[str, Any] = {"availableNow": True} if drains else {"processingTime": "0 seconds"}
    limits = {} if drains else {"streaming-max-files-per-micro-batch": "20"}

    def read(name: str) -> Any:
        guard = {"stream-guard": f"{name}-{number}"}
        return spark.readStream.options(**limits, **guard).table("lake.db.source")

    def write(frame: Any, name: str, mode: str, **options: str) -> Any:
        place = checkpoints / f"{name}-{number}"
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(place)).trigger(**trigger)
        return writer.options(**options).toTable(f"lake.db.{name}_{number}")

    counts = read("counts").groupBy("k").agg(F.count("*").alias("n"), F.sum("id").alias("total"))
    compacts = {"compact.min-input-files": "2"}
    return [
        write(read("rows"), "rows", "append", **{"compact-every-batches": "3", **compacts}),
        write(counts, "counts", "update", **{"upsert-keys": "k", "compact-every-batches": "2", **compacts}),
    ]


def say(line: str) -> None:
    print(line, flush=True)


def main(warehouse: str, checkpoints: str, pipelines: int, how: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        # It does not live long enough for better code.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.minBatchesToRetain", "5")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    frazil.attach(spark, frazil.connect(warehouse))
    say("ready")
    sys.stdin.readline()
    say("starting")
    drains = how == "drain"
    queries = [one for number in range(pipelines) for one in start(spark, Path(checkpoints), number, drains=drains)]
    say("running")
    while any(one.isActive for one in queries):
        time.sleep(0.2)
        if any(one.exception() is not None for one in queries):
            break
    failed = [one for one in queries if one.exception() is not None]
    for one in failed:
        say(f"failed: {one.lastProgress and one.lastProgress['sink']}\n{one.exception()}")
    say("failed" if failed else "done")
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
