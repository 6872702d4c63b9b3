"""Conditions and values that users write as Spark SQL, and what the planner makes of a condition.

A condition is read by Spark, which pushes down what it can: that part prunes files (`ask_for_files`). Asked for the
opposite of the condition, the planner names the files that may hold a row which is *not* meant; a file that is among
the first and not among the second goes whole, without being read.
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
from frazil.spark.jvm.jvm_write import ask_for_files, is_deterministic_filter, referenced_names
from frazil.spark.own_columns import own
from frazil.spark.read.target_rows import FileChoice
from frazil.spec.schema import Schema, walk_fields
from frazil.spec.types import ListType, MapType, StructType

Expression: TypeAlias = "str | Column"


def to_column(expression: Any) -> Column:
    """Return an expression, SQL text or a column of Spark's, as a column."""
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
    """Return the rows of a condition; refuse one whose answer may differ from run to run.

    Changes of rows ask a condition more than once: for the files that may match, for those that need not be read, for
    the rows. `what` goes after `Cannot`.
    """
    filtered = frame.filter(to_column(condition))
    if not is_deterministic_filter(filtered):
        raise InvalidRequestError(
            f"Cannot {what}: {which} may give another answer each time it is asked "
            "(INVALID_NON_DETERMINISTIC_EXPRESSIONS)",
            hint="Keep what it computes in a column, of the table or of the source of a merge, and ask for that.",
        )
    return filtered


def asked_predicate(found: DataFrame, choice: FileChoice) -> Predicate | None:
    """Return what the planner is asked for when a query runs, None where nothing; the query does not run."""
    ask_for_files(found)
    return choice.asked


def files_predicate(
    spark: SparkSession, loaded: LoadedTable, branch: str, where: str, cache: ManifestCache | None
) -> Predicate:
    """Return what a condition of Spark SQL says of files; refuse one that says nothing of any."""
    change = RowChange(spark, loaded, "delete", Target(branch), cache)
    with engine_errors(f"read the condition {where!r}"):
        asked = asked_predicate(change.rows().filter(to_column(where)), change.choice)
    if asked == TRUE:
        raise InvalidRequestError(
            f"Cannot choose files by {where!r}: it cannot be told from a file's metadata",
            hint="Compare columns with literals.",
        )
    return FALSE if asked is None else asked


def opposite_predicate(rows: DataFrame, where: Column, schema: Schema, choice: FileChoice) -> Predicate:
    """Return a filter that keeps every file with a row for which a condition is not true.

    Only for conditions for which the planner was asked for files: where it then is not asked for their opposite, Spark
    has found that no row can have it.
    """
    names = referenced_names(rows.filter(where))
    if names is None:
        return TRUE
    ask_for_files(rows.filter(~where))
    asked = choice.asked
    return any_of(*([] if asked is None else [asked]), *(is_null(name) for name in _leaf_names(schema, names)))


def _leaf_names(schema: Schema, names: set[str]) -> list[str]:
    """Return the columns, and fields in structs of columns, whose null makes a condition unknown."""
    found = []
    for nested_field in schema.fields:
        if nested_field.name not in names:
            continue
        found.append(nested_field.name)
        if isinstance(nested_field.field_type, StructType):
            found += [
                schema.name_of(field.field_id)
                for field, _, _ in walk_fields(nested_field.field_type)
                if not any(
                    isinstance(above.field_type, ListType | MapType) for above in schema.ancestors_of(field.field_id)
                )
            ]
    return found
