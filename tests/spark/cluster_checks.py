"""What holds on a cluster only; `test_read_on_cluster.py` runs these tests in a process of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession


def test_executors_have_nothing_of_ours(spark: SparkSession) -> None:
    # Inside the test, so that it travels as it is: executors have no tests to import it from.
    def packages_of(_: Iterable[int]) -> Iterator[tuple[bool, bool]]:
        from importlib.util import find_spec

        yield find_spec("frazil") is not None, find_spec("pyarrow") is not None

    assert str(spark.sparkContext.master).startswith("spark://")
    found = spark.sparkContext.parallelize(range(8), 8).mapPartitions(packages_of).collect()
    assert set(found) == {(False, False)}
