"""Evaluate a bound predicate over Arrow columns, like `expr/evaluate_row.py` for single rows.

The scan's last step uses it on batches of rows, planning on partition values. The mask has no nulls, since predicates
are two-valued.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError
from frazil.expr.columns.comparable import is_nan_mask, literal_array, literal_scalar, to_comparable
from frazil.expr.columns.transforms import transform_column
from frazil.expr.predicates import Always, And, Bound, BoundReference, BoundTerm, BoundTransform, Not, Op, Or, Predicate
from frazil.spec.types import Type

_COMPARISONS = {
    Op.LT: pc.less,
    Op.LT_EQ: pc.less_equal,
    Op.GT: pc.greater,
    Op.GT_EQ: pc.greater_equal,
    Op.EQ: pc.equal,
    Op.NOT_EQ: pc.not_equal,
}


def row_mask(predicate: Predicate, rows: Any) -> Any:
    """Return which rows of a table, record batch or struct array satisfy a bound predicate, as booleans."""
    if isinstance(predicate, And | Or):
        combine = pc.and_ if isinstance(predicate, And) else pc.or_
        mask = row_mask(predicate.children[0], rows)
        for child in predicate.children[1:]:
            mask = combine(mask, row_mask(child, rows))
        return mask
    if isinstance(predicate, Not):
        return pc.invert(row_mask(predicate.child, rows))
    if isinstance(predicate, Always):
        return pa.repeat(pa.scalar(predicate.value), len(rows))
    if not isinstance(predicate, Bound):
        raise InvalidRequestError(f"Cannot evaluate {predicate!s}: it is not bound to a schema")
    return leaf_mask(predicate.op, predicate.literals, term_column(predicate.term, rows), predicate.term.result_type)


def term_column(term: BoundTerm, rows: Any) -> Any:
    """Return a term's values over rows; everything below a null struct is null."""
    if isinstance(term, BoundTransform):
        return transform_column(term.transform, term_column(term.reference, rows), term.reference.result_type)
    return _column_at(term, rows)


def _column_at(term: BoundReference, rows: Any) -> Any:
    first, *rest = term.path
    column = pc.struct_field(rows, first) if isinstance(rows, pa.StructArray) else rows.column(first)
    for name in rest:
        # Unlike plain child access, this keeps the nulls of the struct.
        column = pc.struct_field(column, name)
    return column


def leaf_mask(op: Op, literals: tuple[Any, ...], column: Any, data_type: Type) -> Any:
    """Return which values of a column of a type pass a leaf's test."""
    if op is Op.IS_NULL:
        return pc.is_null(column)
    if op is Op.NOT_NULL:
        return pc.is_valid(column)
    if isinstance(column, pa.DictionaryArray):
        # Test each distinct value once.
        mask = leaf_mask(op, literals, column.dictionary, data_type).take(column.indices)
        return pc.fill_null(mask, op.is_true_for_null)
    if op in (Op.IS_NAN, Op.NOT_NAN):
        nan = pc.fill_null(is_nan_mask(column), False)
        return nan if op is Op.IS_NAN else pc.invert(nan)
    values = to_comparable(column, data_type)
    if op.is_set:
        mask = pc.is_in(values, value_set=literal_array(literals, data_type).cast(values.type))
        return mask if op is Op.IN else pc.invert(mask)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        prefix = literal_scalar(literals[0], data_type).as_py()
        mask = pc.fill_null(pc.starts_with(values, prefix), False)
        return mask if op is Op.STARTS_WITH else pc.invert(mask)
    return pc.fill_null(_COMPARISONS[op](values, literal_scalar(literals[0], data_type)), op.is_true_for_null)
