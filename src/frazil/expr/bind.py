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
    BoundReference,
    BoundTerm,
    BoundTransform,
    Not,
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


def bind(schema: Schema, predicate: Predicate, *, case_sensitive: bool = True) -> Predicate:
    """Return the predicate bound to a schema, without `Not`; refuse unknown columns and misfit literals."""
    return _bind(schema, predicate, case_sensitive)


def _bind(schema: Schema, predicate: Predicate, case_sensitive: bool) -> Predicate:
    if isinstance(predicate, And | Or):
        combine = all_of if isinstance(predicate, And) else any_of
        return combine(*(_bind(schema, child, case_sensitive) for child in predicate.children))
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
