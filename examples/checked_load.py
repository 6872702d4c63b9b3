"""Audit a load with Great Expectations: write to a branch, validate it there, and publish it if it passes.

pip install great-expectations; python examples/checked_load.py warehouse
"""

from __future__ import annotations

import sys
from typing import Any

import great_expectations as gx

import frazil


def meets_expectations(rows: Any) -> bool:
    """Return whether a pandas frame meets the expectations; for a Spark frame, use `add_spark` instead."""
    context = gx.get_context(mode="ephemeral")
    source = context.data_sources.add_pandas("lake").add_dataframe_asset("orders")
    batch = source.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows})
    suite = gx.ExpectationSuite(
        "orders",
        expectations=[
            gx.expectations.ExpectColumnValuesToBeUnique(column="id"),
            gx.expectations.ExpectColumnValuesToNotBeNull(column="price"),
            gx.expectations.ExpectColumnValuesToBeBetween(column="price", min_value=0),
        ],
    )
    result = batch.validate(suite)
    for outcome in result.results:
        if not outcome.success:
            config = outcome.expectation_config
            print("failed:", config.type, config.kwargs["column"])
    return bool(result.success)


def load(table: frazil.Table, rows: list[dict[str, object]]) -> None:
    table.create_branch("checked")
    table.append(rows, branch="checked")
    if meets_expectations(table.scan(ref="checked").to_pandas()):
        table.fast_forward("main", to="checked")
        print("published")
    table.drop_branch("checked")


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        orders = lake.create_table("shop.orders", "id bigint, price double")
        orders.append([{"id": 1, "price": 1.0}])
        load(orders, [{"id": 1, "price": 2.0}, {"id": 2, "price": -1.0}])
        load(orders, [{"id": 2, "price": 3.0}])
        print(sorted(orders.scan().to_arrow()["id"].to_pylist()))


if __name__ == "__main__":
    main(sys.argv[1])
