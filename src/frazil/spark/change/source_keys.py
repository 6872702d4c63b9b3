"""What the rows of a source say about the rows of the table they can meet: the source prunes the target.

The columns that a merge joins by come here where rows are few; else one aggregate over them gives their bounds and
about how many values there are, and few values are then named one by one. Where the table is partitioned by a time of
such a column, the days or hours that occur are named too, so that a source with rows of January and December does not
read what lies between. The result is a filter for planning the table's files: rows outside of it meet no row of the
source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame

from frazil.expr.predicates import FALSE, TRUE, Predicate, all_of
from frazil.local.key_filter import MAX_VALUES, KeyValues, ValuesHere, filter_of, is_usable_key, unit_of
from frazil.local.merge_clauses import SHOWN_KEYS
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import FEW_ROWS, collect_few
from frazil.spark.read.partition_columns import plain_number, transform_value
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.types import NestedField
from frazil.sql.quote_names import quote


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table and the expression over the source that must equal it; null may equal null."""

    field: NestedField
    value: Column
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """What the keys of a source say: a filter on the table, whether rows are few, some keys that occur twice."""

    prune: Predicate
    is_few: bool = False
    twice: Sequence[tuple[Any, ...]] = ()


def read_keys(
    kept: DataFrame,
    keys: Sequence[JoinKey],
    spec: PartitionSpec,
    unique: Sequence[str] = (),
    *,
    few_rows: int = FEW_ROWS,
) -> SourceKeys:
    """Ask a kept source for its keys: what every row of the table which meets one of its rows fulfils.

    `unique` are columns of the source that must not have the same values twice, null being a value.
    """
    usable = [key for key in keys if is_usable_key(key.field)]
    asked = [wanted for key in usable for wanted in _columns_of(key, spec, kept)]
    names = [F.col(quote(name)) for name in unique]
    is_comparable = all(_is_comparable(kept.schema[name].dataType) for name in unique)
    columns = [wanted.column.alias(f"a{index}") for index, wanted in enumerate(asked)]
    more = [name.alias(f"u{index}") for index, name in enumerate(names)] if is_comparable else []
    found = collect_few(kept, [*columns, *more], few_rows)
    if found is None:
        twice = _find_twice(kept, names)
        return SourceKeys(TRUE if not asked else _prune_by_aggregate(kept, usable, asked), twice=twice)
    twice = _find_twice_here(found, len(more)) if is_comparable else _find_twice(kept, names)
    if found.num_rows == 0:
        return SourceKeys(FALSE if usable else TRUE, is_few=True, twice=twice)
    values = [ValuesHere(found.column(f"a{index}")) for index in range(len(asked))]
    return SourceKeys(_prune(usable, asked, values), is_few=True, twice=twice)


class _Asked:
    """A column asked for: the values of a key, or, with a unit, the days or hours of its values."""

    def __init__(self, key: JoinKey, column: Column, unit: int | None = None) -> None:
        self.key, self.column, self.unit = key, column, unit


@dataclass(frozen=True, slots=True)
class _ValuesThere:
    bounds: tuple[Any, Any]
    has_null: bool
    listed: list[Any] | None


def _columns_of(key: JoinKey, spec: PartitionSpec, source: DataFrame) -> list[_Asked]:
    found = [_Asked(key, plain_number(key.value, key.field.field_type))]
    for field in spec.fields_of_source(key.field.field_id):
        unit = unit_of(field.transform, key.field)
        if unit is not None:
            times = transform_value(field.transform, key.value, key.field.field_type, source.sparkSession)
            found.append(_Asked(key, times, unit))
    return found


def _prune_by_aggregate(kept: DataFrame, keys: Sequence[JoinKey], asked: Sequence[_Asked]) -> Predicate:
    columns: list[Column] = []
    for index, wanted in enumerate(asked):
        columns += [F.min(wanted.column).alias(f"low{index}"), F.max(wanted.column).alias(f"high{index}")]
        columns += [F.count_if(wanted.column.isNull()).alias(f"nulls{index}")]
        columns += [F.approx_count_distinct(wanted.column).alias(f"about{index}")]
    row = kept.agg(*columns).collect()[0]
    listed: dict[int, list[Any]] = {}
    few = [index for index in range(len(asked)) if row[f"about{index}"] <= MAX_VALUES]
    if few:
        # About so few values each, so they may come together here.
        sets = kept.agg(*(F.collect_set(asked[position].column).alias(f"set{position}") for position in few)).collect()[
            0
        ]
        listed = {position: [_value(item) for item in sets[f"set{position}"]] for position in few}
    values = [
        _ValuesThere(
            (_value(row[f"low{index}"]), _value(row[f"high{index}"])),
            row[f"nulls{index}"] > 0,
            listed.get(index) if len(listed.get(index, ())) <= MAX_VALUES else None,
        )
        for index in range(len(asked))
    ]
    return _prune(keys, asked, values)


def _prune(keys: Sequence[JoinKey], asked: Sequence[_Asked], values: Sequence[KeyValues]) -> Predicate:
    return all_of(
        *(_filter_of(key, [(a, v) for a, v in zip(asked, values, strict=True) if a.key is key]) for key in keys)
    )


def _filter_of(key: JoinKey, known: Sequence[tuple[_Asked, KeyValues]]) -> Predicate:
    own = next(values for asked, values in known if asked.unit is None)
    times = [(asked.unit, values) for asked, values in known if asked.unit is not None]
    return filter_of(key.field.name, own, times, is_null_safe=key.is_null_safe)


def _find_twice(kept: DataFrame, names: Sequence[Column]) -> list[tuple[Any, ...]]:
    if not names:
        return []
    rows = kept.groupBy(*names).count().filter("count > 1").limit(SHOWN_KEYS + 1).collect()
    return [tuple(row[: len(names)]) for row in rows]


def _find_twice_here(found: pa.Table, count: int) -> list[tuple[Any, ...]]:
    names = [f"u{index}" for index in range(count)]
    if not names:
        return []
    counted = found.select(names).group_by(names).aggregate([([], "count_all")])
    again = counted.filter(pc.field("count_all") > 1).slice(0, SHOWN_KEYS + 1).to_pylist()
    return [tuple(row[name] for name in names) for row in again]


def _is_comparable(spark_type: st.DataType) -> bool:
    """Return whether equal values of a type are equal bytes: not floating point, nor text with a collation."""
    if isinstance(spark_type, st.StringType):
        return spark_type == st.StringType()
    return isinstance(
        spark_type,
        st.IntegralType | st.BooleanType | st.DateType | st.TimestampType | st.TimestampNTZType | st.BinaryType,
    )


def _value(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
