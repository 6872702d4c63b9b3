"""Iceberg's Java runtime on Spark 4.1 as a process for `rewrite_files.py`: a line of SQL in, a line of JSON out.

Runs in the environment with PySpark 4.1, without frazil. Answers tell the seconds that passed and the JVM's peak
memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) / 1024


def main() -> None:
    """Start a session and run what comes in."""
    packages, warehouse, memory, cores = sys.argv[1:]
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars.packages", packages)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.java.type", "hadoop")
        .config("spark.sql.catalog.java.warehouse", warehouse)
        .config("spark.sql.catalog.java.cache-enabled", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    print(json.dumps({"ok": True}), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            rows = [one.asDict() for one in spark.sql(json.loads(line)).collect()]
        except Exception as error:
            print(json.dumps({"ok": False, "why": str(error)[:500]}), flush=True)
            continue
        passed = time.perf_counter() - start
        answer = {"ok": True, "seconds": passed, "peak": peak_mib(pid), "rows": rows[:5]}
        print(json.dumps(answer, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
