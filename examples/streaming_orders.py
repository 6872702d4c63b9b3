"""Orders arrive, a dashboard counts them with the change feed, and the table compacts itself.

    python examples/streaming_orders.py [FOLDER]

In each of three rounds, files of orders arrive and one stream appends them to a table, which it also compacts. A
second stream reads the changes of that table, including cancelled orders, and maintains a table of counts. Kill it
at any time and restart it with the same folder: both streams continue where they stopped.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

import frazil

ORDERS = "id bigint, kind string, state string"


def arrive(folder: Path, number: int) -> None:
    """Write some orders, one file per batch."""
    folder.mkdir(exist_ok=True)
    for part in range(3):
        first = number * 30 + part * 10
        rows = [{"id": id_, "kind": ("web", "shop")[id_ % 2], "state": "new"} for id_ in range(first, first + 10)]
        (folder / f"{number}-{part}.json").write_text("\n".join(json.dumps(row) for row in rows))


def run(frame: DataFrame, name: str, checkpoint: Path, mode: str, **options: str) -> None:
    """Write all available rows."""
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint)).options(**options)
    writer.trigger(availableNow=True).toTable(name).awaitTermination()


def main(folder: Path) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    lake = frazil.connect(folder / "lake")
    frazil.attach(spark, lake)
    orders = lake.create_table("shop.orders", ORDERS, exist_ok=True)
    counts = lake.create_table("shop.counts", "kind string, orders bigint", exist_ok=True)

    for number in range(3):
        arrive(folder / "arrived", number)
        arrived = spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1).json(str(folder / "arrived"))
        compacts = {"compact-every-batches": "3", "compact.min-input-files": "3"}
        run(arrived, "lake.shop.orders", folder / "orders-checkpoint", "append", **compacts)

        # An order is cancelled; `once` makes a repeated job do nothing.
        orders.delete(f"id = {number * 30}", once=("cancellations", number))

        feed = spark.readStream.option("streaming-changes", "changes").table("lake.shop.orders")
        sign = F.when(F.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
        by_kind = feed.groupBy("kind").agg(F.sum(sign).alias("orders"))
        run(by_kind, "lake.shop.counts", folder / "counts-checkpoint", "update", **{"upsert-keys": "kind"})

        rows = counts.refresh().scan().to_arrow().sort_by("kind").to_pylist()
        totals = {row["kind"]: row["orders"] for row in rows}
        print(f"round {number + 1}: {totals}")

    batches = [snapshot for snapshot in orders.refresh().snapshots if snapshot.operation == "append"]
    print(f"{len(batches)} batches, {len(orders.inspect.data_files())} data files")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
