"""Change feeds without copied rows, with updates, or netted.

Rewriting a file to change one of its rows removes and adds all the others, so the feed contains both with the same
snapshot and values. `without_carry_overs` cancels those pairs. `net_changes` cancels over the whole window: a row that
was added and removed again disappears. `with_updates` pairs the removed and the added row of the same identity in each
snapshot as `UPDATE_BEFORE` and `UPDATE_AFTER`.

Rows are equal if all their columns are, with nulls being equal. Duplicate rows cancel one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, Window

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.scan.changelog import DELETE, INSERT
from frazil.spark.own_columns import F
from frazil.spec.reserved_columns import CHANGE_COLUMNS, CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from frazil.sql.quote_names import quote

UPDATE_BEFORE = "UPDATE_BEFORE"
UPDATE_AFTER = "UPDATE_AFTER"
_OWN = {change_column.name for change_column in CHANGE_COLUMNS}


def without_carry_overs(changes: DataFrame) -> DataFrame:
    """Return the changes of each snapshot without the rows that it removed and added unchanged."""
    same = [column for column in changes.columns if column != CHANGE_TYPE.name]
    _check_comparable(changes, same)
    balances = changes.groupBy(*map(_column, same)).agg(
        F.sum(_sign()).alias("__balance"), F.first(F.struct(*map(_column, changes.columns))).alias("__row")
    )
    uncancelled = balances.filter("__balance <> 0").select(
        F.explode(F.array_repeat("__row", F.abs("__balance").cast("int"))).alias("__row"), F.col("__balance")
    )
    change_type = F.when(F.col("__balance") > 0, F.lit(INSERT)).otherwise(F.lit(DELETE))
    return uncancelled.select(*_unpacked_columns(changes, {CHANGE_TYPE.name: change_type}))


def net_changes(changes: DataFrame) -> DataFrame:
    """Return the net changes of a window, after rows that were added and removed cancel.

    A net change has the snapshot in which the row first differed from the beginning of the window.
    """
    same = [column for column in changes.columns if column not in _OWN]
    _check_comparable(changes, same)
    # Ordered by snapshot, removals before additions.
    event = F.struct(_column(CHANGE_ORDINAL.name), _sign().alias("sign"), _column(COMMIT_SNAPSHOT_ID.name))
    events = changes.groupBy(*map(_column, same)).agg(
        F.array_sort(F.collect_list(event)).alias("__events"),
        F.first(F.struct(*map(_column, changes.columns))).alias("__row"),
    )
    kind = f"count:int,{CHANGE_ORDINAL.name}:int,sign:int,{COMMIT_SNAPSHOT_ID.name}:bigint"
    start = F.struct(*[F.lit(0).cast(piece.split(":")[1]).alias(piece.split(":")[0]) for piece in kind.split(",")])

    def fold(state: Column, column: Column) -> Column:
        first = F.struct(
            F.lit(1).alias("count"), column[CHANGE_ORDINAL.name], column["sign"], column[COMMIT_SNAPSHOT_ID.name]
        )
        step = F.when(state["sign"] == column["sign"], 1).otherwise(-1)
        next_state = F.struct(
            (state["count"] + step).alias("count"),
            state[CHANGE_ORDINAL.name],
            state["sign"],
            state[COMMIT_SNAPSHOT_ID.name],
        )
        return F.when(state["count"] == 0, first).otherwise(next_state).cast(f"struct<{kind}>")

    netted = events.withColumn("__net", F.aggregate("__events", start, fold)).filter("__net.count > 0")
    remaining = netted.select(F.explode(F.array_repeat("__row", F.col("__net.count"))).alias("__row"), F.col("__net"))
    return remaining.select(
        *_unpacked_columns(
            changes,
            {
                CHANGE_TYPE.name: F.when(F.col("__net.sign") > 0, F.lit(INSERT)).otherwise(F.lit(DELETE)),
                CHANGE_ORDINAL.name: F.col(f"__net.{CHANGE_ORDINAL.name}"),
                COMMIT_SNAPSHOT_ID.name: F.col(f"__net.{COMMIT_SNAPSHOT_ID.name}"),
            },
        )
    )


def with_updates(changes: DataFrame, identifiers: Sequence[str]) -> DataFrame:
    """Return the changes without copied rows, and with a removed and an added row of one identity as an update.

    Reading fails if a snapshot removes two rows of one identity.
    """
    if not identifiers:
        raise InvalidRequestError(
            "Cannot compute updates: the table has no identifier columns",
            hint="Give identifier_columns, or set the table's identifier fields.",
        )
    columns_by_name = {column.lower(): column for column in changes.columns if column not in _OWN}
    unknown = [identifier for identifier in identifiers if identifier.lower() not in columns_by_name]
    if unknown:
        raise InvalidRequestError(
            f"Cannot compute updates by {unknown[0]!r}: the table has no such column",
            hint=f"The columns are: {', '.join(columns_by_name.values())}.",
        )
    keys = [_column(columns_by_name[identifier.lower()]) for identifier in identifiers]
    changed = without_carry_overs(changes)
    change_type = _column(CHANGE_TYPE.name)
    window = Window.partitionBy(*keys, _column(CHANGE_ORDINAL.name))
    ranked = changed.select(
        "*",
        F.count_if(change_type == DELETE).over(window).alias("__removed"),
        F.count_if(change_type == INSERT).over(window).alias("__added"),
        F.row_number()
        .over(Window.partitionBy(*keys, _column(CHANGE_ORDINAL.name), change_type).orderBy(change_type))
        .alias("__at"),
    )
    names = ",".join(identifiers)
    problem = F.raise_error(
        F.lit(
            f"Cannot compute updates: a snapshot removed several rows of the same identifier columns ([{names}]). "
            "Rows must be unique by them."
        )
    )
    new_type = (
        F.when(F.col("__removed") > 1, problem.cast("string"))
        .when((F.col("__removed") == 0) | (F.col("__added") == 0), change_type)
        .when(change_type == DELETE, F.lit(UPDATE_BEFORE))
        .when(F.col("__at") == 1, F.lit(UPDATE_AFTER))
        .otherwise(change_type)
    )
    return ranked.select(
        *[new_type.alias(column) if column == CHANGE_TYPE.name else _column(column) for column in changes.columns]
    )


def _sign() -> Column:
    return F.when(_column(CHANGE_TYPE.name) == INSERT, F.lit(1)).otherwise(F.lit(-1))


def _column(name: str) -> Column:
    return F.col(quote(name))


def _unpacked_columns(changes: DataFrame, replacements: dict[str, Column]) -> list[Column]:
    """Return the columns of the changes from the struct `__row`, with some replaced."""
    return [replacements.get(column, F.col(f"__row.{quote(column)}")).alias(column) for column in changes.columns]


def _check_comparable(changes: DataFrame, names: Sequence[str]) -> None:
    for field in changes.schema.fields:
        if field.name in names and _contains_type(field.dataType, st.VariantType):
            raise UnsupportedError(
                f"Cannot compare rows by the column {field.name!r}: variants cannot be compared",
                hint="Read the table's changes as they are, from its metadata table changes.",
            )


def _contains_type(spark_type: st.DataType, searched: type[st.DataType]) -> bool:
    if isinstance(spark_type, st.StructType):
        return any(_contains_type(field.dataType, searched) for field in spark_type.fields)
    if isinstance(spark_type, st.ArrayType):
        return _contains_type(spark_type.elementType, searched)
    if isinstance(spark_type, st.MapType):
        return _contains_type(spark_type.keyType, searched) or _contains_type(spark_type.valueType, searched)
    return isinstance(spark_type, searched)
