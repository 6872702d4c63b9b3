"""Iceberg's Java runtime on Spark 4.1, as a process that takes a line of JSON and answers with one.

It runs in the environment that has PySpark 4.1, without frazil: requests are about files and SQL only.
"""

from __future__ import annotations

import json
import pickle
import runpy
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession


def session(packages: str, warehouse: str) -> SparkSession:
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", packages)
        .config("spark.jars.excludes", "org.slf4j:slf4j-api")
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
        .config("spark.sql.warehouse.dir", f"{warehouse}/spark-warehouse")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    # Drivers of databases are found only where their class was loaded by the loader that also has Iceberg's.
    jvm: Any = made._jvm
    jvm.java.lang.Class.forName("org.sqlite.JDBC", True, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    return made


opened: dict[str, SparkSession] = {}
"""The sessions that were asked for by name, each with a catalog `lake` of its own."""


def open_lake(spark: SparkSession, request: dict[str, Any]) -> None:
    """Make a session with a catalog `lake`: the JDBC catalog over a SQLite file."""
    made = spark.newSession()
    settings = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{request['database']}",
        "spark.sql.catalog.lake.warehouse": request["warehouse"],
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.cache-enabled": "false",
        **request.get("settings", {}),
    }
    for name, value in settings.items():
        made.conf.set(name, value)
    opened[request["session"]] = made


def answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    chosen = opened[request["session"]] if request.get("session") in opened else spark
    if request["do"] == "open":
        open_lake(spark, request)
    elif request["do"] == "run":
        found = [tuple(row) for row in chosen.sql(request["text"]).collect()]
        Path(request["into"]).write_bytes(pickle.dumps(found))
    elif request["do"] == "script":
        found = runpy.run_path(request["path"])["run"](chosen, *request["arguments"])
        Path(request["into"]).write_bytes(pickle.dumps(found))
    elif request["do"] == "read":
        reader = chosen.read.format("iceberg")
        if request.get("ref") is not None:
            reader = reader.option("versionAsOf", request["ref"])
        write(reader.load(request["location"]).toArrow(), request["into"])
    elif request["do"] == "append":
        with pa.ipc.open_file(request["rows"]) as rows:
            frame = chosen.createDataFrame(rows.read_all())
        frame.createOrReplaceTempView("given")
        chosen.sql(request["text"])
    else:
        table = chosen.sql(request["text"]).toArrow()
        if request.get("into") is not None:
            write(table, request["into"])
    return {"ok": True}


def first_line(error: Exception) -> str:
    """Return what went wrong in one line; of errors of the JVM their own words."""
    thrown = getattr(error, "java_exception", None)
    while thrown is not None and thrown.getCause() is not None:
        thrown = thrown.getCause()
    said = f"{type(error).__name__}: {error}" if thrown is None else str(thrown.toString())
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.strip().startswith("at ")]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])[:300]


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
            said = {"ok": False, "why": first_line(error)}
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
