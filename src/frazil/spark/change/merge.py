"""MERGE: join the rows of a source with those of the table, and apply clauses to the result.

    source      is computed once and checkpointed: its keys are read, and then it is joined
    prune       its keys restrict the rows of the table that can match (`source_keys.py`)
    join        one join; the first clause whose condition holds decides about a row
    changed     the rows of any clause, with their positions and new values, are checkpointed: they are read twice
    finish      `change_rows.py`

A row of the table that matches several rows of the source is an error, unless the only outcome is its deletion: no
rule would choose between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.change_rows.assigned_names import same_names
from frazil.change_rows.merge_clauses import KINDS, MergeClause, check_clauses, needs_single_match, summary_of
from frazil.change_rows.row_change import noted
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.assignments import assigned_columns, fix_nondeterministic_values
from frazil.spark.change.change_rows import ROW_ID_COLUMN, RowChange
from frazil.spark.change.conditions import filter_rows, to_column
from frazil.spark.change.resolved import Resolved
from frazil.spark.change.source_keys import JoinKey, SourceKeys, read_keys
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.jvm_write import equal_columns, resolve_against, to_bytes
from frazil.spark.own_columns import F
from frazil.spark.read.column_values import literal
from frazil.spark.read.kept_rows import checkpoint_rows, start_over_if_lost
from frazil.spark.read.row_positions import ACTION_COLUMN, FILE_COLUMN, POS_COLUMN, RowPositions
from frazil.spark.write.progress import showing_progress
from frazil.spec.types import NestedField
from frazil.sql.quote_names import quote

TARGET, SOURCE = "target", "source"
_HAS_SOURCE = "__frazil_source"
_MATCHED_ONLY = -1
"""The action of a matched row to which no clause applies: it is retained to detect a second match."""


def plan_merge(
    spark: SparkSession,
    loaded: LoadedTable,
    source: DataFrame,
    on: Any,
    clauses: Sequence[MergeClause],
    target: Target,
    *,
    cache: ManifestCache | None = None,
    may_lack_columns: bool = False,
) -> PlannedChange | None:
    """Join a source with the table, write the files of its clauses, and return the action to commit.

    `update all` and `insert all` set columns from the source's columns of the same names. As in Spark, a source that
    lacks some, or fields of structs, is rejected, unless the merge evolves the schema: then those keep their values, or
    get their default in inserted rows.
    """

    def plan() -> PlannedChange | None:
        with engine_errors(f"read the source of a merge into {loaded.name}"):
            checkpointed = checkpoint_rows(source)
        return merge_rows(
            spark, loaded, checkpointed, on, clauses, target, cache=cache, may_lack_columns=may_lack_columns
        )

    with showing_progress(spark, f"merge into {loaded.name}"):
        return start_over_if_lost(plan)


def merge_rows(
    spark: SparkSession,
    loaded: LoadedTable,
    source: DataFrame,
    on: Any,
    clauses: Sequence[MergeClause],
    target: Target,
    *,
    source_keys: SourceKeys | None = None,
    cache: ManifestCache | None = None,
    may_lack_columns: bool = False,
    is_upsert: bool = False,
) -> PlannedChange | None:
    """Carry out a merge up to its commit. The source is read several times, so it must be checkpointed.

    `source_keys` are its keys if the caller has read them; else they are derived from the condition and read.
    """
    check_clauses(clauses)
    change = RowChange(spark, loaded, "merge", target, cache)
    expressions = [value for clause in clauses for value in (clause.condition, *(clause.values or {}).values())]
    change.offer([on, *expressions], source.columns)
    with engine_errors(f"merge into {loaded.name}"):
        pairs = change.no_rows().alias(TARGET).crossJoin(source.alias(SOURCE))
        filter_rows(pairs, on, f"merge into {loaded.name}", "the condition of ON")
        condition = to_column(on)
        if source_keys is None:
            source_keys = SourceKeys(TRUE)
            if not any(clause.when == "not_matched_by_source" for clause in clauses):
                source_keys = read_keys(source, _find_keys(change, source, condition), loaded.metadata.default_spec)
        joined = _join(change, source, condition, clauses, source_keys, may_lack_columns=may_lack_columns)
        changed = checkpoint_rows(joined)
    row_positions = change.read_places(changed)
    if row_positions.is_twice and needs_single_match(clauses):
        raise InvalidRequestError(
            f"Cannot merge into {loaded.name}: a row of the table matches more than one row of the source",
            hint="Remove duplicates from the source, or join on more columns.",
        )
    positions = change.by_path(row_positions)
    written = [index + 1 for index, clause in enumerate(clauses) if clause.do != "delete"]
    new_count = sum(row_positions.counts.get(index, 0) for index in written)
    if not positions and new_count == 0:
        return None
    new_rows = None
    if new_count:
        new_rows = changed.filter(F.col(ACTION_COLUMN).isin(written)).drop(FILE_COLUMN, POS_COLUMN, ACTION_COLUMN)
    planned = change.finish(positions, new_rows, new_count=new_count)
    if planned is None:
        return None
    counts = _count_by_clause(clauses, row_positions)
    unchanged = counts.get(_MATCHED_ONLY, 0)
    always = () if is_upsert else KINDS
    return noted(planned, summary_of(clauses, counts, copied=change.copied, unchanged=unchanged, always=always))


def _count_by_clause(clauses: Sequence[MergeClause], places: RowPositions) -> Mapping[int, int]:
    """Return how many rows each clause changed; a deleted row that matches several source rows is counted once."""
    if not places.is_twice:
        return places.counts
    counts = dict(places.counts)
    others = sum(
        counts.get(index + 1, 0) for index, clause in enumerate(clauses) if clause.when == "not_matched_by_source"
    )
    (delete_clause,) = (index + 1 for index, clause in enumerate(clauses) if clause.when == "matched")
    counts[delete_clause] = sum(position.cardinality for position in places.positions.values()) - others
    return counts


def _find_keys(change: RowChange, source: DataFrame, on: Column) -> list[JoinKey]:
    """Return the columns of the table that a condition compares for equality with an expression over the source."""
    parts = {field.name: field for field in change.schema.fields}
    joined = change.no_rows().alias(TARGET).join(source.alias(SOURCE), on, "inner")
    return [
        JoinKey(parts[name], value, is_null_safe)
        for name, value, is_null_safe in equal_columns(joined)
        if name in parts
    ]


def _join(
    change: RowChange,
    source: DataFrame,
    on: Column,
    clauses: Sequence[MergeClause],
    source_keys: SourceKeys,
    *,
    may_lack_columns: bool,
) -> DataFrame:
    """Return the rows that a clause changes: their positions, the number of the clause, and their new values."""
    rows = change.rows(source_keys.prune).alias(TARGET)
    flagged = source.withColumn(_HAS_SOURCE, F.lit(True)).alias(SOURCE)
    clauses = [_resolve_on_one_side(clause, rows, flagged) for clause in clauses]
    whens = {clause.when for clause in clauses}
    if whens == {"not_matched"}:
        # Matched rows themselves are not needed.
        joined = flagged.join(rows, on, "left_anti")
        has_target, has_source = F.lit(False), F.lit(True)
    else:
        kinds = {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}
        if source_keys.is_few and "not_matched_by_source" not in whens and _is_large(change, source_keys.prune):
            # Filter the table by the source's keys where it is read; otherwise all of its rows would be shuffled.
            rows = rows.join(F.broadcast(source.alias(SOURCE)), on, "left_semi").alias(TARGET)
        # The source comes first: if a relation occurs twice in a plan, Spark gives the second one's columns new ids.
        joined = flagged.join(rows, on, kinds["not_matched" in whens, "not_matched_by_source" in whens])
        has_target = F.col(f"{TARGET}.{FILE_COLUMN}").isNotNull()
        has_source = F.col(f"{SOURCE}.{_HAS_SOURCE}").isNotNull()
    tests = {
        "matched": has_target & has_source,
        "not_matched": ~has_target,
        "not_matched_by_source": ~has_source,
    }
    action: Any = F
    for index, clause in enumerate(clauses):
        holds = tests[clause.when]
        if clause.condition is not None:
            which = f"the condition of clause {index + 1}"
            filter_rows(joined, clause.condition, f"merge into {change.loaded.name}", which)
            holds = holds & to_column(clause.condition)
        action = action.when(holds, F.lit(index + 1))
    if needs_single_match(clauses):
        action = action.when(tests["matched"], F.lit(_MATCHED_ONLY))
    chosen = joined.select("*", action.otherwise(F.lit(0)).alias(ACTION_COLUMN)).filter(F.col(ACTION_COLUMN) != 0)
    for index, clause in enumerate(clauses):
        if clause.values is not None:
            is_chosen = F.col(ACTION_COLUMN) == index + 1
            chosen, values = fix_nondeterministic_values(chosen, clause.values, f"__frazil_value_{index}_", is_chosen)
            clauses[index] = replace(clause, values=values)
    return chosen.select(*_new_row(change, source, chosen, clauses, may_lack_columns=may_lack_columns))


def _resolve_on_one_side(clause: MergeClause, rows: DataFrame, source: DataFrame) -> MergeClause:
    """Resolve the names of a clause about rows of one side on that side alone, as in Spark."""
    if clause.when == "matched" or isinstance(clause.condition, Resolved):
        return clause
    if any(isinstance(value, Resolved) for value in (clause.values or {}).values()):
        return clause
    own, other = (source, rows) if clause.when == "not_matched" else (rows, source)
    names = list(clause.values or ())
    expressions = [*([] if clause.condition is None else [clause.condition]), *(clause.values or {}).values()]
    resolved_columns = resolve_against([to_column(expression) for expression in expressions], own, other)
    return replace(
        clause,
        condition=None if clause.condition is None else resolved_columns[0],
        values=None
        if clause.values is None
        else dict(zip(names, resolved_columns[len(resolved_columns) - len(names) :], strict=True)),
    )


def _is_large(change: RowChange, prune: Predicate) -> bool:
    """Return whether the files that may match exceed Spark's threshold for broadcasting."""
    text = change.spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    size = sum(file.data_file.file_size_in_bytes for file in change.plan_files(prune).values())
    return size > max(to_bytes(change.spark, text), 0)


def _new_row(
    change: RowChange, source: DataFrame, chosen: DataFrame, clauses: Sequence[MergeClause], *, may_lack_columns: bool
) -> list[Column]:
    has_rows = FILE_COLUMN in chosen.columns
    position_columns = [
        (F.col(f"{TARGET}.{name}") if has_rows else F.lit(None).cast(type_name)).alias(name)
        for name, type_name in ((FILE_COLUMN, "int"), (POS_COLUMN, "bigint"))
    ]
    writing = [(index + 1, clause) for index, clause in enumerate(clauses) if clause.do != "delete"]
    new_values = {
        index: _values(change, source, chosen, clause, may_lack_columns=may_lack_columns) for index, clause in writing
    }
    columns = []
    for stored_field in change.stored_fields:
        value: Any = F
        for position, merge_clause in writing:
            value = value.when(
                F.col(ACTION_COLUMN) == position, _value(change, new_values[position], stored_field, merge_clause)
            )
        column = value if writing else literal(None, stored_field.field_type)
        columns.append(column.alias(stored_field.name))
    kept_ids = [index for index, clause in writing if clause.do == "update"]
    row_id = F.lit(None)
    if change.has_lineage and has_rows and kept_ids:
        row_id = F.when(F.col(ACTION_COLUMN).isin(kept_ids), F.col(f"{TARGET}.{ROW_ID_COLUMN}"))
    return [*position_columns, F.col(ACTION_COLUMN), *columns, *change.lineage_columns(row_id)]


def _values(
    change: RowChange, source: DataFrame, chosen: DataFrame, clause: MergeClause, *, may_lack_columns: bool
) -> dict[int, Column]:
    """Return the new values of the columns that a clause sets, in stored form, by field id."""
    values = clause.values
    if values is None:
        values = _all_columns(change, source, may_lack_columns=may_lack_columns)
    return assigned_columns(
        chosen,
        change.schema,
        values,
        None if clause.do == "insert" else lambda field: change.stored_column(field, TARGET),
        may_lack_parts=may_lack_columns,
        keeps_parts=may_lack_columns and clause.values is None,
    )


def _all_columns(change: RowChange, source: DataFrame, *, may_lack_columns: bool) -> dict[str, Column]:
    names = [name for name in source.columns if name != _HAS_SOURCE]
    source_names = same_names((stored_field.name for stored_field in change.stored_fields), names)
    missing = [name for name, value in source_names.items() if value is None]
    if missing and not may_lack_columns:
        raise SchemaMismatchError(
            f"Cannot set all columns of {change.loaded.name}: the source lacks {', '.join(missing)}",
            hint="Add the missing columns to the source, or name the columns to set in the clauses of a merge.",
        )
    return {quote(name): F.col(f"{SOURCE}.{quote(value)}") for name, value in source_names.items() if value is not None}


def _value(change: RowChange, assigned: Mapping[int, Column], field: NestedField, clause: MergeClause) -> Column:
    assigned_value = assigned.get(field.field_id)
    if assigned_value is not None:
        return assigned_value
    if clause.do == "update":
        return change.stored_column(field, TARGET)
    if field.required and field.write_default is None:
        raise SchemaMismatchError(
            f"Cannot insert into {change.loaded.name}: the required column {field.name!r} is not assigned"
        )
    return literal(field.write_default, field.field_type)
