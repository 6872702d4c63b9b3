"""Expressions over the columns of rows, as values: what `update` and `merge` compute. Parsed by `parse_expression.py`.

Nothing here has a type yet: `evaluate/compile_expression.py` gives nodes the types that Spark gives them, and computes
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


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
