"""Z-order of rows on Spark: close in several columns at once, so that a filter on any of them skips most files.

    sample    the columns, and divide each into ranges of equally many rows
    place     every row: interleave the bits of the numbers of its ranges
    arrange   by range of that z-value, one task per file, sorted within

As in `maintenance/zorder.py`, z-values are computed from ranks, not from the bytes of values, so that a column with few
or skewed values weighs as much as any other. The ranges are determined by comparisons alone, in Spark expressions: no
Python runs on executors. A z-value determines only where a row is stored, so a sample suffices, and so do 64 characters
of a long text.
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
"""A column is divided into at most 256 ranges."""
_MORE_BITS: Final = 4
"""There are 2 to the power of this many cells per file; the rows of a cell go to a single file."""
_Z_VALUE: Final = "place in z-order"
_TEXT_LENGTH: Final = 64
_BYTES_LENGTH: Final = 32


def arrange_by_z_value(
    frame: DataFrame,
    schema: Schema,
    field_ids: Sequence[int],
    *,
    rows: int,
    files: int,
    first: Sequence[Column] = (),
) -> DataFrame:
    """Return rows in z-order of some columns, in about as many tasks as files; `first` precedes the z-value."""
    values = [_comparable(frame, field_column(schema, field_id)) for field_id in field_ids]
    # A column of its own, so that it is computed once per row.
    placed = frame.withColumn(_Z_VALUE, reduce(add, _z_parts(frame, values, rows=rows, files=files)))
    order = [*first, F.col(f"`{_Z_VALUE}`")]
    return placed.repartitionByRange(max(files, 1), *order).sortWithinPartitions(*order).drop(_Z_VALUE)


def spread_bits(number: int, bits: int, index: int, of: int) -> int:
    """Return the bits of one of several numbers at their positions after interleaving."""
    return sum(((number >> bit) & 1) << (bit * of + of - 1 - index) for bit in range(bits))


def bits_of(files: int, columns: int) -> int:
    """Return the number of ranges of each column for a number of files, as a power of two."""
    return min(_MAX_BITS, -(-(max(files - 1, 1).bit_length() + _MORE_BITS) // columns))


def cuts_of(values: list[Any], parts: int) -> list[Any]:
    """Return the bounds of ranges of equally many sorted values; a value that fills several ranges is repeated."""
    return [values[index * len(values) // parts] for index in range(1, parts)] if values else []


def _z_parts(frame: DataFrame, values: Sequence[Column], *, rows: int, files: int) -> list[Column]:
    """Return each column's contribution to a row's z-value."""
    bits = bits_of(files, len(values))
    share = min(1.0, _SAMPLED_ROWS / max(rows, 1))
    names = [f"c{index}" for index in range(len(values))]
    selected = frame.select(*(value.alias(name) for value, name in zip(values, names, strict=True)))
    sample = (selected if share == 1.0 else selected.sample(fraction=share, seed=1)).collect()
    parts = []
    for index, value in enumerate(values):
        # For Spark, NaN is the largest value, so it is above every bound.
        sorted_values = sorted(row[index] for row in sample if row[index] is not None and row[index] == row[index])
        cuts = cuts_of(sorted_values, 1 << bits)
        distinct = sorted(set(cuts))
        numbers = [spread_bits(bisect_right(cuts, value), bits, index, len(values)) for value in distinct]
        tree = _choose(value, distinct, [0, *numbers])
        parts.append(F.when(value.isNull(), F.lit(0).cast("long")).otherwise(tree))
    return parts


def _choose(value: Column, cuts: Sequence[Any], numbers: Sequence[int]) -> Column:
    """Return the number of the range of a value, by binary search."""
    if not cuts:
        return F.lit(numbers[0]).cast("long")
    middle = len(cuts) // 2
    below = _choose(value, cuts[:middle], numbers[: middle + 1])
    above = _choose(value, cuts[middle + 1 :], numbers[middle + 1 :])
    return F.when(value < F.lit(cuts[middle]), below).otherwise(above)


def _comparable(frame: DataFrame, value: Column) -> Column:
    """Return a column in a form that Python and Spark compare alike: numbers or short texts."""
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
