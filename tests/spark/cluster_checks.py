"""What holds on a cluster only; `test_read_on_cluster.py` runs these tests in a process of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.table.scan import scan_table
from tests.spark.read_cases import local_table


def test_executors_have_no_frazil_installed(spark: SparkSession) -> None:
    # Inside the test, so that it travels as it is: executors have no tests to import it from.
    def packages_of(_: Iterable[int]) -> Iterator[tuple[bool, bool]]:
        from importlib.util import find_spec

        yield find_spec("frazil") is not None, find_spec("pyarrow") is not None

    assert str(spark.sparkContext.master).startswith("spark://")
    found = spark.sparkContext.parallelize(range(8), 8).mapPartitions(packages_of).collect()
    assert set(found) == {(False, False)}


@pytest.mark.parametrize("width", [3, 150])
def test_files_with_a_wrong_recorded_size_are_read_whole(spark: SparkSession, tmp_path: Path, width: int) -> None:
    # Rows of many columns are not read in batches: the scan itself then goes to executors.
    table = local_table(tmp_path, Schema(tuple(NestedField(at + 1, f"c{at}", LONG) for at in range(width))))
    file = table.write_data(
        [dict.fromkeys((f"c{at}" for at in range(width)), row) for row in range(100)], row_group_size=10
    )
    table.commit(replace(file, file_size_in_bytes=99))
    assert [one[-1] for one in scan_table(table.load()).to_spark(spark).orderBy("c0").collect()] == list(range(100))
