"""DELETE: rows of a condition go. Files of which every row is meant go by their metadata alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.expr.predicates import Predicate, not_
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.change_rows import RowChange
from frazil.spark.change.conditions import asked_predicate, filter_rows, opposite_predicate, to_column
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import keep_rows, start_over_if_lost
from frazil.spark.read.row_positions import ACTION_COLUMN, FILE_COLUMN, POS_COLUMN
from frazil.spark.write.progress import showing_progress


def plan_delete(
    spark: SparkSession,
    loaded: LoadedTable,
    where: Any,
    target: Target,
    *,
    cache: ManifestCache | None = None,
) -> PlannedChange | None:
    """Find and write what deleting the rows of a condition takes; the action is to be committed.

    The condition is Spark SQL or a column, or a frazil predicate. Only files that may hold such rows are read.
    """

    def plan() -> PlannedChange | None:
        change = RowChange(spark, loaded, "delete", target, cache)
        found = find_rows(change, where)
        planned = change.finish(found.positions, whole=found.whole)
        count = sum(position.cardinality for position in found.positions.values())
        return None if planned is None else replace(planned, rows=change.count_rows(count, found.whole))

    with showing_progress(spark, f"delete from {loaded.name}"):
        return start_over_if_lost(plan)


class FoundRows:
    """Where the rows of a condition are: their positions in files, and files that hold nothing else."""

    def __init__(self, positions: dict[str, DeletionVector], whole: list[Any]) -> None:
        self.positions = positions
        self.whole = whole


def find_rows(change: RowChange, where: Any) -> FoundRows:
    """Find the rows of a condition; of files that metadata settles, nothing is read."""
    is_own = isinstance(where, Predicate)
    with engine_errors(f"find rows of {change.loaded.name}"):
        if is_own:
            rows = change.rows(where)
            found = rows
            change.choice.note(where)
            may, may_not = where, not_(where)
        else:
            change.offer([where])
            # What conditions may call the table, where a subquery has columns of the same names.
            rows = change.rows().alias("target")
            condition = to_column(where)
            found = filter_rows(rows, where, f"change rows of {change.loaded.name}")
            asked = asked_predicate(found, change.choice)
            if asked is None:
                # There are no files, or Spark has found that no row can match.
                return FoundRows({}, [])
            may = asked
            other = RowChange(change.spark, change.loaded, change.command, change.target)
            other.offer([where])
            may_not = opposite_predicate(other.rows().alias("target"), condition, change.schema, other.choice)
    tasks = change.plan_files(may)
    if not tasks:
        return FoundRows({}, [])
    others = change.plan_files(may_not)
    whole = [task for path, task in tasks.items() if path not in others]
    partial = [path for path in tasks if path in others]
    if not partial:
        return FoundRows({}, whole)
    change.choice.only = {path: DeletionVector() for path in partial}
    with engine_errors(f"find rows of {change.loaded.name}"):
        kept = keep_rows(found.select(FILE_COLUMN, POS_COLUMN, F.lit(1).alias(ACTION_COLUMN)))
    positions = change.by_path(change.read_places(kept))
    return FoundRows({path: positions[path] for path in partial if path in positions}, whole)
