"""Spark's SQL parser without variable substitution, and a check that a plan is only a query.

Spark substitutes `${env:HOME}`, `${system:…}` and `${some.setting}` in every text that it parses. In the statement of a
user's `spark.sql` that is intended. Everything else (names and literals from table metadata, conditions of verbs,
queries of views) is parsed literally, so that a table cannot read the environment of its reader.

`find_refused` finds what makes a plan more than a query, before or after names are resolved. A test requires every
other module of `frazil.spark` to use these functions, since `F.expr` substitutes variables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.errors import UnsupportedError
from frazil.spark.jvm.java_classes import define_classes
from frazil.spark.jvm.private_names import is_classic
from frazil.spark.own_columns import F, OwnColumn

_VARIABLE = "${"


def parse_exactly(spark: SparkSession, verb: str, text: str) -> Any:
    """Parse a text without substitution; `verb` is the parser's method, such as `parsePlan` or `parseExpression`."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    if _VARIABLE not in text:
        return getattr(parser, verb)(text)
    settings = spark._jsparkSession.sessionState().conf()
    return define_classes(spark.sparkContext).Exactly.parse(settings, parser, verb, text)


def is_exact(text: str) -> bool:
    """Return whether a text contains no variable that Spark would substitute."""
    return _VARIABLE not in text


def expression(text: str) -> Column:
    """Parse a column expression without substitution."""
    if _VARIABLE not in text:
        return F.expr(text)
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if spark is None or not is_classic(spark):
        raise UnsupportedError(
            f"Cannot use {text!r} on Spark Connect: Spark substitutes text between ${{ and }} before parsing",
            hint="Rename the column, or use another value.",
        )
    parsed = parse_exactly(spark, "parseExpression", text)
    return OwnColumn(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(parsed))  # type: ignore[union-attr]


def select_exactly(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Select the columns that texts describe, without substitution, in one call to the JVM if none has a variable."""
    if not all(map(is_exact, texts)):
        return frame.select(*map(expression, texts))
    select = define_classes(frame.sparkSession.sparkContext).PlannedRelation.select
    return DataFrame(select(frame._jdf, json.dumps(texts)), frame.sparkSession)


def find_refused(spark: SparkSession, plan: Any, *, is_trusted: bool = True) -> tuple[str, str] | None:
    """Return what makes a plan more than a query, as `command` or `code` with Spark's name for it, or None.

    Code is anything that runs programs or calls Java; it is refused only in an untrusted plan.
    """
    refused = define_classes(spark.sparkContext).Refused.find(plan, is_trusted)
    if refused is None:
        return None
    entity, _, name = str(refused).partition(" ")
    return entity, name
