"""The pipeline of `make demo` and `frazil demo --spark`: taxi trips, from the first row to the clean-up.

Rows are generated on Spark. Each step prints its statements, their results, the time and the size on disk. The lake is
kept, and the last lines are commands to explore it.
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

from frazil.cli.quiet_spark import start_spark
from frazil.cli.render import OutputFormat, render_rows, show_size
from frazil.errors import InvalidRequestError
from frazil.lake.connect import connect
from frazil.lake.lake import Lake
from frazil.lake.table import Table
from frazil.maintenance.report import counted
from frazil.sessions.attach import attach, detach

Show = Callable[[str], object]
ROWS = 3_000_000
"""The trips in the first load."""
DAYS = 90
"""The days from 1 January 2026, one partition each."""
RIDERS = 60_000
RIDER = 4711
"""The rider whose data is deleted."""
WIDTH = 100
"""The width that fits beside the margin on most terminals."""
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
    """Return whether pyspark and Java are installed."""
    return find_spec("pyspark") is not None and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)


def run_spark_demo(print_line: Show, *, folder: str | None = None, rows: int = ROWS) -> str:
    """Run the pipeline in a folder, by default a new temporary one, and return the folder."""
    if rows < DAYS * 2:
        raise InvalidRequestError(f"Cannot generate {rows} trips: the minimum is {DAYS * 2}, two a day")
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
        self._folder = path
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
            self._print_summary()

    def _evolve(self) -> None:
        with self._step("Evolve the schema: add a column with a default, without writing a file"):
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
            self._print_summary()
            self._rows(_DAILY)
        self._spark.catalog.dropTempView("late")

    def _forget_rider(self) -> None:
        with self._step(f"Delete one customer: rider {RIDER} asks for deletion"):
            self._print_text(f"{self._trips_of_rider():,} trips of the rider before")
            self._sql(f"delete from lake.city.trips where rider_id = {RIDER}")
            self._print_summary()
            self._print_text(f"{self._trips_of_rider():,} trips of the rider now")

    def _travel(self, before: int) -> None:
        with self._step("Time travel: the table before the merge, and the changes since"):
            self._rows(
                f"select count(*) as trips, count_if(rider_id = {RIDER}) as of_the_rider, sum(fare) as fares\n"
                f"from lake.city.trips version as of {before}"
            )
            self._rows(
                "select _change_type, count(*) as rows\n"
                f"from lake.city.trips.changes with (`start-snapshot-id` = {before}) group by 1 order by 1"
            )

    def _publish(self) -> None:
        with self._step("Branch, review, publish: the airport fee was left out in the last week"):
            self._sql("alter table lake.city.trips create branch audit")
            self._sql(_FIX)
            self._rows(_SUMS)
            self._sql("call lake.system.fast_forward('city.trips', 'main', 'audit')")
            self._sql("alter table lake.city.trips drop branch audit")
            self._print_text("published: main is at the head of audit; nothing was copied")

    def _compact_and_expire(self) -> None:
        with self._step("Compact and expire: one snapshot remains, and no file contains the rider any more"):
            self._rows(
                "call lake.system.rewrite_data_files(table => 'city.trips',\n"
                "  options => map('delete-file-threshold', '1', 'min-input-files', '2'))"
            )
            self._rows(
                "call lake.system.expire_snapshots(table => 'city.trips', older_than => now(), retain_last => 1)"
            )
            report = self._table().check()
            self._python('lake.table("city.trips").check()')
            self._print_text("every file exists and agrees with its metadata" if report.ok else str(report))

    # Output of a step

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self._number += 1
        self._print(f"\n{self._number}. {title}")
        began = time.monotonic()
        yield
        self._print_text(f"[{time.monotonic() - began:.1f} s; {show_size(_bytes_below(self._folder))} on disk]")

    def _print_text(self, text: str) -> None:
        for line in text.splitlines():
            self._print(f"   {line}")

    def _python(self, text: str) -> None:
        self._print_text(f">>> {text}")

    def _sql(self, text: str) -> Any:
        first, *others = text.splitlines()
        self._print_text("\n".join([f"sql> {first}", *(f"     {line}" for line in others)]))
        return self._spark.sql(text)

    def _rows(self, text: str) -> None:
        frame = self._sql(text)
        self._print_text(render_rows(frame.toArrow(), frame.columns, OutputFormat.TABLE, width=WIDTH, has_count=False))

    def _table(self) -> Table:
        return self._lake.table("city.trips")

    def _snapshot_id(self) -> int:
        snapshot = self._table().current_snapshot
        assert snapshot is not None
        return snapshot.snapshot_id

    def _trips_of_rider(self) -> int:
        trips = self._spark.table("lake.city.trips").filter(f"rider_id = {RIDER}").count()
        return int(trips)

    def _print_summary(self) -> None:
        snapshot = self._table().current_snapshot
        assert snapshot is not None
        self._print_text(_summary(snapshot.summary or {}))


def _summary(facts: Mapping[str, str]) -> str:
    """Summarize a snapshot in one line."""
    counts = []
    for name, what in (
        ("added-records", "row"),
        ("added-data-files", "data file"),
        ("added-position-deletes", "deleted position"),
        ("added-dvs", "deletion vector"),
    ):
        if int(facts.get(name, 0)):
            counts.append(counted(int(facts[name]), what))
    if "added-files-size" in facts:
        counts.append(show_size(int(facts["added-files-size"])))
    rows = int(facts["total-records"]) - int(facts.get("total-position-deletes", 0))
    return f"written: {', '.join(counts)}; the table has {rows:,} rows"


def _trips(spark: Any, first: int, last: int, rows: int) -> Any:
    """Return trips as a frame: their ids follow the time, everything else is derived from hashes of the id."""
    zones = ", ".join(f"'{zone}'" for zone in _ZONES)
    seconds = DAYS * 86_400
    # Late trips have ids after the others, and happened within the last days.
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
    """Return commands to explore the lake."""
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
        "\nOr in Python:",
        "   >>> import frazil",
        f"   >>> lake = frazil.connect({str(path)!r})",
        '   >>> trips = lake.table("city.trips")',
        "   >>> print(trips.scan(\"pickup_at >= '2026-03-30'\").plan().explain())",
        '   >>> trips.scan("trip_id < 5").to_arrow().to_pylist()',
        "   >>> frazil.attach(lake.spark, lake)",
        '   >>> lake.spark.table("lake.city.trips").groupBy("zone").count().show()',
        f"\nWhen you are done: rm -r {folder}",
    ]  # fmt: skip
