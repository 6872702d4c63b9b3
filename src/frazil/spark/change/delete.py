"""DELETE. Files whose rows all match are removed by their metadata alone."""

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
from frazil.spark.change.conditions import filter_rows, negated_predicate, pushed_predicate, to_column
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import checkpoint_rows, start_over_if_lost
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
    """Find the rows that match a condition, write the files of their deletion, and return the action to commit.

    The condition is Spark SQL, a column or a frazil predicate. Only files that may hold matching rows are read.
    """

    def plan() -> PlannedChange | None:
        change = RowChange(spark, loaded, "delete", target, cache)
        matches = find_rows(change, where)
        planned = change.finish(matches.positions, whole=matches.whole)
        count = sum(position.cardinality for position in matches.positions.values())
        return None if planned is None else replace(planned, rows=change.count_rows(count, matches.whole))

    with showing_progress(spark, f"delete from {loaded.name}"):
        return start_over_if_lost(plan)


class MatchingRows:
    """The rows that match a condition: positions in files, and files in which every row matches."""

    def __init__(self, positions: dict[str, DeletionVector], whole: list[Any]) -> None:
        self.positions = positions
        self.whole = whole


def find_rows(change: RowChange, where: Any) -> MatchingRows:
    """Find the rows that match a condition; files that metadata decides are not read."""
    is_own = isinstance(where, Predicate)
    with engine_errors(f"find rows of {change.loaded.name}"):
        if is_own:
            rows = change.rows(where)
            matches = rows
            change.choice.note(where)
            may, may_not = where, not_(where)
        else:
            change.offer([where])
            # The name by which a condition with a subquery may qualify columns of the table.
            rows = change.rows().alias("target")
            condition = to_column(where)
            matches = filter_rows(rows, where, f"change rows of {change.loaded.name}")
            pushed = pushed_predicate(matches, change.choice)
            if pushed is None:
                # There are no files, or Spark knows that no row can match.
                return MatchingRows({}, [])
            may = pushed
            negated = RowChange(change.spark, change.loaded, change.command, change.target)
            negated.offer([where])
            may_not = negated_predicate(negated.rows().alias("target"), condition, change.schema, negated.choice)
    tasks = change.plan_files(may)
    if not tasks:
        return MatchingRows({}, [])
    others = change.plan_files(may_not)
    whole = [task for path, task in tasks.items() if path not in others]
    partial = [path for path in tasks if path in others]
    if not partial:
        return MatchingRows({}, whole)
    change.choice.only = {path: DeletionVector() for path in partial}
    with engine_errors(f"find rows of {change.loaded.name}"):
        checkpointed = checkpoint_rows(matches.select(FILE_COLUMN, POS_COLUMN, F.lit(1).alias(ACTION_COLUMN)))
    positions = change.by_path(change.read_places(checkpointed))
    return MatchingRows({path: positions[path] for path in partial if path in positions}, whole)
