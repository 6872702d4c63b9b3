"""What is known of one column of one file, or of one partition field of one manifest, and what follows for a test.

The two questions every evaluator asks, written once: may some row pass (`may_match`), and must every row
pass (`must_match`)? Metrics, manifest summaries and row groups differ only in how they fill a
`ColumnStats`. Whatever is not known is None and proves nothing.

Bounds hold for values that are neither null nor NaN. They need not be tight: a string's lower bound may be
a prefix of the smallest value, its upper bound anything above the largest. A bound that is NaN proves
nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frazil.expr.predicates import BoundTerm, BoundTransform, Op
from frazil.spec.transforms import Truncate


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known of a column's values in some set of rows; None is unknown.

    `has_null` and `has_nan` say whether there is at least one, `all_null` and `all_null_or_nan` whether
    there is nothing else.
    """

    lower: Any = None
    upper: Any = None
    has_null: bool | None = None
    has_nan: bool | None = None
    all_null: bool | None = None
    all_null_or_nan: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lower, float) and self.lower != self.lower:
            object.__setattr__(self, "lower", None)
        if isinstance(self.upper, float) and self.upper != self.upper:
            object.__setattr__(self, "upper", None)


UNKNOWN_STATS = ColumnStats()


def may_match(op: Op, literals: Sequence[Any], stats: ColumnStats) -> bool:
    """Return False only where no row can pass."""
    if op is Op.IS_NULL:
        return stats.has_null is not False
    if op is Op.NOT_NULL:
        return stats.all_null is not True
    if op is Op.IS_NAN:
        return stats.has_nan is not False and stats.all_null is not True
    if op is Op.NOT_NAN:
        # Null passes this test; only a column of NaN alone does not, which counts do not tell apart.
        return not (stats.all_null_or_nan is True and stats.has_null is False and stats.has_nan is not False)
    if op in (Op.NOT_EQ, Op.NOT_IN, Op.NOT_STARTS_WITH):
        return _may_differ(op, literals, stats)
    if stats.all_null_or_nan is True or stats.all_null is True:
        return False
    return _may_reach(op, literals, stats.lower, stats.upper)


def _may_reach(op: Op, literals: Sequence[Any], lower: Any, upper: Any) -> bool:
    if op is Op.IN:
        start = 0 if lower is None else bisect_left(literals, lower)
        end = len(literals) if upper is None else bisect_right(literals, upper)
        return start < end
    literal = literals[0]
    if op is Op.STARTS_WITH:
        if upper is not None and upper < literal:
            return False
        return lower is None or not (lower > literal and not lower.startswith(literal))
    if op is Op.LT and lower is not None:
        return bool(lower < literal)
    if op is Op.LT_EQ and lower is not None:
        return bool(lower <= literal)
    if op is Op.GT and upper is not None:
        return bool(upper > literal)
    if op is Op.GT_EQ and upper is not None:
        return bool(upper >= literal)
    if op is Op.EQ:
        return not ((lower is not None and lower > literal) or (upper is not None and upper < literal))
    return True


def _may_differ(op: Op, literals: Sequence[Any], stats: ColumnStats) -> bool:
    """Return False only where every row is known to hold one excluded value: equal bounds, no null, no NaN."""
    if stats.has_null is not False or stats.has_nan is not False or stats.lower is None or stats.upper is None:
        return True
    if op is Op.NOT_STARTS_WITH:
        # Values between two bounds that share the prefix share it too.
        return not (stats.lower.startswith(literals[0]) and stats.upper.startswith(literals[0]))
    return bool(stats.lower != stats.upper) or stats.lower not in literals


def must_match(op: Op, literals: Sequence[Any], stats: ColumnStats) -> bool:
    """Return True only where every row passes."""
    if op is Op.IS_NULL:
        return stats.all_null is True
    if op is Op.NOT_NULL:
        return stats.has_null is False
    if op is Op.IS_NAN:
        return stats.all_null_or_nan is True and stats.has_null is False
    if op is Op.NOT_NAN:
        return stats.has_nan is False or stats.all_null is True
    if op in (Op.NOT_EQ, Op.NOT_IN, Op.NOT_STARTS_WITH):
        return _must_differ(op, literals, stats)
    if stats.has_null is not False or stats.has_nan is not False:
        return False
    return _must_hold(op, literals, stats.lower, stats.upper)


def _must_hold(op: Op, literals: Sequence[Any], lower: Any, upper: Any) -> bool:
    literal = literals[0]
    if op is Op.LT:
        return upper is not None and bool(upper < literal)
    if op is Op.LT_EQ:
        return upper is not None and bool(upper <= literal)
    if op is Op.GT:
        return lower is not None and bool(lower > literal)
    if op is Op.GT_EQ:
        return lower is not None and bool(lower >= literal)
    if lower is None or upper is None:
        return False
    if op is Op.STARTS_WITH:
        return bool(lower.startswith(literal) and upper.startswith(literal))
    return bool(lower == upper) and lower in literals


def _must_differ(op: Op, literals: Sequence[Any], stats: ColumnStats) -> bool:
    """Return True where no value can be an excluded one; null and NaN pass these tests."""
    if stats.all_null_or_nan is True or stats.all_null is True:
        return True
    if stats.lower is None and stats.upper is None:
        return False
    positive = {Op.NOT_EQ: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_STARTS_WITH: Op.STARTS_WITH}[op]
    return not _may_reach(positive, literals, stats.lower, stats.upper)


def has_null(term: BoundTerm, nulls: int | None) -> bool | None:
    """Return whether a term has a null, from its column's null count.

    Not every writer counts the nulls that a null struct makes of its fields, so a count of zero below an
    optional struct proves nothing.
    """
    if not term.may_be_null:
        return False
    if nulls is None or (nulls == 0 and len(term.reference.path) > 1):
        return None
    return nulls > 0


def transform_bounds(term: BoundTransform, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the bounds of a transform's values: the transformed bounds where it keeps the order, else none."""
    if not term.transform.preserves_order:
        return None, None
    source = term.reference.result_type
    if isinstance(term.transform, Truncate):
        wrapped = term.transform.wrapped_range(source)
        if wrapped is not None and (lower is None or lower <= wrapped.last):
            return None, None
    return (
        None if lower is None else term.transform.apply(lower, source),
        None if upper is None else term.transform.apply(upper, source),
    )
