"""Change rows of a table on Spark: what a change costs must follow what it touches, not what the table holds.

    python -m bench.spark_merge [--rows 3000000] [--partitions 100] [--pyiceberg-rows 320000] [--runs 2]

The table has `--partitions` partitions of equal size, and a sixteenth, a quarter and all of the rows. Each line is one
change in one of two modes, which take turns; the table is put back after each. A merge into a tenth of one partition
stands beside one of as many rows, spread over all partitions, and one into a tenth of each; deletes of 1 % of the rows
stand beside a delete of a partition. The peer is PyIceberg's upsert, at a size that it finishes, beside frazil's of the
same rows into the same table; both are given the rows as an Arrow table, once.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.measure import Results, alternate, scaled
from bench.spark_append import session, timed
from pyspark.sql import DataFrame, SparkSession

import frazil

COLUMNS = "id bigint, part int, score double, name string"
MODES = ("copy-on-write", "merge-on-read")


def rows(spark: SparkSession, start: int, end: int, partitions: int, step: int = 1) -> DataFrame:
    """Return rows whose partition is their id's remainder; a step of that many partitions stays in one."""
    return spark.range(start, end, step, numPartitions=4).selectExpr(
        "id", f"cast(id % {partitions} as int) as part", "rand(1) as score", "concat('name-', hex(id * 7919)) as name"
    )


def merge(source: DataFrame, table: frazil.Table) -> Any:
    """Merge a source into a table by partition and id: rows that match are replaced, others are added."""
    merging = table.merge(source, on="target.part = source.part and target.id = source.id")
    return merging.when_matched().update_all().when_not_matched().insert_all().execute()


def changes(spark: SparkSession, count: int, partitions: int) -> dict[str, Callable[[frazil.Table], Any]]:
    """Return the changes to time, by name."""
    few = count // 100
    tenth = count // 10
    one = rows(spark, 7, tenth, partitions, step=partitions)
    spread = rows(spark, 0, tenth // partitions, partitions)
    share = rows(spark, 0, tenth, partitions)
    more = rows(spark, count - few // 2, count + few // 2, partitions)
    many = rows(spark, count - few * 5, count + few * 5, partitions)
    return {
        "merge 10 % of one partition": partial(merge, one),
        "merge as many rows of all": partial(merge, spread),
        "merge 10 % of all partitions": partial(merge, share),
        "upsert 1 % by id": lambda table: table.upsert(more, keys=["id"]),
        "upsert 10 % by id": lambda table: table.upsert(many, keys=["id"]),
        "delete 1 % scattered": lambda table: table.delete("id % 101 = 3"),
        "delete a partition": lambda table: table.delete("part = 9"),
        "update 1 % scattered": lambda table: table.update({"score": "score + 1"}, where="id % 103 = 5"),
    }


def make(lake: frazil.Lake, name: str, mode: str, spark: SparkSession, count: int, partitions: int) -> frazil.Table:
    """Return a table of so many rows, whose changes are made in a mode."""
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table(name, COLUMNS, partition_by=["part"], properties=properties, format_version=3)
    table.append(rows(spark, 0, count, partitions))
    table.delete("id = 1 and part = 1")
    return table


def compare(
    spark: SparkSession, lake: frazil.Lake, count: int, partitions: int, runs: int, warm: int, results: Results
) -> None:
    """Time every change of a table of so many rows in both modes; each starts from the same rows."""
    tables = {mode: make(lake, f"db.{mode[:4]}_{count}", mode, spark, count, partitions) for mode in MODES}
    starts = {mode: table.metadata.current_snapshot_id for mode, table in tables.items()}
    for name, change in changes(spark, count, partitions).items():
        counts: dict[str, int] = {}

        def put_back(mode: str, counts: dict[str, int] = counts) -> None:
            counts[mode] = tables[mode].refresh().scan().count()
            tables[mode].set_current_snapshot(starts[mode])
            tables[mode].refresh()

        seconds = alternate({mode: partial(change, tables[mode]) for mode in MODES}, runs, warm=warm, between=put_back)
        assert len(set(counts.values())) == 1, counts
        for mode, title in zip(MODES, ("copy", "on read"), strict=True):
            results.add(f"{name}, {title}", count, "rows", {"frazil": seconds[mode]})
    for table in tables.values():
        lake.drop_table(table.identifier, purge=True)


def beside_pyiceberg(folder: Path, count: int, results: Results) -> None:
    """Upsert the same rows with PyIceberg and with frazil into tables of the same rows."""
    from pyiceberg.catalog.sql import SqlCatalog

    first = pa.table({"id": pa.array(range(count)), "name": [f"n{one}" for one in range(count)]})
    half = count // 2
    given = pa.table({"id": pa.array(range(half, half + count)), "name": [f"m{one}" for one in range(count)]})
    uri = f"sqlite:///{folder}/theirs-{count}.db"
    theirs: Any = SqlCatalog("theirs", uri=uri, warehouse=f"file://{folder}/theirs-{count}")
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", first.schema)
    table.append(first)
    seconds = timed(lambda: table.upsert(given, join_cols=["id"]))
    with frazil.connect(folder / f"ours-{count}") as lake:
        lake.create_namespace("db")
        ours = lake.create_table("db.t", "id bigint, name string")
        ours.append(first)
        own = timed(lambda: ours.upsert(given, keys=["id"]))
        assert ours.scan().count() == count + half
    results.add("upsert as many Arrow rows", count, "rows", {"PyIceberg": [seconds], "frazil": [own]})


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=scaled(3_000_000))
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--pyiceberg-rows", type=int, default=scaled(320_000))
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    spark = session()
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        print(f"{given.partitions} partitions, Spark {spark.version}, local[2]")
        results = Results("spark_merge", ["PyIceberg", "frazil"])
        with frazil.connect(folder / "lake") as lake:
            lake.create_namespace("db")
            for part, warm in ((16, 1), (4, 0), (1, 0)):
                # Spark compiles what a change runs when it first runs it: that is the session's time, not the change's.
                count = max(given.rows // part, given.partitions * 100)
                compare(spark, lake, count, given.partitions, given.runs, warm, results)
        for part in (16, 4, 1):
            beside_pyiceberg(folder, max(given.pyiceberg_rows // part, 10), results)
        results.write()
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
