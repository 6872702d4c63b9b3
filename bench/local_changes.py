"""Change rows without Spark: frazil in both modes, PyIceberg, and DuckDB in tables of its own, side by side.

    python bench/local_changes.py [--rows 10000000] [--files 10] [--limit 300]

The table has four columns: a long, a string of a thousand values, a double, an int. Each contender works on a table of
its own, in a process of its own, one after the other, and each change begins where the one before it ended. DuckDB
changes no Iceberg table without a catalog's server: its own tables, which hold no history, stand here as the limit.
PyIceberg's conditions know no arithmetic: it deletes a thousand keys where the others delete a hundredth of the rows. A
change that takes longer than `--limit` seconds is given up, and what would come after it left out. Beside the seconds,
what the process takes of memory at most is printed.

    upsert 2,000          scattered; one in twenty is new
    upsert them again     changes nothing
    delete 1 %            scattered
    to Polars, to DuckDB  a hundredth of the rows, by a range of keys, two columns; then all of them
    update one row        by its key, another one each time; frazil twenty times, the others three
    upsert a tenth        scattered; one in twenty is new
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
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, cpu_seconds, scaled

Change = Callable[[], Any]
CONTENDERS = ("PyIceberg", "DuckDB's own tables", "frazil, copy-on-write", "frazil")
SUM = "sum(id), sum(v)"
DDL = "id bigint, name string, v double, n int"


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


def single_keys(rows: int) -> Iterator[int]:
    """Yield keys of rows all over the table."""
    yield from map(int, np.random.default_rng(3).choice(rows, min(rows, 1000), replace=False))


def frazil_changes(folder: str, rows: int, files: int, mode: str) -> dict[str, Change]:
    """Return the changes as frazil makes them."""
    import frazil

    lake = frazil.connect(folder)
    lake.create_namespace("db")
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", DDL, format_version=3, properties=modes)
    for part in parts(rows, files):
        table.append(part)
    few, many, keys = scattered(rows, 2000, 1), scattered(rows, rows // 10, 2), single_keys(rows)
    return {
        "upsert 2,000": lambda: table.upsert(few, keys=["id"], engine="local"),
        "upsert them again": lambda: table.upsert(few, keys=["id"], engine="local"),
        "delete 1 %": lambda: table.delete("id % 100 = 3", engine="local"),
        "1 % to Polars": lambda: table.scan(_range(rows), columns=["id", "v"]).to_polars(),
        "all to Polars": lambda: table.scan().to_polars(),
        "1 % to DuckDB": lambda: table.scan(_range(rows), columns=["id", "v"]).to_duckdb().aggregate(SUM).fetchall(),
        "all to DuckDB": lambda: table.scan().to_duckdb().aggregate(SUM).fetchall(),
        "update one row": lambda: table.update({"v": "v + 1"}, f"id = {next(keys)}", engine="local"),
        "upsert a tenth": lambda: table.upsert(many, keys=["id"], engine="local"),
    }


def _range(rows: int) -> str:
    return f"id >= {rows // 2} and id < {rows // 2 + rows // 100}"


def pyiceberg_changes(folder: str, rows: int, files: int, mode: str) -> dict[str, Change]:
    """Return the changes as PyIceberg makes them; it has no update, which is an upsert of a row there."""
    import polars as pl
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    first, *others = parts(rows, files)
    table = catalog.create_table("db.t", first.schema)
    for part in (first, *others):
        table.append(part)
    few, many, keys = scattered(rows, 2000, 1), scattered(rows, rows // 10, 2), single_keys(rows)
    gone = np.arange(3, rows, 100)

    def duck(scan: Any) -> Any:
        return scan.to_duckdb("given").execute(f"select {SUM} from given").fetchall()

    return {
        "upsert 2,000": lambda: table.upsert(few, join_cols=["id"]),
        "upsert them again": lambda: table.upsert(few, join_cols=["id"]),
        "delete 1 %": lambda: table.delete(f"id in ({', '.join(map(str, gone[:1000]))})"),
        "1 % to Polars": lambda: pl.from_arrow(table.scan(_range(rows), selected_fields=("id", "v")).to_arrow()),
        "all to Polars": lambda: pl.from_arrow(table.scan().to_arrow()),
        "1 % to DuckDB": lambda: duck(table.scan(_range(rows), selected_fields=("id", "v"))),
        "all to DuckDB": lambda: duck(table.scan()),
        "update one row": lambda: table.upsert(rows_of(np.array([next(keys)]), 0.75), join_cols=["id"]),
        "upsert a tenth": lambda: table.upsert(many, join_cols=["id"]),
    }


def duckdb_changes(folder: str, rows: int, files: int, mode: str) -> dict[str, Change]:
    """Return the changes as DuckDB makes them in a table of its own."""
    import duckdb

    connection = duckdb.connect(f"{folder}/duck.db")
    connection.execute("create table t (id bigint, name varchar, v double, n int)")
    for part in parts(rows, files):
        connection.register("part", part)
        connection.execute("insert into t select * from part")
    few, many, keys = scattered(rows, 2000, 1), scattered(rows, rows // 10, 2), single_keys(rows)

    def upsert(source: pa.Table) -> None:
        connection.register("given", source)
        connection.execute(
            "merge into t using given on t.id = given.id when matched then update set name = given.name, "
            "v = given.v, n = given.n when not matched then insert"
        )

    return {
        "upsert 2,000": partial(upsert, few),
        "upsert them again": partial(upsert, few),
        "delete 1 %": lambda: connection.execute("delete from t where id % 100 = 3"),
        "1 % to Polars": lambda: connection.sql(f"select id, v from t where {_range(rows)}").pl(),
        "all to Polars": lambda: connection.sql("from t").pl(),
        "1 % to DuckDB": lambda: connection.sql(f"select {SUM} from t where {_range(rows)}").fetchall(),
        "all to DuckDB": lambda: connection.sql(f"select {SUM} from t").fetchall(),
        "update one row": lambda: connection.execute(f"update t set v = v + 1 where id = {next(keys)}"),
        "upsert a tenth": partial(upsert, many),
    }


MAKERS: dict[str, tuple[Callable[[str, int, int, str], dict[str, Change]], str]] = {
    "PyIceberg": (pyiceberg_changes, ""),
    "DuckDB's own tables": (duckdb_changes, ""),
    "frazil, copy-on-write": (frazil_changes, "copy-on-write"),
    "frazil": (frazil_changes, "merge-on-read"),
}


def work(name: str, folder: str, rows: int, files: int, answers: Connection) -> None:
    """Make the table and its changes one by one, and say what each of them took."""
    # So that none of the changes loads them: pyarrow loads pandas as it makes its first value.
    for one in ("duckdb", "pandas", "polars"):
        importlib.import_module(one)
    make, mode = MAKERS[name]
    changes = make(folder, rows, files, mode)
    answers.send(("", 0.0, 0.0, 0))
    for title, change in changes.items():
        for _ in range(1 if title != "update one row" else 20 if name == "frazil" else 3):
            started, used = time.perf_counter(), cpu_seconds()
            change()
            passed, taken = time.perf_counter() - started, cpu_seconds() - used
            answers.send((title, passed, taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))


@dataclass
class Found:
    """What a contender took: seconds of each change, those of the processor, why there are no more, memory in MiB."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    reason: str = ""
    memory: int = 0


def measure(name: str, rows: int, files: int, limit: float) -> Found:
    """Return what the changes of a contender took."""
    context = multiprocessing.get_context("spawn")
    found = Found()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(name, folder, rows, files, there))
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
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--only", choices=CONTENDERS, action="append")
    arguments = parser.parse_args()
    results = Results("local_changes", CONTENDERS)
    measured = {
        name: measure(name, arguments.rows, arguments.files, arguments.limit) for name in arguments.only or CONTENDERS
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
