"""Whether one file can hold a match, from its metrics: what planning over whole manifests is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.codec.single_value import decode_bound
from frazil.errors import CorruptTableError
from frazil.expr.column_stats import ColumnStats, has_null, may_match, must_match, transform_bounds
from frazil.expr.predicates import Always, And, Bound, BoundTerm, BoundTransform, Op, Or, Predicate
from frazil.spec.data_file import DataFile
from frazil.spec.types import DoubleType, FloatType, GeographyType, GeometryType, PrimitiveType, Type


def may_contain_match(predicate: Predicate, file: DataFile) -> bool:
    """Return False only where no row of the file satisfies a bound predicate."""
    if file.record_count == 0:
        return False
    return _decide(predicate, file, may_match)


def contains_only_matches(predicate: Predicate, file: DataFile) -> bool:
    """Return True only where every row of the file satisfies a bound predicate."""
    if file.record_count == 0:
        return True
    return _decide(predicate, file, must_match)


_Test = Callable[[Op, Sequence[Any], ColumnStats], bool]


def _decide(predicate: Predicate, file: DataFile, test: _Test) -> bool:
    if isinstance(predicate, And):
        return all(_decide(child, file, test) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_decide(child, file, test) for child in predicate.children)
    if isinstance(predicate, Always):
        return predicate.value
    if isinstance(predicate, Bound):
        return test(predicate.op, predicate.literals, stats_of(predicate.term, file))
    return test is may_match


def stats_of(term: BoundTerm, file: DataFile) -> ColumnStats:
    """Return what a file's metrics say of a term."""
    field_id, result_type = term.field_id, term.reference.result_type
    values = _count(file.value_counts, field_id)
    nulls = _count(file.null_value_counts, field_id)
    nans = _count(file.nan_value_counts, field_id) if isinstance(result_type, FloatType | DoubleType) else 0
    if nulls is None and values is not None and values == nans:
        # What is NaN is not null.
        nulls = 0
    lower = decode_file_bound(file.lower_bounds, field_id, result_type)
    upper = decode_file_bound(file.upper_bounds, field_id, result_type)
    if isinstance(term, BoundTransform):
        lower, upper = transform_bounds(term, lower, upper)
    return ColumnStats(
        lower,
        upper,
        has_null=has_null(term, nulls),
        has_nan=None if nans is None else nans > 0,
        all_null=None if values is None or nulls is None else values == nulls,
        all_null_or_nan=None if values is None or nulls is None or nans is None else values == nulls + nans,
    )


def _count(counts: Mapping[int, int] | None, field_id: int) -> int | None:
    return None if counts is None else counts.get(field_id)


def decode_file_bound(bounds: Mapping[int, bytes] | None, field_id: int, data_type: Type) -> Any:
    """Return one column's bound, or None where there is none that orders values, or none that can be read."""
    data = None if bounds is None else bounds.get(field_id)
    if data is None or not isinstance(data_type, PrimitiveType) or isinstance(data_type, GeometryType | GeographyType):
        return None
    try:
        return decode_bound(data, data_type)
    except CorruptTableError:
        return None
