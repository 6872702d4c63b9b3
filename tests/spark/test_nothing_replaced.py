"""Nothing of PySpark is replaced: what its classes and modules are before a lake is attached, they are after."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import pyspark.sql
from pyspark.sql import SparkSession

import frazil

PACKAGES = ("pyspark.sql", "pyspark.sql.classic", "pyspark.sql.streaming", "pyspark.sql.pandas", "pyspark.errors")
LEFT_OUT = ("tests", "connect", "pandas.typedef")
OWN_STATE = {"_instantiatedSession", "_activeSession", "_options", "_sc"}
"""What PySpark itself changes while sessions come and go."""


def modules() -> list[ModuleType]:
    found = []
    for package in PACKAGES:
        root = importlib.import_module(package)
        found.append(root)
        for one in pkgutil.iter_modules(root.__path__, f"{package}."):
            if not one.ispkg and not any(part in one.name for part in LEFT_OUT):
                try:
                    found.append(importlib.import_module(one.name))
                except ImportError:
                    # What needs a package that is not here.
                    continue
    return found


def attributes() -> dict[str, Any]:
    """Return every attribute of PySpark's modules and of the classes in them."""
    found: dict[str, Any] = {}
    for module in modules():
        for name, value in vars(module).items():
            found[f"{module.__name__}.{name}"] = value
            if isinstance(value, type) and value.__module__.startswith("pyspark"):
                for inner, held in vars(value).items():
                    if inner not in OWN_STATE:
                        found[f"{value.__module__}.{value.__qualname__}.{inner}"] = held
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = {name for name in before.keys() | now.keys() if not name.rpartition(".")[2].startswith("__")}
    return sorted(name for name in names if before.get(name, attributes) is not now.get(name, attributes))


def test_the_comparison_sees_a_method_that_is_replaced() -> None:
    before = attributes()
    original = pyspark.sql.DataFrame.count
    pyspark.sql.DataFrame.count = lambda self: 0  # type: ignore[method-assign]
    try:
        assert differences(before, attributes())
    finally:
        pyspark.sql.DataFrame.count = original  # type: ignore[method-assign]
    assert differences(before, attributes()) == []


def test_no_attribute_of_pyspark_differs_before_during_and_after_attach(spark: SparkSession, lake: frazil.Lake) -> None:
    # What PySpark makes at the first use of a thing is there before.
    assert spark.range(1).selectExpr("id").collect()
    assert spark.catalog.currentDatabase()
    spark.createDataFrame([(1,)], "id bigint").createOrReplaceTempView("one")
    before = attributes()
    frazil.attach(spark, lake)
    try:
        assert differences(before, attributes()) == []
        spark.sql("create table lake.db.t (id bigint)")
        spark.range(3).writeTo("lake.db.t").append()
        spark.sql("delete from lake.db.t where id = 1")
        spark.sql("merge into lake.db.t t using one s on t.id = s.id when not matched then insert *")
        assert spark.read.format("iceberg").load("lake.db.t").count() == 3
        assert spark.catalog.tableExists("lake.db.t")
        assert differences(before, attributes()) == []
    finally:
        frazil.detach(spark)
        spark.catalog.dropTempView("one")
    assert differences(before, attributes()) == []
