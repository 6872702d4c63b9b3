"""Backfill on a branch: write, audit, then publish in one step or discard. Readers see all of it or nothing.

python examples/backfill_on_a_branch.py warehouse
"""

from __future__ import annotations

import sys

import frazil


def audit(table: frazil.Table, branch: str) -> list[str]:
    """Return the problems of the rows on a branch."""
    problems = []
    if table.scan("price is null or price < 0", ref=branch).count():
        problems.append("prices are missing or negative")
    keys = table.scan(columns=["id"], ref=branch).to_arrow()["id"].to_pylist()
    if len(keys) != len(set(keys)):
        problems.append("keys are repeated")
    return problems


def backfill(table: frazil.Table, rows: list[dict[str, object]]) -> None:
    table.create_branch("backfill")
    table.overwrite(rows, where="id < 100", branch="backfill")
    problems = audit(table, "backfill")
    if problems:
        print("discarded:", ", ".join(problems))
    else:
        table.fast_forward("main", to="backfill")
        print("published")
    table.drop_branch("backfill")


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        prices = lake.create_table("shop.prices", "id bigint, price double")
        prices.append([{"id": 1, "price": 1.0}, {"id": 200, "price": 2.0}])
        backfill(prices, [{"id": 1, "price": -1.0}])
        backfill(prices, [{"id": 1, "price": 1.5}, {"id": 2, "price": 3.0}])
        for row in sorted(prices.scan().to_arrow().to_pylist(), key=lambda row: row["id"]):
            print(row)


if __name__ == "__main__":
    main(sys.argv[1])
