"""dbt's own tests of adapters, on dbt-spark's method `session` over a lake. `make test-dbt` runs them.

dbt is in an environment of its own; where it is not installed, nothing here is collected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

HAS_DBT = find_spec("dbt") is not None and find_spec("dbt.tests") is not None
collect_ignore_glob = [] if HAS_DBT else ["test_adapter.py"]
if HAS_DBT:
    with warnings.catch_warnings():
        # dbt's own modules warn as they are imported, which is an error here elsewhere.
        warnings.simplefilter("ignore")
        import_module("dbt.tests.util")
    pytest_plugins = ["dbt.tests.fixtures.project"]


def pytest_configure(config: pytest.Config) -> None:
    """Let dbt warn."""
    if HAS_DBT:
        config.addinivalue_line("filterwarnings", "ignore")


@pytest.fixture(scope="session")
def session_with_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import frazil

    builder = frazil.session(tmp_path_factory.mktemp("dbt") / "warehouse").master("local[2]")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("create namespace if not exists lake.default")
    spark.sql("use lake.default")
    yield spark
    spark.stop()


@pytest.fixture(scope="class")
def dbt_profile_target(session_with_lake: Any) -> dict[str, Any]:
    return {"type": "spark", "method": "session", "host": "NA", "threads": 1}
