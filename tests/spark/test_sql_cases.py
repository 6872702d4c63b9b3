"""The SQL cases of `tests/sql_cases`, all of them, on an attached session."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil
from tests.catalog_cases import SERVICE_VARIABLE, empty_catalog, service_differences
from tests.served_lake import served
from tests.sql_case_files import case_files, read_cases, run_cases


def test_there_are_cases_enough() -> None:
    assert sum(1 for name in case_files() for _ in read_cases(name)) >= 300


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", case_files())
def test_the_cases_hold_on_spark(name: str, spark: SparkSession, tmp_path: Any) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        frazil.attach(spark, lake)
        try:
            assert run_cases(name, lake, lambda text: spark.sql(text).collect()) > 0
        finally:
            frazil.detach(spark)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", case_files())
def test_the_cases_hold_on_spark_with_a_lake_behind_a_service(name: str, spark: SparkSession, tmp_path: Any) -> None:
    with service_lake(tmp_path / "lake") as (lake, known):
        frazil.attach(spark, lake)
        try:
            assert run_cases(name, lake, lambda text: spark.sql(text).collect(), known=known) > 0
        finally:
            frazil.detach(spark)


@contextmanager
def service_lake(folder: Path) -> Iterator[tuple[frazil.Lake, Mapping[str, str]]]:
    """A lake behind `frazil serve`, or behind the service that the environment names, and where that one differs."""
    if SERVICE_VARIABLE not in os.environ:
        with served(folder) as server, frazil.connect(server.uri) as lake:
            yield lake, {}
        return
    given = json.loads(os.environ[SERVICE_VARIABLE])
    with frazil.connect(given["address"], properties=given["properties"]) as lake:
        empty_catalog(lake.catalog)
        yield lake, service_differences(given["kind"], "sql")
