"""Spark internals that writing uses; `private_names.py` has those for reading. Spark may change them at any time.

Writes run in a clone of the user's session, with its temporary views, functions and cached tables. So settings of a
write affect no other query, and a user's settings that would break a table's files (legacy calendars, 96-bit
timestamps, no field ids) do not affect the write. Spark Connect cannot clone a session: there a write runs in the
user's session, and invalid files are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyspark
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.spark.jvm.java_classes import define_classes, full_name
from frazil.spark.jvm.known_sessions import session_of
from frazil.spark.jvm.private_names import is_classic, scala_object
from frazil.spark.own_columns import F
from frazil.sql.quote_names import quote

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
    """Return the frame in a clone of its session with the given settings."""
    spark = frame.sparkSession
    if not is_classic(spark):
        return frame
    # Before Spark 4.2, `df.observe` depends on listeners, which clones inherit from their session.
    shares = int(pyspark.__version__.split(".")[1]) >= 2
    apart: Any = _written_class(spark).apart(frame._jdf, json.dumps({**_FIXED, **settings}), shares)
    return DataFrame(apart, session_of(apart.sparkSession(), spark.sparkContext))


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column to select from a frame, with an optional new type and metadata."""

    name: str
    data_type: st.DataType | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def select_columns(frame: DataFrame, columns: Sequence[NamedColumn]) -> DataFrame:
    """Select columns of a frame, in one call to the JVM in a classic session."""
    if not is_classic(frame.sparkSession):
        return frame.select(*map(_column, columns))
    payload = [
        {
            "quoted": quote(column.name),
            "name": column.name,
            "type": None if column.data_type is None else column.data_type.json(),
            "metadata": json.dumps(column.metadata),
        }
        for column in columns
    ]
    return DataFrame(_written_class(frame.sparkSession).columns(frame._jdf, json.dumps(payload)), frame.sparkSession)


def _column(named_column: NamedColumn) -> Column:
    column = F.col(quote(named_column.name))
    return (column if named_column.data_type is None else column.cast(named_column.data_type)).alias(
        named_column.name, metadata=dict(named_column.metadata)
    )


def write_parquet(frame: DataFrame, folder: str, options: Mapping[str, str], partition: str | None) -> None:
    """Write a frame as Parquet files to a new folder with Spark's writer."""
    if is_classic(frame.sparkSession):
        _written_class(frame.sparkSession).parquet(frame._jdf, json.dumps(options), partition, folder)
        return
    writer = frame.write.mode("append").options(**options)
    (writer if partition is None else writer.partitionBy(partition)).parquet(folder)


def _written_class(spark: SparkSession) -> Any:
    return define_classes(spark.sparkContext).Written


def rebalance(frame: DataFrame, values: Sequence[Column], task_bytes: int) -> DataFrame:
    """Cluster a frame's rows by values, in tasks of about a target size; not on Spark Connect."""
    spark = frame.sparkSession
    jvm: Any = spark.sparkContext._jvm
    # Analysing a projection of the values resolves their expressions.
    aliased = [value.alias(f"v{index}") for index, value in enumerate(values)]
    aliases = frame.select(*aliased)._jdf.queryExecution().analyzed().projectList()
    keys = jvm.java.util.ArrayList()
    for index in range(len(aliased)):
        keys.add(aliases.apply(index).child())
    balanced = jvm.org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions(
        jvm.scala.jdk.javaapi.CollectionConverters.asScala(keys).toList(),
        frame._jdf.queryExecution().analyzed(),
        jvm.scala.Option.empty(),
        # Py4J would pass a small number as an Integer, but Spark expects a Long.
        jvm.scala.jdk.javaapi.OptionConverters.toScala(jvm.java.util.OptionalLong.of(task_bytes)),
    )
    datasets = scala_object(jvm.org.apache.spark.sql.classic, "Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, balanced), spark)


def hash_longs(column: Column, spark: SparkSession) -> Column | None:
    """Return the specification's 32-bit hash of a long column as a Catalyst expression; None on Spark Connect."""
    if not is_classic(spark):
        return None
    jvm: Any = spark.sparkContext._jvm
    tools = scala_object(jvm.org.apache.spark.sql.classic, "ExpressionUtils")
    children = jvm.java.util.ArrayList()
    children.add(tools.expression(column._jc))
    listed = jvm.scala.jdk.javaapi.CollectionConverters.asScala(children).toList()
    hashed = jvm.org.apache.spark.sql.catalyst.expressions.Murmur3Hash(listed, 0)
    return type(column)(tools.column(hashed))


def can_reach(frame: DataFrame, location: str, options: Mapping[str, str]) -> bool:
    """Return whether Spark has a file system for a location; object stores may need a missing package."""
    is_local = location.startswith("file:")
    if is_local or not is_classic(frame.sparkSession):
        return is_local
    return bool(_written_class(frame.sparkSession).reaches(frame._jdf, location, json.dumps(options)))


def request_files(frame: DataFrame) -> None:
    """Plan a query without running it, so that its relations request their files from the planner."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.getClass().getName() == full_name("ScanToEnd"):
            leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters())


def referenced_names(filtered: DataFrame) -> set[str] | None:
    """Return the names of the columns in a filter's condition, or None if it has a subquery."""
    condition = filtered._jdf.queryExecution().analyzed().condition()
    if "subquery" in condition.toString().lower():
        return None
    references = condition.references().toList()
    return {references.apply(index).name() for index in range(references.size())}


def equal_columns(joined: DataFrame) -> list[tuple[str, Column, bool]]:
    """Return the equalities of a join's condition: a column of the left side, an expression of the right, null-safety.

    Only unconverted columns count.
    """
    spark = joined.sparkSession
    jvm: Any = spark.sparkContext._jvm
    tools = scala_object(jvm.org.apache.spark.sql.classic, "ExpressionUtils")
    plan = joined._jdf.queryExecution().analyzed()
    if plan.condition().isEmpty():
        return []
    sides = (plan.left().outputSet(), plan.right().outputSet())
    equalities: list[tuple[str, Column, bool]] = []
    waiting = [plan.condition().get()]
    while waiting:
        expression = waiting.pop()
        class_name = expression.getClass().getSimpleName()
        if class_name == "And":
            waiting += [expression.left(), expression.right()]
        if class_name not in ("EqualTo", "EqualNullSafe"):
            continue
        for ours, theirs in ((expression.left(), expression.right()), (expression.right(), expression.left())):
            is_ours = ours.references().subsetOf(sides[0]) and not ours.references().isEmpty()
            if not is_ours or not theirs.references().subsetOf(sides[1]) or not theirs.deterministic():
                continue
            column = _without_widening(ours)
            if column.getClass().getSimpleName() == "AttributeReference":
                equalities.append((column.name(), _as_column(tools, theirs), class_name == "EqualNullSafe"))
            break
    return equalities


def _without_widening(expression: Any) -> Any:
    """Remove Spark's cast from int to long from an expression; return other expressions unchanged."""
    if expression.getClass().getSimpleName() == "Cast" and expression.dataType().sql() == "BIGINT":
        child = expression.child()
        return child if child.dataType().sql() == "INT" else expression
    return expression


def _as_column(tools: Any, expression: Any) -> Column:
    return type(F.lit(1))(tools.column(expression))


def resolve_against(expressions: list[Column], own: DataFrame, other: DataFrame) -> list[Column]:
    """Resolve expressions against one side of a join, even if the other side has columns of the same names.

    If the two sides share columns, Spark resolves them itself, and the expressions are returned unchanged.
    """
    jvm: Any = own.sparkSession.sparkContext._jvm
    tools = scala_object(jvm.org.apache.spark.sql.classic, "ExpressionUtils")
    plans: list[Any] = [frame._jdf.queryExecution().analyzed() for frame in (own, other)]
    if not expressions or not plans[0].outputSet().intersect(plans[1].outputSet()).isEmpty():
        return expressions
    projected = own.select(*[expression.alias(f"found{index}") for index, expression in enumerate(expressions)])
    plan: Any = projected._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "Project":
        return expressions
    return [_as_column(tools, plan.projectList().apply(index).child()) for index in range(len(expressions))]


def is_deterministic(frame: DataFrame) -> bool:
    """Return whether Spark knows that a query returns the same rows each time it runs."""
    if not is_classic(frame.sparkSession):
        return False
    plan: Any = frame._jdf.queryExecution().analyzed()
    return bool(plan.deterministic())


def are_deterministic(frame: DataFrame, columns: Sequence[Column]) -> list[bool]:
    """Return for each expression over a frame whether Spark knows that it is deterministic."""
    plan: Any = (
        frame.select(*[column.alias(f"v{index}") for index, column in enumerate(columns)])
        ._jdf.queryExecution()
        .analyzed()
    )
    return [bool(plan.projectList().apply(index).deterministic()) for index in range(len(columns))]


def is_deterministic_filter(filtered: DataFrame) -> bool:
    """Return whether Spark knows that a filter's condition is deterministic."""
    plan: Any = filtered._jdf.queryExecution().analyzed()
    is_filter = str(plan.getClass().getSimpleName()) == "Filter"
    return bool((plan.condition() if is_filter else plan).deterministic())


def to_bytes(spark: SparkSession, text: str | None) -> int:
    """Convert a setting such as `10MB` to a number of bytes."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text or "0"))


def is_local_relation(frame: DataFrame) -> bool:
    """Return whether a frame is a local relation, whose rows the driver holds."""
    if not is_classic(frame.sparkSession):
        return False
    return str(frame._jdf.queryExecution().analyzed().getClass().getSimpleName()) == "LocalRelation"


def kept_partitions(frame: DataFrame) -> int:
    """Return the number of tasks that read a checkpointed frame."""
    plan = frame._jdf.queryExecution().analyzed()
    if str(plan.getClass().getSimpleName()) == "LogicalRDD":
        return max(int(plan.rdd().getNumPartitions()), 1)
    return max(int(frame.sparkSession.sparkContext.defaultParallelism), 1)


def limit_each_task(frame: DataFrame, rows: int) -> DataFrame:
    """Limit each task of a frame to a number of rows."""
    spark = frame.sparkSession
    jvm: Any = spark.sparkContext._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    limit = scala_object(expressions, "Literal").apply(rows)
    limited = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalLimit(limit, frame._jdf.queryExecution().analyzed())
    datasets = scala_object(jvm.org.apache.spark.sql.classic, "Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, limited), spark)


@dataclass(frozen=True, slots=True)
class JobTotals:
    """Totals of tasks, rows and bytes of some jobs."""

    done_tasks: int = 0
    all_tasks: int = 0
    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0


def job_totals(spark: SparkSession, tag: str) -> JobTotals:
    """Return the totals of the jobs with a tag; rows and bytes are as far as tasks have reported."""
    context: Any = spark.sparkContext._jsc.sc()
    store = context.statusStore()
    totals = [0] * 6
    seen: set[int] = set()
    for job in context.statusTracker().getJobIdsForTag(tag):
        stages = store.job(job).stageIds()
        seen |= {stages.apply(index) for index in range(stages.size())}
    for number in seen:
        stage = store.lastStageAttempt(number)
        if stage.status().name() not in ("ACTIVE", "COMPLETE"):
            continue
        counts = (
            stage.numCompleteTasks(),
            stage.numTasks(),
            stage.inputRecords(),
            stage.inputBytes(),
            stage.outputRecords(),
            stage.outputBytes(),
        )
        totals = [whole + int(count) for whole, count in zip(totals, counts, strict=True)]
    return JobTotals(*totals)
