"""Rows next to the smallest integer, whose partition by `truncate` is a large number, are found by every filter."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import frazil

LOWEST = {"int": -(2**31), "long": -(2**63)}
TESTS: dict[str, Callable[[int, int], bool]] = {
    "x = {}": lambda x, c: x == c,
    "x != {}": lambda x, c: x != c,
    "x < {}": lambda x, c: x < c,
    "x <= {}": lambda x, c: x <= c,
    "x > {}": lambda x, c: x > c,
    "x >= {}": lambda x, c: x >= c,
    "x in ({}, 5)": lambda x, c: x in (c, 5),
    "x not in ({}, 5)": lambda x, c: x not in (c, 5),
    "x between {} and 0": lambda x, c: c <= x <= 0,
    "not x > {}": lambda x, c: x <= c,
}


@pytest.mark.parametrize("kind", ["int", "long"])
@pytest.mark.parametrize("width", [7, 300])
def test_rows_at_both_ends_are_found_and_the_table_is_valid(kind: str, width: int) -> None:
    lowest = LOWEST[kind]
    rows = [lowest, lowest + 1, lowest + width, -1, 5, -lowest - 1]
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", f"x {kind}", partition_by=[f"truncate({width}, x)"])
        table.append(pa.table({"x": pa.array(rows, pa.int32() if kind == "int" else pa.int64())}))
        for literal in (lowest, lowest + 1, lowest + width, 0, -lowest - 1):
            for text, holds in TESTS.items():
                found = table.scan(text.format(literal)).to_arrow()["x"].to_pylist()
                assert sorted(found) == sorted(x for x in rows if holds(x, literal)), text.format(literal)
        assert table.check(bounds=True).ok
        below = table.scan(f"system.truncate({width}, x) < 0").to_arrow()["x"].to_pylist()
        assert sorted(below) == [x for x in rows if x < 0 and x - x % width >= lowest]


def test_delete_of_large_numbers_keeps_the_smallest() -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "x int", partition_by=["truncate(7, x)"])
        table.append(pa.table({"x": pa.array([-(2**31), 2**31 - 5], pa.int32())}))
        table.delete("x > 0")
        assert table.scan().to_arrow()["x"].to_pylist() == [-(2**31)]
        table.delete("x < 0")
        assert table.scan().count() == 0
