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
from tests.support.catalog_cases import SERVICE_VARIABLE, empty_catalog, service_differences
from tests.support.served_lake import served
from tests.support.sql_case_files import case_files, read_cases, run_cases

QUICK = ("conditions", "shown")
"""Files of few cases: the others take longer than a quick test may."""
_SOME_COLUMNS = "Spark 4.0 fills in no defaults of columns that an INSERT leaves out"
_AFTER_THAT = "rows of a case before are missing"
_OF_SPARK: dict[str, dict[str, str]] = {
    "4.0": {
        "changes.txt:11": _SOME_COLUMNS,
        "changes.txt:17": _AFTER_THAT,
        "changes.txt:37": _SOME_COLUMNS,
        "changes.txt:210": _SOME_COLUMNS,
        "changes.txt:218": _AFTER_THAT,
        "queries.txt:56": "Spark 4.0 has no recursive queries",
        "queries.txt:143": "Spark 4.0 has no functions over Arrow columns",
        "queries.txt:146": "Spark 4.0 has no functions over Arrow columns",
        "queries.txt:164": _SOME_COLUMNS,
        "queries.txt:166": _AFTER_THAT,
        "queries.txt:178": _AFTER_THAT,
        "queries.txt:203": _AFTER_THAT,
        "queries.txt:206": _AFTER_THAT,
        "scripts.txt:202": "Spark 4.0 executes literals and variables alone",
        "scripts.txt:204": _AFTER_THAT,
        "scripts.txt:207": "Spark 4.0 executes literals and variables alone",
    },
}
"""By Sparks, the cases that do not hold there, and why."""


def test_sql_cases_are_numerous() -> None:
    assert sum(1 for name in case_files() for _ in read_cases(name)) >= 300


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.extended) for name in case_files()]
)
def test_sql_cases_hold_on_spark(name: str, spark: SparkSession, tmp_path: Any) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        frazil.attach(spark, lake)
        try:
            known = _OF_SPARK.get(spark.version[:3], {})
            assert run_cases(name, lake, lambda text: spark.sql(text).collect(), known=known) > 0
        finally:
            frazil.detach(spark)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", case_files())
def test_sql_cases_hold_on_spark_with_a_rest_catalog(name: str, spark: SparkSession, tmp_path: Any) -> None:
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
