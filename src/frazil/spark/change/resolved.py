"""Expressions that Spark has resolved: conditions and values of a statement, over columns of its table by their ids.

Frames that are to be asked such an expression get their columns under those ids (`bind`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.spark.own_columns import OwnColumn


@dataclass(frozen=True, slots=True)
class Resolved:
    """An expression, the columns it names, and Spark's text of it: None where a subquery is in it."""

    column: Column
    sql_text: str | None
    names: tuple[str, ...]
    columns: Any
    """The columns of the table, as Spark's attributes."""

    def __str__(self) -> str:
        return " ".join(self.names)


def resolved(spark: Any, expression: Any, text: str | None, names: Any, columns: Any) -> Resolved:
    """Return an expression of Catalyst's as one that verbs take."""
    made = spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression)
    return Resolved(OwnColumn(made), text, tuple(names), columns)


def as_frame(java: Any, spark: SparkSession) -> DataFrame:
    """Return PySpark's object for a Dataset of Spark's."""
    return DataFrame(java, spark)


def schema_of_json(text: str) -> st.StructType:
    """Return the columns that Spark describes as JSON."""
    return st.StructType.fromJson(json.loads(text))


def schema_of_type(text: str) -> st.StructType:
    """Return one column of the type that Spark describes as JSON."""
    return schema_of_json(
        json.dumps(
            {
                "type": "struct",
                "fields": [{"name": "column", "type": json.loads(text), "nullable": True, "metadata": {}}],
            }
        )
    )


def schema_of_ddl(text: str) -> st.StructType:
    """Return the columns that a text in Spark's DDL describes."""
    found = st.StructType.fromDDL(text)
    assert isinstance(found, st.StructType)
    return found


def bind(frame: DataFrame, columns: Any) -> DataFrame:
    """Return a frame whose columns have, by their names, the ids that resolved expressions know."""
    spark = frame.sparkSession
    jvm: Any = spark._jvm
    return DataFrame(jvm.frazil.Bind.named(frame._jdf, columns), spark)
