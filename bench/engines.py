"""Spark with plain Parquet, with Iceberg's jar and with frazil, in one session: reads, writes, changes of rows.

    .venv-spark-4.1/bin/python -m bench.engines [--runs 3] [--only PART_OF_A_NAME]

The jar needs the Spark it was made for, so all contenders run on that one; frazil is the same code on any. Reads go
over the same data files: frazil wrote the table, the jar is given its metadata file, and plain Parquet the files that
hold what is asked for (it knows nothing of deletes, and is the limit, not a peer). Everything is done at three sizes;
the first of them warms up. Writes and changes go to a table of each one's
own, made alike; after each change the table is put back to the snapshot before it, which is not timed. Where the jar
cannot be had, it is left out.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from bench.measure import Results, alternate, scaled
from bench.spark_read import Lab, many_files
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

import frazil
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import DataFile
from frazil.table.scan import ScanOptions, scan_table

JAR_VERSION = "1.11.0"
JAR = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{JAR_VERSION}"
PLAIN, JAVA, OURS = "Parquet", "Iceberg's jar", "frazil"
COLUMNS = "id bigint, small int, score double, kind string, name string"
KINDS = 50
MODES = ("copy-on-write", "merge-on-read")


def has_jar() -> bool:
    """Return whether the jar is for this Spark."""
    return pyspark.__version__.startswith("4.1.")


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """Start a session of two cores, with the jar where it fits, and stop it."""
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("frazil bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "5g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )
    if has_jar():
        builder = (
            builder.config("spark.jars.packages", JAR)
            .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
            .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.java.type", "hadoop")
            .config("spark.sql.catalog.java.warehouse", str(folder / "java"))
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def contenders(*wanted: str) -> list[str]:
    """Return who takes part."""
    return [one for one in wanted if one != JAVA or has_jar()]


def sizes(runs: int) -> Iterator[tuple[int, int, int]]:
    """Yield how many rows to write and to change, how often, and how often before that to warm up."""
    fewer = max(runs - 1, 1)
    yield scaled(250_000), fewer, 1
    yield scaled(1_000_000), fewer, 0
    yield scaled(3_000_000), fewer, 0


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Return rows of five columns, the same for the same numbers."""
    return spark.range(start, end, numPartitions=8).selectExpr(
        "id",
        "cast(id % 1000 as int) as small",
        "cast(hash(id) as double) / 1000 as score",
        f"concat('kind-', lpad(cast(id % {KINDS} as string), 2, '0')) as kind",
        "concat('name-', hex(id * 7919)) as name",
    )


class Readers:
    """One table's current rows as a frame of each contender; plain Parquet gets the files that are named."""

    def __init__(self, spark: SparkSession, table: frazil.Table | LoadedTable, files: list[DataFile]) -> None:
        self._spark = spark
        self._table = table
        self._files = [one.file_path.removeprefix("file://") for one in files]

    def _ours(self) -> DataFrame:
        table = self._table
        # As of a lake that was just opened: nothing is known of the table.
        options = ScanOptions(manifest_cache=ManifestCache())
        scan = scan_table(table, options=options) if isinstance(table, LoadedTable) else table.scan()
        made: DataFrame = scan.to_spark(self._spark)
        return made

    def frames(self, names: list[str]) -> dict[str, Callable[[], DataFrame]]:
        """Return how each contender makes its frame."""
        made: dict[str, Callable[[], DataFrame]] = {
            PLAIN: lambda: self._spark.read.parquet(*self._files),
            JAVA: lambda: self._spark.read.format("org.apache.iceberg.spark.source.IcebergSource").load(
                str(self._table.metadata_location)
            ),
            OURS: self._ours,
        }
        return {name: made[name] for name in names}


def grouped(frame: DataFrame) -> Any:
    """Read two columns of all rows."""
    found = frame.groupBy("kind").agg(F.sum("score"), F.count("*")).collect()
    return sorted((row[0], round(row[1]), row[2]) for row in found)


def every_column(frame: DataFrame) -> Any:
    """Read all columns of all rows."""
    frame.write.format("noop").mode("overwrite").save()


def bench_reads(
    spark: SparkSession, lake: frazil.Lake, folder: Path, results: Results, runs: int, wanted: Callable[[str], bool]
) -> None:
    """Read a table that grows, without deletes and with each kind of them."""
    for size in map(scaled, (1_000_000, 4_000_000, 16_000_000)):
        name = f"db.read_{size}"
        table = lake.create_table(name, COLUMNS, format_version=2)
        step = size // 10
        for at in range(10):
            table.append(rows(spark, at * step, (at + 1) * step).coalesce(1))
        files = [task.data_file for task in table.scan().plan().tasks]
        readers = Readers(spark, table, files)
        race_reads(readers, results, "scan, all columns", (size, "rows"), runs, every_column, wanted)
        race_reads(readers, results, "scan, grouped sum", (size, "rows"), runs, grouped, wanted)
        race_reads(readers, results, "one row by id", (size, "rows"), runs, one_row(size), wanted)
        by_id = Readers(spark, equality_deletes(spark, folder / name, table, files, size), files)
        race_reads(by_id, results, "equality deletes", (size, "rows"), runs, grouped, wanted)
        table.set_properties({"write.delete.mode": "merge-on-read"})
        table.delete("id % 100 = 7")
        race_reads(readers, results, "1 % position deletes", (size, "rows"), runs, grouped, wanted)
        table.upgrade(3)
        table.maintain.rewrite_position_delete_files(rewrite_all=True)
        race_reads(readers, results, "1 % vectors", (size, "rows"), runs, grouped, wanted)
        lake.drop_table(name, purge=True)
    for count in map(scaled, (1_000, 10_000, 100_000)):
        lab = Lab(str(folder / f"files-{count}"), 0, spark)
        loaded, kept = many_files(lab, "t", max(count, 20), 10)
        race_reads(Readers(spark, loaded, kept), results, "10 of many files", (count, "files"), runs, first, wanted)


def equality_deletes(
    spark: SparkSession, folder: Path, table: frazil.Table, files: list[DataFile], size: int
) -> LoadedTable:
    """Return a table of the same files, of which a hundredth of the rows is deleted by id."""
    other = Lab(str(folder), 0, spark).builder("equality", table.schema, format_version=2)
    other.commit(*[replace(one, first_row_id=None) for one in files])
    ids = np.random.default_rng(7).choice(size, max(size // 100, 1), replace=False)
    data = pa.table([pa.array(ids)], schema=to_arrow_schema(other.schema.select(["id"])))
    other.commit(other.write_equality_deletes(data, ["id"]))
    return other.load()


def first(frame: DataFrame) -> Any:
    """Ask for the rows of the first ten files."""
    return round(frame.filter("id < 10000").agg(F.sum("score")).collect()[0][0], 3)


def one_row(size: int) -> Callable[[DataFrame], Any]:
    """Return a query that one file can answer."""
    return lambda frame: frame.filter(f"id = {size // 2}").select("name").collect()


def race_reads(
    readers: Readers,
    results: Results,
    workload: str,
    size: tuple[int, str],
    runs: int,
    query: Callable[[DataFrame], Any],
    wanted: Callable[[str], bool],
) -> None:
    """Time a query, the making of its frame included; those who apply deletes must agree."""
    if not wanted(workload):
        return
    frames = readers.frames(contenders(PLAIN, JAVA, OURS))
    answers = {str(query(make())) for name, make in frames.items() if name != PLAIN}
    if len(answers) != 1:
        raise SystemExit(f"{workload}: the answers differ")

    def ask(make: Callable[[], DataFrame]) -> Any:
        return query(make())

    work = {name: partial(ask, make) for name, make in frames.items()}
    results.add(workload, *size, alternate(work, runs))


def bench_appends(
    spark: SparkSession, lake: frazil.Lake, folder: Path, results: Results, runs: int, wanted: Callable[[str], bool]
) -> None:
    """Write frames that lie in memory."""
    for size, times, warm in sizes(runs):
        frame = rows(spark, 0, size).cache()
        frame.count()
        for workload, partitioned, is_sorted in (
            ("append", False, False),
            ("append, 50 partitions", True, False),
            ("append, sorted", False, True),
        ):
            if not wanted(workload):
                continue
            ours = lake.create_table(
                "db.written", COLUMNS, partition_by=["kind"] * partitioned, sort_by=["small"] * is_sorted
            )

            def plain(partitioned: bool = partitioned, is_sorted: bool = is_sorted, frame: DataFrame = frame) -> None:
                source = frame.hint("rebalance", "kind") if partitioned else frame
                source = source.repartitionByRange("small").sortWithinPartitions("small") if is_sorted else source
                writer = source.write.mode("overwrite").option("compression", "zstd")
                (writer.partitionBy("kind") if partitioned else writer).parquet(str(folder / "plain"))

            work: dict[str, Callable[[], Any]] = {PLAIN: plain}
            if has_jar():
                by = "PARTITIONED BY (kind)" if partitioned else ""
                spark.sql(f"CREATE TABLE java.db.written ({COLUMNS}) USING iceberg {by}")
                if is_sorted:
                    spark.sql("ALTER TABLE java.db.written WRITE ORDERED BY small")
                work[JAVA] = frame.writeTo("java.db.written").append
            work[OURS] = partial(ours.append, frame)
            results.add(workload, size, "rows", alternate(work, times, warm=warm))
            lake.drop_table("db.written", purge=True)
            if has_jar():
                spark.sql("DROP TABLE java.db.written PURGE")
        frame.unpersist()


def bench_changes(
    spark: SparkSession, lake: frazil.Lake, results: Results, runs: int, wanted: Callable[[str], bool]
) -> None:
    """Delete, update and merge in both modes, into 50 partitions."""
    for size, times, warm in sizes(runs):
        few = size // 100
        one_kind = rows(spark, 0, size).filter("kind = 'kind-07'").limit(few)
        spread = rows(spark, size - few // 2, size + few // 2)
        merge = (
            "MERGE INTO {table} t USING {source} s ON t.kind = s.kind AND t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET score = s.score + 1 WHEN NOT MATCHED THEN INSERT *"
        )
        one_kind.createOrReplaceTempView("bench_one_kind")
        spread.createOrReplaceTempView("bench_spread")
        statements = {
            "delete 1 %": "DELETE FROM {table} WHERE id % 101 = 3",
            "update 1 %": "UPDATE {table} SET score = score + 1 WHERE id % 103 = 5",
            "merge into 1 of 50": merge.replace("{source}", "bench_one_kind"),
            "merge into all": merge.replace("{source}", "bench_spread"),
            "delete a partition": "DELETE FROM {table} WHERE kind = 'kind-09'",
        }
        for mode in MODES:
            modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
            ours = lake.create_table("db.changed", COLUMNS, partition_by=["kind"], properties=modes, format_version=2)
            ours.append(rows(spark, 0, size))
            names = {OURS: "lake.db.changed"}
            if has_jar():
                listed = ", ".join(f"'{name}' = '{value}'" for name, value in (modes | {"format-version": "2"}).items())
                by = f"PARTITIONED BY (kind) TBLPROPERTIES ({listed})"
                spark.sql(f"CREATE TABLE java.db.changed ({COLUMNS}) USING iceberg {by}")
                rows(spark, 0, size).writeTo("java.db.changed").append()
                names = {JAVA: "java.db.changed", **names}
            starts = {name: head(spark, place) for name, place in names.items()}

            def put_back(name: str, starts: dict[str, int] = starts) -> None:
                system = "java" if name == JAVA else "lake"
                spark.sql(f"CALL {system}.system.set_current_snapshot('db.changed', {starts[name]})")

            for title, statement in statements.items():
                workload = f"{title}, {'copy' if mode == MODES[0] else 'on read'}"
                if wanted(workload):
                    work = {name: partial(spark.sql, statement.format(table=place)) for name, place in names.items()}
                    results.add(workload, size, "rows", alternate(work, times, warm=warm, between=put_back))
            lake.drop_table("db.changed", purge=True)
            if has_jar():
                spark.sql("DROP TABLE java.db.changed PURGE")


def head(spark: SparkSession, table: str) -> int:
    """Return a table's current snapshot."""
    found = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1").first()
    assert found is not None
    return int(found[0])


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))

    def wanted(workload: str) -> bool:
        return given.only in workload

    try:
        with session(folder) as spark, frazil.connect(folder / "lake") as lake:
            frazil.attach(spark, lake=lake)
            lake.create_namespace("db")
            names = contenders(PLAIN, JAVA, OURS)
            print(f"Spark {spark.version}, local[2]; x: frazil's time by the contender's, below 1 frazil is faster")
            results = Results("engines", names, versions={"iceberg jar": JAR_VERSION} if has_jar() else {})
            try:
                bench_reads(spark, lake, folder, results, given.runs, wanted)
                bench_appends(spark, lake, folder, results, given.runs, wanted)
                bench_changes(spark, lake, results, given.runs, wanted)
            finally:
                # What was measured before something failed was measured.
                results.write()
            frazil.detach(spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
