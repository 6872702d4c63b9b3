"""TPC-H and TPC-DS through `lake.sql`, beside DuckDB on the same Parquet files.

    python -m bench.local_tpc [--factor 1] [--runs 3]

DuckDB's extensions make the data and know the queries; they run in an environment that has them. The files are
written into tables of a lake by `append`, and both contenders read the lake's data files: `lake.sql` by their names
in the lake, DuckDB by `read_parquet` over the files, in a connection that stays open. All answers must agree.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, alternate, scale
from bench.tpch import MAKER, agree, answer, open_duck

import frazil
from frazil.query.prepared import LocalEngine
from frazil.query.syntax import parse_query
from frazil.threads import default_threads

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
LIMIT = 1.25


def make_data(suite: str, folder: Path, factor: float) -> None:
    """Write the tables as Parquet, and the queries as JSON."""
    with open_duck(suite) as database:
        database.execute(f"CALL {GENERATORS[suite]}(sf = {factor})")
        tables = [name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        for table in tables:
            database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        queries = database.execute(f"SELECT query FROM {suite}_queries() ORDER BY query_nr").fetchall()
    (folder / "queries.json").write_text(json.dumps([text.rstrip().rstrip(";") for (text,) in queries]))


def run_suite(suite: str, factor: float, runs: int, results: Results) -> None:
    """Load the tables of a suite, and run its queries."""
    with tempfile.TemporaryDirectory() as folder, frazil.connect(Path(folder) / "lake") as lake:
        maker = str(MAKER) if MAKER.exists() else sys.executable
        subprocess.run(
            [maker, "-m", "bench.local_tpc", "--make", suite, "--into", folder, "--factor", str(factor)], check=True
        )
        plain = duckdb.connect(config={"threads": default_threads()})
        for path in sorted(Path(folder).glob("*.parquet")):
            rows = pq.read_table(path)
            table = lake.create_table(f"{suite}.{path.stem}", rows.schema)
            table.append(rows)
            files = [name.removeprefix("file://") for name in table.inspect.data_files()["file_path"].to_pylist()]
            plain.execute(f"CREATE VIEW {path.stem} AS FROM read_parquet({files!r})")
            path.unlink()
        total = {"DuckDB": 0.0, "frazil": 0.0}
        for number, text in enumerate(json.loads((Path(folder) / "queries.json").read_text()), 1):
            query = parse_query(text, LocalEngine().serialize)
            named = query.replace_tables({table: f"{suite}.{table.path[0]}" for table in query.tables})
            contenders = {
                "DuckDB": partial(lambda text: plain.sql(text).to_arrow_table(), text),
                "frazil": partial(lambda text: lake.sql(text).to_arrow(), named),
            }
            both = [answer([tuple(row.values()) for row in _rows(run())]) for run in contenders.values()]
            if not agree(*both):
                raise SystemExit(f"{suite} {number}: the answers differ")
            seconds = alternate(contenders, runs)
            results.add(f"{suite} {number}", round(factor * 100), "hundredths", seconds)
            for contender, times in seconds.items():
                total[contender] += statistics.median(times)
        print(f"{suite} in total: {total['frazil'] / total['DuckDB']:.2f} x DuckDB (at most {LIMIT})", flush=True)


def _rows(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.rename_columns([str(number) for number in range(table.num_columns)]).to_pylist()
    return rows


def main() -> None:
    """Run the benchmark, or make its data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--suites", default="tpch,tpcds")
    parser.add_argument("--make")
    parser.add_argument("--into")
    given = parser.parse_args()
    if given.make is not None:
        make_data(given.make, Path(given.into), given.factor)
        return
    results = Results("local_tpc", ("DuckDB", "frazil"))
    for suite in given.suites.split(","):
        run_suite(suite, given.factor * scale(), given.runs, results)
    results.write()


if __name__ == "__main__":
    main()
