"""What the name of a table costs in a query: analysis of a query over lakes' tables beside Spark's own.

    python -m bench.sql_names [--rounds 40]

Each figure is the median time to analyse a query (no job runs), in milliseconds: over one table, over eight, and for
each table more. Spark's own tables are Parquet tables of its session catalog.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import frazil

TABLES = 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", str(Path(folder) / "own"))
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        begun = time.perf_counter()
        with frazil.connect(Path(folder) / "lake") as lake:
            lake.create_namespace("db")
            rows = pa.table({f"c{at}": list(range(1000)) for at in range(10)})
            for at in range(TABLES):
                lake.create_table(f"db.t{at}", rows.schema).append(rows)
            made = time.perf_counter()
            frazil.attach(spark, lake)
            spark.sql("select count(*) from lake.db.t0").collect()
            print(f"attach to first row: {time.perf_counter() - made:.2f} s (tables made in {made - begun:.2f} s)")
            for at in range(TABLES):
                spark.table(f"lake.db.t{at}").write.saveAsTable(f"t{at}")
            measure("lake.db.", spark, rounds)
            measure("", spark, rounds)
            frazil.detach(spark)
        spark.stop()


def measure(prefix: str, spark: SparkSession, rounds: int) -> None:
    """Print what names cost that begin with a prefix."""

    def analysed(count: int) -> Callable[[], object]:
        text = " union all ".join(f"select c0 from {prefix}t{at}" for at in range(count))
        return lambda: spark.sql(text)

    one, all_of_them = median(analysed(1), rounds), median(analysed(TABLES), rounds)
    each = (all_of_them - one) / (TABLES - 1)
    print(f"{prefix or 'own '}: one table {one:.1f} ms, {TABLES} tables {all_of_them:.1f} ms, each more {each:.1f} ms")


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
