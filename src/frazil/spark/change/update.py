"""UPDATE: remove the rows that match a condition by position, and write them with their new values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.assignments import assigned_columns, fix_nondeterministic_values
from frazil.spark.change.change_rows import ROW_ID_COLUMN, RowChange
from frazil.spark.change.conditions import filter_rows
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import checkpoint_rows, start_over_if_lost
from frazil.spark.read.row_positions import ACTION_COLUMN, FILE_COLUMN, POS_COLUMN
from frazil.spark.write.progress import showing_progress


def plan_update(
    spark: SparkSession,
    loaded: LoadedTable,
    values: Mapping[str, Any],
    where: Any,
    target: Target,
    *,
    cache: ManifestCache | None = None,
) -> PlannedChange | None:
    """Find the rows that match a condition, write them with new values, and return the action to commit."""
    with showing_progress(spark, f"update {loaded.name}"):
        return start_over_if_lost(lambda: _update(RowChange(spark, loaded, "update", target, cache), values, where))


def _update(change: RowChange, values: Mapping[str, Any], where: Any) -> PlannedChange | None:
    with engine_errors(f"update {change.loaded.name}"):
        change.offer([where, *values.values()])
        # `target` is what expressions may call the table, where a subquery has columns of the same names.
        rows = (change.rows(where) if isinstance(where, Predicate) else change.rows()).alias("target")
        matches = rows if isinstance(where, Predicate) else filter_rows(rows, where, f"update {change.loaded.name}")
        # Checkpointed, since positions and values must come from the same run.
        changed = checkpoint_rows(_changed(change, matches, values))
    positions = change.by_path(change.read_places(changed))
    if not positions:
        return None
    count = sum(position.cardinality for position in positions.values())
    planned = change.finish(positions, changed.drop(FILE_COLUMN, POS_COLUMN, ACTION_COLUMN), new_count=count)
    return None if planned is None else replace(planned, rows=count)


def _changed(change: RowChange, rows: DataFrame, values: Mapping[str, Any]) -> DataFrame:
    """Return the positions of the rows and their new values in stored form."""
    rows, values = fix_nondeterministic_values(rows, values, "__frazil_value_")
    new = assigned_columns(rows, change.schema, values, change.stored_column)
    columns = [
        new.get(stored_field.field_id, change.stored_column(stored_field)).alias(stored_field.name)
        for stored_field in change.stored_fields
    ]
    row_id = F.col(ROW_ID_COLUMN) if change.has_lineage else F.lit(None)
    action = F.lit(1).alias(ACTION_COLUMN)
    return rows.select(FILE_COLUMN, POS_COLUMN, action, *columns, *change.lineage_columns(row_id))
