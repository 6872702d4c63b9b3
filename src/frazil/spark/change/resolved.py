"""Expressions of a statement that Spark has resolved: they refer to columns of its table by Catalyst's ids.

A frame over which such an expression is evaluated gets columns with those ids (`bind`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.spark.jvm.java_classes import define_classes
from frazil.spark.own_columns import OwnColumn


@dataclass(frozen=True, slots=True)
class Resolved:
    """An expression, the names of its columns, and its SQL text, which is None if it contains a subquery."""

    column: Column
    sql_text: str | None
    names: tuple[str, ...]
    columns: Any
    """The columns of the table as Catalyst attributes."""

    def __str__(self) -> str:
        return " ".join(self.names)


def resolved(spark: Any, expression: Any, text: str | None, names: Any, columns: Any) -> Resolved:
    """Wrap a Catalyst expression for the write verbs."""
    column = spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression)
    return Resolved(OwnColumn(column), text, tuple(names), columns)


def as_frame(java: Any, spark: SparkSession) -> DataFrame:
    """Return the PySpark DataFrame for a Java Dataset."""
    return DataFrame(java, spark)


def schema_of_json(text: str) -> st.StructType:
    """Parse a Spark schema in JSON."""
    return st.StructType.fromJson(json.loads(text))


def schema_of_type(text: str) -> st.StructType:
    """Parse a Spark type in JSON, and return a schema with one column of that type."""
    return schema_of_json(
        json.dumps(
            {
                "type": "struct",
                "fields": [{"name": "column", "type": json.loads(text), "nullable": True, "metadata": {}}],
            }
        )
    )


def schema_of_ddl(text: str) -> st.StructType:
    """Parse a Spark schema in DDL."""
    schema = st.StructType.fromDDL(text)
    assert isinstance(schema, st.StructType)
    return schema


def bind(frame: DataFrame, columns: Any) -> DataFrame:
    """Return the frame with its columns, matched by name, under the Catalyst ids of `columns`."""
    spark = frame.sparkSession
    return DataFrame(define_classes(spark.sparkContext).Bind.named(frame._jdf, columns), spark)
