"""Rows in z-order on Spark: close in several columns at once, so that a filter on any of them leaves most files out.

    look      at a sample of the columns, and cut each into parts of equally many rows
    place     every row: the number of its part in each column, the bits of these numbers interleaved
    arrange   by range of that z-value, a task for each file, sorted within

As in `maintenance/zorder.py` a z-value comes from ranks, not from the bytes of values: a column of few or skewed values
weighs as much as any other. The parts are told by comparisons alone, in Spark's own expressions: nothing runs in Python
on executors. A z-value decides where a row lies and nothing else, so a sample is enough, and so are 64 characters of a
long text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Final

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame

from frazil.spark.own_columns import F
from frazil.spark.read.partition_columns import field_column
from frazil.spec.schema import Schema

_SAMPLED_ROWS: Final = 20_000
_MAX_BITS: Final = 8
"""Parts of a column are at most 256."""
_MORE_BITS: Final = 4
"""There are 2 to the power of this many cells for each file: rows of one cell go to one file only."""
_PLACE: Final = "place in z-order"
_TEXT_LENGTH: Final = 64
_BYTES_LENGTH: Final = 32


def arrange_by_place(
    frame: DataFrame,
    schema: Schema,
    field_ids: Sequence[int],
    *,
    rows: int,
    files: int,
    first: Sequence[Column] = (),
) -> DataFrame:
    """Return rows in z-order of some columns, in about as many tasks as files; `first` comes before the order."""
    values = [_comparable(frame, field_column(schema, field_id)) for field_id in field_ids]
    # A column of its own, so that it is computed once for each row.
    placed = frame.withColumn(_PLACE, reduce(add, _places(frame, values, rows=rows, files=files)))
    order = [*first, F.col(f"`{_PLACE}`")]
    return placed.repartitionByRange(max(files, 1), *order).sortWithinPartitions(*order).drop(_PLACE)


def spread_bits(number: int, bits: int, index: int, of: int) -> int:
    """Return the bits of one of several numbers where they lie among all when they are interleaved."""
    return sum(((number >> bit) & 1) << (bit * of + of - 1 - index) for bit in range(bits))


def bits_of(files: int, columns: int) -> int:
    """Return into how many parts, as a power of two, each of some columns is cut for so many files."""
    return min(_MAX_BITS, -(-(max(files - 1, 1).bit_length() + _MORE_BITS) // columns))


def cuts_of(values: list[Any], parts: int) -> list[Any]:
    """Return where sorted values are cut into parts of equally many; a value that fills several is there as often."""
    return [values[index * len(values) // parts] for index in range(1, parts)] if values else []


def _places(frame: DataFrame, values: Sequence[Column], *, rows: int, files: int) -> list[Column]:
    """Return what each column adds to a row's z-value."""
    bits = bits_of(files, len(values))
    share = min(1.0, _SAMPLED_ROWS / max(rows, 1))
    names = [f"c{index}" for index in range(len(values))]
    looked = frame.select(*(value.alias(name) for value, name in zip(values, names, strict=True)))
    sample = (looked if share == 1.0 else looked.sample(fraction=share, seed=1)).collect()
    found = []
    for index, value in enumerate(values):
        # NaN is the largest for Spark, and beyond every cut.
        seen = sorted(row[index] for row in sample if row[index] is not None and row[index] == row[index])
        cuts = cuts_of(seen, 1 << bits)
        distinct = sorted(set(cuts))
        numbers = [spread_bits(bisect_right(cuts, value), bits, index, len(values)) for value in distinct]
        tree = _choose(value, distinct, [0, *numbers])
        found.append(F.when(value.isNull(), F.lit(0).cast("long")).otherwise(tree))
    return found


def _choose(value: Column, cuts: Sequence[Any], numbers: Sequence[int]) -> Column:
    """Return the number of the part that a value is in, found by halves."""
    if not cuts:
        return F.lit(numbers[0]).cast("long")
    middle = len(cuts) // 2
    below = _choose(value, cuts[:middle], numbers[: middle + 1])
    above = _choose(value, cuts[middle + 1 :], numbers[middle + 1 :])
    return F.when(value < F.lit(cuts[middle]), below).otherwise(above)


def _comparable(frame: DataFrame, value: Column) -> Column:
    """Return a column in a form whose values are the same on both sides of the session: numbers or short texts."""
    spark_type = frame.select(value.alias("v")).schema["v"].dataType
    if isinstance(spark_type, st.BooleanType):
        return value.cast("int")
    if isinstance(spark_type, st.DateType):
        return F.unix_date(value)
    if isinstance(spark_type, st.TimestampType | st.TimestampNTZType):
        return F.unix_micros(value.cast("timestamp"))
    if isinstance(spark_type, st.DecimalType):
        return value.cast("double")
    if isinstance(spark_type, st.BinaryType):
        return F.hex(F.substring(value, 1, _BYTES_LENGTH))
    if isinstance(spark_type, st.StringType):
        return F.substring(value, 1, _TEXT_LENGTH)
    return value
