"""Read a local table with frazil and with PyIceberg, side by side: all of it, and one column under a filter.

    python bench/local_scan.py [--rows 10000000] [--files 10] [--runs 5] [--delete none|positions|equality]

The table has five columns: a long, an int, a double, a string of few values and one of many. It is built once in a
temporary folder, by frazil's codecs. Runs of the two libraries alternate; the medians are printed. Both keep decoded
manifests from run to run, as they do for users: PyIceberg in its process, frazil in its lake. PyIceberg reads no
equality deletes, so that frazil runs alone there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.lake.scan import ScanOptions, scan_table
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, NestedField
from frazil.storage.local import LocalStorage
from tests.tables import TableBuilder

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
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--delete", choices=["none", "positions", "equality"], default="none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        loaded = build(folder, arguments.rows, arguments.files, arguments.delete)
        print(f"{arguments.rows:,} rows, {arguments.files} files, deletes: {arguments.delete}")
        print(f"{'':34}{'frazil':>10}{'PyIceberg':>12}{'ratio':>8}")
        kept = Results("local_scan", ["PyIceberg", "frazil"], prints=False)
        for title, work in cases(loaded, arguments.rows, has_peer=arguments.delete != "equality").items():
            seconds = race(work, arguments.runs)
            kept.add(title, arguments.rows, "rows", seconds)
            found = {name: statistics.median(times) for name, times in seconds.items()}
            peer = found.get("PyIceberg")
            shown = f"{found['frazil']:9.3f}s"
            if peer is not None:
                shown += f"{peer:11.3f}s{found['frazil'] / peer:8.2f}"
            print(f"{title:34}{shown}")
        kept.write()


def _filtered(loaded: LoadedTable, text: str) -> int:
    return int(scan_table(loaded, text, columns=["score"], options=OPTIONS).to_arrow().num_rows)


def _filtered_by_peer(peer: Any, text: str) -> int:
    return int(peer.scan(row_filter=text, selected_fields=("score",)).to_arrow().num_rows)


def cases(loaded: LoadedTable, rows: int, *, has_peer: bool) -> dict[str, dict[str, Callable[[], int]]]:
    """Return the races: by title, what each library does."""
    filters = {
        "one column, kind = 'beta'": "kind = 'beta'",
        "one column, id in one percent": f"id >= {rows // 2} and id < {rows // 2 + rows // 100}",
        "one column, small = 7": "small = 7",
    }
    peer: Any = None
    if has_peer:
        from pyiceberg.table import StaticTable

        peer = StaticTable.from_metadata(str(loaded.metadata_location))
    made: dict[str, dict[str, Callable[[], int]]] = {
        "all columns, all rows": {"frazil": lambda: int(scan_table(loaded, options=OPTIONS).to_arrow().num_rows)}
    }
    if peer is not None:
        made["all columns, all rows"]["PyIceberg"] = lambda: int(peer.scan().to_arrow().num_rows)
    for title, text in filters.items():
        made[title] = {"frazil": partial(_filtered, loaded, text)}
        if peer is not None:
            made[title]["PyIceberg"] = partial(_filtered_by_peer, peer, text)
    made["count"] = {"frazil": lambda: scan_table(loaded, options=OPTIONS).count()}
    if peer is not None:
        made["count"]["PyIceberg"] = lambda: int(peer.scan().count())
    return made


if __name__ == "__main__":
    main()
