"""Resolve a predicate's columns against a schema and its literals against their types.

Stands between the user's predicate and every evaluator. After binding, literals are values of the term's
type (`bind_leaf.py`), sets are sorted and distinct, `Not` is gone, and leaves of SQL's text are written in two
truth values (`sql_tests.py`).
"""

from __future__ import annotations

from frazil.errors import InvalidRequestError
from frazil.expr.bind_leaf import bind_leaf
from frazil.expr.predicates import (
    And,
    Bound,
    BoundReference,
    BoundTerm,
    BoundTransform,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    SqlTest,
    Term,
    TransformTerm,
    Unbound,
    all_of,
    any_of,
    not_,
    push_not,
)
from frazil.expr.sql_tests import bind_sql_test
from frazil.spec.schema import Schema
from frazil.spec.types import StructType

_GREATER = frozenset({Op.GT, Op.GT_EQ})
_NEVER_NAN = frozenset({Op.LT, Op.LT_EQ, Op.NOT_NAN})
"""Tests that no NaN passes."""


def bind(schema: Schema, predicate: Predicate, *, case_sensitive: bool = True) -> Predicate:
    """Return the predicate bound to a schema, without `Not`; refuse unknown columns and misfit literals."""
    return _bind(schema, predicate, case_sensitive)


def _bind(schema: Schema, predicate: Predicate, case_sensitive: bool) -> Predicate:
    if isinstance(predicate, And):
        return _without_nan(all_of(*(_bind(schema, child, case_sensitive) for child in predicate.children)))
    if isinstance(predicate, Or):
        return any_of(*(_bind(schema, child, case_sensitive) for child in predicate.children))
    if isinstance(predicate, Not):
        pushed = push_not(predicate)
        if not isinstance(pushed, Not):
            return _bind(schema, pushed, case_sensitive)
        # A leaf of SQL, whose opposite is known when it is bound.
        return push_not(not_(_bind(schema, pushed.child, case_sensitive)))
    if isinstance(predicate, SqlTest):
        return bind_sql_test(predicate, bind_term(schema, predicate.term, case_sensitive=case_sensitive))
    if isinstance(predicate, Unbound):
        term = bind_term(schema, predicate.term, case_sensitive=case_sensitive)
        return bind_leaf(predicate.op, term, predicate.literals)
    return predicate


def _without_nan(predicate: Predicate) -> Predicate:
    """Return a conjunction in which no test takes NaN where another one leaves it out.

    To SQL NaN is greater than every number, and a file whose NaNs are not counted may hold some. So `x > 1` alone rules
    out no file by its upper bound, and `x > 1 and x < 2` does.
    """
    if not isinstance(predicate, And):
        return predicate
    numbers = {child.term for child in predicate.children if isinstance(child, Bound) and child.op in _NEVER_NAN}
    return all_of(*(_plain_order(child, numbers) for child in predicate.children)) if numbers else predicate


def _plain_order(predicate: Predicate, numbers: set[BoundTerm]) -> Predicate:
    """Return a test for greater values or NaN without NaN, where its term is never NaN."""
    if not isinstance(predicate, Or) or len(predicate.children) != 2:
        return predicate
    ordered, nan = predicate.children
    if not isinstance(ordered, Bound) or not isinstance(nan, Bound):
        return predicate
    is_needless = ordered.op in _GREATER and nan.op is Op.IS_NAN and ordered.term == nan.term and nan.term in numbers
    return ordered if is_needless else predicate


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
    field = schema.field(field_id)
    ancestors = schema.ancestors_of(field_id)
    if any(not isinstance(ancestor.field_type, StructType) for ancestor in ancestors):
        raise InvalidRequestError(
            f"Cannot filter on {schema.name_of(field_id)!r}: it is inside a list or map",
            hint="A filter on rows can test columns and fields of structs.",
        )
    path = (*(ancestor.name for ancestor in reversed(ancestors)), field.name)
    return BoundReference(field, path, field.optional or any(ancestor.optional for ancestor in ancestors))


def _bind_reference(schema: Schema, reference: Reference, case_sensitive: bool) -> BoundReference:
    field = schema.field(reference.name, case_sensitive=case_sensitive)
    return reference_to(schema, field.field_id)
