"""Memory of the driver while rows are written and changed: it must follow files, not rows.

    python -m bench.spark_memory [--rows 250000] [--times 8]

Executors are processes of their own (`local-cluster`), so that what the driver holds is the driver's. The same steps
run on a table of `--rows` rows and on one of `--times` as many, each in a new process; both have the same partitions.
Printed is the most that the driver's heap held after a collection, and the most that its Python held.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.measure import scaled
from bench.spark_append import session
from bench.spark_merge import MODES, make, merge, rows
from pyspark.sql import SparkSession

import frazil

PARTITIONS = 20
EXECUTOR_MB = 1024
MB = 1 << 20


def held(spark: SparkSession) -> float:
    """Return how many megabytes of the driver's heap are in use after a collection."""
    jvm: Any = spark.sparkContext._jvm
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / MB


def run_steps(count: int) -> dict[str, float]:
    """Write and change a table of so many rows; return the most of each kind of memory, in megabytes."""
    spark = session(f"local-cluster[2,1,{EXECUTOR_MB}]", "1g")
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    heap = 0.0
    try:
        with frazil.connect(folder / "lake") as lake:
            lake.create_namespace("db")
            for mode in MODES:
                table = make(lake, f"db.{mode[:4]}", mode, spark, count, PARTITIONS)
                heap = max(heap, held(spark))
                merge(rows(spark, 0, count // 10, PARTITIONS), table)
                heap = max(heap, held(spark))
                table.upsert(rows(spark, count // 2, count // 2 + count // 10, PARTITIONS), keys=["id"])
                heap = max(heap, held(spark))
                table.delete("id % 101 = 3")
                heap = max(heap, held(spark))
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return {"heap": heap, "python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB}


def main() -> None:
    """Print the memory of both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=scaled(250_000))
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--one", type=int, help="run the steps once, and print what they took as JSON")
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(run_steps(given.one)))
        return
    print(f"{'rows':>12} {'driver heap, MB':>16} {'driver Python, MB':>18}")
    for count in (given.rows, given.rows * given.times):
        command = [sys.executable, "-m", "bench.spark_memory", "--one", str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(f"{count:>12,} {found['heap']:>16.0f} {found['python']:>18.0f}", flush=True)


if __name__ == "__main__":
    main()
