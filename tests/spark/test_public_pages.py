"""The code of Iceberg's public pages for Spark, as `pages_script.py` retells it, runs over an attached lake.

The only line that is not theirs is the one that attaches. `tests/interop/test_sql_on_java.py` runs the same file
through Iceberg's Java runtime, and expects the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import frazil
from tests.spark import pages_script
from tests.spark.pages_found import FOUND


@pytest.mark.extended
def test_public_code_examples_run(spark: SparkSession, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        frazil.attach(spark, lake)
        try:
            found, refused = pages_script.run(spark)
        finally:
            frazil.detach(spark)
    assert refused == {}
    assert found == FOUND
