"""Which row groups of a Parquet file can hold a match. Specification: "Scan Planning"; Parquet's column statistics.

Statistics are proofs only as far as they go: where a writer left them out, where they are NaN, of an unsigned
or otherwise ordered column, or cannot be read, they say nothing and the row group is read. Pyarrow itself hides
those of writers known to be wrong. A column that the file does not store has one value in all rows, which is a
proof as good as any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from frazil.datafile.file_schema import FileField
from frazil.datafile.project import find_field
from frazil.expr.column_stats import UNKNOWN_STATS, ColumnStats, may_match
from frazil.expr.evaluate_metrics import has_null, transform_bounds
from frazil.expr.predicates import Always, And, Bound, BoundTerm, BoundTransform, Or, Predicate
from frazil.spec.column_projection import ResolvedColumn
from frazil.spec.decimals import decimal_of
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)

_TIMES = (TimeType, TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_MICROS_PER_DAY = 86_400_000_000


def row_group_test(
    predicate: Predicate,
    columns: Sequence[ResolvedColumn],
    fields: Sequence[FileField],
    metadata: Any,
) -> Callable[[int], bool] | None:
    """Return the function that says of a row group's number whether it can hold a match; None where all can.

    `columns` are those the predicate tests, `fields` the file's own, `metadata` its footer as pyarrow has it.
    """
    if isinstance(predicate, Always) and predicate.value:
        return None
    sources = {one.field.field_id: one for one in columns}

    def test(group: int) -> bool:
        row_group = metadata.row_group(group)
        return _decide(predicate, lambda term: _stats_of(term, sources, fields, row_group))

    return test


def _decide(predicate: Predicate, stats: Callable[[BoundTerm], ColumnStats]) -> bool:
    if isinstance(predicate, And):
        return all(_decide(child, stats) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_decide(child, stats) for child in predicate.children)
    if isinstance(predicate, Always):
        return predicate.value
    if isinstance(predicate, Bound):
        return may_match(predicate.op, predicate.literals, stats(predicate.term))
    return True


def _stats_of(
    term: BoundTerm, sources: Mapping[int, ResolvedColumn], fields: Sequence[FileField], row_group: Any
) -> ColumnStats:
    found = _find_source(term, sources, fields)
    if found is None:
        return UNKNOWN_STATS
    column, part = found
    if part is None:
        return _constant_stats(term, column.value)
    return _stored_stats(term, part, row_group)


def _find_source(
    term: BoundTerm, sources: Mapping[int, ResolvedColumn], fields: Sequence[FileField]
) -> tuple[ResolvedColumn, FileField | None] | None:
    """Return where a term's column comes from: a constant, or a stored column; None where that is not simple."""
    path = term.reference.path
    column = next((one for one in sources.values() if one.field.name == path[0]), None)
    if column is None:
        return None
    if column.is_constant:
        return None if len(path) > 1 else (column, None)
    part = find_field(column, fields)
    for name in path[1:]:
        inner = next((one for one in column.parts if one.field.name == name), None)
        if inner is None:
            return None
        column = inner
        if column.is_constant:
            # Below a struct that may be null, a constant is not the value of all rows.
            return None
        part = find_field(column, part.parts)
    return None if part.parts else (column, part)


def _constant_stats(term: BoundTerm, value: Any) -> ColumnStats:
    is_nan = isinstance(value, float) and value != value
    bound = None if is_nan else value
    lower, upper = (bound, bound) if not isinstance(term, BoundTransform) else transform_bounds(term, bound, bound)
    return ColumnStats(
        lower,
        upper,
        has_null=value is None,
        has_nan=is_nan,
        all_null=value is None,
        all_null_or_nan=value is None or is_nan,
    )


def _stored_stats(term: BoundTerm, part: FileField, row_group: Any) -> ColumnStats:
    column = row_group.column(part.start)
    kind = term.reference.result_type
    is_ordered = column.is_stats_set and column.physical_type != "INT96"
    statistics = column.statistics if is_ordered else None
    if statistics is None:
        return UNKNOWN_STATS
    nulls = statistics.null_count if statistics.has_null_count else None
    is_all_null = None if nulls is None else nulls >= row_group.num_rows
    is_float = isinstance(kind, FloatType | DoubleType)
    lower = upper = None
    if statistics.has_min_max and not is_all_null:
        lower = _value_of(statistics, "min", part.arrow, kind)
        upper = _value_of(statistics, "max", part.arrow, kind)
        if is_float and (lower is None or upper is None):
            # Writers that let NaN into one bound cannot be trusted with the other.
            lower = upper = None
    if isinstance(term, BoundTransform):
        lower, upper = transform_bounds(term, lower, upper)
    return ColumnStats(
        lower,
        upper,
        has_null=has_null(term, nulls),
        has_nan=None if is_float else False,
        all_null=is_all_null,
        all_null_or_nan=True if is_all_null else None if is_float else is_all_null,
    )


def _value_of(statistics: Any, name: str, arrow: pa.DataType, kind: Type) -> Any:
    """Return a bound as a value of the table's type, None where it cannot be used."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    raw = getattr(statistics, f"{name}_raw")
    if isinstance(kind, DecimalType):
        return _decimal(statistics, name, raw, kind)
    if isinstance(raw, bool):
        return raw if isinstance(kind, BooleanType) else None
    if isinstance(raw, int):
        return _integer(raw, arrow, kind)
    if isinstance(raw, float):
        return raw if isinstance(kind, FloatType | DoubleType) and raw == raw else None
    return _bytes(raw, kind) if isinstance(raw, bytes) else None


def _integer(raw: int, arrow: pa.DataType, kind: Type) -> int | None:
    if isinstance(kind, IntType | LongType):
        return raw if pa.types.is_signed_integer(arrow) else None
    if isinstance(kind, DateType):
        return raw if pa.types.is_date32(arrow) else None
    if not isinstance(kind, _TIMES):
        return None
    is_nanos = isinstance(kind, TimestampNsType | TimestamptzNsType)
    if pa.types.is_date32(arrow):
        return raw * _MICROS_PER_DAY * (1000 if is_nanos else 1)
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow):
        have, want = _PER_SECOND[arrow.unit], 1_000_000_000 if is_nanos else 1_000_000
        return raw * (want // have) if have <= want else None
    return None


def _decimal(statistics: Any, name: str, raw: Any, kind: DecimalType) -> Decimal | None:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return decimal_of(raw, kind.scale)
    value = getattr(statistics, name)
    return value if isinstance(value, Decimal) else None


def _bytes(raw: bytes, kind: Type) -> Any:
    if isinstance(kind, StringType):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            # Cut inside a character. Nothing below it is known to sort where it should.
            return None
    if isinstance(kind, UuidType):
        return UUID(bytes=raw) if len(raw) == 16 else None
    return raw if isinstance(kind, BinaryType | FixedType) else None
