"""SQL to the letter: Spark's parser without its variables, and what a parsed plan is.

Spark replaces `${env:HOME}`, `${system:…}` and `${some.setting}` in every text that it parses. What a user writes in
`spark.sql` is meant so, and Spark replaces it where it comes in. Everything after that, names and
literals of a table's metadata, conditions of verbs, queries of views, is parsed as it stands: a table's text never
becomes the reader's environment.

`find_refused` tells what makes a plan more than a query, before names are resolved and after. A test holds every other
module of `frazil.spark` to these functions: `F.expr` replaces variables.
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

_MARK = "${"


def parse_exactly(spark: SparkSession, verb: str, text: str) -> Any:
    """Parse a text as it stands; `verb` is what Spark's parser calls it: `parsePlan`, `parseExpression`."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    if _MARK not in text:
        return getattr(parser, verb)(text)
    settings = spark._jsparkSession.sessionState().conf()
    return define_classes(spark.sparkContext).Exactly.parse(settings, parser, verb, text)


def is_exact(text: str) -> bool:
    """Return whether Spark takes a text as it stands, with no variable to replace."""
    return _MARK not in text


def expression(text: str) -> Column:
    """Return the column that a text stands for, as it stands."""
    if _MARK not in text:
        return F.expr(text)
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if spark is None or not is_classic(spark):
        raise UnsupportedError(
            f"Cannot use {text!r} on Spark Connect: Spark replaces what stands between ${{ and }} before it reads it",
            hint="Rename the column, or use another value.",
        )
    parsed = parse_exactly(spark, "parseExpression", text)
    return OwnColumn(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(parsed))  # type: ignore[union-attr]


def select_exactly(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Return the columns that texts stand for; one call to the JVM for all of them, where none has a variable in it."""
    if not all(map(is_exact, texts)):
        return frame.select(*map(expression, texts))
    select = define_classes(frame.sparkSession.sparkContext).PlannedRelation.select
    return DataFrame(select(frame._jdf, json.dumps(texts)), frame.sparkSession)


def find_refused(spark: SparkSession, plan: Any, *, is_trusted: bool = True) -> tuple[str, str] | None:
    """Return what makes a plan more than a query, None where nothing: `command` or `code`, and Spark's name for it.

    Code is what runs programs or calls Java, in a plan that is not trusted.
    """
    found = define_classes(spark.sparkContext).Refused.find(plan, is_trusted)
    if found is None:
        return None
    entity, _, name = str(found).partition(" ")
    return entity, name
