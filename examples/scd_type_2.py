"""Slowly changing dimension, type 2: close the old version of a row and open the new one, in one commit.

python examples/scd_type_2.py warehouse
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

import frazil

SCHEMA = "customer string not null, city string, valid_from date, valid_to date, is_current boolean"


def apply_changes(table: frazil.Table, day: datetime.date, changes: list[dict[str, Any]]) -> None:
    """Apply the cities of customers as of a day."""
    current = {row["customer"]: row for row in table.scan("is_current").to_arrow().to_pylist()}
    changed = [row for row in changes if current.get(row["customer"], {}).get("city") != row["city"]]
    # A changed row appears twice: with its key to close the open version, and without a key to open the new one.
    closes = [{**row, "key": row["customer"]} for row in changed if row["customer"] in current]
    opens = [{**row, "key": None} for row in changed]
    if not changed:
        return
    (
        table.merge(closes + opens, on="target.customer = source.key and target.is_current", day=day)
        .when_matched()
        .update({"valid_to": ":day", "is_current": "false"})
        .when_not_matched()
        .insert({"customer": "source.customer", "city": "source.city", "valid_from": ":day", "is_current": "true"})
        .execute()
    )


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        customers = lake.create_table("crm.customers", SCHEMA, exist_ok=True)
        apply_changes(
            customers,
            datetime.date(2026, 1, 1),
            [{"customer": "ada", "city": "London"}, {"customer": "bob", "city": "Paris"}],
        )
        apply_changes(
            customers,
            datetime.date(2026, 2, 1),
            [{"customer": "ada", "city": "Turin"}, {"customer": "bob", "city": "Paris"}],
        )
        rows = customers.scan().to_arrow().to_pylist()
        for row in sorted(rows, key=lambda row: (row["customer"], row["valid_from"])):
            print(row["customer"], row["city"], row["valid_from"], row["valid_to"])


if __name__ == "__main__":
    main(sys.argv[1])
