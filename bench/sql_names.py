"""What the name of a table costs in a query: analysis of a query over lakes' tables beside Spark's own.

    python -m bench.sql_names [--rounds 40]

Each figure is the median time to analyse a query (no job runs), in milliseconds: over one table, over eight, and for
each table more. Spark's own tables are Parquet tables of its session catalog. The promise is 10 ms for a table's name.

Cold figures are of processes of their own, in seconds: from a session that has just started to the first row of a
Parquet folder, and of a lake's table with `attach`; once with frazil's classes compiled before, once without.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import frazil

TABLES = 8
PROMISED_MS = 10.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--cold", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    rounds = given.rounds
    if given.cold:
        cold(given.cold, Path(given.folder))
        return
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", str(Path(folder) / "own"))
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        with frazil.connect(Path(folder) / "lake") as lake:
            lake.create_namespace("db")
            rows = pa.table({f"c{at}": list(range(1000)) for at in range(10)})
            for at in range(TABLES):
                lake.create_table(f"db.t{at}", rows.schema).append(rows)
            frazil.attach(spark, lake)
            for at in range(TABLES):
                spark.table(f"lake.db.t{at}").write.saveAsTable(f"t{at}")
            each = measure("lake.db.", spark, rounds)
            measure("", spark, rounds)
            frazil.detach(spark)
        spark.table("t0").write.parquet(f"{folder}/parquet")
        spark.stop()
        for how in ("parquet", "kept", "anew"):
            left = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_GATEWAY")}
            command = [sys.executable, "-m", "bench.sql_names", "--cold", how, "--folder", folder]
            subprocess.run(command, check=True, env=left)
    if each > PROMISED_MS:
        sys.exit(f"a table's name costs {each:.1f} ms, and {PROMISED_MS} are promised")


def cold(how: str, folder: Path) -> None:
    """Print how long the first row takes in a session that has just started."""
    begun = time.perf_counter()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    started = time.perf_counter()
    if how == "parquet":
        spark.read.parquet(f"{folder}/parquet").limit(1).collect()
    else:
        if how == "anew":
            for one in (Path(frazil.__file__).parent / "spark/java/__pycache__").glob(
                f"spark-{pyspark.__version__}-*.zip"
            ):
                one.unlink()
        with frazil.connect(folder / "lake") as lake:
            frazil.attach(spark, lake)
            spark.table("lake.db.t0").limit(1).collect()
    names = {
        "parquet": "first row of Parquet",
        "kept": "attach to first row",
        "anew": "attach to first row, classes compiled anew",
    }
    said = f"cold: {names[how]} {time.perf_counter() - started:.2f} s"
    print(f"{said} (the session starts in {started - begun:.2f} s)", flush=True)
    spark.stop()


def measure(prefix: str, spark: SparkSession, rounds: int) -> float:
    """Print what names cost that begin with a prefix; return what each table more costs, in milliseconds."""

    def analysed(count: int) -> Callable[[], object]:
        text = " union all ".join(f"select c0 from {prefix}t{at}" for at in range(count))
        return lambda: spark.sql(text)

    one, all_of_them = median(analysed(1), rounds), median(analysed(TABLES), rounds)
    each = (all_of_them - one) / (TABLES - 1)
    print(
        f"{prefix or 'own '}: one table {one:.1f} ms, {TABLES} tables {all_of_them:.1f} ms, each more {each:.1f} ms",
        flush=True,
    )
    return each


def median(run: Callable[[], object], rounds: int) -> float:
    """Return the median time of a run in milliseconds, after some that do not count."""
    times = []
    for at in range(rounds + 10):
        begun = time.perf_counter()
        run()
        if at >= 10:
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
