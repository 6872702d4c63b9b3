"""Queries of views: parsed by Spark, checked for being queries and nothing more, with names as the view means them.

A view's query is looked up where the view says, not where its reader is. So its names get their catalog and namespace
before Spark resolves them (`spark/java/ViewNames.java`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import InvalidRequestError
from frazil.spark.jvm.exact_sql import find_refused, parse_exactly
from frazil.sql.query_text import without_semicolons

Name = tuple[str, ...]
Qualify = Callable[[str, Name], Name | None]
"""Given `table` or `function` and a name, the name as it is meant; None where it stays."""


class ViewQuery:
    """A text that Spark has parsed, and that nothing has looked up yet."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._spark = spark
        self._names: Any = spark._jvm.frazil.ViewNames  # type: ignore[union-attr]
        try:
            self._plan = parse_exactly(spark, "parsePlan", text)
        except Py4JJavaError as error:
            # Errors of statements that belong into scripts are none of those that PySpark knows.
            raise InvalidRequestError(f"Cannot use {text!r} as a view's query: Spark's parser refuses it") from error
        if find_refused(spark, self._plan) is None:
            # What is no query by Spark's grammar has a command in it, or is refused by the parser.
            parse_exactly(spark, "parseQuery", without_semicolons(text))
        self.names = [(found["kind"], tuple(found["parts"])) for found in json.loads(self._names.find(self._plan))]

    def find_refused(self, *, is_trusted: bool) -> tuple[str, str] | None:
        """Return what a view may not hold, `command` or `code` with Spark's name for it; None where nothing is."""
        return find_refused(self._spark, self._plan, is_trusted=is_trusted)

    def to_frame(self, qualify: Qualify, *, is_trusted: bool) -> tuple[DataFrame, tuple[str, str] | None]:
        """Return the DataFrame, and what a view may not hold that only showed when names were resolved."""
        meant = [qualify(entity, parts) for entity, parts in self.names]
        plan = self._names.renamed(self._plan, json.dumps(meant)) if any(meant) else self._plan
        dataset = getattr(self._spark._jvm, "org.apache.spark.sql.classic.Dataset")
        frame = DataFrame(dataset.ofRows(self._spark._jsparkSession, plan), self._spark)
        return frame, find_refused(self._spark, frame._jdf.queryExecution().analyzed(), is_trusted=is_trusted)
