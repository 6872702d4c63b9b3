"""Queries of views: parsed by Spark, checked to be only queries, and resolved in the view's namespace.

The names in a view's query are relative to the view's default catalog and namespace, not to those of its reader. They
are qualified before Spark resolves them (`spark/java/rules/ViewNames.java`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import InvalidRequestError
from frazil.spark.jvm.exact_sql import find_refused, parse_exactly
from frazil.spark.jvm.java_classes import define_classes
from frazil.sql.query_text import without_semicolons

Name = tuple[str, ...]
Qualify = Callable[[str, Name], Name | None]
"""From `table` or `function` and a name to the qualified name, or None to leave it unchanged."""


class ViewQuery:
    """The query of a view, parsed but not resolved."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._spark = spark
        self._names = define_classes(spark.sparkContext).ViewNames
        try:
            self._plan = parse_exactly(spark, "parsePlan", text)
        except Py4JJavaError as error:
            # PySpark does not translate the errors of SQL scripting statements.
            raise InvalidRequestError(f"Cannot use {text!r} as a view's query: Spark's parser refuses it") from error
        if find_refused(spark, self._plan) is None:
            # Raises if the text is not a query by Spark's grammar.
            parse_exactly(spark, "parseQuery", without_semicolons(text))
        self.names = [(found["kind"], tuple(found["parts"])) for found in json.loads(self._names.find(self._plan))]

    def find_refused(self, *, is_trusted: bool) -> tuple[str, str] | None:
        """Return what a view must not contain, as `command` or `code` with Spark's name for it, or None."""
        return find_refused(self._spark, self._plan, is_trusted=is_trusted)

    def to_frame(self, qualify: Qualify, *, is_trusted: bool) -> tuple[DataFrame, tuple[str, str] | None]:
        """Return the DataFrame, and what a view must not contain according to the resolved plan, or None."""
        qualified = [qualify(entity, parts) for entity, parts in self.names]
        plan = self._names.renamed(self._plan, json.dumps(qualified)) if any(qualified) else self._plan
        dataset = getattr(self._spark._jvm, "org.apache.spark.sql.classic.Dataset")
        frame = DataFrame(dataset.ofRows(self._spark._jsparkSession, plan), self._spark)
        return frame, find_refused(self._spark, frame._jdf.queryExecution().analyzed(), is_trusted=is_trusted)
