"""A tour of a lake in a temporary folder, without Spark and Java: `frazil demo`."""

from __future__ import annotations

import datetime
import shlex
import tempfile
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.table.connect import connect
from frazil.table.table import Table

Show = Callable[[str], object]


def _orders(first: int, last: int, day: int) -> pa.Table:
    """Return rows of one day."""
    noon = datetime.datetime(2024, 1, day, 12, tzinfo=datetime.UTC)
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "ts": pa.array([noon] * len(numbers), pa.timestamp("us", "UTC")),
            "kind": ["web" if number % 3 else "shop" for number in numbers],
        }
    )


def _show(print_line: Show, title: str, *lines: object) -> None:
    print_line(f"\n{title}")
    for line in lines:
        print_line("  " + str(line).replace("\n", "\n  "))


def run_demo(print_line: Show) -> None:
    """Run the tour in a new temporary folder, explaining each step; the lake is kept."""
    show = partial(_show, print_line)
    folder = tempfile.mkdtemp(prefix="frazil-demo-")
    with connect(folder) as lake:
        table = lake.create_table(
            "shop.orders",
            "id bigint not null, ts timestamptz, kind string",
            partition_by=["day(ts)"],
            sort_by=["id"],
            format_version=3,
        )
        for day in (1, 2, 3):
            table.append(_orders(day * 1000, day * 1000 + 500, day))
        summaries = [snapshot.summary for snapshot in table.snapshots if snapshot.summary]
        appends = (
            f"append: {summary['added-records']} rows, {summary['total-records']} in total" for summary in summaries
        )
        show("Three appends, a snapshot each:", *appends)

        scan = table.scan("ts >= '2024-01-02' and id < 2003", columns=["id", "kind"])
        show("A filter prunes manifests and files before anything is read:", scan.plan().explain())
        show("The remaining files are read:", *scan.to_arrow().to_pylist())

        with table.update_schema() as update:
            update.rename_column("kind", "channel")
            update.add_column("price", "decimal(9,2)", default="9.99", after="id")
        show("The schema changes, but no file does:", *table.schema.fields)
        show("Old rows have the new column:", *table.scan("id = 1001").to_arrow().drop_columns(["ts"]).to_pylist())

        table.create_tag("january-2nd", table.snapshots[1].snapshot_id)
        table.delete("ts >= '2024-01-03'")
        show(
            "Rows now, and as of the tag:",
            f"{table.scan().count()} now, {table.scan(ref='january-2nd').count()} at january-2nd",
        )
        show("Every error explains the problem and its solution:", _error_of(table))
    show("Look at the lake in the browser:", f"frazil ui -w {shlex.quote(folder)}")
    show("When you are done:", f"rm -r {shlex.quote(folder)}")


def _error_of(table: Table) -> str:
    try:
        table.scan("knd = 'web'")
    except FrazilError as error:
        return str(error)
    return ""
