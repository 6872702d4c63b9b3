"""dbt's own tests of adapters, on dbt-spark's method `session` over a lake. `make test-dbt` runs them.

dbt is in an environment of its own; where it is not installed, nothing here is collected. With `FRAZIL_DBT_ON=jar`, in
an environment with Spark 4.1, the same tests run over Iceberg's Java runtime, to compare with.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.dbt.adapter_classes import FAILING

HERE = Path(__file__).parent
HAS_DBT = find_spec("dbt") is not None and find_spec("dbt.tests") is not None
ON_THE_JAR = os.environ.get("FRAZIL_DBT_ON") == "jar"
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is known to fail here has to fail; with the jar it is seen what does."""
    if ON_THE_JAR:
        return
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function) and item.cls is not None:
            name = item.cls.__name__.removeprefix("Test")
            why = FAILING.get(f"{name}.{item.originalname}", FAILING.get(name))
            if why is not None:
                item.add_marker(pytest.mark.xfail(reason=why, strict=True))


@pytest.fixture(scope="session")
def session_with_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session whose default catalog is a lake, as `frazil dbt` starts it; or the jar's, under the same name."""
    folder = tmp_path_factory.mktemp("dbt")
    builder = _of_the_jar(folder) if ON_THE_JAR else _of_frazil(folder)
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
    settings["spark.sql.warehouse.dir"] = str(folder / "spark-warehouse")
    settings["spark.ui.showConsoleProgress"] = "false"
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if ON_THE_JAR:
        # Drivers of databases are found only where their class was loaded by the loader that also has Iceberg's.
        jvm = spark._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName("org.sqlite.JDBC", True, loader)
    spark.sql("create namespace if not exists lake.default")
    spark.sql("use lake.default")
    yield spark
    spark.stop()


def _of_frazil(folder: Path) -> Any:
    import frazil

    return frazil.session(folder / "warehouse").master("local[2]")


def _of_the_jar(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    from tests.interop.java_runtime import DRIVER, PACKAGE

    catalog = "spark.sql.catalog.lake"
    settings: dict[str, Any] = {
        "spark.jars.packages": f"{PACKAGE},{DRIVER}",
        "spark.jars.excludes": "org.slf4j:slf4j-api",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{folder}/jar.db",
        f"{catalog}.warehouse": f"file://{folder}/warehouse",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.cache-enabled": "false",
    }
    return SparkSession.builder.master("local[2]").config(map=settings)


@pytest.fixture(scope="class")
def dbt_profile_target(session_with_lake: Any) -> dict[str, Any]:
    return {"type": "spark", "method": "session", "host": "NA", "user": "dbt", "threads": 1}
