"""The 22 queries of TPC-H on plain Parquet, through Iceberg's jar and through frazil, in one session.

    .venv-spark-4.1/bin/python -m bench.tpch [--factors 0.1,0.3,1] [--runs 2]

DuckDB's extension makes the data and knows the queries; it runs in an environment that has it (`--make` in a process of
its own). Each contender has tables of its own, filled from the same Parquet files: folders, the jar's catalog, a lake.
The order of contenders alternates with the query; a first round warms up. Answers must agree, up to rounding.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.measure import Results

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
MAKER = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "python"


def make_data(folder: Path, factor: float) -> None:
    """Write the tables as Parquet, and the queries as JSON."""
    import duckdb
    import duckdb_extension_tpch

    extension = next(Path(str(duckdb_extension_tpch.__file__)).parent.glob("extensions/*/*.duckdb_extension"))
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        database.execute(f"LOAD '{extension}'")
        database.execute(f"CALL dbgen(sf = {factor})")
        for table in TABLES:
            database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        queries = database.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()
    (folder / "queries.json").write_text(json.dumps([one.rstrip().rstrip(";") for (one,) in queries]))


def answer(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows as values that can be compared across engines."""
    return [tuple(round(float(one), 1) if isinstance(one, (float, Decimal)) else one for one in row) for row in rows]


def run_factor(factor: float, runs: int, results: Results, folder: Path) -> None:
    """Load one scale factor for everyone, and run the queries."""
    from bench.engines import JAVA, OURS, PLAIN, contenders, has_jar, session

    import frazil

    made = folder / f"sf-{factor}"
    made.mkdir()
    maker = str(MAKER) if MAKER.exists() else sys.executable
    subprocess.run([maker, "-m", "bench.tpch", "--make", str(made), "--factors", str(factor)], check=True)
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
        places = {PLAIN: "spark_catalog.plain", JAVA: "java.tpch", OURS: "lake.tpch"}
        names = contenders(PLAIN, JAVA, OURS)
        totals = {name: [0.0] * runs for name in names}

        def run(name: str, text: str) -> Callable[[], list[Any]]:
            def work() -> list[Any]:
                spark.sql(f"USE {places[name]}")
                return spark.sql(text).collect()

            return work

        for number, text in enumerate(queries, 1):
            turn = names[number % len(names) :] + names[: number % len(names)]
            answers: dict[str, Any] = {}
            seconds: dict[str, list[float]] = {name: [] for name in names}
            for round_number in range(runs + 1):
                for name in turn:
                    started = time.perf_counter()
                    found = run(name, text)()
                    passed = time.perf_counter() - started
                    answers.setdefault(name, answer(found))
                    if round_number:
                        seconds[name].append(passed)
                        totals[name][round_number - 1] += passed
            if any(found != answers[OURS] for found in answers.values()):
                raise SystemExit(f"query {number}: the answers differ")
            if factor == 1:
                results.add(f"TPC-H {number}", 1, "scale factor", seconds)
        results.add("TPC-H, all 22", round(factor * 1000), "thousandths of the scale", totals)
        frazil.detach(spark)


def main() -> None:
    """Run the queries at each scale factor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factors", default="0.1,0.3,1")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    given = parser.parse_args()
    factors = [float(one) for one in given.factors.split(",")]
    if given.make is not None:
        make_data(Path(given.make), factors[0])
        return
    from bench.engines import JAR_VERSION, JAVA, OURS, PLAIN, contenders, has_jar

    results = Results("tpch", contenders(PLAIN, JAVA, OURS), versions={"iceberg jar": JAR_VERSION} if has_jar() else {})
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    try:
        for factor in factors:
            run_factor(factor, given.runs, results, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results.write()


if __name__ == "__main__":
    main()
