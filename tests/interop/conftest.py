"""The sessions that tests beside other implementations share: Spark with frazil, and the process with the jar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.interop_cases import CannotDo
from tests.interop.java_runtime import close_worker, worker


@pytest.fixture(scope="session", autouse=True)
def _the_java_process_ends() -> Iterator[None]:
    yield
    close_worker()


@pytest.fixture(scope="session")
def java() -> None:
    """The process with Iceberg's Java runtime; tests that need it are skipped, with the reason, where it is absent."""
    try:
        worker()
    except CannotDo as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A local session of Spark."""
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()
