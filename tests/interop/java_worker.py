"""Iceberg's Java runtime on Spark 4.1, as a process that takes a line of JSON and answers with one.

It runs in the environment that has PySpark 4.1, without frazil: requests are about files and SQL only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession


def session(packages: str, warehouse: str) -> SparkSession:
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", packages)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.java.type", "hadoop")
        .config("spark.sql.catalog.java.warehouse", warehouse)
        .config("spark.sql.catalog.java.cache-enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "read":
        reader = spark.read.format("iceberg")
        if request.get("ref") is not None:
            reader = reader.option("versionAsOf", request["ref"])
        write(reader.load(request["location"]).toArrow(), request["into"])
    elif request["do"] == "append":
        with pa.ipc.open_file(request["rows"]) as rows:
            frame = spark.createDataFrame(rows.read_all())
        frame.createOrReplaceTempView("given")
        spark.sql(request["text"])
    else:
        found = spark.sql(request["text"]).toArrow()
        if request.get("into") is not None:
            write(found, request["into"])
    return {"ok": True}


def write(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def main() -> None:
    spark = session(sys.argv[1], sys.argv[2])
    print(json.dumps({"ok": True}), flush=True)
    for line in sys.stdin:
        try:
            said = answer(spark, json.loads(line))
        except Exception as error:
            said = {"ok": False, "why": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
