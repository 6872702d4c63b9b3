"""What a commit costs: on small and large tables, and beside PyIceberg's SqlCatalog.

    python bench/commit_cost.py [--commits 30] [--snapshots 1000] [--files 100000] [--history 100] [--pairs 25]

First table: a fast append of one described data file (none is written) by a writer who loads the table first, on
tables of a hundredth, a tenth and all of `--files` in one snapshot, and of a thousand files in a hundredth, a tenth
and all of `--snapshots`. Turns alternate; medians are printed. Storage is durable, the catalog is SQLite, properties
are the defaults.

Second table: whole commits of this library and of PyIceberg, each on its own SQLite database in the same folder, turn
by turn: a property and an append of one row, to tables of three histories. frazil syncs every file and folder before a
commit counts; PyIceberg leaves that to the operating system. So frazil is shown twice, as it is and without syncs; the
latter is the same work as PyIceberg's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, scaled

from frazil.catalog.base import Catalog
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.codec.single_value import encode_bound
from frazil.commit.append import Append
from frazil.commit.transaction import commit_actions
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.parse_type import parse_schema
from frazil.spec.types import LONG
from frazil.storage.local import LocalStorage
from frazil.table.lake import Lake

SCHEMA = parse_schema("id bigint, ts timestamptz, kind string, score double")
ROW = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "ts": pa.array([0], pa.timestamp("us", "UTC")),
        "kind": ["a"],
        "score": [0.5],
    }
)


def described(location: str, number: int) -> DataFile:
    """Describe a data file with the metrics that writers record."""
    count = dict.fromkeys((1, 2, 3, 4), 1000)
    bounds = {1: encode_bound(number * 1000, LONG)}
    return DataFile(
        f"{location}/data/{number:08d}.parquet",
        FileFormat.PARQUET,
        1000,
        40_000,
        column_sizes=count,
        value_counts=count,
        null_value_counts=dict.fromkeys((1, 2, 3, 4), 0),
        lower_bounds=bounds,
        upper_bounds=bounds,
        split_offsets=(4,),
        sort_order_id=0,
    )


def build(catalog: Catalog, name: str, files: int, snapshots: int) -> tuple[str, ...]:
    """Make a table of some files, added in some commits."""
    identifier = ("db", name)
    loaded = catalog.create_table(identifier, SCHEMA)
    # What is built is not measured, and need not last.
    fast = replace(loaded, storage=LocalStorage(durable=False))
    number = 0
    for at in range(snapshots):
        end = files * (at + 1) // snapshots
        added = tuple(described(loaded.metadata.location, one) for one in range(number, end))
        number = end
        fast = replace(commit_actions(catalog, fast, Append(added)), storage=fast.storage)
    return identifier


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fast_append(catalog: Catalog, identifier: tuple[str, ...], number: int) -> None:
    """Load a table and add one file to it."""
    loaded = catalog.load_table(identifier)
    commit_actions(catalog, loaded, Append((described(loaded.metadata.location, number),), is_fast=True))


def compare_sizes(folder: Path, commits: int, files: int, snapshots: int, kept: Results) -> None:
    """Print what a fast append costs, by the files and by the snapshots of the table."""
    storage = LocalStorage()
    catalog = SqlCatalog("lake", f"file://{folder}/wh", SqliteDatabase(folder / "sizes.db"), storage)
    catalog.create_namespace(("db",))
    made: dict[tuple[str, int, str], tuple[str, ...]] = {}
    for at, part in enumerate((100, 10, 1)):
        size = max(files // part, 1)
        made["an append, by files in the table", size, "files"] = build(catalog, f"files_{at}", size, 1)
    for at, part in enumerate((100, 10, 1)):
        size = max(snapshots // part, 1)
        made["an append, by snapshots", size, "snapshots"] = build(catalog, f"snapshots_{at}", 1000, size)
    seconds: dict[tuple[str, int, str], list[float]] = {one: [] for one in made}
    for turn in range(commits + 3):
        for one, identifier in made.items():
            found = timed(partial(fast_append, catalog, identifier, 10**7 + turn))
            if turn >= 3:
                seconds[one].append(found)
    print(f"A fast append of one file, median of {commits}, catalog loaded each time")
    print(f"{'':34}{'size':>18}{'ms':>10}{'metadata':>12}")
    for one, identifier in made.items():
        loaded = catalog.load_table(identifier)
        size_of_metadata = storage.size(loaded.metadata_location or "") / 1024
        kept.add(*one, {"frazil": seconds[one]})
        shown = f"{one[1]:,} {one[2]}"
        print(f"{one[0]:34}{shown:>18}{statistics.median(seconds[one]) * 1000:10.1f}{size_of_metadata:9,.0f} KiB")
    catalog.close()


class Ours:
    """frazil, with syncs or without."""

    def __init__(self, folder: Path, name: str, *, durable: bool) -> None:
        database = SqliteDatabase(folder / f"{name}.db")
        storage = LocalStorage(durable=durable)
        self.lake = Lake(SqlCatalog("lake", f"file://{folder}/{name}", database, storage))

    def open(self, name: str) -> Any:
        """Create a table."""
        return self.lake.create_table(f"db.{name}", SCHEMA)

    def set_property(self, table: Any, value: str) -> None:
        """Commit a property."""
        table.set_properties({"owner": value})

    def close(self) -> None:
        """Close the catalog."""
        self.lake.close()


class Theirs:
    """PyIceberg."""

    def __init__(self, folder: Path, name: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog

        self.catalog = TheirCatalog("lake", uri=f"sqlite:///{folder}/{name}.db", warehouse=f"file://{folder}/{name}")
        self.catalog.create_namespace("db")

    def open(self, name: str) -> Any:
        """Create a table."""
        schema = pa.schema(
            [("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("score", pa.float64())]
        )
        return self.catalog.create_table(f"db.{name}", schema)

    def set_property(self, table: Any, value: str) -> None:
        """Commit a property."""
        with table.transaction() as transaction:
            transaction.set_properties({"owner": value})

    def close(self) -> None:
        """Close the catalog."""
        self.catalog.close()


def compare_libraries(folder: Path, pairs: int, history: int, kept: Results) -> None:
    """Print commits in a second of this library and of PyIceberg, turn by turn."""
    sides: dict[str, Any] = {
        "frazil": Ours(folder, "ours", durable=True),
        "frazil, no syncs": Ours(folder, "ours-fast", durable=False),
        "PyIceberg": Theirs(folder, "theirs"),
    }
    print(f"\nCommits to SQLite in a second, {pairs} of each, turn by turn")
    print(f"{'':28}{'snapshots':>10}" + "".join(f"{name:>18}" for name in sides) + f"{'ratios':>16}")
    for number, part in enumerate((25, 5, 1)):
        snapshots = max(history // part, 1)
        tables = {name: side.open(f"history_{number}") for name, side in sides.items()}
        for table in tables.values():
            for _ in range(snapshots):
                table.append(ROW)
        for title in ("a property", "an append of one row"):
            seconds: dict[str, list[float]] = {name: [] for name in sides}
            for at in range(pairs + 2):
                for name, side in sides.items():
                    is_property = title == "a property"
                    work = partial(side.set_property, tables[name], str(at)) if is_property else None
                    found = timed(work or partial(tables[name].append, ROW))
                    if at >= 2:
                        seconds[name].append(found)
            kept.add(f"{title}, on SQLite", snapshots, "snapshots", {name: seconds[name] for name in kept.contenders})
            rates = {name: 1 / statistics.median(found) for name, found in seconds.items()}
            shown = "".join(f"{rate:18.1f}" for rate in rates.values())
            ratios = " ".join(f"{rates[name] / rates['PyIceberg']:7.2f}" for name in list(sides)[:2])
            print(f"{title:28}{snapshots:>10,}{shown}{ratios:>16}", flush=True)
    for side in sides.values():
        side.close()


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--snapshots", type=int, default=scaled(1000))
    parser.add_argument("--files", type=int, default=scaled(100_000))
    parser.add_argument("--history", type=int, default=scaled(100))
    parser.add_argument("--pairs", type=int, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as name:
        folder = Path(name)
        kept = Results("commit_cost", ["PyIceberg", "frazil"], prints=False)
        compare_sizes(folder, arguments.commits, arguments.files, arguments.snapshots, kept)
        compare_libraries(folder, arguments.pairs, arguments.history, kept)
        kept.write()


if __name__ == "__main__":
    main()
