"""The 22 queries of TPC-H on Spark: on plain Parquet, through Iceberg's jar and through frazil; and on DuckDB.

    .venv-spark-4.1/bin/python -m bench.tpch [--factors 0.04,0.2,1] [--runs 2]

DuckDB's extension makes the data and knows the queries; it runs in an environment that has it, in a process of its own.
Each contender on Spark has tables of its own, filled from the same Parquet files: folders, the jar's catalog, a lake.
DuckDB is another engine: it reads frazil's tables with its own extension, on as many threads as Spark has cores.
Contenders take turns, and who begins changes with the query. The least scale factor warms up, with a round that does
not count. All answers must agree, up to rounding. `FRAZIL_BENCH_SCALE` multiplies the scale factors.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.measure import Results, scale

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
MAKER = Path(__file__).resolve().parent.parent / ".venv-interop" / "bin" / "python"
DUCK = "DuckDB"
CORES = 2
TOLERANCE = 1e-3
"""Engines round averages of decimals at different digits."""


def duck_command() -> list[str]:
    """Return how to run this file where DuckDB is."""
    return [str(MAKER) if MAKER.exists() else sys.executable, "-m", "bench.tpch"]


def open_duck(*extensions: str) -> Any:
    """Return a connection to DuckDB with some extensions, which come as packages."""
    from importlib import import_module

    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": CORES})
    for name in extensions:
        module = import_module(f"duckdb_extension_{name}")
        found = next(Path(str(module.__file__)).parent.glob("extensions/*/*.duckdb_extension"))
        connection.execute(f"LOAD '{found}'")
    return connection


def make_data(folder: Path, factor: float) -> None:
    """Write the tables as Parquet, and the queries as JSON."""
    with open_duck("tpch") as database:
        database.execute(f"CALL dbgen(sf = {factor})")
        for table in TABLES:
            database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        queries = database.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()
    (folder / "queries.json").write_text(json.dumps([one.rstrip().rstrip(";") for (one,) in queries]))


def serve_duck() -> None:
    """Answer queries over tables: the first line names their metadata files, each other is a query, all as JSON."""
    with open_duck("avro", "iceberg") as database:
        for table, metadata in json.loads(sys.stdin.readline()).items():
            database.execute(f"CREATE VIEW {table} AS SELECT * FROM iceberg_scan('{metadata}')")
        for line in sys.stdin:
            started = time.perf_counter()
            rows = database.execute(json.loads(line)).fetchall()
            passed = time.perf_counter() - started
            print(json.dumps({"seconds": passed, "rows": answer(rows)}), flush=True)


class Duck:
    """DuckDB in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, text: str) -> tuple[float, list[list[Any]]]:
        """Run a query; return its seconds and its rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(text), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"DuckDB ended at {text}")
        found = json.loads(line)
        return found["seconds"], found["rows"]


@contextmanager
def duck_beside(tables: dict[str, str]) -> Iterator[Duck]:
    """Start DuckDB over some tables, and end it."""
    command = [*duck_command(), "--serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    print(json.dumps(tables), file=process.stdin, flush=True)
    try:
        yield Duck(process)
    finally:
        process.stdin.close()
        process.wait(60)


def answer(rows: Sequence[Any]) -> list[list[Any]]:
    """Return rows as values that can be compared across engines, in an order that numbers do not decide."""

    def plain(value: Any) -> Any:
        if isinstance(value, (float, Decimal)):
            return float(value)
        return value.isoformat() if isinstance(value, date) else value

    made = [[plain(value) for value in row] for row in rows]
    return sorted(made, key=lambda row: ([str(one) for one in row if not isinstance(one, float)], str(row)))


def agree(one: list[list[Any]], other: list[list[Any]]) -> bool:
    """Return whether two answers are the same, up to rounding."""

    def same(left: Any, right: Any) -> bool:
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return math.isclose(left, right, rel_tol=1e-6, abs_tol=TOLERANCE)
        return bool(left == right)

    return len(one) == len(other) and all(
        len(left) == len(right) and all(map(same, left, right)) for left, right in zip(one, other, strict=True)
    )


def run_factor(factor: float, runs: int, warm: int, results: Results, folder: Path, *, is_last: bool) -> None:
    """Load one scale factor for everyone, and run the queries."""
    from bench.engines import JAVA, OURS, PLAIN, contenders, has_jar, session

    import frazil

    made = folder / f"sf-{factor}"
    made.mkdir()
    subprocess.run([*duck_command(), "--make", str(made), "--factors", str(factor)], check=True)
    queries = json.loads((made / "queries.json").read_text())
    with session(made) as spark, frazil.connect(made / "lake") as lake:
        frazil.attach(spark, lake=lake)
        spark.sql("CREATE DATABASE IF NOT EXISTS plain")
        lake.create_namespace("tpch")
        if has_jar():
            spark.sql("CREATE NAMESPACE java.tpch")
        for table in TABLES:
            rows = spark.read.parquet(str(made / f"{table}.parquet"))
            rows.write.mode("overwrite").option("compression", "zstd").parquet(str(made / "plain" / table))
            spark.sql(f"CREATE TABLE plain.{table} USING parquet LOCATION '{made / 'plain' / table}'")
            if has_jar():
                rows.writeTo(f"java.tpch.{table}").using("iceberg").create()
            rows.writeTo(f"lake.tpch.{table}").create()
        size = lake.table("tpch.lineitem").scan().count()
        places = {PLAIN: "spark_catalog.plain", JAVA: "java.tpch", OURS: "lake.tpch"}
        names = contenders(PLAIN, JAVA, DUCK, OURS)
        totals = {name: [0.0] * runs for name in names}
        metadata = {one: str(lake.table(f"tpch.{one}").metadata_location).removeprefix("file://") for one in TABLES}
        with duck_beside(metadata) as duck:

            def run(name: str, text: str) -> tuple[float, list[list[Any]]]:
                if name == DUCK:
                    return duck.ask(text)
                started = time.perf_counter()
                spark.sql(f"USE {places[name]}")
                found = spark.sql(text).collect()
                return time.perf_counter() - started, answer(found)

            for number, text in enumerate(queries, 1):
                turn = names[number % len(names) :] + names[: number % len(names)]
                answers: dict[str, list[list[Any]]] = {}
                seconds: dict[str, list[float]] = {name: [] for name in names}
                for round_number in range(-warm, runs):
                    for name in turn:
                        passed, answers[name] = run(name, text)
                        if round_number >= 0:
                            seconds[name].append(passed)
                            totals[name][round_number] += passed
                for name, found in answers.items():
                    if not agree(found, answers[OURS]):
                        raise SystemExit(f"query {number}: the answers of {name} and of {OURS} differ")
                if is_last:
                    results.add(f"query {number}", size, "rows of lineitem", seconds)
        results.add("all 22 queries", size, "rows of lineitem", totals)
        frazil.detach(spark)
    shutil.rmtree(made)


def main() -> None:
    """Run the queries at each scale factor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factors", default=",".join(f"{one * scale():g}" for one in (0.04, 0.2, 1)))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    factors = [float(one) for one in given.factors.split(",")]
    if given.make is not None:
        make_data(Path(given.make), factors[0])
        return
    if given.serve:
        serve_duck()
        return
    from bench.engines import JAR_VERSION, JAVA, OURS, PLAIN, contenders, has_jar

    code = "import importlib.metadata as found; print(found.version('duckdb'))"
    duck = subprocess.run([duck_command()[0], "-c", code], check=True, capture_output=True, text=True)
    versions = {"duckdb": duck.stdout.strip()} | ({"iceberg jar": JAR_VERSION} if has_jar() else {})
    results = Results("tpch", contenders(PLAIN, JAVA, DUCK, OURS), versions=versions)
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        for at, factor in enumerate(factors):
            warm = 1 if at == 0 else 0
            run_factor(factor, given.runs, warm, results, folder, is_last=at == len(factors) - 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        results.write()


if __name__ == "__main__":
    main()
