"""An incremental pipeline: what changed in one table since the last run is carried over to another, once.

The snapshot up to which it has come is the version of the write, so that no state is kept beside the tables.

python examples/incremental_pipeline.py warehouse
"""

from __future__ import annotations

import sys

import frazil

COME_TO = "pipeline.come-to"


def carry_over(orders: frazil.Table, totals: frazil.Table) -> None:
    """Bring the totals of customers up to the orders as they are now."""
    end = orders.refresh().current_snapshot
    last = totals.refresh().current_snapshot
    start = int(last.summary.get(COME_TO, "0")) if last is not None and last.summary is not None else 0
    if end is None or end.snapshot_id == start:
        print("nothing new")
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
        snapshot_properties={COME_TO: str(end.snapshot_id)},
    )
    print(f"{changes.num_rows} changes, totals of {', '.join(customers)}")


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        orders = lake.create_table("shop.orders", "id bigint, customer string, amount bigint")
        totals = lake.create_table("shop.totals", "customer string, amount bigint")
        orders.append([{"id": 1, "customer": "ada", "amount": 5}, {"id": 2, "customer": "bob", "amount": 7}])
        carry_over(orders, totals)
        orders.append([{"id": 3, "customer": "ada", "amount": 2}])
        carry_over(orders, totals)
        carry_over(orders, totals)
        for row in sorted(totals.scan().to_arrow().to_pylist(), key=lambda one: one["customer"]):
            print(row)


if __name__ == "__main__":
    main(sys.argv[1])
