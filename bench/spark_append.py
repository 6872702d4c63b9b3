"""Append a DataFrame to a table, beside `df.write.parquet` of the same frame: plain, partitioned, with lists and maps.

    python -m bench.spark_append [--rows 2000000] [--runs 3]

Times of frazil include the commit. The frame is cached, so that neither side pays for making it. Runs alternate, and
medians count; there are three sizes, a sixteenth, a quarter and all of the rows, of which the first warms up. The
partitioned peer is `partitionBy` after the same rebalance by partition (`REBALANCE` hint), and `partitionBy` without
one, which leaves a file for each task and value.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import Results, alternate, scaled
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


def compare(spark: SparkSession, lake: frazil.Lake, folder: Path, count: int, runs: int, results: Results) -> None:
    """Append a frame of so many rows in every way, beside Spark's own writer."""
    plain = rows(spark, count).cache()
    plain.count()
    nested = plain.selectExpr("*", "array(kind, name) as tags", "map(kind, small) as attrs")
    balanced = plain.hint("rebalance", "kind")

    def parquet(frame: DataFrame, *by: str) -> Callable[[], Any]:
        def run() -> None:
            writer = frame.write.mode("overwrite").option("compression", "zstd")
            (writer.partitionBy(*by) if by else writer).parquet(str(folder / "plain"))

        return run

    for title, peer, frame, table in (
        ("append, by df.write.parquet", parquet(plain), plain, lake.create_table("db.flat", COLUMNS)),
        (
            "append, 50 partitions, by rebalance and partitionBy",
            parquet(balanced, "kind"),
            plain,
            lake.create_table("db.balanced", COLUMNS, partition_by=["kind"]),
        ),
        (
            "append, 50 partitions, by partitionBy",
            parquet(plain, "kind"),
            plain,
            lake.create_table("db.parts", COLUMNS, partition_by=["kind"]),
        ),
        ("append, list and map, by df.write.parquet", parquet(nested), nested, lake.create_table("db.deep", NESTED)),
    ):
        work: dict[str, Callable[[], Any]] = {"Parquet": peer, "frazil": partial(table.append, frame)}
        results.add(title, count, "rows", alternate(work, runs))
        assert table.refresh().scan().count() == count * (runs + 1)
        lake.drop_table(table.identifier, purge=True)
    plain.unpersist()


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=scaled(2_000_000))
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    spark = session()
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        print(f"Spark {spark.version}, local[2], median of {given.runs} runs")
        results = Results("spark_append", ["Parquet", "frazil"])
        with frazil.connect(folder / "lake") as lake:
            lake.create_namespace("db")
            for part in (16, 4, 1):
                compare(spark, lake, folder, max(given.rows // part, 100), given.runs, results)
        results.write()
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
