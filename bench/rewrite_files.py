"""Compact a table of many small files with frazil, and with PyIceberg as far as it can, side by side.

    python bench/rewrite_files.py [--rows 2000000] [--files 200] [--runs 3]

PyIceberg has no compaction: its users read the table and overwrite it, which is what is timed here, all rows in memory
and a conflict with every other writer. frazil bin-packs by groups, and appends of others are no conflict. Tables are
built anew for each run, in one SQLite catalog in a temporary folder, and runs of the two alternate. Medians of the
time that passed and of the processors' time are printed, the latter also as a ratio: it is the one that other
programs on the machine disturb least. After z-order, the share of files that a filter on either column leaves out is
printed too.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import frazil

KINDS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
DDL = "id bigint, small int, score double, kind string, name string"


def build(lake: frazil.Lake, name: str, rows: int, files: int) -> frazil.Table:
    """Write a table, an append for each file; values are random, so that no file can be pruned."""
    table = lake.create_table(name, DDL)
    random = np.random.default_rng(1)
    size = rows // files
    for _ in range(files):
        ids = random.integers(0, rows, size)
        table.append(
            pa.table(
                {
                    "id": ids,
                    "small": random.integers(0, 1000, size, dtype=np.int32),
                    "score": random.random(size),
                    "kind": pa.array(KINDS[random.integers(0, len(KINDS), size)], pa.string()),
                    "name": pa.array([f"name of {one}" for one in ids.tolist()]),
                }
            )
        )
    return table


class Times:
    """Seconds of runs by name: those that passed, and those of the processors."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[float, float]]] = {}

    def run(self, name: str, work: Callable[[], object]) -> None:
        """Do some work and note how long it took."""
        start, cpu = time.perf_counter(), time.process_time()
        work()
        self.found.setdefault(name, []).append((time.perf_counter() - start, time.process_time() - cpu))

    def show(self, base: str) -> None:
        """Print the medians; ratios are to one of them."""
        cpu = {name: statistics.median(one for _, one in found) for name, found in self.found.items()}
        print(f"{'':42}{'seconds':>10}{'CPU':>10}{'ratio':>8}")
        for name, found in self.found.items():
            passed = statistics.median(one for one, _ in found)
            print(f"{name:42}{passed:10.2f}{cpu[name]:10.2f}{cpu[name] / cpu[base]:8.2f}")


def run_once(times: Times, lake: frazil.Lake, peer: SqlCatalog, run: int, rows: int, files: int) -> dict[str, float]:
    """Build both tables, run everything once, and return what filters leave out after z-order."""
    ours = build(lake, f"db.ours{run}", rows, files)
    theirs = build(lake, f"db.theirs{run}", rows, files)
    times.run("bin-pack, frazil", ours.maintain.rewrite_data_files)

    def overwrite() -> None:
        table = peer.load_table(f"db.theirs{run}")
        table.overwrite(table.scan().to_arrow())

    times.run("read and overwrite, PyIceberg", overwrite)
    assert theirs.refresh().scan().count() == ours.scan().count() == rows
    size = sum(one.data_file.file_size_in_bytes for one in ours.scan().plan().tasks)
    small = {"rewrite-all": True, "target-file-size-bytes": size // 64, "min-file-size-bytes": 1}
    times.run("sort by id, frazil", lambda: ours.maintain.rewrite_data_files("sort", "id", options=small))
    times.run(
        "z-order by id and score, frazil",
        lambda: ours.maintain.rewrite_data_files("sort", "zorder(id, score)", options=small),
    )
    every = len(ours.scan().plan().tasks)
    filters = (f"id = {rows // 3}", "score >= 0.5 and score <= 0.501")
    shares = {where: 1 - len(ours.scan(where).plan().tasks) / every for where in filters}
    times.run(
        f"expire {len(ours.snapshots) - 1} snapshots, frazil",
        lambda: ours.maintain.expire_snapshots(older_than=2**62),
    )
    return shares


def main() -> None:
    """Build, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    times = Times()
    shares: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, frazil.connect(Path(folder) / "lake") as lake:
        catalog = Path(folder) / "lake"
        peer = SqlCatalog("lake", uri=f"sqlite:///{next(catalog.glob('*.db'))}", warehouse=f"file://{catalog}")
        for run in range(options.runs):
            shares = run_once(times, lake, peer, run, options.rows, options.files)
    print(f"{options.rows:,} rows in {options.files} files, medians of {options.runs} runs\n")
    times.show("bin-pack, frazil")
    print("\nafter z-order, files that a filter leaves out")
    for where, share in shares.items():
        print(f"{where:42}{share:10.0%}")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
