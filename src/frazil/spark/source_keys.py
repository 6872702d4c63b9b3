"""What the rows of a source say about the rows of the table they can meet: the source prunes the target.

One aggregate over the columns that a merge joins by gives their bounds and about how many values there are; few values
are then named one by one. Where the table is partitioned by a time of such a column, the days (hours, months, years)
that occur are named too, so that a source with rows of January and December does not read what lies between. The
result is a filter for planning the table's files: rows outside of it meet no row of the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.expr.predicates import FALSE, TRUE, Predicate, all_of, any_of, at_least, at_most, is_in, is_null, less_than
from frazil.spark.partition_columns import plain_number, transform_value
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.transforms import Day, Hour, Transform
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

MAX_VALUES = 200
"""Beyond this many values, planning asks for bounds only, as it does with longer lists anyway."""
_MICROS: dict[type[Transform], int] = {Day: 86_400_000_000, Hour: 3_600_000_000}
_USABLE = (
    BooleanType,
    IntType,
    LongType,
    DecimalType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestamptzType,
)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table and the expression over the source that must equal it; null may equal null."""

    part: NestedField
    value: Column
    is_null_safe: bool = False


def is_usable_key(part: NestedField) -> bool:
    """Return whether the values of a column can be asked for in a source: floating point has two zeros and NaN."""
    return isinstance(part.field_type, _USABLE)


def prune_by_source(source: DataFrame, keys: list[JoinKey], schema: Schema, spec: PartitionSpec) -> Predicate:
    """Return the filter that every row of the table which meets a row of the source fulfils."""
    keys = [one for one in keys if is_usable_key(one.part)]
    if not keys:
        return TRUE
    asked: list[Column] = []
    for at, one in enumerate(keys):
        value = plain_number(one.value, one.part.field_type)
        asked += [F.min(value).alias(f"low{at}"), F.max(value).alias(f"high{at}")]
        asked += [F.count_if(value.isNull()).alias(f"nulls{at}"), F.approx_count_distinct(value).alias(f"about{at}")]
    found = source.agg(F.count(F.lit(1)).alias("rows"), *asked).collect()[0]
    if found["rows"] == 0:
        return FALSE
    parts = [
        _filter_of(source, one, found[f"low{at}"], found[f"high{at}"], found[f"nulls{at}"], found[f"about{at}"], spec)
        for at, one in enumerate(keys)
    ]
    return all_of(*parts)


def _filter_of(
    source: DataFrame, key: JoinKey, low: Any, high: Any, nulls: int, about: int, spec: PartitionSpec
) -> Predicate:
    name = key.part.name
    missing = is_null(name) if key.is_null_safe and nulls else FALSE
    if low is None:
        return missing
    bounds = all_of(at_least(name, _value(low)), at_most(name, _value(high)))
    value = plain_number(key.value, key.part.field_type)
    if about <= MAX_VALUES:
        values = _distinct(source, value)
        if values is not None:
            return any_of(is_in(name, values), missing)
    return any_of(all_of(bounds, *_times(source, key, spec)), missing)


def _times(source: DataFrame, key: JoinKey, spec: PartitionSpec) -> list[Predicate]:
    """Return which days or hours of a column occur, where the table is partitioned by those and they are few."""
    found = []
    for one in spec.fields_of_source(key.part.field_id):
        unit = _unit_of(one.transform, key.part)
        if unit is None:
            continue
        times = _distinct(source, transform_value(one.transform, key.value, key.part.field_type, source.sparkSession))
        if times is not None:
            ranges = [
                all_of(at_least(key.part.name, at * unit), less_than(key.part.name, (at + 1) * unit)) for at in times
            ]
            found.append(any_of(*ranges))
    return found


def _unit_of(transform: Transform, part: NestedField) -> int | None:
    if not isinstance(part.field_type, TimestampType | TimestamptzType):
        return None
    return _MICROS.get(type(transform))


def _distinct(source: DataFrame, value: Column) -> list[Any] | None:
    rows = source.select(value.alias("value")).filter("value is not null").distinct().limit(MAX_VALUES + 1).collect()
    return None if len(rows) > MAX_VALUES else [_value(row["value"]) for row in rows]


def _value(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
