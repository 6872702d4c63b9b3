"""What `make demo` runs: trips of taxis on Spark, from the first row to the clean-up; without Java, `frazil demo`.

    python examples/demo.py [--folder trips] [--rows 1000000]

Rows are generated on Spark. Each step tells what it ran, what came of it, how long it took and what is on disk. The
lake stays where it is, and the last lines are commands that look around in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from frazil.cli.demo import run_demo
from frazil.cli.quiet_spark import start_spark
from frazil.cli.render import OutputFormat, render_rows, show_size
from frazil.cli.session import reported
from frazil.errors import InvalidRequestError
from frazil.maintenance.report import counted
from frazil.sessions.attach import attach, detach
from frazil.table.connect import connect
from frazil.table.lake import Lake
from frazil.table.table import Table

Show = Callable[[str], object]
ROWS = 3_000_000
"""Trips in the first load."""
DAYS = 90
"""From the first of January 2026 on; a partition each."""
RIDERS = 60_000
RIDER = 4711
"""Who asks to be forgotten."""
WIDTH = 100
"""What fits beside the margin on most terminals."""
_ZONES = ("Airport", "Centre", "Harbour", "Hill", "Market", "Museum", "Old Town", "Park", "Station", "University")

_CREATE = """create table lake.city.trips (
  trip_id bigint not null, rider_id int, pickup_at timestamp, minutes int,
  zone string, km double, fare decimal(8,2)
) using iceberg
partitioned by (days(pickup_at))
tblproperties ('format-version' = '3', 'write.delete.mode' = 'merge-on-read',
               'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"""
_ADD_COLUMN = "alter table lake.city.trips add column tip decimal(8,2) default 0.00 after fare"
_MERGE = """merge into lake.city.trips t using late s on t.trip_id = s.trip_id
when matched then update set fare = s.fare, tip = s.tip
when not matched then insert *"""
_DAILY = """select date(pickup_at) as day, count(*) as trips, sum(fare) as fares, sum(tip) as tips
from lake.city.trips where pickup_at >= timestamp'2026-03-29' group by 1 order by 1"""
_FIX = """update lake.city.trips.branch_audit set fare = fare + 2.50
where zone = 'Airport' and pickup_at >= timestamp'2026-03-25'"""
_SUMS = """select 'main' as state, sum(fare) as airport_fares from lake.city.trips where zone = 'Airport'
union all select 'audit', sum(fare) from lake.city.trips version as of 'audit' where zone = 'Airport'"""


def has_spark() -> bool:
    """Return whether pyspark and a Java are here."""
    return find_spec("pyspark") is not None and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)


def run_spark_demo(print_line: Show, *, folder: str | None = None, rows: int = ROWS) -> str:
    """Run the pipeline in a folder, a new temporary one unless given, and return the folder."""
    if rows < DAYS * 2:
        raise InvalidRequestError(f"Cannot make {rows} trips: give at least {DAYS * 2}, two a day")
    warehouse = Path(tempfile.mkdtemp(prefix="frazil-demo-")) if folder is None else Path(folder)
    if folder is not None and warehouse.exists() and any(warehouse.iterdir()):
        raise InvalidRequestError(f"Cannot run the demo in {folder!r}: the folder is not empty")
    with connect(warehouse) as lake:
        began = time.monotonic()
        spark = start_spark(lake)
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        attach(spark, lake)
        try:
            tour = _Tour(spark, lake, warehouse, print_line)
            print_line(f"Spark {spark.version}, started in {time.monotonic() - began:.1f} s; the lake is {warehouse}")
            tour.run(rows)
        finally:
            detach(spark)
            spark.conf.set("spark.sql.session.timeZone", zone)
    for line in _look_around(warehouse):
        print_line(line)
    return str(warehouse)


class _Tour:
    """The steps, in order."""

    def __init__(self, spark: Any, lake: Lake, path: Path, print_line: Show) -> None:
        self._spark = spark
        self._lake = lake
        self._place = path
        self._print = print_line
        self._number = 0

    def run(self, rows: int) -> None:
        """Run every step."""
        began = time.monotonic()
        self._create()
        self._load(rows)
        self._evolve()
        before = self._snapshot_id()
        self._merge(rows)
        self._forget_rider()
        self._travel(before)
        self._publish()
        self._compact_and_expire()
        self._print(f"\nEight steps in {time.monotonic() - began:.0f} s.")

    def _create(self) -> None:
        with self._step("Create a table: version 3, partitioned by day, changes by deletion vectors"):
            self._sql("create namespace lake.city")
            self._sql(_CREATE)

    def _load(self, rows: int) -> None:
        with self._step(f"Load {rows:,} trips of {DAYS} days"):
            self._python('trips.writeTo("lake.city.trips").append()')
            _trips(self._spark, 0, rows, rows).writeTo("lake.city.trips").append()
            self._tell_summary()

    def _evolve(self) -> None:
        with self._step("Evolve the schema: a column with a default; no file is written"):
            self._sql(_ADD_COLUMN)
            self._rows("select trip_id, zone, fare, tip from lake.city.trips where trip_id = 4711")

    def _merge(self, rows: int) -> None:
        changed, new = rows // 100, rows // 150
        with self._step(f"Merge late arrivals: {changed:,} corrected trips of the last days and {new:,} new ones"):
            late = _trips(self._spark, rows - changed, rows + new, rows)
            late.selectExpr(
                "trip_id", "rider_id", "pickup_at", "minutes", "zone", "km",
                "cast(fare + 1 as decimal(8,2)) as fare", "cast(fare * 0.1 as decimal(8,2)) as tip",
            ).createOrReplaceTempView("late")  # fmt: skip
            self._sql(_MERGE)
            self._tell_summary()
            self._rows(_DAILY)
        self._spark.catalog.dropTempView("late")

    def _forget_rider(self) -> None:
        with self._step(f"Delete one customer: rider {RIDER} asks to be forgotten"):
            self._say(f"{self._trips_of_rider():,} trips of the rider before")
            self._sql(f"delete from lake.city.trips where rider_id = {RIDER}")
            self._tell_summary()
            self._say(f"{self._trips_of_rider():,} trips of the rider now")

    def _travel(self, before: int) -> None:
        with self._step("Travel in time: the table as it was before the merge, and what changed since"):
            self._rows(
                f"select count(*) as trips, count_if(rider_id = {RIDER}) as of_the_rider, sum(fare) as fares\n"
                f"from lake.city.trips version as of {before}"
            )
            self._rows(
                "select _change_type, count(*) as rows\n"
                f"from lake.city.trips.changes with (`start-snapshot-id` = {before}) group by 1 order by 1"
            )

    def _publish(self) -> None:
        with self._step("Branch, look, publish: the airport's fee was forgotten in the last week"):
            self._sql("alter table lake.city.trips create branch audit")
            self._sql(_FIX)
            self._rows(_SUMS)
            self._sql("call lake.system.fast_forward('city.trips', 'main', 'audit')")
            self._sql("alter table lake.city.trips drop branch audit")
            self._say("published: main is where audit was; nothing was copied")

    def _compact_and_expire(self) -> None:
        with self._step("Compact and expire: one snapshot stays, and the rider is in no file any more"):
            self._rows(
                "call lake.system.rewrite_data_files(table => 'city.trips',\n"
                "  options => map('delete-file-threshold', '1', 'min-input-files', '2'))"
            )
            self._rows(
                "call lake.system.expire_snapshots(table => 'city.trips', older_than => now(), retain_last => 1)"
            )
            report = self._table().check()
            self._python('lake.table("city.trips").check()')
            self._say("every file is there and as metadata says" if report.ok else str(report))

    # What a step shows

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self._number += 1
        self._print(f"\n{self._number}. {title}")
        began = time.monotonic()
        yield
        self._say(f"[{time.monotonic() - began:.1f} s; {show_size(_bytes_below(self._place))} on disk]")

    def _say(self, text: str) -> None:
        for line in text.splitlines():
            self._print(f"   {line}")

    def _python(self, text: str) -> None:
        self._say(f">>> {text}")

    def _sql(self, text: str) -> Any:
        first, *others = text.splitlines()
        self._say("\n".join([f"sql> {first}", *(f"     {line}" for line in others)]))
        return self._spark.sql(text)

    def _rows(self, text: str) -> None:
        frame = self._sql(text)
        self._say(render_rows(frame.toArrow(), frame.columns, OutputFormat.TABLE, width=WIDTH, has_count=False))

    def _table(self) -> Table:
        return self._lake.table("city.trips")

    def _snapshot_id(self) -> int:
        snapshot = self._table().current_snapshot
        assert snapshot is not None
        return snapshot.snapshot_id

    def _trips_of_rider(self) -> int:
        found = self._spark.table("lake.city.trips").filter(f"rider_id = {RIDER}").count()
        return int(found)

    def _tell_summary(self) -> None:
        snapshot = self._table().current_snapshot
        assert snapshot is not None
        self._say(_summary(snapshot.summary or {}))


def _summary(facts: Mapping[str, str]) -> str:
    """Say what a snapshot did, in a line."""
    said = []
    for name, what in (
        ("added-records", "row"),
        ("added-data-files", "data file"),
        ("added-position-deletes", "deleted position"),
        ("added-dvs", "deletion vector"),
    ):
        if int(facts.get(name, 0)):
            said.append(counted(int(facts[name]), what))
    if "added-files-size" in facts:
        said.append(show_size(int(facts["added-files-size"])))
    rows = int(facts["total-records"]) - int(facts.get("total-position-deletes", 0))
    return f"written: {', '.join(said)}; the table has {rows:,} rows"


def _trips(spark: Any, first: int, last: int, rows: int) -> Any:
    """Return trips as a frame: their numbers follow the time, everything else is spread by hashes of the number."""
    zones = ", ".join(f"'{zone}'" for zone in _ZONES)
    seconds = DAYS * 86_400
    # Late trips are numbered from the end on and happened within the last days.
    return spark.range(first, last).selectExpr(
        "id as trip_id",
        f"cast(pmod(xxhash64(id), {RIDERS}) as int) as rider_id",
        f"timestamp_seconds(1767225600 + cast(if(id < {rows}, id / {rows}, 0.99) * {seconds} as bigint)) as pickup_at",
        "cast(3 + pmod(xxhash64(id, 'minutes'), 45) as int) as minutes",
        f"element_at(array({zones}), cast(1 + pmod(xxhash64(id, 'zone'), {len(_ZONES)}) as int)) as zone",
        "round(0.5 + pmod(xxhash64(id, 'km'), 2500) / 100, 2) as km",
        "cast(3 + pmod(xxhash64(id, 'km'), 2500) / 90 as decimal(8,2)) as fare",
    )


def _bytes_below(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _look_around(path: Path) -> list[str]:
    """Return commands that work on the lake that is left."""
    folder = shlex.quote(str(path))
    return [
        "\nLook at it in the browser:",
        f"   frazil ui -w {folder}",
        "\nLook around in the terminal:",
        f"   export FRAZIL_WAREHOUSE={folder}",
        "   frazil table show city.trips",
        "   frazil table partitions city.trips --limit 5",
        "   frazil --format json table snapshots city.trips",
        "   frazil health city.trips",
        "   frazil sql \"select zone, sum(fare) from lake.city.trips group by zone\"",
        "   frazil sql",
        "\nor in Python:",
        "   >>> import frazil",
        f"   >>> lake = frazil.connect({str(path)!r})",
        '   >>> trips = lake.table("city.trips")',
        "   >>> print(trips.scan(\"pickup_at >= '2026-03-30'\").plan().explain())",
        '   >>> trips.scan("trip_id < 5").to_arrow().to_pylist()',
        "   >>> frazil.attach(lake.spark, lake)",
        '   >>> lake.spark.table("lake.city.trips").groupBy("zone").count().show()',
        f"\nWhen you have seen enough: rm -r {folder}",
    ]  # fmt: skip


def main(folder: str | None = None, rows: int = ROWS) -> None:
    """Run the pipeline, or the tour without Spark."""
    with reported():
        if has_spark():
            run_spark_demo(typer.echo, folder=folder, rows=rows)
        else:
            run_demo(typer.echo)
            typer.echo(
                "\nThis was the tour without Spark. The pipeline over millions of rows needs pyspark and Java 17."
            )


if __name__ == "__main__":
    typer.run(main)
