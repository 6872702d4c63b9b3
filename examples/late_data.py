"""Late data: add rows that arrive after their day, and recompute only the totals of affected days.

python examples/late_data.py warehouse
"""

from __future__ import annotations

import datetime
import sys

import frazil

DAY = datetime.date


def refresh_totals(events: frazil.Table, totals: frazil.Table, days: set[DAY]) -> None:
    """Replace the totals of some days; the partitions of other days do not change."""
    rows = [
        {"day": day, "amount": sum(events.scan("day = :day", day=day).to_arrow()["amount"].to_pylist())}
        for day in sorted(days)
    ]
    totals.overwrite_partitions(rows)


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        events = lake.create_table("shop.events", "day date, amount bigint", partition_by=["day"])
        totals = lake.create_table("shop.totals", "day date, amount bigint", partition_by=["day"])
        first, second = DAY(2026, 1, 1), DAY(2026, 1, 2)
        events.append([{"day": first, "amount": 5}, {"day": second, "amount": 7}])
        refresh_totals(events, totals, {first, second})
        seen = events.current_snapshot
        assert seen is not None
        events.append([{"day": first, "amount": 3}])  # a day late
        late = events.changes(start=seen.snapshot_id)
        refresh_totals(events, totals, set(late["day"].to_pylist()))
        for row in sorted(totals.scan().to_arrow().to_pylist(), key=lambda row: row["day"]):
            print(row["day"], row["amount"])


if __name__ == "__main__":
    main(sys.argv[1])
