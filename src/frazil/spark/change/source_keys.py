"""Filters on the table of a merge, derived from the keys of its source.

If the source has few rows, the columns that a merge joins on are collected. Otherwise one aggregate computes their
bounds and approximate distinct counts, and columns with few distinct values are then listed. If the table is
partitioned by a time transform of such a column, the days or hours that occur are listed too, so that a source with
rows of January and December does not read the months between. The result is a filter for planning the table's files:
rows outside of it match no row of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame

from frazil.change_rows.key_filter import MAX_VALUES, KeyValues, ValuesHere, filter_of, is_usable_key, unit_of
from frazil.change_rows.merge_clauses import SHOWN_KEYS
from frazil.expr.predicates import FALSE, TRUE, Predicate, all_of
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import FEW_ROWS, collect_few
from frazil.spark.read.partition_columns import plain_number, transform_value
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.types import NestedField
from frazil.sql.quote_names import quote


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table and the expression over the source that it is compared with; null may equal null."""

    field: NestedField
    value: Column
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The filter on the table that a source's keys imply, whether its rows are few, and some duplicate keys."""

    prune: Predicate
    is_few: bool = False
    twice: Sequence[tuple[Any, ...]] = ()


def read_keys(
    source: DataFrame,
    keys: Sequence[JoinKey],
    spec: PartitionSpec,
    unique: Sequence[str] = (),
    *,
    few_rows: int = FEW_ROWS,
) -> SourceKeys:
    """Read the keys of a checkpointed source and derive a filter that every matching row of the table passes.

    `unique` are columns of the source whose combined values must be unique; nulls count as equal.
    """
    usable = [key for key in keys if is_usable_key(key.field)]
    key_columns = [wanted for key in usable for wanted in _columns_to_read(key, spec, source)]
    names = [F.col(quote(name)) for name in unique]
    is_comparable = all(_is_comparable(source.schema[name].dataType) for name in unique)
    columns = [wanted.column.alias(f"a{index}") for index, wanted in enumerate(key_columns)]
    more = [name.alias(f"u{index}") for index, name in enumerate(names)] if is_comparable else []
    rows = collect_few(source, [*columns, *more], few_rows)
    if rows is None:
        twice = _find_duplicates(source, names)
        return SourceKeys(TRUE if not key_columns else _prune_by_aggregate(source, usable, key_columns), twice=twice)
    twice = _find_collected_duplicates(rows, len(more)) if is_comparable else _find_duplicates(source, names)
    if rows.num_rows == 0:
        return SourceKeys(FALSE if usable else TRUE, is_few=True, twice=twice)
    values = [ValuesHere(rows.column(f"a{index}")) for index in range(len(key_columns))]
    return SourceKeys(_prune(usable, key_columns, values), is_few=True, twice=twice)


class _KeyColumn:
    """The values of a key to read, or, with a unit, the days or hours of its values."""

    def __init__(self, key: JoinKey, column: Column, unit: int | None = None) -> None:
        self.key, self.column, self.unit = key, column, unit


@dataclass(frozen=True, slots=True)
class _AggregatedValues:
    bounds: tuple[Any, Any]
    has_null: bool
    listed: list[Any] | None


def _columns_to_read(key: JoinKey, spec: PartitionSpec, source: DataFrame) -> list[_KeyColumn]:
    key_columns = [_KeyColumn(key, plain_number(key.value, key.field.field_type))]
    for field in spec.fields_of_source(key.field.field_id):
        unit = unit_of(field.transform, key.field)
        if unit is not None:
            times = transform_value(field.transform, key.value, key.field.field_type, source.sparkSession)
            key_columns.append(_KeyColumn(key, times, unit))
    return key_columns


def _prune_by_aggregate(source: DataFrame, keys: Sequence[JoinKey], key_columns: Sequence[_KeyColumn]) -> Predicate:
    columns: list[Column] = []
    for index, key_column in enumerate(key_columns):
        columns += [F.min(key_column.column).alias(f"low{index}"), F.max(key_column.column).alias(f"high{index}")]
        columns += [F.count_if(key_column.column.isNull()).alias(f"nulls{index}")]
        columns += [F.approx_count_distinct(key_column.column).alias(f"about{index}")]
    row = source.agg(*columns).collect()[0]
    listed: dict[int, list[Any]] = {}
    few = [index for index in range(len(key_columns)) if row[f"about{index}"] <= MAX_VALUES]
    if few:
        # The counts are approximate but small enough to collect the values.
        sets = source.agg(
            *(F.collect_set(key_columns[position].column).alias(f"set{position}") for position in few)
        ).collect()[0]
        listed = {position: [_hashable(item) for item in sets[f"set{position}"]] for position in few}
    values = [
        _AggregatedValues(
            (_hashable(row[f"low{index}"]), _hashable(row[f"high{index}"])),
            row[f"nulls{index}"] > 0,
            listed.get(index) if len(listed.get(index, ())) <= MAX_VALUES else None,
        )
        for index in range(len(key_columns))
    ]
    return _prune(keys, key_columns, values)


def _prune(keys: Sequence[JoinKey], key_columns: Sequence[_KeyColumn], values: Sequence[KeyValues]) -> Predicate:
    return all_of(
        *(_filter_of(key, [(a, v) for a, v in zip(key_columns, values, strict=True) if a.key is key]) for key in keys)
    )


def _filter_of(key: JoinKey, values_by_column: Sequence[tuple[_KeyColumn, KeyValues]]) -> Predicate:
    own = next(values for key_column, values in values_by_column if key_column.unit is None)
    times = [(key_column.unit, values) for key_column, values in values_by_column if key_column.unit is not None]
    return filter_of(key.field.name, own, times, is_null_safe=key.is_null_safe)


def _find_duplicates(source: DataFrame, names: Sequence[Column]) -> list[tuple[Any, ...]]:
    if not names:
        return []
    rows = source.groupBy(*names).count().filter("count > 1").limit(SHOWN_KEYS + 1).collect()
    return [tuple(row[: len(names)]) for row in rows]


def _find_collected_duplicates(rows: pa.Table, count: int) -> list[tuple[Any, ...]]:
    names = [f"u{index}" for index in range(count)]
    if not names:
        return []
    counted = rows.select(names).group_by(names).aggregate([([], "count_all")])
    duplicates = counted.filter(pc.field("count_all") > 1).slice(0, SHOWN_KEYS + 1).to_pylist()
    return [tuple(row[name] for name in names) for row in duplicates]


def _is_comparable(spark_type: st.DataType) -> bool:
    """Return whether equal values of a type have equal bytes, unlike floating point and text with a collation."""
    if isinstance(spark_type, st.StringType):
        return spark_type == st.StringType()
    return isinstance(
        spark_type,
        st.IntegralType | st.BooleanType | st.DateType | st.TimestampType | st.TimestampNTZType | st.BinaryType,
    )


def _hashable(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
