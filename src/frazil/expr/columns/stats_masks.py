"""Test which files can hold a match, for whole manifests: `expr/column_stats.may_match` over columns.

`StatsColumns` holds, for one table column and many files, the bounds and what the counts prove. Its booleans are
proofs: true is proven, false is unknown. A file is dropped only if a proof shows that none of its rows can pass.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.expr.columns.comparable import literal_array, literal_scalar
from frazil.expr.predicates import Op
from frazil.spec.types import Type

Mask = npt.NDArray[np.bool_]
_FEW = 32


@dataclass(frozen=True, slots=True)
class StatsColumns:
    """The proven statistics of one term for each of many files."""

    lower: Any
    upper: Any
    has_no_null: Mask
    has_no_nan: Mask
    is_all_null: Mask
    is_all_null_or_nan: Mask


def may_match_mask(op: Op, literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    """Return False only for files in which no row can pass; `data_type` is the type of the tested values."""
    if op is Op.IS_NULL:
        return ~stats.has_no_null
    if op is Op.NOT_NULL:
        return ~stats.is_all_null
    if op is Op.IS_NAN:
        return ~(stats.has_no_nan | stats.is_all_null)
    if op is Op.NOT_NAN:
        return ~(stats.is_all_null_or_nan & stats.has_no_null & ~stats.has_no_nan)
    if op in (Op.NOT_EQ, Op.NOT_IN, Op.NOT_STARTS_WITH):
        return ~(stats.has_no_null & stats.has_no_nan & _holds_one_excluded(op, literals, stats, data_type))
    return ~(stats.is_all_null | stats.is_all_null_or_nan | _is_out_of_reach(op, literals, stats, data_type))


def must_match_mask(op: Op, literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    """Return True only for files in which every row passes."""
    if op is Op.IS_NULL:
        return stats.is_all_null
    if op is Op.NOT_NULL:
        return stats.has_no_null
    if op is Op.IS_NAN:
        return stats.is_all_null_or_nan & stats.has_no_null
    if op is Op.NOT_NAN:
        return stats.has_no_nan | stats.is_all_null
    if op in (Op.NOT_EQ, Op.NOT_IN, Op.NOT_STARTS_WITH):
        positive = {Op.NOT_EQ: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_STARTS_WITH: Op.STARTS_WITH}[op]
        return stats.is_all_null | stats.is_all_null_or_nan | _is_out_of_reach(positive, literals, stats, data_type)
    return stats.has_no_null & stats.has_no_nan & _holds_throughout(op, literals, stats, data_type)


def to_mask(booleans: Any) -> Mask:
    """Convert Arrow booleans to a numpy mask, with null (from a missing bound, for example) as false."""
    if isinstance(booleans, pa.ChunkedArray):
        booleans = booleans.combine_chunks()
    result: Mask = pc.fill_null(booleans, False).to_numpy(zero_copy_only=False).astype(bool)
    return result


def _is_out_of_reach(op: Op, literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    lower, upper = stats.lower, stats.upper
    if op is Op.IN:
        return _none_between(literals, lower, upper, data_type)
    literal = literal_scalar(literals[0], data_type)
    if op is Op.STARTS_WITH:
        beyond = pc.and_(pc.greater(lower, literal), pc.invert(pc.starts_with(lower, literal.as_py())))
        return to_mask(pc.less(upper, literal)) | to_mask(beyond)
    if op is Op.LT:
        return to_mask(pc.greater_equal(lower, literal))
    if op is Op.LT_EQ:
        return to_mask(pc.greater(lower, literal))
    if op is Op.GT:
        return to_mask(pc.less_equal(upper, literal))
    if op is Op.GT_EQ:
        return to_mask(pc.less(upper, literal))
    return to_mask(pc.greater(lower, literal)) | to_mask(pc.less(upper, literal))


def _none_between(literals: tuple[Any, ...], lower: Any, upper: Any, data_type: Type) -> Mask:
    """Return where none of the sorted literals is within the bounds; a missing bound is no limit."""
    scalars = [literal_scalar(literal, data_type) for literal in literals]
    if len(scalars) <= _FEW:
        result = np.ones(len(lower), dtype=bool)
        for scalar in scalars:
            result &= to_mask(pc.greater(lower, scalar)) | to_mask(pc.less(upper, scalar))
        return result
    values = [scalar.as_py() for scalar in scalars]
    lows, highs = lower.to_pylist(), upper.to_pylist()
    count = len(values)
    return np.fromiter(
        (
            (0 if low is None else bisect_left(values, low)) >= (count if high is None else bisect_right(values, high))
            for low, high in zip(lows, highs, strict=True)
        ),
        dtype=bool,
        count=len(lows),
    )


def _holds_one_excluded(op: Op, literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    """Return where the bounds alone prove that every value is excluded."""
    if op is Op.NOT_STARTS_WITH:
        prefix = literal_scalar(literals[0], data_type).as_py()
        return to_mask(pc.starts_with(stats.lower, prefix)) & to_mask(pc.starts_with(stats.upper, prefix))
    return _is_single_of(literals, stats, data_type)


def _holds_throughout(op: Op, literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    lower, upper = stats.lower, stats.upper
    if op is Op.STARTS_WITH:
        prefix = literal_scalar(literals[0], data_type).as_py()
        return to_mask(pc.starts_with(lower, prefix)) & to_mask(pc.starts_with(upper, prefix))
    if op in (Op.EQ, Op.IN):
        return _is_single_of(literals, stats, data_type)
    literal = literal_scalar(literals[0], data_type)
    if op is Op.LT:
        return to_mask(pc.less(upper, literal))
    if op is Op.LT_EQ:
        return to_mask(pc.less_equal(upper, literal))
    if op is Op.GT:
        return to_mask(pc.greater(lower, literal))
    return to_mask(pc.greater_equal(lower, literal))


def _is_single_of(literals: tuple[Any, ...], stats: StatsColumns, data_type: Type) -> Mask:
    """Return where both bounds are the same value and it is one of the literals."""
    same = to_mask(pc.equal(stats.lower, stats.upper))
    if not same.any():
        return same
    value_set = literal_array(literals, data_type).cast(stats.lower.type)
    return same & to_mask(pc.is_in(stats.lower, value_set=value_set))
