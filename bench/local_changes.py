"""Change rows without Spark: frazil in both modes, PyIceberg, and DuckDB in tables of its own, side by side.

    python bench/local_changes.py [--rows 10000000] [--files 10] [--runs 3] [--limit 300]

The table has four columns: a long, a string of a thousand values, a double, an int. Each contender works on a table of
its own, in a process of its own, one after the other, and each change begins where the one before it ended. Before the
clock runs, all changes are made once in a small table, so that no change loads code. Each is then made `--runs` times,
with other rows each time; one that took more than 20 seconds is not made again. DuckDB
changes no Iceberg table without a catalog's server: its own tables, which hold no history, stand here as the limit.
PyIceberg's conditions know no arithmetic: it deletes a thousand keys where the others delete a hundredth of the rows. A
change that takes longer than `--limit` seconds is given up, and what would come after it left out. Beside the seconds,
what the process takes of memory at most is printed.

    upsert 2,000          scattered; one in twenty is new
    upsert them again     changes nothing
    delete 1 %            scattered
    to Polars, to DuckDB  a hundredth of the rows, by a range of keys, two columns; then all of them
    update one row        by its key, another one each time; frazil twenty times
    upsert a tenth        scattered; one in twenty is new; once
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, cpu_seconds, scaled

# Makes the change of a run, which is told by its number.
Change = Callable[[int], Any]
CONTENDERS = ("PyIceberg", "DuckDB's own tables", "frazil, copy-on-write", "frazil")
SUM = "sum(id), sum(v)"
DDL = "id bigint, name string, v double, n int"
WARM_ROWS = 10_000
TOO_SLOW_TO_REPEAT = 20.0


def rows_of(ids: Any, factor: float) -> pa.Table:
    """Return the rows of ids."""
    texts = pa.array(ids % 1000).cast(pa.string())
    return pa.table({"id": ids, "name": texts, "v": ids * factor, "n": pa.array(ids % 7, pa.int32())})


def parts(rows: int, files: int) -> list[pa.Table]:
    """Return the table's rows, file by file."""
    size = rows // files
    return [rows_of(np.arange(size) + at * size, 0.5) for at in range(files)]


def scattered(rows: int, count: int, seed: int) -> pa.Table:
    """Return rows with keys of all over the table, and a few beyond it."""
    ids = np.random.default_rng(seed).choice(int(rows * 1.05), count, replace=False)
    return rows_of(ids, 0.25)


class Given:
    """What the changes are made with: rows of each run, and single keys."""

    def __init__(self, rows: int, runs: int) -> None:
        self.few = [scattered(rows, min(2000, rows // 2), 10 + run) for run in range(runs)]
        self.many = scattered(rows, rows // 10, 2)
        self.keys: Iterator[int] = map(int, np.random.default_rng(3).choice(rows, min(rows, 1000), replace=False))


def frazil_changes(folder: str, rows: int, files: int, mode: str, given: Given) -> dict[str, Change]:
    """Return the changes as frazil makes them."""
    import frazil

    lake = frazil.connect(folder)
    lake.create_namespace("db")
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", DDL, format_version=3, properties=modes)
    for part in parts(rows, files):
        table.append(part)
    return {
        "upsert 2,000": lambda run: table.upsert(given.few[run], keys=["id"], engine="local"),
        "upsert them again": lambda run: table.upsert(given.few[-1], keys=["id"], engine="local"),
        "delete 1 %": lambda run: table.delete(f"id % 100 = {run + 3}", engine="local"),
        "1 % to Polars": lambda run: table.scan(_range(rows), columns=["id", "v"]).to_polars(),
        "all to Polars": lambda run: table.scan().to_polars(),
        "1 % to DuckDB": lambda run: (
            table.scan(_range(rows), columns=["id", "v"]).to_duckdb().aggregate(SUM).fetchall()
        ),
        "all to DuckDB": lambda run: table.scan().to_duckdb().aggregate(SUM).fetchall(),
        "update one row": lambda run: table.update({"v": "v + 1"}, f"id = {next(given.keys)}", engine="local"),
        "upsert a tenth": lambda run: table.upsert(given.many, keys=["id"], engine="local"),
    }


def _range(rows: int) -> str:
    return f"id >= {rows // 2} and id < {rows // 2 + rows // 100}"


def pyiceberg_changes(folder: str, rows: int, files: int, mode: str, given: Given) -> dict[str, Change]:
    """Return the changes as PyIceberg makes them; it has no update, which is an upsert of a row there."""
    import polars as pl
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    first, *others = parts(rows, files)
    table = catalog.create_table("db.t", first.schema)
    for part in (first, *others):
        table.append(part)

    def gone(run: int) -> str:
        return ", ".join(map(str, np.arange(run + 3, rows, 100)[:1000]))

    def duck(scan: Any) -> Any:
        return scan.to_duckdb("given").execute(f"select {SUM} from given").fetchall()

    return {
        "upsert 2,000": lambda run: table.upsert(given.few[run], join_cols=["id"]),
        "upsert them again": lambda run: table.upsert(given.few[-1], join_cols=["id"]),
        "delete 1 %": lambda run: table.delete(f"id in ({gone(run)})"),
        "1 % to Polars": lambda run: pl.from_arrow(table.scan(_range(rows), selected_fields=("id", "v")).to_arrow()),
        "all to Polars": lambda run: pl.from_arrow(table.scan().to_arrow()),
        "1 % to DuckDB": lambda run: duck(table.scan(_range(rows), selected_fields=("id", "v"))),
        "all to DuckDB": lambda run: duck(table.scan()),
        "update one row": lambda run: table.upsert(rows_of(np.array([next(given.keys)]), 0.75), join_cols=["id"]),
        "upsert a tenth": lambda run: table.upsert(given.many, join_cols=["id"]),
    }


def duckdb_changes(folder: str, rows: int, files: int, mode: str, given: Given) -> dict[str, Change]:
    """Return the changes as DuckDB makes them in a table of its own."""
    import duckdb

    connection = duckdb.connect(f"{folder}/duck.db")
    connection.execute("create table t (id bigint, name varchar, v double, n int)")
    for part in parts(rows, files):
        connection.register("part", part)
        connection.execute("insert into t select * from part")

    def upsert(source: pa.Table) -> None:
        connection.register("source", source)
        connection.execute(
            "merge into t using source on t.id = source.id when matched then update set name = source.name, "
            "v = source.v, n = source.n when not matched then insert"
        )

    return {
        "upsert 2,000": lambda run: upsert(given.few[run]),
        "upsert them again": lambda run: upsert(given.few[-1]),
        "delete 1 %": lambda run: connection.execute(f"delete from t where id % 100 = {run + 3}"),
        "1 % to Polars": lambda run: connection.sql(f"select id, v from t where {_range(rows)}").pl(),
        "all to Polars": lambda run: connection.sql("from t").pl(),
        "1 % to DuckDB": lambda run: connection.sql(f"select {SUM} from t where {_range(rows)}").fetchall(),
        "all to DuckDB": lambda run: connection.sql(f"select {SUM} from t").fetchall(),
        "update one row": lambda run: connection.execute(f"update t set v = v + 1 where id = {next(given.keys)}"),
        "upsert a tenth": lambda run: upsert(given.many),
    }


MAKERS: dict[str, tuple[Callable[[str, int, int, str, Given], dict[str, Change]], str]] = {
    "PyIceberg": (pyiceberg_changes, ""),
    "DuckDB's own tables": (duckdb_changes, ""),
    "frazil, copy-on-write": (frazil_changes, "copy-on-write"),
    "frazil": (frazil_changes, "merge-on-read"),
}


def work(name: str, folder: str, rows: int, files: int, runs: int, answers: Connection) -> None:
    """Make the table and its changes one by one, and say what each of them took."""
    # So that none of the changes loads them: pyarrow loads pandas as it makes its first value.
    for one in ("duckdb", "pandas", "polars"):
        importlib.import_module(one)
    make, mode = MAKERS[name]
    warm = Path(folder, "warm")
    warm.mkdir()
    for change in make(str(warm), WARM_ROWS, 2, mode, Given(WARM_ROWS, 1)).values():
        change(0)
    changes = make(folder, rows, files, mode, Given(rows, runs))
    answers.send(("", 0.0, 0.0, 0))
    for title, change in changes.items():
        times = 1 if title == "upsert a tenth" else 20 if title == "update one row" and name == "frazil" else runs
        for run in range(times):
            started, used = time.perf_counter(), cpu_seconds()
            change(run)
            passed, taken = time.perf_counter() - started, cpu_seconds() - used
            answers.send((title, passed, taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))
            if passed > TOO_SLOW_TO_REPEAT:
                break


@dataclass
class Found:
    """What a contender took: seconds of each change, those of the processor, why there are no more, memory in MiB."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    reason: str = ""
    memory: int = 0


def measure(name: str, rows: int, files: int, runs: int, limit: float) -> Found:
    """Return what the changes of a contender took."""
    context = multiprocessing.get_context("spawn")
    found = Found()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(name, folder, rows, files, runs, there))
        process.start()
        there.close()
        try:
            while here.poll(limit):
                title, seconds, cpu, found.memory = here.recv()
                if title:
                    found.seconds.setdefault(title, []).append(seconds)
                    found.cpu.setdefault(title, []).append(cpu)
            found.reason = f"more than {limit:.0f} s"
        except EOFError:
            found.reason = "it ended early"
        process.kill()
        process.join()
    return found


def main() -> None:
    """Measure every contender and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=scaled(10_000_000))
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--only", choices=CONTENDERS, action="append")
    arguments = parser.parse_args()
    results = Results("local_changes", CONTENDERS)
    measured = {
        name: measure(name, arguments.rows, arguments.files, arguments.runs, arguments.limit)
        for name in arguments.only or CONTENDERS
    }
    titles = list(dict.fromkeys(title for found in measured.values() for title in found.seconds))
    for title in titles:
        seconds = {name: found.seconds[title] for name, found in measured.items() if title in found.seconds}
        cpu = {name: found.cpu[title] for name, found in measured.items() if title in found.cpu}
        failed = {name: found.reason for name, found in measured.items() if title not in found.seconds}
        results.add(title, arguments.rows, "rows", seconds, failed, cpu)
    for name, found in measured.items():
        print(f"{name}: at most {found.memory:,} MiB")
    results.write()


if __name__ == "__main__":
    main()
