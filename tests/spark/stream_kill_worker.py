"""A process that is killed: streams from one table into others, on a Spark of its own.

    stream_kill_worker.py WAREHOUSE CHECKPOINTS PIPELINES run|drain

`run` streams until the process ends; `drain` ends when all that is there has been read. Each pipeline has two queries
over the same source: one appends its rows, the other counts them by key and upserts the counts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil

SOURCE = {"streaming-max-files-per-micro-batch": "20"}


def start(spark: SparkSession, checkpoints: Path, number: int, trigger: dict[str, Any]) -> list[Any]:
    def read(name: str) -> Any:
        guard = {"stream-guard": f"{name}-{number}"}
        return spark.readStream.options(**SOURCE, **guard).table("lake.db.source")

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


def main(warehouse: str, checkpoints: str, pipelines: int, how: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.minBatchesToRetain", "5")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    frazil.attach(spark, frazil.connect(warehouse))
    trigger: dict[str, Any] = {"availableNow": True} if how == "drain" else {"processingTime": "0 seconds"}
    print("starting", flush=True)
    queries = [one for number in range(pipelines) for one in start(spark, Path(checkpoints), number, trigger)]
    print("running", flush=True)
    for query in queries:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            print(f"{query.lastProgress and query.lastProgress['sink']}: {str(error)[:3000]}", flush=True)
            raise SystemExit(1) from None
    spark.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
