"""Expressions over the columns of rows, as values: conditions, and what `update` and `merge` compute.

`parse.py` makes them of text. Nothing here has a type yet: `evaluate/compile_expression.py` gives nodes the types that
Spark gives them, and computes them. `extract.py` finds what planning may use of a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.expr.predicates import TypedText
from frazil.text.literals import MAX_DIGITS, digits_of


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `kind` is Spark's type of it: `int`, `bigint`, `string`, `timestamp_ntz`, `void` and so on."""

    value: Any
    kind: str


@dataclass(frozen=True, slots=True)
class Name:
    """A column, or a part of one: the parts of its name, with `target` or `source` before it or not."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function with its arguments; names are in small letters."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """`case when … then … else … end`; a `case x when …` is written as comparisons with x."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """`cast(child as type)`; the type is Spark's name of it. `is_try` is `try_cast`: null for what does not fit."""

    child: Expression
    type_name: str
    is_try: bool = False


Expression: TypeAlias = Literal | Name | Call | Case | Cast
EXPRESSIONS = (Literal, Name, Call, Case, Cast)


def literal_of(value: Any) -> Literal:
    """Return a value of Python as the literal that Spark makes of it."""
    if isinstance(value, TypedText):
        return Literal(value.text, "timestamp" if value.kind == "timestamp_ltz" else value.kind)
    if isinstance(value, bool | str | bytes | float) or value is None:
        return Literal(value, _KINDS[type(value)])
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return Literal(value, "int")
        if -(2**63) <= value < 2**63:
            return Literal(value, "bigint")
        value = Decimal(value)
    whole, scale = digits_of(value)
    if whole + scale > MAX_DIGITS:
        raise InvalidRequestError(f"Cannot use a number of {whole + scale} digits: a decimal of Spark has {MAX_DIGITS}")
    return Literal(value, f"decimal({max(whole + scale, 1)},{scale})")


_KINDS: dict[type, str] = {
    bool: "boolean",
    str: "string",
    bytes: "binary",
    float: "double",
    type(None): "void",
}


def value_of(literal: Literal) -> Any:
    """Return a literal as the value that tests of predicates hold: dates and times as text with their type."""
    return TypedText(literal.kind, literal.value) if literal.kind in _TYPED else literal.value


_TYPED = frozenset({"date", "time", "timestamp", "timestamp_ntz"})


def names_of(expression: Expression) -> set[Name]:
    """Return the columns that an expression names."""
    if isinstance(expression, Name):
        return {expression}
    if isinstance(expression, Call):
        return set().union(*(names_of(argument) for argument in expression.arguments))
    if isinstance(expression, Case):
        found = set() if expression.otherwise is None else names_of(expression.otherwise)
        return found.union(*(names_of(child) for branch in expression.branches for child in branch))
    return names_of(expression.child) if isinstance(expression, Cast) else set()


def with_names(expression: Expression, rename: Callable[[Name], Name]) -> Expression:
    """Return an expression with other names of columns."""
    if isinstance(expression, Name):
        return rename(expression)
    if isinstance(expression, Call):
        return Call(expression.name, tuple(with_names(argument, rename) for argument in expression.arguments))
    if isinstance(expression, Cast):
        return Cast(with_names(expression.child, rename), expression.type_name, expression.is_try)
    if isinstance(expression, Case):
        branches = tuple((with_names(when, rename), with_names(then, rename)) for when, then in expression.branches)
        last = None if expression.otherwise is None else with_names(expression.otherwise, rename)
        return Case(branches, last)
    return expression
