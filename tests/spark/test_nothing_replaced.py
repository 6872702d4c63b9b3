"""Nothing of PySpark is replaced: what its classes and modules are before a lake is attached, they are after, and
while frazil reads and writes.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pyspark.sql
from pyspark.errors import utils
from pyspark.sql import SparkSession

import frazil

WORKING = tuple(str(Path(frazil.__file__).parent / room) for room in ("spark", "sessions"))
PACKAGES = (
    "pyspark",
    "pyspark.core",
    "pyspark.errors",
    "pyspark.pandas",
    "pyspark.sql",
    "pyspark.sql.classic",
    "pyspark.sql.connect",
    "pyspark.sql.connect.streaming",
    "pyspark.sql.functions",
    "pyspark.sql.pandas",
    "pyspark.sql.streaming",
)
LEFT_OUT = ("tests", "pandas.typedef", "shell", "daemon", "worker", "install")
OWN_STATE = {
    *("_instantiatedSession", "_activeSession", "_options", "_sc", "_enable_debugging_cache"),
    # What Python keeps of warnings, of annotations that were asked for and of classes that were tested.
    *("__warningregistry__", "__annotations__", "__annotations_cache__", "_abc_impl", "__abstractmethods__"),
}
"""What PySpark itself, and Python, change while sessions come and go."""
CONTEXT_STATE = {"_active_spark_context", "_gateway", "_jvm", "_next_accum_id", "_python_includes"}


def modules() -> list[ModuleType]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in PACKAGES:
            try:
                root = importlib.import_module(package)
            except ImportError:
                # What needs a package that is not here.
                continue
            found.append(root)
            for one in pkgutil.iter_modules(root.__path__, f"{package}."):
                if not one.ispkg and not any(part in one.name for part in LEFT_OUT):
                    try:
                        found.append(importlib.import_module(one.name))
                    except ImportError:
                        continue
    return found


Attributes = dict[str, tuple[Any, str, Any]]


def attributes() -> Attributes:
    """Return every attribute of PySpark's modules and of the classes in them: where it is, its name, what it is."""
    found: Attributes = {}
    for module in modules():
        for name, value in list(vars(module).items()):
            if name not in OWN_STATE:
                found[f"{module.__name__}.{name}"] = (module, name, value)
            if isinstance(value, type) and value.__module__.startswith("pyspark"):
                for inner, held in vars(value).items():
                    full = f"{value.__module__}.{value.__qualname__}.{inner}"
                    if inner not in OWN_STATE | CONTEXT_STATE and full != "pyspark.core.rdd.RDD.toDF":
                        # PySpark makes that method anew with every session.
                        found[full] = (value, inner, held)
    return found


def differences(before: Attributes, now: Attributes) -> list[str]:
    return sorted(
        name
        for name in before.keys() | now.keys()
        if name not in before or name not in now or before[name][2] is not now[name][2]
    )


def look_again(before: Attributes) -> Callable[[], list[str]]:
    """Return what names the attributes that are not what they were; quicker than to gather them anew."""
    spaces: dict[int, tuple[Any, dict[str, tuple[str, Any]]]] = {}
    for name, (where, inner, held) in before.items():
        spaces.setdefault(id(where), (vars(where), {}))[1][inner] = (name, held)
    known = [(space, names, tuple(map(id, space.values()))) for space, names in spaces.values()]

    def look() -> list[str]:
        return [
            name
            for space, names, ids in known
            if tuple(map(id, space.values())) != ids
            for inner, (name, held) in names.items()
            if space.get(inner) is not held
        ]

    return look


@contextmanager
def looking_while_frazil_works(look: Callable[[], list[str]]) -> Iterator[dict[str, list[str]]]:
    """Look whenever a function that works with Spark is called first, in this thread and in those that begin."""
    seen: set[CodeType] = set()
    found: dict[str, list[str]] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code not in seen and code.co_filename.startswith(WORKING):
            seen.add(code)
            replaced = look()
            if replaced:
                found[code.co_qualname] = replaced

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert len(seen) > 200


def test_comparison_detects_replaced_attributes() -> None:
    before = attributes()
    look = look_again(before)
    for holder, name in ((pyspark.sql.DataFrame, "count"), (pyspark.sql.Column, "__eq__"), (utils, "_with_origin")):
        original = vars(holder)[name]
        setattr(holder, name, lambda *_: 0)
        try:
            assert differences(before, attributes())
            assert look()
        finally:
            setattr(holder, name, original)
    assert differences(before, attributes()) == look() == []


def test_attach_replaces_no_pyspark_attribute(spark: SparkSession, lake: frazil.Lake) -> None:
    # What PySpark makes at the first use of a thing is there before.
    assert spark.range(1).selectExpr("id").collect()
    assert spark.catalog.currentDatabase()
    spark.createDataFrame([(1,)], "id bigint").createOrReplaceTempView("one")
    before = attributes()
    with looking_while_frazil_works(look_again(before)) as replaced:
        frazil.attach(spark, lake)
        try:
            assert differences(before, attributes()) == []
            spark.sql("create table lake.db.t (id bigint)")
            spark.range(3).writeTo("lake.db.t").append()
            spark.sql("delete from lake.db.t where id = 1")
            spark.sql("merge into lake.db.t t using one s on t.id = s.id when not matched then insert *")
            spark.sql("update lake.db.t set id = id + 10 where id > 1")
            lake.table("db.t").upsert(spark.range(9, 13), keys=["id"])
            assert spark.read.format("iceberg").load("lake.db.t").count() == 6
            assert spark.catalog.tableExists("lake.db.t")
            assert differences(before, attributes()) == []
        finally:
            frazil.detach(spark)
            spark.catalog.dropTempView("one")
    assert replaced == {}
    assert differences(before, attributes()) == []
