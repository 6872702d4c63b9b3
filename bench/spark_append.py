"""Append a DataFrame to a table, beside `df.write.parquet` of the same frame: plain, partitioned, with lists and maps.

    python bench/spark_append.py [--rows 5000000] [--runs 3]

Times of frazil include the commit. The frame is cached, so that neither side pays for making it. Runs alternate; the
least time of each counts, since the machine may do other things. The partitioned peer is `partitionBy` after the same
rebalance by partition (`REBALANCE` hint), and `partitionBy` without one, which leaves a file for each task and value.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import frazil

COLUMNS = "id bigint, small int, score double, kind string, name string"
NESTED = f"{COLUMNS}, tags list<string>, attrs map<string, int>"


def session(master: str = "local[2]", memory: str = "3g") -> SparkSession:
    """Return a small session, in this process where the master does not say otherwise."""
    made = (
        SparkSession.builder.master(master)
        .appName("frazil bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "16")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def rows(spark: SparkSession, count: int) -> DataFrame:
    """Return a frame of five columns."""
    return spark.range(0, count, numPartitions=8).selectExpr(
        "id",
        "cast(id % 1000 as int) as small",
        "rand(1) as score",
        "concat('kind-', id % 50) as kind",
        "concat('name-', hex(id * 7919)) as name",
    )


def timed(run: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def compare(label: str, peer: str, runs: int, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Print the least times of two ways to do the same."""
    times = [(timed(theirs), timed(ours)) for _ in range(runs)]
    best_theirs, best_ours = min(one for one, _ in times), min(one for _, one in times)
    print(f"{label:28s} {peer:34s} {best_theirs:8.2f} s {best_ours:8.2f} s {best_ours / best_theirs:8.2f} x")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    spark = session()
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        lake = frazil.connect(folder / "lake")
        lake.create_namespace("db")
        plain = rows(spark, given.rows).cache()
        plain.count()
        nested = plain.selectExpr("*", "array(kind, name) as tags", "map(kind, small) as attrs")
        flat = lake.create_table("db.flat", COLUMNS)
        parts = lake.create_table("db.parts", COLUMNS, partition_by=["kind"])
        deep = lake.create_table("db.deep", NESTED)

        def parquet(frame: DataFrame, by: str | None = None) -> Callable[[], Any]:
            def run() -> None:
                writer = frame.write.mode("overwrite").option("compression", "zstd")
                (writer if by is None else writer.partitionBy(by)).parquet(str(folder / "plain"))

            return run

        print(f"{given.rows:,} rows, Spark {spark.version}, local[2], least of {given.runs} runs")
        print(f"{'':28s} {'peer':34s} {'peer':>10s} {'frazil':>10s} {'ratio':>10s}")
        compare("append", "df.write.parquet", given.runs, parquet(plain), lambda: flat.append(plain))
        balanced = plain.hint("rebalance", "kind")
        compare(
            "append, 50 partitions",
            "rebalance, partitionBy",
            given.runs,
            parquet(balanced, "kind"),
            lambda: parts.append(plain),
        )
        compare("append, 50 partitions", "partitionBy", given.runs, parquet(plain, "kind"), lambda: parts.append(plain))
        compare("append, list and map", "df.write.parquet", given.runs, parquet(nested), lambda: deep.append(nested))
        assert flat.scan().count() == given.rows * given.runs
        lake.close()
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
