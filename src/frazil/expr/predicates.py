"""Predicates as values: what a scan keeps, a delete removes, a commit defends.

A predicate is a tree of `And`, `Or`, `Not`, the constants `TRUE` and `FALSE`, and leaves. A leaf tests one
term, a column or a transform of it, against nothing (`is null`), one literal (`=`) or a set (`in`).
Unbound leaves name columns; `bind` resolves them against a schema and converts their literals.

The logic has two values, as the expressions specification asks: every leaf is true or false for every
row. With null: `= < <= > >= starts with, in` are false; `!=, not starts with, not in` are true. NaN behaves
like null here, except that it is not null. SQL's third value, and NaN as the greatest number, exist only in
`SqlTest`, the leaf of conditions that were text; binding writes it out in these terms (`sql_tests.py`).

`And` and `Or` hold any number of children and flatten as they are built, so that a filter of ten
thousand alternatives is one node and no recursion goes deeper than the text did.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.transforms import Transform
from frazil.spec.types import NestedField, Type
from frazil.text.literals import quote_text


class Op(enum.Enum):
    """What a leaf tests; the values are the names in JSON."""

    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    EQ = "eq"
    NOT_EQ = "not-eq"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"
    IN = "in"
    NOT_IN = "not-in"

    @property
    def is_unary(self) -> bool:
        """Whether the test needs no literal."""
        return self in _UNARY

    @property
    def is_set(self) -> bool:
        """Whether the test is against a set of literals."""
        return self is Op.IN or self is Op.NOT_IN

    @property
    def negation(self) -> Op:
        """The test that is true exactly where this one is false."""
        return _NEGATIONS[self]

    @property
    def is_true_for_null(self) -> bool:
        """Whether the test holds for a null value."""
        return self in (Op.IS_NULL, Op.NOT_NAN, Op.NOT_EQ, Op.NOT_IN, Op.NOT_STARTS_WITH)


_UNARY = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})

# An ordering has no negation among the leaves (null makes both `<` and `>=` false), so `push_not`
# writes it as a disjunction; see `_negate_leaf`.
_NEGATIONS = {
    Op.IS_NULL: Op.NOT_NULL,
    Op.IS_NAN: Op.NOT_NAN,
    Op.EQ: Op.NOT_EQ,
    Op.STARTS_WITH: Op.NOT_STARTS_WITH,
    Op.IN: Op.NOT_IN,
}
_NEGATIONS |= {negated: op for op, negated in _NEGATIONS.items()}
_OPPOSITE_ORDER = {Op.LT: Op.GT_EQ, Op.LT_EQ: Op.GT, Op.GT: Op.LT_EQ, Op.GT_EQ: Op.LT}


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by full name, not yet looked up."""

    name: str

    def __str__(self) -> str:
        return quote_name(self.name)


@dataclass(frozen=True, slots=True)
class TransformTerm:
    """A transform of a column, not yet looked up."""

    transform: Transform
    reference: Reference

    def __str__(self) -> str:
        return format_transform(self.transform, str(self.reference))


Term: TypeAlias = Reference | TransformTerm


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A column of a schema: its field, the names that lead to it, and whether null can stand there."""

    field: NestedField
    path: tuple[str, ...]
    may_be_null: bool

    @property
    def field_id(self) -> int:
        """The column's field id."""
        return self.field.field_id

    @property
    def result_type(self) -> Type:
        """The type of the tested values."""
        return self.field.field_type

    @property
    def reference(self) -> BoundReference:
        """The column itself, as for a transform's term."""
        return self

    def __str__(self) -> str:
        return quote_name(".".join(self.path))


@dataclass(frozen=True, slots=True)
class BoundTransform:
    """A transform of a column of a schema."""

    transform: Transform
    reference: BoundReference
    result_type: Type

    @property
    def field_id(self) -> int:
        """The source column's field id."""
        return self.reference.field_id

    @property
    def may_be_null(self) -> bool:
        """Whether null can stand here; a transform of null is null."""
        return self.reference.may_be_null or self.transform.is_void

    def __str__(self) -> str:
        return format_transform(self.transform, str(self.reference))


BoundTerm: TypeAlias = BoundReference | BoundTransform


class Predicate:
    """Any predicate; combine with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> Predicate:
        return all_of(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return any_of(self, other)

    def __invert__(self) -> Predicate:
        return not_(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate has no truth value; combine predicates with &, | and ~")


@dataclass(frozen=True, slots=True, repr=False)
class Always(Predicate):
    """True for every row, or false for every row."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"

    __repr__ = __str__


TRUE = Always(True)
FALSE = Always(False)


@dataclass(frozen=True, slots=True, repr=False)
class And(Predicate):
    """True where every child is; build with `all_of`."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({child})" if isinstance(child, Or) else str(child) for child in self.children)

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Or(Predicate):
    """True where any child is; build with `any_of`."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(f"({child})" if isinstance(child, And) else str(child) for child in self.children)

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Not(Predicate):
    """True where the child is false; build with `not_`."""

    child: Predicate

    def __str__(self) -> str:
        return f"not ({self.child})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Unbound(Predicate):
    """A leaf whose column is a name and whose literals are as the user gave them."""

    op: Op
    term: Term
    literals: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return format_leaf(self.op, str(self.term), [format_literal(literal) for literal in self.literals])

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class TypedText:
    """A literal that names its type: `DATE '2024-01-01'`. Timestamps without a zone are in the session's, here UTC."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} {format_literal(self.text)}"


@dataclass(frozen=True, slots=True, repr=False)
class SqlTest(Unbound):
    """A leaf of a condition that was text: where Spark SQL says that the test is true, or else that it is false.

    The op is one of `is null`, `is nan`, the five orders, `starts with` and `in`; `not` turns `is_true` around.
    """

    is_true: bool = True

    def __str__(self) -> str:
        return self.format([sql_literal(literal) for literal in self.literals])

    def format(self, literals: list[str]) -> str:
        """Return the test as text, from the texts of its literals."""
        term = str(self.term) if isinstance(self.term, Reference) else f"system.{self.term}"
        if self.op in _FUNCTIONS:
            called = f"{_FUNCTIONS[self.op]}({', '.join([term, *literals])})"
            return called if self.is_true else f"not {called}"
        if self.is_true or self.op in _NEGATIONS:
            return format_leaf(self.op if self.is_true else self.op.negation, term, literals)
        return f"not {format_leaf(self.op, term, literals)}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Bound(Predicate):
    """A leaf over a schema's column; literals are of the term's type, sorted and distinct for sets."""

    op: Op
    term: BoundTerm
    literals: tuple[Any, ...] = ()

    @property
    def literal(self) -> Any:
        """The one literal of a comparison."""
        return self.literals[0]

    def __str__(self) -> str:
        return format_leaf(self.op, str(self.term), [format_literal(literal) for literal in self.literals])

    __repr__ = __str__


def all_of(*predicates: Predicate) -> Predicate:
    """Return the conjunction, flattened, with constants folded and repetitions dropped."""
    return _combine(predicates, And, neutral=TRUE, absorbing=FALSE)


def any_of(*predicates: Predicate) -> Predicate:
    """Return the disjunction, flattened, with constants folded and repetitions dropped."""
    return _combine(predicates, Or, neutral=FALSE, absorbing=TRUE)


def not_(predicate: Predicate) -> Predicate:
    """Return the negation; a double negation and a negated constant vanish."""
    if isinstance(predicate, Always):
        return FALSE if predicate.value else TRUE
    return predicate.child if isinstance(predicate, Not) else Not(predicate)


def _combine(
    predicates: Iterable[Predicate], cls: type[And] | type[Or], *, neutral: Always, absorbing: Always
) -> Predicate:
    kept: dict[Predicate, None] = {}
    for predicate in predicates:
        children = predicate.children if isinstance(predicate, cls) else (predicate,)
        for child in children:
            if child == absorbing:
                return absorbing
            if child != neutral:
                kept[child] = None
    if not kept:
        return neutral
    return next(iter(kept)) if len(kept) == 1 else cls(tuple(kept))


def column(name: str) -> Term:
    """Return the term for a column's full name."""
    return Reference(name)


def _term(term: Term | str) -> Term:
    return Reference(term) if isinstance(term, str) else term


def leaf(op: Op, term: Term | str, *literals: object) -> Predicate:
    """Return an unbound leaf, with its literals checked for number and for null and NaN."""
    wanted = 0 if op.is_unary else 1
    if not op.is_set and len(literals) != wanted:
        raise InvalidRequestError(
            f"Cannot make a {op.value} predicate: it takes {wanted} literals, not {len(literals)}"
        )
    for literal in literals:
        if literal is None:
            raise InvalidRequestError(f"Cannot compare {_term(term)} with null", hint="Use `is null` or `is not null`.")
        if isinstance(literal, float) and literal != literal:
            raise InvalidRequestError(f"Cannot compare {_term(term)} with NaN", hint="Use `is nan` or `is not nan`.")
    if op.is_set and not literals:
        return FALSE if op is Op.IN else TRUE
    return Unbound(op, _term(term), tuple(literals))


def is_null(term: Term | str) -> Predicate:
    """Return `term is null`."""
    return leaf(Op.IS_NULL, term)


def not_null(term: Term | str) -> Predicate:
    """Return `term is not null`."""
    return leaf(Op.NOT_NULL, term)


def is_nan(term: Term | str) -> Predicate:
    """Return `term is nan`."""
    return leaf(Op.IS_NAN, term)


def equal(term: Term | str, literal: object) -> Predicate:
    """Return `term = literal`."""
    return leaf(Op.EQ, term, literal)


def not_equal(term: Term | str, literal: object) -> Predicate:
    """Return `term != literal`, true for null."""
    return leaf(Op.NOT_EQ, term, literal)


def less_than(term: Term | str, literal: object) -> Predicate:
    """Return `term < literal`."""
    return leaf(Op.LT, term, literal)


def at_most(term: Term | str, literal: object) -> Predicate:
    """Return `term <= literal`."""
    return leaf(Op.LT_EQ, term, literal)


def greater_than(term: Term | str, literal: object) -> Predicate:
    """Return `term > literal`."""
    return leaf(Op.GT, term, literal)


def at_least(term: Term | str, literal: object) -> Predicate:
    """Return `term >= literal`."""
    return leaf(Op.GT_EQ, term, literal)


def starts_with(term: Term | str, prefix: str) -> Predicate:
    """Return whether the term starts with a prefix."""
    return leaf(Op.STARTS_WITH, term, prefix)


def is_in(term: Term | str, literals: Collection[object]) -> Predicate:
    """Return whether the term is one of the literals."""
    return leaf(Op.IN, term, *literals)


def not_in(term: Term | str, literals: Collection[object]) -> Predicate:
    """Return whether the term is none of the literals, true for null."""
    return leaf(Op.NOT_IN, term, *literals)


def push_not(predicate: Predicate) -> Predicate:
    """Return an equal predicate without `Not`, but before leaves of SQL, which binding takes first.

    The negation of an ordering is the opposite ordering or null or NaN: `not (x < 5)` holds where x >= 5,
    where x is null, and where x is NaN.
    """
    return _push(predicate, negated=False)


def _push(predicate: Predicate, *, negated: bool) -> Predicate:
    if isinstance(predicate, Not):
        return _push(predicate.child, negated=not negated)
    if isinstance(predicate, And | Or):
        combine = all_of if isinstance(predicate, And) is not negated else any_of
        return combine(*(_push(child, negated=negated) for child in predicate.children))
    if not negated:
        return predicate
    return not_(predicate) if isinstance(predicate, Always) else _negate_leaf(predicate)


def _negate_leaf(predicate: Predicate) -> Predicate:
    if not isinstance(predicate, Unbound | Bound):
        raise InvalidRequestError(f"Cannot negate {predicate!s}: it is not a predicate of this library")
    if isinstance(predicate, SqlTest):
        # What it means depends on the column's type: binding knows, and then the rest is pushed.
        return Not(predicate)
    cls: Callable[..., Predicate] = type(predicate)
    opposite = _OPPOSITE_ORDER.get(predicate.op)
    if opposite is None:
        return cls(predicate.op.negation, predicate.term, predicate.literals)
    terms = [cls(opposite, predicate.term, predicate.literals), cls(Op.IS_NULL, predicate.term)]
    if isinstance(predicate, Unbound) or _may_be_nan(predicate.term):
        terms.append(cls(Op.IS_NAN, predicate.term))
    return any_of(*terms)


def _may_be_nan(term: BoundTerm) -> bool:
    return str(term.result_type) in ("float", "double")


def leaves_of(predicate: Predicate) -> Iterator[Unbound | Bound]:
    """Yield the leaves from left to right."""
    stack = [predicate]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or):
            stack += reversed(node.children)
        elif isinstance(node, Not):
            stack.append(node.child)
        elif isinstance(node, Unbound | Bound):
            yield node


def field_ids_of(predicate: Predicate) -> set[int]:
    """Return the ids of the columns that a bound predicate tests."""
    return {leaf_test.term.field_id for leaf_test in leaves_of(predicate) if isinstance(leaf_test, Bound)}


def names_of(predicate: Predicate) -> set[str]:
    """Return the names of the columns that an unbound predicate tests."""
    terms = [leaf_test.term for leaf_test in leaves_of(predicate) if isinstance(leaf_test, Unbound)]
    return {(term.reference if isinstance(term, TransformTerm) else term).name for term in terms}


_SYMBOLS = {Op.LT: "<", Op.LT_EQ: "<=", Op.GT: ">", Op.GT_EQ: ">=", Op.EQ: "=", Op.NOT_EQ: "!="}
_WORDS = {
    Op.IS_NULL: "is null",
    Op.NOT_NULL: "is not null",
    Op.IS_NAN: "is nan",
    Op.NOT_NAN: "is not nan",
    Op.STARTS_WITH: "starts with",
    Op.NOT_STARTS_WITH: "not starts with",
    Op.IN: "in",
    Op.NOT_IN: "not in",
}


_FUNCTIONS = {Op.IS_NAN: "isnan", Op.STARTS_WITH: "startswith"}


def format_leaf(op: Op, term: str, literals: list[str]) -> str:
    """Return a leaf as text, from the texts of its parts."""
    if op.is_unary:
        return f"{term} {_WORDS[op]}"
    if op.is_set:
        return f"{term} {_WORDS[op]} ({', '.join(literals)})"
    return f"{term} {_SYMBOLS.get(op) or _WORDS[op]} {literals[0]}"


def format_literal(value: object) -> str:
    """Return a literal as text, strings in SQL's quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Decimal):
        return str(value)
    return quote_text(str(value))


_UNENDING = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def sql_literal(value: object) -> str:
    """Return a literal as text of SQL that has the same type there."""
    if value is None or isinstance(value, TypedText):
        return "null" if value is None else str(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"cast('{_UNENDING[repr(value)]}' as double)"
    return f"{value:f}BD" if isinstance(value, Decimal) else format_literal(value)


def format_transform(transform: Transform, argument: str) -> str:
    """Return a transform's call as text: `bucket(16, id)`, `day(ts)`."""
    name, bracket, parameter = str(transform).partition("[")
    return f"{name}({parameter.rstrip(']')}, {argument})" if bracket else f"{name}({argument})"


def quote_name(name: str) -> str:
    """Return a full column name, quoted in backticks where a plain word would not read back."""
    if name.isascii() and all(piece.isidentifier() for piece in name.split(".")):
        return name
    return "`" + name.replace("`", "``") + "`"
