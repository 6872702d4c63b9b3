"""Conditions and values in Spark SQL, and the filters that Spark pushes to the planner for them.

Spark pushes down the part of a condition that it can, and that part prunes files (`request_files`). Planning for the
negated condition gives the files that may hold a row which does *not* match. A file that is planned for the condition
and not for its negation is removed whole, without being read.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.commit.new_snapshot import Target
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import FALSE, TRUE, Predicate, any_of, is_null
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.change_rows import RowChange
from frazil.spark.change.resolved import Resolved
from frazil.spark.jvm import exact_sql
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.jvm_write import is_deterministic_filter, referenced_names, request_files
from frazil.spark.own_columns import own
from frazil.spark.read.target_rows import FileChoice
from frazil.spec.schema import Schema, walk_fields
from frazil.spec.types import ListType, MapType, StructType

Expression: TypeAlias = "str | Column"


def to_column(expression: Any) -> Column:
    """Convert SQL text or a Spark column to a column."""
    if isinstance(expression, Resolved):
        return expression.column
    if isinstance(expression, str):
        return exact_sql.expression(expression)
    if isinstance(expression, Column):
        column: Column = own(expression)
        return column
    raise InvalidRequestError(
        f"Cannot use {expression!r} as an expression", hint="Give SQL text, or a column of Spark's functions."
    )


def filter_rows(frame: DataFrame, condition: Any, what: str, which: str = "the condition") -> DataFrame:
    """Return the rows that match a condition; raise if it is nondeterministic.

    Row-level changes evaluate a condition more than once: for the files that may match, for those that need not be
    read, and for the rows. `what` follows `Cannot` in the error.
    """
    filtered = frame.filter(to_column(condition))
    if not is_deterministic_filter(filtered):
        raise InvalidRequestError(
            f"Cannot {what}: {which} may give a different result each time it is evaluated "
            "(INVALID_NON_DETERMINISTIC_EXPRESSIONS)",
            hint="Store the value in a column, of the table or of the source of a merge, and test that column.",
        )
    return filtered


def pushed_predicate(query: DataFrame, choice: FileChoice) -> Predicate | None:
    """Return the filter that Spark would push down for a query, without running it; None if it needs no files."""
    request_files(query)
    return choice.requested


def files_predicate(
    spark: SparkSession, loaded: LoadedTable, branch: str, where: str, cache: ManifestCache | None
) -> Predicate:
    """Return the filter on files that a Spark SQL condition implies; raise if it implies none."""
    change = RowChange(spark, loaded, "delete", Target(branch), cache)
    with engine_errors(f"read the condition {where!r}"):
        pushed = pushed_predicate(change.rows().filter(to_column(where)), change.choice)
    if pushed == TRUE:
        raise InvalidRequestError(
            f"Cannot choose files by {where!r}: file metadata cannot decide it",
            hint="Compare columns with literals.",
        )
    return FALSE if pushed is None else pushed


def negated_predicate(rows: DataFrame, where: Column, schema: Schema, choice: FileChoice) -> Predicate:
    """Return a filter that keeps every file with a row for which a condition is not true.

    Only for a condition for which Spark requested files: if it requests none for the negation, no row can match that.
    """
    names = referenced_names(rows.filter(where))
    if names is None:
        return TRUE
    request_files(rows.filter(~where))
    pushed = choice.requested
    return any_of(*([] if pushed is None else [pushed]), *(is_null(name) for name in _leaf_names(schema, names)))


def _leaf_names(schema: Schema, names: set[str]) -> list[str]:
    """Return the columns, and fields of struct columns, whose null makes a condition unknown."""
    leaf_names = []
    for nested_field in schema.fields:
        if nested_field.name not in names:
            continue
        leaf_names.append(nested_field.name)
        if isinstance(nested_field.field_type, StructType):
            leaf_names += [
                schema.name_of(field.field_id)
                for field, _, _ in walk_fields(nested_field.field_type)
                if not any(
                    isinstance(above.field_type, ListType | MapType) for above in schema.ancestors_of(field.field_id)
                )
            ]
    return leaf_names
