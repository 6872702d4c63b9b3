"""Java that a test needs in the JVM, compiled by Spark's own compiler."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_known: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def compiled_class(spark: SparkSession, source: str, name: str) -> Any:
    """Return a class of some Java source; once for each JVM, since Py4J keeps methods by the name of their class."""
    known = _known.setdefault(spark.sparkContext._gateway, {})
    if name in known:
        return known[name]
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source)
    known[name] = compiler.getClassLoader().loadClass(name)
    return known[name]
