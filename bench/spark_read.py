"""Read on Spark with frazil and with plain `spark.read.parquet` over the same files, side by side.

    python -m bench.spark_read [--rows 8000000] [--runs 3] [--only PART_OF_A_TITLE]

The table has five columns (a long, an int, a double, two strings) in ten files, and one nested column in its own
table; it has three sizes, a sixteenth, a quarter and all of the rows. Contenders alternate in one session, the first
round is not counted, medians and spreads are printed. The plain contender is given just the files that hold what
is asked for, and knows nothing of deletes: it is the limit.

    scan            sum of a double by a string of eight values, over all rows
    vectors         the same with 1 % of the rows deleted by vectors, in every file and in one file of ten
    equality        the same with 1 % of the rows deleted by equality deletes
    nested          sum over a field of a struct
    partitioned     a table partitioned by kind, one kind of eight
    10,000 files    a filter that keeps ten of ten thousand files, the first query on a table
    100,000 files   planning a query that keeps all of them, until Spark has its partitions
    fixed           a count over one small file: what every query pays
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench.measure import Results, alternate, scaled
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.single_value import encode_value
from frazil.loaded import LoadedTable
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, NestedField, StructType
from frazil.storage.local import LocalStorage
from frazil.table.scan import scan_table
from tests.support.tables import TableBuilder

Work = Callable[[], Any]
FILES = 10
KINDS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "small", INT),
        NestedField(3, "score", DOUBLE),
        NestedField(4, "kind", STRING),
        NestedField(5, "name", STRING),
    )
)
NESTED = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "payload", StructType((NestedField(3, "score", DOUBLE), NestedField(4, "kind", STRING)))),
    )
)


def columns(start: int, count: int, random: np.random.Generator) -> list[pa.Array]:
    return [
        pa.array(np.arange(start, start + count)),
        pa.array(random.integers(0, 1000, count, dtype=np.int32)),
        pa.array(random.random(count)),
        pa.array(KINDS[random.integers(0, len(KINDS), count)], pa.string()),
        pa.array(np.char.add("name-", random.integers(0, 10**6, count).astype(str)), pa.string()),
    ]


def plain_path(location: str) -> str:
    return location.replace("file://", "")


class Lab:
    """The tables of the benchmark, and the session that reads them."""

    def __init__(self, folder: str, rows: int, spark: SparkSession, results: Results | None = None) -> None:
        self.results = results
        self.folder = folder
        self.rows = rows
        self.spark = spark
        self.random = np.random.default_rng(7)
        self.storage = LocalStorage(durable=False)

    def builder(self, name: str, schema: Schema, **options: Any) -> TableBuilder:
        return TableBuilder(schema, storage=self.storage, location=f"file://{self.folder}/{name}", **options)

    def main_table(self) -> tuple[TableBuilder, list[Any]]:
        table = self.builder("main", SCHEMA, format_version=3)
        size = self.rows // FILES
        written = []
        for at in range(FILES):
            data = pa.table(columns(at * size, size, self.random), schema=to_arrow_schema(table.schema))
            written.append(table.write_data(data, compression="zstd"))
        table.commit(*written)
        return table, written

    def frame(self, loaded: LoadedTable, text: str | None = None) -> Any:
        return scan_table(loaded, text).to_spark(self.spark)

    def plain(self, files: list[Any]) -> Any:
        return self.spark.read.parquet(*[plain_path(one.file_path) for one in files])


def grouped(frame: Any) -> Any:
    return sorted((row[0], round(row[1], 3)) for row in frame.groupBy("kind").agg(F.sum("score")).collect())


def race(lab: Lab, title: str, contenders: dict[str, Work], runs: int, target: str = "", size: int = 0) -> float:
    """Time contenders in turn, keep and print what they took; return how much longer frazil took, in seconds."""
    seconds = alternate(contenders, runs)
    if lab.results is not None:
        unit = "files" if size else "rows"
        named = {"Parquet": seconds["plain"], "frazil": seconds["frazil"]}
        lab.results.add(title, size or lab.rows, unit, named)
    ours, limit = (statistics.median(seconds[name]) for name in ("frazil", "plain"))
    spread = max(max(found) / min(found) for found in seconds.values())
    print(
        f"{title:44}{size or lab.rows:>12,}{ours:9.3f}s{limit:10.3f}s{ours / limit:8.2f}{spread:9.2f}   {target}",
        flush=True,
    )
    return ours - limit


def bench_main(lab: Lab, runs: int, wanted: Callable[[str], bool]) -> None:
    table, files = lab.main_table()
    loaded = table.load()
    limit = lab.plain(files)
    whole = lab.frame(loaded)
    if wanted("scan"):
        assert grouped(whole) == grouped(limit)
        race(
            lab,
            "scan: grouped sum",
            {"frazil": lambda: grouped(whole), "plain": lambda: grouped(limit)},
            runs,
            "<= 1.10",
        )
    if wanted("vectors"):
        positions = {one: lab.random.choice(one.record_count, one.record_count // 100, replace=False) for one in files}
        tenth = lab.builder("tenth", SCHEMA, format_version=3)
        tenth.commit(*files)
        tenth.commit(*tenth.write_vectors({files[0]: positions[files[0]].tolist()}))
        few = lab.frame(tenth.load())
        race(
            lab,
            "vectors: 1 % of the rows of 1 file in 10",
            {"frazil": lambda: grouped(few), "plain": lambda: grouped(limit)},
            runs,
            "<= 1.15",
        )
        table.commit(*table.write_vectors({one: found.tolist() for one, found in positions.items()}))
        many = lab.frame(table.load())
        assert many.count() == lab.rows - sum(map(len, positions.values()))
        race(
            lab,
            "vectors: 1 % of the rows of every file",
            {"frazil": lambda: grouped(many), "plain": lambda: grouped(limit)},
            runs,
            "<= 1.60",
        )
    if wanted("equality"):
        other = lab.builder("equality", SCHEMA, format_version=2)
        other.commit(*[replace(one, first_row_id=None) for one in files])
        ids = lab.random.choice(lab.rows, lab.rows // 100, replace=False)
        data = pa.table([pa.array(ids)], schema=to_arrow_schema(other.schema.select(["id"])))
        other.commit(other.write_equality_deletes(data, ["id"]))
        left = lab.frame(other.load())
        assert left.count() == lab.rows - len(ids)
        race(
            lab,
            "equality: 1 % of the rows deleted by id",
            {"frazil": lambda: grouped(left), "plain": lambda: grouped(limit)},
            runs,
        )


def bench_nested(lab: Lab, runs: int) -> None:
    table = lab.builder("nested", NESTED, format_version=2)
    size = lab.rows // 4 // FILES
    files = []
    for at in range(FILES):
        _, _, score, kind, _ = columns(0, size, lab.random)
        schema = to_arrow_schema(table.schema)
        payload = pa.StructArray.from_arrays([score, kind], fields=list(schema.field("payload").type))
        data = pa.table([pa.array(np.arange(at * size, (at + 1) * size)), payload], schema=schema)
        files.append(table.write_data(data, compression="zstd"))
    table.commit(*files)
    ours, limit = lab.frame(table.load()), lab.plain(files)

    def total(frame: Any) -> Any:
        return frame.groupBy("payload.kind").agg(F.sum("payload.score")).collect()

    race(
        lab,
        "nested: grouped sum of a struct's fields",
        {"frazil": lambda: total(ours), "plain": lambda: total(limit)},
        runs,
    )


def bench_partitioned(lab: Lab, runs: int) -> None:
    table = lab.builder("partitioned", SCHEMA, partition_by=["kind"], format_version=2)
    files = []
    schema = to_arrow_schema(table.schema)
    for kind in KINDS:
        found = columns(0, lab.rows // 4 // len(KINDS), lab.random)
        found[3] = pa.array([str(kind)] * len(found[0]))
        files.append(table.write_data(pa.table(found, schema=schema), partition=(str(kind),), compression="zstd"))
    table.commit(*files)
    ours = lab.frame(table.load())
    limit = lab.plain([one for one in files if one.partition == ("beta",)])

    def total(frame: Any) -> Any:
        return frame.filter("kind = 'beta'").agg(F.sum("score")).collect()

    race(
        lab, "partitioned: one partition of eight", {"frazil": lambda: total(ours), "plain": lambda: total(limit)}, runs
    )


def many_files(lab: Lab, name: str, count: int, real: int, *, linked: bool = False) -> tuple[LoadedTable, list[Any]]:
    """Return a table of many small files: some are written, the others are named only, or links to the first one."""
    table = lab.builder(name, SCHEMA, format_version=2)
    schema = to_arrow_schema(table.schema)
    rows = 1000
    files = [
        table.write_data(pa.table(columns(at * rows, rows, lab.random), schema=schema), compression="zstd")
        for at in range(real)
    ]
    first = files[0]
    for at in range(real, count):
        lower, upper = dict(first.lower_bounds or {}), dict(first.upper_bounds or {})
        lower[1], upper[1] = encode_value(at * rows, LONG), encode_value(at * rows + rows - 1, LONG)
        path = first.file_path.replace(".parquet", f"-{at}.parquet")
        if linked:
            Path(plain_path(path)).symlink_to(plain_path(first.file_path))
        files.append(replace(first, file_path=path, lower_bounds=lower, upper_bounds=upper))
    for start in range(0, count, 10_000):
        table.commit(*files[start : start + 10_000])
    return table.load(), files[:real]


def bench_ten_thousand(lab: Lab, runs: int) -> None:
    loaded, kept = many_files(lab, "small", 10_000, 10)

    def ours() -> Any:
        return lab.frame(loaded).filter("id < 10000").agg(F.sum("score")).collect()

    def limit() -> Any:
        return lab.plain(kept).filter("id < 10000").agg(F.sum("score")).collect()

    assert ours() == limit()
    title = "10,000 files: a filter keeps 10, cold table"
    race(lab, title, {"frazil": ours, "plain": limit}, runs, "<= 2.00", 10_000)


def bench_hundred_thousand(lab: Lab) -> None:
    loaded, _ = many_files(lab, "large", 100_000, 1, linked=True)
    start = time.perf_counter()
    frame = lab.frame(loaded).select("score")
    parts = frame._jdf.queryExecution().toRdd().getNumPartitions()
    seconds = time.perf_counter() - start
    title = "100,000 files kept: until partitions are there"
    if lab.results is not None:
        lab.results.add(title, 100_000, "files", {"frazil": [seconds]})
    print(f"{title:56}{seconds:9.3f}s  {parts} partitions   < 5 s")


def bench_fixed(lab: Lab, runs: int) -> None:
    loaded, kept = many_files(lab, "tiny", 1, 1)

    def ours() -> Any:
        return lab.frame(loaded).agg(F.sum("score")).collect()

    def limit() -> Any:
        return lab.plain(kept).agg(F.sum("score")).collect()

    race(lab, "fixed: one small file, frame and query", {"frazil": ours, "plain": limit}, max(runs, 10), size=1)
    schema = lab.plain(kept).schema
    path = plain_path(kept[0].file_path)
    ready = lab.frame(loaded)

    def with_schema() -> Any:
        return lab.spark.read.schema(schema).parquet(path).agg(F.sum("score")).collect()

    known = {"frazil": lambda: ready.agg(F.sum("score")).collect(), "plain": with_schema}
    extra = race(lab, "fixed: the query alone, schema known", known, max(runs, 10), "+ < 100 ms", 1)
    print(f"{'':56}{extra * 1000:+9.0f} ms")


def main() -> None:
    """Build, race and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=scaled(8_000_000))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()

    def wanted(title: str) -> bool:
        return arguments.only in title

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    try:
        with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
            print(f"Spark {spark.version}, {FILES} files")
            print(f"{'':44}{'size':>12}{'frazil':>10}{'plain':>11}{'ratio':>8}{'spread':>9}   target")
            results = Results("spark_read", ["Parquet", "frazil"], prints=False)
            sizes = [max(arguments.rows // part, 10_000) for part in (16, 4, 1)]
            for at, rows in enumerate(sizes):
                lab = Lab(f"{folder}/{at}", rows, spark, results)
                if any(map(wanted, ("scan", "vectors", "equality"))):
                    bench_main(lab, arguments.runs, wanted)
                if wanted("nested"):
                    bench_nested(lab, arguments.runs)
                if wanted("partitioned"):
                    bench_partitioned(lab, arguments.runs)
            lab = Lab(f"{folder}/files", 0, spark, results)
            if wanted("10,000 files"):
                bench_ten_thousand(lab, arguments.runs)
            if wanted("100,000 files"):
                bench_hundred_thousand(lab)
            if wanted("fixed"):
                bench_fixed(lab, arguments.runs)
            results.write()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
