"""One query under Iceberg's jar and under frazil by turns, with one checkpoint: prints the rows after each turn.

    stream_moves.py PACKAGES FOLDER

It runs in the environment that has PySpark 4.1; both see the same table, in a catalog of files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import frazil


def main(packages: str, folder: Path) -> None:
    warehouse = folder / "warehouse"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", packages)
        .config("spark.jars.excludes", "org.slf4j:slf4j-api")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.java.type", "hadoop")
        .config("spark.sql.catalog.java.warehouse", str(warehouse))
        .config("spark.sql.catalog.java.cache-enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(warehouse, catalog="filesystem")
    frazil.attach(spark, lake)
    spark.sql("create table java.db.t (id bigint) using iceberg")
    feed, checkpoint = folder / "feed", folder / "checkpoint"
    feed.mkdir()
    turns: list[Any] = []
    ids = set()
    for number, who in enumerate(["java", "lake", "lake", "java", "lake", "java"]):
        (feed / f"{number}.json").write_text(json.dumps({"id": number}))
        if number:
            # The last batch is committed to the table, and Spark does not know it: it runs again, under the other one.
            last = max(int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit())
            (checkpoint / "commits" / str(last)).unlink()
            (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
        frame = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).json(str(feed))
        writer = frame.writeStream.format("iceberg").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).toTable(f"{who}.db.t")
        query.awaitTermination()
        ids.add(str(query.id))
        rows = sorted(row[0] for row in spark.table("java.db.t").collect())
        turns.append([who, rows])
    print(json.dumps({"turns": turns, "queries": len(ids), "ok": lake.table("db.t").check().ok}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
