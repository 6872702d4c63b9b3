"""The demo's lake, made without Spark: trips of taxis over weeks, with what a lake collects in that time.

Import as `tests.browser.demo_lake`. Rows, names and steps follow `examples/demo.py`; times of commits are chosen, so
that pictures have something to show.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

import frazil
from frazil.table.open_catalog import open_catalog

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY_MS = 86_400_000
ZONES = ("Airport", "Centre", "Harbour", "Hill", "Market", "Museum", "Old Town", "Park", "Station", "University")
ENGINE = {"engine-name": "spark", "engine-version": "4.3.0"}


def trips(first: int, count: int, day: int) -> pa.Table:
    """Return trips of one day."""
    chosen = np.random.default_rng(first)
    seconds = np.sort(chosen.integers(0, 86_400, count)) + int(START.timestamp()) + day * 86_400
    return pa.table(
        {
            "trip_id": pa.array(np.arange(first, first + count), pa.int64()),
            "rider_id": pa.array(chosen.integers(0, 60_000, count), pa.int32()),
            "pickup_at": pa.array(seconds * 1_000_000, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "minutes": pa.array(chosen.integers(3, 48, count), pa.int32()),
            "zone": pa.array([ZONES[at] for at in chosen.integers(0, len(ZONES), count)]),
            "km": pa.array(np.round(chosen.gamma(2.0, 3.0, count), 2)),
        }
    )


def make_demo_lake(folder: Path) -> None:
    """Make the lake; its clock runs from the first of January on."""
    catalog = open_catalog(folder)
    now = [int(START.timestamp() * 1000)]
    catalog.now_ms = lambda: now[0]
    lake = frazil.Lake(catalog)
    table = lake.create_table(
        "city.trips",
        "trip_id bigint not null, rider_id int, pickup_at timestamptz, minutes int, zone string, km double",
        partition_by=["day(pickup_at)"],
        format_version=3,
        properties={"comment": "Trips of the city's taxis, one row each", "write.delete.mode": "merge-on-read"},
    )
    number = 0
    for day in range(28):
        now[0] += DAY_MS // 2
        count = 400 + 60 * day + (6_000 if day == 13 else 0)
        table.append(trips(number, count, day), snapshot_properties=ENGINE)
        number += count
        now[0] += DAY_MS // 2
        if day == 9:
            table.create_tag("first-audit")
            with table.update_schema() as update:
                update.add_column("tip", "decimal(8,2)", default="0.00", doc="what the rider added")
        if day in (10, 20):
            table.delete("rider_id < 400", snapshot_properties=ENGINE)
        if day == 25:
            table.create_tag("january")
            table.create_branch("audit")
            table.delete("zone = 'Airport' and minutes < 10", branch="audit", snapshot_properties=ENGINE)
        if day == 26:
            table.append(trips(900_000, 50, day), branch="audit", snapshot_properties=ENGINE)
        if day in (8, 21):
            table.maintain.rewrite_manifests()
        if day == 22:
            table.delete("km > 14", snapshot_properties=ENGINE)
    for at in range(6):
        now[0] += 3_600_000
        table.append(
            trips(800_000 + at * 100, 30, 27), snapshot_properties={"engine-name": "flink", "engine-version": "2.1"}
        )
    riders = lake.create_table("city.riders", "rider_id int not null, name string, since date", format_version=2)
    for at in range(8):
        now[0] += 600_000
        rows = range(at * 100, at * 100 + 100)
        riders.append(
            pa.table(
                {
                    "rider_id": pa.array(rows, pa.int32()),
                    "name": [f"rider {one}" for one in rows],
                    "since": pa.array([START.date()] * 100),
                }
            )
        )
    zones = lake.create_table("city.zones", "zone string not null, area double")
    zones.append(pa.table({"zone": list(ZONES), "area": [1.5 * at for at in range(1, len(ZONES) + 1)]}))
    lake.create_table("finance.fares", "zone string, per_km decimal(6,2)", format_version=3)
    lake.create_view(
        "city.busy_zones", "select zone, count(*) as trips from city.trips group by zone order by trips desc"
    )
    lake.close()
