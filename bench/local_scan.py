"""Read and append to a local table with frazil, PyIceberg and, as far as it can, DuckDB, side by side, at three sizes.

    python bench/local_scan.py [--rows 10000000] [--files 10] [--runs 5] [--delete none|positions|equality]

The table has five columns: a long, an int, a double, a string of few values and one of many. It is built once for each
size (a hundredth, a tenth and all of the rows) in a temporary folder, by frazil's codecs. Runs of the libraries
alternate; the medians are printed. PyIceberg and frazil keep decoded manifests from run to run, as they do for users:
PyIceberg in its process, frazil in its lake. PyIceberg reads no equality deletes, so that it is left out there; DuckDB
appends to no table without a catalog's server, so that pyarrow, which writes one Parquet file and commits nothing,
stands beside the appends as the limit. All give or take an Arrow table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, scaled

import frazil
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, NestedField
from frazil.storage.local import LocalStorage
from frazil.table.scan import ScanOptions, scan_table
from tests.support.tables import TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "small", INT),
        NestedField(3, "score", DOUBLE),
        NestedField(4, "kind", STRING),
        NestedField(5, "name", STRING),
    )
)
OPTIONS = ScanOptions(manifest_cache=ManifestCache())
KINDS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])


def build(folder: str, rows: int, files: int, delete: str) -> LoadedTable:
    """Write the table; ids ascend, so that files and row groups can be pruned by them."""
    table = TableBuilder(SCHEMA, storage=LocalStorage(durable=False), location=f"file://{folder}/t")
    random = np.random.default_rng(1)
    size = -(-rows // files)
    written = []
    for start in range(0, rows, size):
        count = min(size, rows - start)
        ids = np.arange(start, start + count)
        columns = [
            pa.array(ids),
            pa.array(random.integers(0, 1000, count, dtype=np.int32)),
            pa.array(random.random(count)),
            pa.array(KINDS[random.integers(0, len(KINDS), count)], pa.string()),
            pa.array(np.char.add("name-", random.integers(0, 10**6, count).astype(str)), pa.string()),
        ]
        data = pa.table(columns, schema=to_arrow_schema(table.schema))
        written.append(table.write_data(data, row_group_size=250_000, compression="zstd"))
    table.commit(*written)
    if delete == "positions":
        deletes = {file: random.choice(file.record_count, 10_000, replace=False).tolist() for file in written}
        table.commit(*[table.write_position_deletes({file: found}) for file, found in deletes.items()])
    elif delete == "equality":
        ids = random.choice(rows, 100_000, replace=False)
        data = pa.table([pa.array(ids)], schema=to_arrow_schema(table.schema.select(["id"])))
        table.commit(table.write_equality_deletes(data, ["id"]))
    return table.load()


def race(contenders: dict[str, Callable[[], int]], runs: int) -> dict[str, list[float]]:
    """Return the seconds of each contender; runs alternate, the first is not counted, answers must agree."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in range(runs + 1):
        answers = {}
        for name, work in contenders.items():
            start = time.perf_counter()
            answers[name] = work()
            if run:
                seconds[name].append(time.perf_counter() - start)
        if len(set(answers.values())) != 1:
            raise SystemExit(f"the answers differ: {answers}")
    return seconds


def main() -> None:
    """Build, race and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=scaled(10_000_000))
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--delete", choices=["none", "positions", "equality"], default="none")
    arguments = parser.parse_args()
    print(f"{arguments.files} files, deletes: {arguments.delete}")
    results = Results("local_scan", ["pyarrow", "PyIceberg", "DuckDB", "frazil"])
    for rows in (max(arguments.rows // 100, 100), max(arguments.rows // 10, 100), arguments.rows):
        with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
            loaded = build(folder, rows, arguments.files, arguments.delete)
            for title, work in cases(loaded, rows, has_peer=arguments.delete != "equality").items():
                results.add(title, rows, "rows", race(work, arguments.runs))
            data = scan_table(loaded, options=OPTIONS).to_arrow()
            results.add("append", rows, "rows", race(appends(Path(folder), data), min(arguments.runs, 3)))
    results.write()


def _filtered(loaded: LoadedTable, text: str) -> int:
    return int(scan_table(loaded, text, columns=["score"], options=OPTIONS).to_arrow().num_rows)


def _filtered_by_peer(peer: Any, text: str) -> int:
    return int(peer.scan(row_filter=text, selected_fields=("score",)).to_arrow().num_rows)


def duck(metadata: str) -> Callable[[str], pa.Table]:
    """Return how DuckDB answers a query over `{table}`."""
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_iceberg

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        found = next(Path(str(module.__file__)).parent.glob("extensions/*/*.duckdb_extension"))
        connection.execute(f"LOAD '{found}'")
    scan = f"iceberg_scan('{metadata.removeprefix('file://')}')"

    def ask(query: str) -> pa.Table:
        return connection.execute(query.format(table=scan)).to_arrow_table()

    return ask


def cases(loaded: LoadedTable, rows: int, *, has_peer: bool) -> dict[str, dict[str, Callable[[], int]]]:
    """Return the races: by title, what each library does."""
    filters = {
        "one column, kind = 'beta'": "kind = 'beta'",
        "one column, id in one percent": f"id >= {rows // 2} and id < {rows // 2 + rows // 100}",
        "one column, small = 7": "small = 7",
    }
    every, count = "all columns, all rows", "count"
    ask = duck(str(loaded.metadata_location))
    made: dict[str, dict[str, Callable[[], int]]] = {one: {} for one in (every, *filters, count)}
    if has_peer:
        from pyiceberg.table import StaticTable

        peer: Any = StaticTable.from_metadata(str(loaded.metadata_location))
        made[every]["PyIceberg"] = lambda: int(peer.scan().to_arrow().num_rows)
        for title, text in filters.items():
            made[title]["PyIceberg"] = partial(_filtered_by_peer, peer, text)
        made[count]["PyIceberg"] = lambda: int(peer.scan().count())
    made[every]["DuckDB"] = lambda: int(ask("select * from {table}").num_rows)
    for title, text in filters.items():
        made[title]["DuckDB"] = lambda text=text: int(ask(f"select score from {{table}} where {text}").num_rows)  # type: ignore[misc]
    made[count]["DuckDB"] = lambda: int(ask("select count(*) from {table}").column(0)[0].as_py())
    made[every]["frazil"] = lambda: int(scan_table(loaded, options=OPTIONS).to_arrow().num_rows)
    for title, text in filters.items():
        made[title]["frazil"] = partial(_filtered, loaded, text)
    made[count]["frazil"] = lambda: scan_table(loaded, options=OPTIONS).count()
    return made


def appends(folder: Path, data: pa.Table) -> dict[str, Callable[[], int]]:
    """Return how each library appends the rows to a table of its own."""
    from pyiceberg.catalog.sql import SqlCatalog

    theirs: Any = SqlCatalog("theirs", uri=f"sqlite:///{folder}/theirs.db", warehouse=f"file://{folder}/theirs")
    theirs.create_namespace("db")
    their_table = theirs.create_table("db.t", data.schema)
    our_table = frazil.connect(folder / "ours").create_table("db.t", data.schema)

    def plain() -> int:
        pq.write_table(data, folder / "plain.parquet", compression="zstd")
        return int(data.num_rows)

    def by_pyiceberg() -> int:
        their_table.append(data)
        return int(data.num_rows)

    def ours() -> int:
        our_table.append(data)
        return int(data.num_rows)

    return {"pyarrow": plain, "PyIceberg": by_pyiceberg, "frazil": ours}


if __name__ == "__main__":
    main()
