"""Change feeds made fit for reading: without rows that were merely copied, with updates told as such, or netted.

A rewrite of a file to change one row of it removes and adds all the others: the feed says both of them, of the same
snapshot and with the same values. `without_carry_overs` cancels those pairs. `net_changes` cancels over the whole
window: of a row that was added and removed again nothing is left. `with_updates` finds, in each snapshot, the removed
and the added row of the same identity and calls them `UPDATE_BEFORE` and `UPDATE_AFTER`.

Rows are the same where all their columns are, null being the same as null. Rows that there are several of are
cancelled one against one.
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
    """Return the changes of each snapshot without the rows that it removed and added again as they were."""
    same = [column for column in changes.columns if column != CHANGE_TYPE.name]
    _check_comparable(changes, same)
    found = changes.groupBy(*map(_column, same)).agg(
        F.sum(_sign()).alias("__balance"), F.first(F.struct(*map(_column, changes.columns))).alias("__row")
    )
    left = found.filter("__balance <> 0").select(
        F.explode(F.array_repeat("__row", F.abs("__balance").cast("int"))).alias("__row"), F.col("__balance")
    )
    change_type = F.when(F.col("__balance") > 0, F.lit(INSERT)).otherwise(F.lit(DELETE))
    return left.select(*_columns_of(changes, {CHANGE_TYPE.name: change_type}))


def net_changes(changes: DataFrame) -> DataFrame:
    """Return what is left of the changes of a window once rows that were added and removed cancel.

    What is left is told as of the first snapshot since the row last was as in the beginning.
    """
    same = [column for column in changes.columns if column not in _OWN]
    _check_comparable(changes, same)
    # In the order of snapshots, what one removes before what it adds.
    event = F.struct(_column(CHANGE_ORDINAL.name), _sign().alias("sign"), _column(COMMIT_SNAPSHOT_ID.name))
    found = changes.groupBy(*map(_column, same)).agg(
        F.array_sort(F.collect_list(event)).alias("__events"),
        F.first(F.struct(*map(_column, changes.columns))).alias("__row"),
    )
    kind = f"count:int,{CHANGE_ORDINAL.name}:int,sign:int,{COMMIT_SNAPSHOT_ID.name}:bigint"
    start = F.struct(*[F.lit(0).cast(piece.split(":")[1]).alias(piece.split(":")[0]) for piece in kind.split(",")])

    def fold(left: Column, column: Column) -> Column:
        begun = F.struct(
            F.lit(1).alias("count"), column[CHANGE_ORDINAL.name], column["sign"], column[COMMIT_SNAPSHOT_ID.name]
        )
        step = F.when(left["sign"] == column["sign"], 1).otherwise(-1)
        moved = F.struct(
            (left["count"] + step).alias("count"),
            left[CHANGE_ORDINAL.name],
            left["sign"],
            left[COMMIT_SNAPSHOT_ID.name],
        )
        return F.when(left["count"] == 0, begun).otherwise(moved).cast(f"struct<{kind}>")

    netted = found.withColumn("__net", F.aggregate("__events", start, fold)).filter("__net.count > 0")
    left = netted.select(F.explode(F.array_repeat("__row", F.col("__net.count"))).alias("__row"), F.col("__net"))
    return left.select(
        *_columns_of(
            changes,
            {
                CHANGE_TYPE.name: F.when(F.col("__net.sign") > 0, F.lit(INSERT)).otherwise(F.lit(DELETE)),
                CHANGE_ORDINAL.name: F.col(f"__net.{CHANGE_ORDINAL.name}"),
                COMMIT_SNAPSHOT_ID.name: F.col(f"__net.{COMMIT_SNAPSHOT_ID.name}"),
            },
        )
    )


def with_updates(changes: DataFrame, identifiers: Sequence[str]) -> DataFrame:
    """Return the changes without copied rows, a removed and an added row of one identity told as an update.

    Reading fails where one snapshot removes two rows of one identity.
    """
    if not identifiers:
        raise InvalidRequestError(
            "Cannot compute updates: the table has no identifier columns",
            hint="Give identifier_columns, or set the table's identifier fields.",
        )
    known = {column.lower(): column for column in changes.columns if column not in _OWN}
    unknown = [identifier for identifier in identifiers if identifier.lower() not in known]
    if unknown:
        raise InvalidRequestError(
            f"Cannot compute updates by {unknown[0]!r}: the table has no such column",
            hint=f"The columns are: {', '.join(known.values())}.",
        )
    keys = [_column(known[identifier.lower()]) for identifier in identifiers]
    found = without_carry_overs(changes)
    change_type = _column(CHANGE_TYPE.name)
    window = Window.partitionBy(*keys, _column(CHANGE_ORDINAL.name))
    ranked = found.select(
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
    message = (
        F.when(F.col("__removed") > 1, problem.cast("string"))
        .when((F.col("__removed") == 0) | (F.col("__added") == 0), change_type)
        .when(change_type == DELETE, F.lit(UPDATE_BEFORE))
        .when(F.col("__at") == 1, F.lit(UPDATE_AFTER))
        .otherwise(change_type)
    )
    return ranked.select(
        *[message.alias(column) if column == CHANGE_TYPE.name else _column(column) for column in changes.columns]
    )


def _sign() -> Column:
    return F.when(_column(CHANGE_TYPE.name) == INSERT, F.lit(1)).otherwise(F.lit(-1))


def _column(name: str) -> Column:
    return F.col(quote(name))


def _columns_of(changes: DataFrame, others: dict[str, Column]) -> list[Column]:
    """Return the columns of the changes from a row that stands for others, some of them made anew."""
    return [others.get(column, F.col(f"__row.{quote(column)}")).alias(column) for column in changes.columns]


def _check_comparable(changes: DataFrame, names: Sequence[str]) -> None:
    for field in changes.schema.fields:
        if field.name in names and _holds(field.dataType, st.VariantType):
            raise UnsupportedError(
                f"Cannot compare rows by the column {field.name!r}: variants cannot be compared",
                hint="Read the table's changes as they are, from its metadata table changes.",
            )


def _holds(spark_type: st.DataType, wanted: type[st.DataType]) -> bool:
    if isinstance(spark_type, st.StructType):
        return any(_holds(field.dataType, wanted) for field in spark_type.fields)
    if isinstance(spark_type, st.ArrayType):
        return _holds(spark_type.elementType, wanted)
    if isinstance(spark_type, st.MapType):
        return _holds(spark_type.keyType, wanted) or _holds(spark_type.valueType, wanted)
    return isinstance(spark_type, wanted)
