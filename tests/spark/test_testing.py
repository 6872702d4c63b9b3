"""The Spark session of `frazil.testing`: it starts, has a lake, and refuses to take over another session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.errors import InvalidRequestError
from frazil.testing.spark import local_session
from tests.unit.testing.test_testing import run_pytest


@pytest.mark.extended
def test_session_fixture_runs_sql_on_its_lake(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        "def test_sql(frazil_spark):\n"
        "    frazil_spark.sql('create table lake.db.t as select 1 as id')\n"
        "    assert frazil_spark.table('lake.db.t').count() == 1\n",
    )
    assert "1 passed" in output, output


def test_session_fixture_refuses_a_running_session(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.range(1).count() == 1
    with pytest.raises(InvalidRequestError, match="one is running"), local_session(tmp_path):
        pass
