"""Fixtures of pytest: write `pytest_plugins = ["frazil.testing.fixtures"]` in the `conftest.py` at the root.

def test_orders(frazil_lake): ...       an empty lake in memory, for each test
def test_nightly(frazil_spark): ...     one Spark session with an empty lake named `lake`, for the whole run
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from frazil.table.lake import Lake
from frazil.testing.lakes import memory_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def frazil_lake() -> Iterator[Lake]:
    """Yield an empty lake in memory."""
    lake = memory_lake()
    yield lake
    lake.close()


@pytest.fixture(scope="session")
def frazil_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a Spark session with an empty lake in a temporary folder."""
    # Tests without Spark need no PySpark.
    from frazil.testing.spark import local_session

    with local_session(tmp_path_factory.mktemp("lake")) as spark:
        yield spark
