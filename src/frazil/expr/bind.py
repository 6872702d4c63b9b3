"""Resolve a predicate's columns against a schema and its literals against their types.

Stands between the user's predicate and every evaluator. After binding, literals are values of the term's
type, sets are sorted and distinct, `Not` is gone, and what the schema decides alone is decided: `is null` of
a required column is false, `= 2.5` on an int is false, `< 10^12` on an int is `is not null`.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import InvalidRequestError
from frazil.expr.literals import Place, place_literal
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    And,
    Bound,
    BoundReference,
    BoundTerm,
    BoundTransform,
    Op,
    Or,
    Predicate,
    Reference,
    Term,
    TransformTerm,
    Unbound,
    all_of,
    any_of,
    push_not,
)
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
)


def bind(schema: Schema, predicate: Predicate, *, case_sensitive: bool = True) -> Predicate:
    """Return the predicate bound to a schema, without `Not`; refuse unknown columns and misfit literals."""
    return _bind(schema, push_not(predicate), case_sensitive)


def _bind(schema: Schema, predicate: Predicate, case_sensitive: bool) -> Predicate:
    if isinstance(predicate, And | Or):
        combine = all_of if isinstance(predicate, And) else any_of
        return combine(*(_bind(schema, child, case_sensitive) for child in predicate.children))
    if isinstance(predicate, Unbound):
        term = bind_term(schema, predicate.term, case_sensitive=case_sensitive)
        return bind_leaf(predicate.op, term, predicate.literals)
    return predicate


def bind_term(schema: Schema, term: Term, *, case_sensitive: bool = True) -> BoundTerm:
    """Return a term with its column looked up."""
    if isinstance(term, TransformTerm):
        source = _bind_reference(schema, term.reference, case_sensitive)
        if not term.transform.can_transform(source.result_type):
            raise InvalidRequestError(f"Cannot use {term}: {term.transform} does not take {source.result_type} values")
        return BoundTransform(term.transform, source, term.transform.result_type(source.result_type))
    return _bind_reference(schema, term, case_sensitive)


def reference_to(schema: Schema, field_id: int) -> BoundReference:
    """Return the bound reference to a field; refuse fields inside lists and maps."""
    part = schema.field(field_id)
    ancestors = schema.ancestors_of(field_id)
    if any(not isinstance(one.field_type, StructType) for one in ancestors):
        raise InvalidRequestError(
            f"Cannot filter on {schema.name_of(field_id)!r}: it is inside a list or map",
            hint="A filter on rows can test columns and fields of structs.",
        )
    path = (*(one.name for one in reversed(ancestors)), part.name)
    return BoundReference(part, path, part.optional or any(one.optional for one in ancestors))


def _bind_reference(schema: Schema, reference: Reference, case_sensitive: bool) -> BoundReference:
    part = schema.field(reference.name, case_sensitive=case_sensitive)
    return reference_to(schema, part.field_id)


def bind_leaf(op: Op, term: BoundTerm, literals: tuple[Any, ...]) -> Predicate:
    """Return a leaf over a bound term, with literals converted and what the types decide decided."""
    if op.is_unary:
        return _bind_unary(op, term)
    kind = term.result_type
    if isinstance(kind, UnknownType):
        # Every value is null.
        return TRUE if op.is_true_for_null else FALSE
    if not isinstance(kind, PrimitiveType) or isinstance(kind, GeometryType | GeographyType):
        raise InvalidRequestError(
            f"Cannot compare {term}: {kind} values have no order", hint="Only `is null` and `is not null` apply."
        )
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _bind_prefix(op, term, literals[0])
    if op.is_set:
        return _bind_set(op, term, literals)
    return _bind_comparison(op, term, place_literal(literals[0], kind))


def _bind_unary(op: Op, term: BoundTerm) -> Predicate:
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
    kind = term.result_type
    if isinstance(kind, StringType) and isinstance(prefix, str):
        return Bound(op, term, (prefix,))
    if isinstance(kind, BinaryType | FixedType) and isinstance(prefix, bytes):
        return Bound(op, term, (prefix,))
    raise InvalidRequestError(f"Cannot test whether {term} starts with {prefix!r}: {kind} values have no such prefix")


def _bind_comparison(op: Op, term: BoundTerm, place: Place) -> Predicate:
    if place.is_value:
        return Bound(op, term, (place.below,))
    if op is Op.EQ:
        return FALSE
    if op is Op.NOT_EQ:
        return TRUE
    if op in (Op.LT, Op.LT_EQ):
        return _at_end(Op.LT_EQ, term, place.below, is_past_all=place.above is None)
    return _at_end(Op.GT_EQ, term, place.above, is_past_all=place.below is None)


def _at_end(op: Op, term: BoundTerm, neighbour: Any, *, is_past_all: bool) -> Predicate:
    """Return the comparison with a literal's neighbour, where every value or none may be on its side."""
    if neighbour is None:
        return FALSE
    if not is_past_all:
        return Bound(op, term, (neighbour,))
    number = Bound(Op.NOT_NAN, term) if isinstance(term.result_type, FloatType | DoubleType) else TRUE
    return all_of(_bind_unary(Op.NOT_NULL, term), number)


def _bind_set(op: Op, term: BoundTerm, literals: tuple[Any, ...]) -> Predicate:
    places = [place_literal(one, term.result_type) for one in literals]
    values = sorted({place.below for place in places if place.is_value})
    if not values:
        return FALSE if op is Op.IN else TRUE
    if len(values) == 1:
        return Bound(Op.EQ if op is Op.IN else Op.NOT_EQ, term, (values[0],))
    return Bound(op, term, tuple(values))
