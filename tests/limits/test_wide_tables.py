"""Tables of many columns cost as much more as they have more columns, and not the square of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.datafile.match_columns import ColumnMatcher
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField

FEW, MANY = 500, 4000


def processor_seconds(work: Callable[[], Any]) -> float:
    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("case_sensitive", [True, False])
def test_column_matching_takes_linear_time(case_sensitive: bool) -> None:
    def match(count: int) -> Callable[[], Any]:
        schema = Schema(tuple(NestedField(at + 1, f"c{at}", LONG) for at in range(count)))
        batch = pa.record_batch({f"c{at}": pa.array([1]) for at in reversed(range(count))})

        def work() -> None:
            matcher = ColumnMatcher(schema, batch.schema, format_version=2, case_sensitive=case_sensitive)
            matcher.match(batch)

        return work

    few, many = processor_seconds(match(FEW)), processor_seconds(match(MANY))
    # In line with the columns it is 8 times as much, with their square 64 times.
    assert many < 24 * few


def test_rows_of_many_columns_are_written_and_read_back() -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        data = pa.table({f"c{at}": pa.array([at, None]) for at in range(2000)})
        table = lake.create_table("db.wide", data.schema)
        began = time.process_time()
        table.append(data)
        assert table.scan().to_arrow().equals(data)
        assert time.process_time() - began < 20


def test_many_small_partitions_each_get_their_rows() -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.many", "p int, n int", partition_by=["p"])
        rows = [{"p": at * 7 % 300, "n": at} for at in range(900)]
        table.append(rows)
        files = table.inspect.files()
        assert files.num_rows == 300
        assert set(files["record_count"].to_pylist()) == {3}
        assert sorted(table.scan().to_arrow().to_pylist(), key=lambda one: int(one["n"])) == rows
        assert table.check(bounds=True).ok
