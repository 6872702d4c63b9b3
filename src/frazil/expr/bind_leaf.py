"""A leaf of a predicate over a column of a schema: its literals become values of the column's type.

What the type alone decides is decided: `is null` of a required column is false, `= 2.5` on an int is false,
`< 10^12` on an int is `is not null`. `bind.py` looks columns up, `sql_tests.py` does the leaves of SQL's text.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import InvalidRequestError
from frazil.expr.literals import LiteralBounds, place_literal
from frazil.expr.predicates import FALSE, TRUE, Bound, BoundTerm, Op, Predicate, all_of
from frazil.spec.types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    PrimitiveType,
    StringType,
    UnknownType,
)
from frazil.spec.values import to_internal


def bind_leaf(op: Op, term: BoundTerm, literals: tuple[Any, ...]) -> Predicate:
    """Return a leaf over a bound term, with literals converted and what the types decide decided."""
    if op.is_unary:
        return bind_unary(op, term)
    result_type = term.result_type
    if isinstance(result_type, UnknownType):
        # Every value is null.
        return TRUE if op.is_true_for_null else FALSE
    check_order(term)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _bind_prefix(op, term, literals[0])
    if op.is_set:
        return _bind_set(op, term, literals)
    return bind_place(op, term, place_literal(literals[0], result_type))


def check_order(term: BoundTerm) -> None:
    """Refuse terms whose values cannot be compared: lists, maps, structs, shapes."""
    result_type = term.result_type
    if not isinstance(result_type, PrimitiveType) or isinstance(result_type, GeometryType | GeographyType):
        raise InvalidRequestError(
            f"Cannot compare {term}: {result_type} values have no order", hint="Only `is null` and `is not null` apply."
        )


def bind_unary(op: Op, term: BoundTerm) -> Predicate:
    """Return a test for null or NaN, decided where the type decides it."""
    if op in (Op.IS_NAN, Op.NOT_NAN):
        if isinstance(term.result_type, FloatType | DoubleType):
            return Bound(op, term)
        return FALSE if op is Op.IS_NAN else TRUE
    if isinstance(term.result_type, UnknownType):
        return TRUE if op is Op.IS_NULL else FALSE
    if not term.may_be_null:
        return FALSE if op is Op.IS_NULL else TRUE
    return Bound(op, term)


def _bind_prefix(op: Op, term: BoundTerm, prefix: Any) -> Predicate:
    result_type = term.result_type
    if isinstance(result_type, StringType) and isinstance(prefix, str):
        return Bound(op, term, (to_internal(prefix, result_type),))
    if isinstance(result_type, BinaryType | FixedType) and isinstance(prefix, bytes):
        return Bound(op, term, (prefix,))
    raise InvalidRequestError(
        f"Cannot test whether {term} starts with {prefix!r}: {result_type} values have no such prefix"
    )


def bind_place(op: Op, term: BoundTerm, bounds: LiteralBounds) -> Predicate:
    """Return a comparison with a literal that lies within bounds among the type's values."""
    if bounds.is_value:
        return Bound(op, term, (bounds.below,))
    if op is Op.EQ:
        return FALSE
    if op is Op.NOT_EQ:
        return TRUE
    if op in (Op.LT, Op.LT_EQ):
        return _at_end(Op.LT_EQ, term, bounds.below, is_past_all=bounds.above is None)
    return _at_end(Op.GT_EQ, term, bounds.above, is_past_all=bounds.below is None)


def _at_end(op: Op, term: BoundTerm, neighbour: Any, *, is_past_all: bool) -> Predicate:
    """Return the comparison with a literal's neighbour, where every value or none may be on its side."""
    if neighbour is None:
        return FALSE
    if not is_past_all:
        return Bound(op, term, (neighbour,))
    number = Bound(Op.NOT_NAN, term) if isinstance(term.result_type, FloatType | DoubleType) else TRUE
    return all_of(bind_unary(Op.NOT_NULL, term), number)


def _bind_set(op: Op, term: BoundTerm, literals: tuple[Any, ...]) -> Predicate:
    return bind_places(op, term, [place_literal(literal, term.result_type) for literal in literals])


def bind_places(op: Op, term: BoundTerm, places: list[LiteralBounds]) -> Predicate:
    """Return whether a term is one of the literals, or none of them, from their bounds."""
    values = sorted({bounds.below for bounds in places if bounds.is_value})
    if not values:
        return FALSE if op is Op.IN else TRUE
    if len(values) == 1:
        return Bound(Op.EQ if op is Op.IN else Op.NOT_EQ, term, (values[0],))
    return Bound(op, term, tuple(values))
