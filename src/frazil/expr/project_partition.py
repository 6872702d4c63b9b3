"""Predicates on rows turned into predicates on partition tuples. Specification: "Scan Planning".

*Inclusive*: where a row matches, its partition's tuple matches the projection; so a partition that does not
match holds no matching row. *Strict*: where a tuple matches the projection, every row of it matches.

Most rules follow from one fact: `truncate`, `year`, `month`, `day` and `hour` never reverse an order, so
x < c implies f(x) <= f(the value before c), and f(x) < f(c) implies x < c. Buckets keep only equality.

Partition values of times before 1970 may be one too large, as old writers rounded toward zero, or one too
small, as Iceberg Java's arithmetic is for fractions in the first second of a unit. Projections onto negative
values allow for both.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import SchemaMismatchError
from frazil.expr.bind_leaf import bind_leaf
from frazil.expr.column_stats import ColumnStats, may_match, must_match
from frazil.expr.predicates import (
    And,
    Bound,
    BoundReference,
    BoundTransform,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
)
from frazil.spec.decimals import decimal_of, unscaled_value
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Year
from frazil.spec.types import DateType, DecimalType, IntType, LongType, NestedField, StructType, Type

_ORDERINGS = frozenset({Op.LT, Op.LT_EQ, Op.GT, Op.GT_EQ})
_TIMES = (Year, Month, Day, Hour)


def project_inclusive(predicate: Predicate, spec: PartitionSpec, partition_type: StructType) -> Predicate:
    """Return what a partition tuple must satisfy to hold a row that satisfies a bound predicate."""
    return _project(predicate, spec, partition_type, is_strict=False)


def project_strict(predicate: Predicate, spec: PartitionSpec, partition_type: StructType) -> Predicate:
    """Return what a partition tuple must satisfy so that all of its rows satisfy a bound predicate."""
    return _project(predicate, spec, partition_type, is_strict=True)


def _project(predicate: Predicate, spec: PartitionSpec, partition_type: StructType, *, is_strict: bool) -> Predicate:
    if isinstance(predicate, And | Or):
        combine = all_of if isinstance(predicate, And) else any_of
        return combine(*(_project(child, spec, partition_type, is_strict=is_strict) for child in predicate.children))
    if not isinstance(predicate, Bound):
        return predicate
    source = predicate.term.field_id
    projected = [
        _project_leaf(predicate, field, partition_type.fields[index], is_strict=is_strict)
        for index, field in enumerate(spec.fields)
        if field.source_ids == (source,)
    ]
    known = [predicate for predicate in projected if predicate is not None]
    return any_of(*known) if is_strict else all_of(*known)


def _project_leaf(leaf: Bound, field: PartitionField, target: NestedField, *, is_strict: bool) -> Predicate | None:
    """Return a leaf projected through one partition field, or None where that says nothing."""
    transform, here = field.transform, BoundReference(target, (target.name,), may_be_null=True)
    if isinstance(leaf.term, BoundTransform):
        return Bound(leaf.op, here, leaf.literals) if leaf.term.transform == transform else None
    if isinstance(transform, Identity):
        return Bound(leaf.op, here, leaf.literals)
    if not isinstance(transform, (Bucket, Truncate, *_TIMES)):
        return None
    if leaf.op in (Op.IS_NULL, Op.NOT_NULL):
        return Bound(leaf.op, here)
    if leaf.op.is_unary:
        return None
    source_type = leaf.term.result_type
    try:
        if isinstance(transform, Truncate) and isinstance(leaf.literals[0], str | bytes):
            projected = _project_text(leaf, transform, source_type, here, is_strict=is_strict)
        else:
            projected = _project_value(leaf, transform, source_type, here, is_strict=is_strict)
            if isinstance(transform, Truncate) and projected is not None:
                projected = _allow_wrapping(projected, leaf, transform, here, is_strict=is_strict)
    except SchemaMismatchError:
        # The literal's hour does not fit an int; partitions cannot say anything about it.
        return None
    if projected is None or not isinstance(transform, _TIMES):
        return projected
    if isinstance(transform, Day) and isinstance(source_type, DateType):
        return projected
    return _allow_rounding(projected, is_strict=is_strict)


def _project_value(
    leaf: Bound, transform: Transform, source_type: Type, here: BoundReference, *, is_strict: bool
) -> Predicate | None:
    same = (Op.NOT_EQ, Op.NOT_IN) if is_strict else (Op.EQ, Op.IN)
    if leaf.op in same:
        return bind_leaf(leaf.op, here, tuple(_apply(transform, literal, 0, source_type) for literal in leaf.literals))
    if leaf.op not in _ORDERINGS or isinstance(transform, Bucket):
        return None
    is_upper = leaf.op in (Op.LT, Op.LT_EQ)
    if is_strict:
        steps = {Op.LT: 0, Op.LT_EQ: 1, Op.GT: 0, Op.GT_EQ: -1}[leaf.op]
        op = Op.LT if is_upper else Op.GT
    else:
        steps = {Op.LT: -1, Op.LT_EQ: 0, Op.GT: 1, Op.GT_EQ: 0}[leaf.op]
        op = Op.LT_EQ if is_upper else Op.GT_EQ
    return bind_leaf(op, here, (_apply(transform, leaf.literal, steps, source_type),))


def _apply(transform: Transform, value: Any, steps: int, source_type: Type) -> Any:
    """Return the transform of the value some steps away; it may lie outside the type, which binding settles."""
    if isinstance(transform, Truncate) and isinstance(source_type, DecimalType):
        unscaled = unscaled_value(value, source_type.scale)
        if unscaled is not None:
            return decimal_of(_floor_to(unscaled + steps, transform.width), source_type.scale)
    if isinstance(transform, Truncate):
        return _floor_to(value + steps, transform.width)
    return transform.apply(value + steps if steps else value, source_type)


def _floor_to(value: int, width: int) -> int:
    return value - value % width


def _allow_wrapping(
    projected: Predicate, leaf: Bound, transform: Truncate, here: BoundReference, *, is_strict: bool
) -> Predicate:
    """Mind the partition of values next to the smallest integer, whose truncation wrapped around to a large one.

    A long may once have been an int, whose smallest values wrapped around in 32 bits.
    """
    result_type = leaf.term.result_type
    for data_type in (IntType(), LongType()) if isinstance(result_type, LongType) else (result_type,):
        wrapped = transform.wrapped_range(data_type)
        if wrapped is None:
            continue
        if not is_strict and _may_pass(leaf, wrapped.first, wrapped.last):
            projected = any_of(projected, bind_leaf(Op.EQ, here, (wrapped.result,)))
        if is_strict and not _must_pass(leaf, wrapped.first, wrapped.last):
            projected = all_of(projected, bind_leaf(Op.NOT_EQ, here, (wrapped.result,)))
    return projected


def _may_pass(leaf: Bound, first: int, last: int) -> bool:
    return may_match(leaf.op, leaf.literals, ColumnStats(first, last, has_null=False, has_nan=False))


def _must_pass(leaf: Bound, first: int, last: int) -> bool:
    return must_match(leaf.op, leaf.literals, ColumnStats(first, last, has_null=False, has_nan=False))


def _project_text(
    leaf: Bound, transform: Truncate, source_type: Type, here: BoundReference, *, is_strict: bool
) -> Predicate | None:
    width = transform.width
    cut = [transform.apply(literal, source_type) for literal in leaf.literals]
    is_short = all(len(literal) < width for literal in leaf.literals)
    op = leaf.op
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _project_prefix(leaf, width, cut[0], here, is_strict=is_strict)
    if op in (Op.EQ, Op.IN):
        # A value shorter than the width is its own prefix, so there the tuple decides.
        return _of_set(op, here, cut) if is_short or not is_strict else None
    if op in (Op.NOT_EQ, Op.NOT_IN):
        return _of_set(op, here, cut) if is_short or is_strict else None
    if is_strict:
        return Bound(Op.LT if op in (Op.LT, Op.LT_EQ) else Op.GT, here, (cut[0],))
    return Bound(Op.LT_EQ if op in (Op.LT, Op.LT_EQ) else Op.GT_EQ, here, (cut[0],))


def _project_prefix(leaf: Bound, width: int, cut: Any, here: BoundReference, *, is_strict: bool) -> Predicate | None:
    prefix, is_positive = leaf.literal, leaf.op is Op.STARTS_WITH
    if len(prefix) < width:
        return Bound(leaf.op, here, (prefix,))
    if len(prefix) == width or is_positive is not is_strict:
        return Bound(Op.EQ if is_positive else Op.NOT_EQ, here, (cut,))
    return None


def _of_set(op: Op, here: BoundReference, values: list[Any]) -> Predicate:
    return bind_leaf(Op.IN if op in (Op.EQ, Op.IN) else Op.NOT_IN, here, tuple(values))


def _allow_rounding(projected: Predicate, *, is_strict: bool) -> Predicate:
    """Widen (or, strict, narrow) a projection for negative values that were stored one too large or too small."""
    if not isinstance(projected, Bound) or projected.op.is_unary:
        return projected
    op, values, here = projected.op, projected.literals, projected.term.reference
    if op in (Op.EQ, Op.IN, Op.NOT_EQ, Op.NOT_IN):
        near = [
            near_value for value in values for near_value in ((value - 1, value, value + 1) if value < 0 else (value,))
        ]
        return _of_set(op, here, near)
    bound = values[0]
    if is_strict:
        moved = bound + 1 if op is Op.GT and bound < 0 else bound - 1 if op is Op.LT and bound <= 0 else bound
    else:
        moved = bound + 1 if op is Op.LT_EQ and bound < 0 else bound - 1 if op is Op.GT_EQ and bound < 0 else bound
    return Bound(op, here, (moved,))
