"""An incremental pipeline: apply the changes of one table since the last run to another, exactly once.

The last processed snapshot is the version of the write, so no state is stored outside the tables.

python examples/incremental_pipeline.py warehouse
"""

from __future__ import annotations

import sys

import frazil

LAST_SNAPSHOT = "pipeline.last-snapshot"


def update_totals(orders: frazil.Table, totals: frazil.Table) -> None:
    """Update the totals of customers with new orders."""
    end = orders.refresh().current_snapshot
    last = totals.refresh().current_snapshot
    start = int(last.summary.get(LAST_SNAPSHOT, "0")) if last is not None and last.summary is not None else 0
    if end is None or end.snapshot_id == start:
        print("no changes")
        return
    changes = orders.changes(start=start or None, end=end.snapshot_id)
    customers = sorted(set(changes["customer"].to_pylist()))
    rows = []
    for customer in customers:
        amounts = orders.scan("customer = :name", name=customer).to_arrow()["amount"].to_pylist()
        rows.append({"customer": customer, "amount": sum(amounts)})
    totals.upsert(
        rows,
        keys=["customer"],
        once=("totals", str(end.snapshot_id)),
        snapshot_properties={LAST_SNAPSHOT: str(end.snapshot_id)},
    )
    print(f"{changes.num_rows} changes, totals of {', '.join(customers)}")


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        orders = lake.create_table("shop.orders", "id bigint, customer string, amount bigint")
        totals = lake.create_table("shop.totals", "customer string, amount bigint")
        orders.append([{"id": 1, "customer": "ada", "amount": 5}, {"id": 2, "customer": "bob", "amount": 7}])
        update_totals(orders, totals)
        orders.append([{"id": 3, "customer": "ada", "amount": 2}])
        update_totals(orders, totals)
        update_totals(orders, totals)
        for row in sorted(totals.scan().to_arrow().to_pylist(), key=lambda row: row["customer"]):
            print(row)


if __name__ == "__main__":
    main(sys.argv[1])
