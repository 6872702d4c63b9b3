"""Evaluate a bound predicate on one row, or one partition tuple. The meaning that all pruning must keep.

Rows are mappings by column name, structs inside them too; values are in the representation of
`spec/types.py`. The vectorised form over Arrow columns is `expr/columns/masks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.expr.predicates import Always, And, Bound, BoundReference, BoundTransform, Not, Op, Or, Predicate
from frazil.spec.types import StructType


def evaluate_row(predicate: Predicate, row: Mapping[str, Any]) -> bool:
    """Return whether a row satisfies a bound predicate."""
    if isinstance(predicate, And):
        return all(evaluate_row(child, row) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(evaluate_row(child, row) for child in predicate.children)
    if isinstance(predicate, Not):
        return not evaluate_row(predicate.child, row)
    if isinstance(predicate, Always):
        return predicate.value
    if not isinstance(predicate, Bound):
        raise InvalidRequestError(f"Cannot evaluate {predicate!s}: it is not bound to a schema")
    return value_passes(predicate.op, predicate.literals, value_of(predicate.term, row))


def evaluate_partition(predicate: Predicate, partition: Sequence[Any], partition_type: StructType) -> bool:
    """Return whether a partition tuple satisfies a predicate bound to the partition type."""
    names = [field.name for field in partition_type.fields]
    return evaluate_row(predicate, dict(zip(names, partition, strict=True)))


def value_of(term: BoundReference | BoundTransform, row: Mapping[str, Any]) -> Any:
    """Return a term's value in a row; below a null struct everything is null."""
    if isinstance(term, BoundTransform):
        value = value_of(term.reference, row)
        return None if value is None else term.transform.apply(value, term.reference.result_type)
    value = row
    for name in term.path:
        if value is None:
            return None
        value = value[name]
    return value


def value_passes(op: Op, literals: Sequence[Any], value: Any) -> bool:
    """Return whether one value passes a leaf's test."""
    if value is None:
        return op.is_true_for_null
    is_nan = isinstance(value, float) and value != value
    if is_nan:
        return op in (Op.NOT_NULL, Op.IS_NAN, Op.NOT_EQ, Op.NOT_IN)
    return _TESTS[op](value, literals)


_TESTS: dict[Op, Callable[[Any, Sequence[Any]], bool]] = {
    Op.IS_NULL: lambda value, _: False,
    Op.NOT_NULL: lambda value, _: True,
    Op.IS_NAN: lambda value, _: False,
    Op.NOT_NAN: lambda value, _: True,
    Op.LT: lambda value, literals: bool(value < literals[0]),
    Op.LT_EQ: lambda value, literals: bool(value <= literals[0]),
    Op.GT: lambda value, literals: bool(value > literals[0]),
    Op.GT_EQ: lambda value, literals: bool(value >= literals[0]),
    Op.EQ: lambda value, literals: bool(value == literals[0]),
    Op.NOT_EQ: lambda value, literals: bool(value != literals[0]),
    Op.IN: lambda value, literals: value in literals,
    Op.NOT_IN: lambda value, literals: value not in literals,
    Op.STARTS_WITH: lambda value, literals: bool(value.startswith(literals[0])),
    Op.NOT_STARTS_WITH: lambda value, literals: not value.startswith(literals[0]),
}
