"""Appends of odd shapes without Spark, beside PyIceberg: many columns, many partitions, a long history.

    python bench/odd_shapes.py [--columns 2000] [--partitions 3000] [--snapshots 10000] [--runs 3]

Each library has its own SQLite catalog in the same folder, and appends the same Arrow table to a table of its own: ten
rows of many columns; a row for each of many partitions, four times over; one row to a table of many snapshots. Runs
alternate. frazil syncs every file before a commit counts, and PyIceberg leaves that to the operating system; so
frazil is shown twice, as it is and without syncs, which is the same work as PyIceberg's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import Results, alternate, scaled

from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.storage.local import LocalStorage
from frazil.table.lake import Lake

CONTENDERS = ("PyIceberg", "frazil, without syncs", "frazil")


def open_lakes(folder: Path) -> dict[str, Any]:
    """Return a lake of each contender, each in its own folder."""
    from pyiceberg.catalog.sql import SqlCatalog as PeerCatalog

    for name in ("peer", "fast", "ours"):
        (folder / name).mkdir()
    peer = PeerCatalog("lake", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer")
    peer.create_namespace("db")
    made: dict[str, Any] = {"PyIceberg": peer}
    for name, place, durable in (("frazil, without syncs", "fast", False), ("frazil", "ours", True)):
        catalog = SqlCatalog(
            "lake", f"file://{folder}/{place}", SqliteDatabase(folder / f"{place}.db"), LocalStorage(durable=durable)
        )
        made[name] = Lake(catalog)
        made[name].create_namespace("db")
    return made


def make_tables(lakes: dict[str, Any], name: str, schema: pa.Schema, partition_by: str | None = None) -> dict[str, Any]:
    """Return an empty table of each contender."""
    from pyiceberg.transforms import IdentityTransform

    tables: dict[str, Any] = {}
    for contender, lake in lakes.items():
        if contender != "PyIceberg":
            tables[contender] = lake.create_table(
                f"db.{name}", schema, partition_by=[partition_by or ""][: bool(partition_by)]
            )
            continue
        tables[contender] = lake.create_table(f"db.{name}", schema)
        if partition_by is not None:
            with tables[contender].update_spec() as update:
                update.add_field(partition_by, IdentityTransform())
    return tables


def lengthen(lakes: dict[str, Any], tables: dict[str, Any], name: str, snapshots: int) -> dict[str, Any]:
    """Return tables with a long history: the one snapshot of each, with other ids, so many times."""
    made: dict[str, Any] = {}
    for contender, table in tables.items():
        path = Path(table.metadata_location.removeprefix("file://"))
        document = json.loads(path.read_bytes())
        (first,) = document["snapshots"]
        last_ms, last_id = first["timestamp-ms"], first["snapshot-id"]
        found = []
        for at in range(snapshots):
            is_last = at == snapshots - 1
            one = first | {"snapshot-id": last_id if is_last else at + 1, "timestamp-ms": last_ms - snapshots + 1 + at}
            one["sequence-number"] = at + 1
            if at:
                one["parent-snapshot-id"] = at
            found.append(one)
        document["snapshots"] = found
        document["snapshot-log"] = [{key: one[key] for key in ("snapshot-id", "timestamp-ms")} for one in found]
        document["last-sequence-number"] = snapshots
        target = path.with_name(f"99999-{name}.metadata.json")
        target.write_text(json.dumps(document))
        made[contender] = lakes[contender].register_table(f"db.{name}_long", f"file://{target}")
    return made


def wide(columns: int) -> pa.Table:
    """Return ten rows of many columns of five types."""
    kinds: list[Any] = [
        pa.array(range(10)),
        pa.array(np.arange(10) / 3),
        pa.array([f"text-{at}" for at in range(10)]),
        pa.array([at % 2 == 0 for at in range(10)]),
        pa.array(range(10), pa.timestamp("us", "UTC")),
    ]
    return pa.table({f"column_{at}": kinds[at % len(kinds)] for at in range(columns)})


def partitioned(partitions: int) -> pa.Table:
    """Return four rows for each of many partitions, in no order."""
    place = np.random.default_rng(1).permutation(np.repeat(np.arange(partitions), 4))
    return pa.table({"p": pa.array(place), "x": pa.array(place / 7), "s": pa.array([f"row {one}" for one in place])})


def main() -> None:
    """Build, race and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=scaled(2000))
    parser.add_argument("--partitions", type=int, default=scaled(3000))
    parser.add_argument("--snapshots", type=int, default=scaled(10_000))
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    results = Results("odd_shapes", CONTENDERS)

    def race(title: str, size: int, unit: str, tables: dict[str, Any], data: pa.Table, runs: int) -> None:
        appends: dict[str, Callable[[], Any]] = {name: partial(table.append, data) for name, table in tables.items()}
        cpu: dict[str, list[float]] = {}
        results.add(title, size, unit, alternate(appends, runs, cpu=cpu), cpu=cpu)

    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        lakes = open_lakes(Path(folder))
        data = wide(arguments.columns)
        race(
            "append 10 rows",
            arguments.columns,
            "columns",
            make_tables(lakes, "wide", data.schema),
            data,
            arguments.runs,
        )
        data = partitioned(arguments.partitions)
        tables = make_tables(lakes, "many", data.schema, "p")
        race("append 4 rows to each", arguments.partitions, "partitions", tables, data, min(arguments.runs, 2))
        data = pa.table({"id": [1], "s": ["x"]})
        tables = make_tables(lakes, "old", data.schema)
        for table in tables.values():
            table.append(data)
        tables = lengthen(lakes, tables, "old", arguments.snapshots)
        race("append 1 row", arguments.snapshots, "snapshots", tables, data, 2 * arguments.runs)
    results.write()


if __name__ == "__main__":
    main()
