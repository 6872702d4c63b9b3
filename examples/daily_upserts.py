"""Daily ingestion: merge each day's file by key, exactly once even if the scheduler repeats the step.

python examples/daily_upserts.py warehouse
"""

from __future__ import annotations

import sys

import frazil

DAYS = {
    "2026-01-01": [{"id": 1, "status": "placed", "price": 10.0}, {"id": 2, "status": "placed", "price": 20.0}],
    "2026-01-02": [{"id": 2, "status": "shipped", "price": 20.0}, {"id": 3, "status": "placed", "price": 5.0}],
}


def ingest(table: frazil.Table, day: str) -> None:
    # `once` is the idempotency key of the step: if the scheduler repeats it after a crash, rows are not written twice.
    snapshot = table.upsert(DAYS[day], keys=["id"], once=("orders", day))
    print(day, "was written before" if snapshot is None else f"is snapshot {snapshot.snapshot_id}")


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        orders = lake.create_table("shop.orders", "id bigint not null, status string, price double", exist_ok=True)
        for day in DAYS:
            ingest(orders, day)
        ingest(orders, "2026-01-02")
        for row in sorted(orders.scan().to_arrow().to_pylist(), key=lambda row: row["id"]):
            print(row)


if __name__ == "__main__":
    main(sys.argv[1])
