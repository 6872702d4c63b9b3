"""Spark's inner doors for writing: names that Spark does not promise to keep, used here and in `jvm.py` only.

Writes run in a session of their own, a clone of the user's with its temporary views, functions and cached tables: what
is set for a write is then seen by no other query, and what the user has set in ways that would break a table's files
(legacy calendars, 96-bit timestamps, no field ids) does not reach it. Spark Connect has no such door; there a write
runs in the user's session, and files that turn out wrong are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.spark.jvm import is_classic

_FIXED = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
}


def in_own_session(frame: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Return a frame whose query runs under settings of its own."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame
    jvm: Any = spark.sparkContext._jvm
    own = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in {**_FIXED, **settings}.items():
        own.conf.set(name, value)
    datasets = _module(jvm.org.apache.spark.sql.classic, "Dataset")
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(datasets.ofRows(own._jsparkSession, plan), own)


def rebalance(frame: DataFrame, name: str, task_bytes: int) -> DataFrame:
    """Return a frame whose rows of one value of its last column come together, in tasks of about a size."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame.hint("rebalance", name)
    jvm: Any = spark.sparkContext._jvm
    plan = frame._jdf.queryExecution().analyzed()
    keys = jvm.java.util.ArrayList()
    keys.add(plan.output().last())
    balanced = jvm.org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions(
        jvm.scala.jdk.javaapi.CollectionConverters.asScala(keys).toList(),
        plan,
        jvm.scala.Option.empty(),
        # Py4J would make an Integer of a small number, which Spark takes for a Long.
        jvm.scala.jdk.javaapi.OptionConverters.toScala(jvm.java.util.OptionalLong.of(task_bytes)),
    )
    datasets = _module(jvm.org.apache.spark.sql.classic, "Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, balanced), spark)


def hash_longs(column: Column, spark: SparkSession) -> Column | None:
    """Return the specification's 32-bit hash of a long column, as generated code; None where Spark has no such door."""
    if not is_classic(spark):
        return None
    jvm: Any = spark.sparkContext._jvm
    tools = _module(jvm.org.apache.spark.sql.classic, "ExpressionUtils")
    children = jvm.java.util.ArrayList()
    children.add(tools.expression(column._jc))
    listed = jvm.scala.jdk.javaapi.CollectionConverters.asScala(children).toList()
    hashed = jvm.org.apache.spark.sql.catalyst.expressions.Murmur3Hash(listed, 0)
    return type(column)(tools.column(hashed))


def can_reach(spark: SparkSession, location: str) -> bool:
    """Return whether Spark's own file systems know a location; object stores may need a package that is not there."""
    if not is_classic(spark):
        return location.startswith("file:")
    jvm: Any = spark.sparkContext._jvm
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        jvm.org.apache.hadoop.fs.Path(location).getFileSystem(settings)
    except Exception:
        # Whatever keeps Hadoop from opening the location, our own storage writes there.
        return False
    return True


def is_deterministic(frame: DataFrame) -> bool:
    """Return whether a query gives the same rows each time it runs, as far as Spark can tell."""
    if not is_classic(frame.sparkSession):
        return False
    plan: Any = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic())


def _module(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")
