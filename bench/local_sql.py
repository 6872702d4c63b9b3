# ruff: noqa: E501 - queries are read best in one line
"""`lake.sql` beside plain DuckDB on the same Parquet files: groups, joins, windows, sorts, filters and counts.

    python -m bench.local_sql [--rows 10000000] [--runs 5]

One table of ten files, partitioned by day, and one of keys. Each query runs through `lake.sql` and through DuckDB's
own `read_parquet` over the table's files, in turns. Then one row of a hundred is deleted, and the same queries run
again; DuckDB reads the files as before, with the deleted rows. Each contender returns an Arrow table. What is timed
is all of it: resolving names, planning, opening DuckDB, and the query.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, alternate, scaled

import frazil
from frazil.threads import default_threads

FILES = 10
QUERIES = {
    "group by a text": "select kind, count(*) n, sum(score) total from {t} group by kind",
    "group by a number": "select small, avg(score) mean from {t} group by small",
    "join of two tables": "select k.label, sum(t.score) total from {t} t join {k} k on t.small = k.small group by k.label",
    "join of two large tables": "select count(*) n, sum(a.score * b.score) total from {t} a join {t} b on a.id = b.id",
    "running sums": "select max(s) most from (select sum(score) over (partition by small order by id) s from {t}) q",
    "three of each": "select count(*) n from (select row_number() over (partition by small order by score) r from {t}) q where r <= 3",
    "top ten": "select id, score from {t} order by score desc limit 10",
    "one day": "select count(*) n, sum(score) total from {t} where day = date '2026-01-04'",
    "a range of ids": "select sum(score) total from {t} where id between 1000 and 50000",
    "count": "select count(*) n from {t}",
}


def build(folder: str, rows: int) -> frazil.Lake:
    """Return a lake of a large table and a small one."""
    lake = frazil.connect(folder)
    table = lake.create_table(
        "db.t", "id bigint, small int, score double, kind string, day date", partition_by=["day"],
        properties={"write.delete.mode": "merge-on-read"}, format_version=3,
    )  # fmt: skip
    random = np.random.default_rng(1)
    size = rows // FILES
    kinds = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"])
    for number in range(FILES):
        table.append(
            pa.table(
                {
                    "id": np.arange(number * size, (number + 1) * size),
                    "small": random.integers(0, 1000, size).astype(np.int32),
                    "score": random.random(size),
                    "kind": kinds[random.integers(0, len(kinds), size)],
                    "day": pa.array(np.full(size, np.datetime64("2026-01-01") + number)),
                }
            )
        )
    keys = lake.create_table("db.k", "small int, label string")
    keys.append(
        pa.table({"small": np.arange(1000, dtype=np.int32), "label": [f"label {at % 50}" for at in range(1000)]})
    )
    return lake


def paths_of(lake: frazil.Lake, name: str) -> list[str]:
    """Return the data files of a table."""
    files: list[str] = lake.table(name).inspect.data_files()["file_path"].to_pylist()
    return [path.removeprefix("file://") for path in files]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    rows = scaled(given.rows)
    results = Results("local_sql", ("DuckDB", "frazil"))
    with tempfile.TemporaryDirectory() as folder, build(folder, rows) as lake:
        files = {name: f"read_parquet({paths_of(lake, f'db.{name}')!r})" for name in ("t", "k")}
        names = {"t": "db.t", "k": "db.k"}
        plain = duckdb.connect(config={"threads": default_threads()})

        def run_plain(query: str) -> Any:
            return plain.sql(query.format(**files)).to_arrow_table()

        def run_lake(query: str) -> Any:
            return lake.sql(query.format(**names)).to_arrow()

        for deletes in ("", ", 1 % deleted"):
            if deletes:
                lake.table("db.t").delete("id % 100 = 7")
            totals = {"DuckDB": 0.0, "frazil": 0.0}
            for name, query in QUERIES.items():
                contenders = {"DuckDB": partial(run_plain, query), "frazil": partial(run_lake, query)}
                seconds = alternate(contenders, given.runs)
                results.add(f"{name}{deletes}", rows, "rows", seconds)
                for contender, times in seconds.items():
                    totals[contender] += statistics.median(times)
            print(f"in total{deletes}: {totals['frazil'] / totals['DuckDB']:.2f} x DuckDB")
    results.write()


if __name__ == "__main__":
    main()
