"""Conditions built in Python instead of written: `frazil.col("id") > 5`.

Operators build the tree that `expr/parse.py` makes of a text: no value is ever read as SQL. A condition is the text of
its tree as well, so it is taken wherever a text is, by Spark too, and means what the text means (docs/conditions.md).
"""

from __future__ import annotations

import math
import re
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.expr.expressions import Call, Expression, Literal, Name, literal_of
from frazil.expr.parameters import parameter_value
from frazil.expr.parse import parse_condition
from frazil.expr.show_sql import show_sql

_QUOTED = re.compile(r"`((?:[^`]|``)+)`(?:\.|\Z)")


class Condition(str):
    """A condition, and its text; combine with `&`, `|` and `~`, each side in brackets: `(col("a") > 1) & (…)`."""

    __slots__ = ("expression", "_joined_by")

    expression: Expression
    _joined_by: str | None

    def __new__(cls, text: str, expression: Expression | None = None, joined_by: str | None = None) -> Condition:
        """Keep a text, its tree, and the word that joins its outermost parts."""
        condition = super().__new__(cls, text)
        condition.expression = parse_condition(text) if expression is None else expression
        condition._joined_by = joined_by
        return condition

    def __and__(self, other: str) -> Condition:
        return _join("and", self, other)

    def __rand__(self, other: str) -> Condition:
        return _join("and", other, self)

    def __or__(self, other: str) -> Condition:
        return _join("or", self, other)

    def __ror__(self, other: str) -> Condition:
        return _join("or", other, self)

    def __invert__(self) -> Condition:
        return Condition(f"not ({self!s})", Call("not", (self.expression,)))

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth value; combine conditions with &, | and ~, each in brackets")


class Column:
    """A column by name, to build conditions with. Make it with `frazil.col`."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: Name) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"col({show_sql(self._name, quotes_names=True)})"

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._test("=", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._test("<>", other)

    def __lt__(self, other: object) -> Condition:
        return self._test("<", other)

    def __le__(self, other: object) -> Condition:
        return self._test("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._test(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._test(">=", other)

    def __bool__(self) -> bool:
        raise TypeError(f"a column has no truth value; compare it, or use {self!r}.is_true()")

    def isin(self, *values: Any) -> Condition:
        """Be one of some values, given one by one or as one list; of none is false."""
        if len(values) == 1 and not isinstance(values[0], str | bytes) and hasattr(values[0], "__iter__"):
            values = tuple(values[0])
        return self._test("in", *values) if values else _condition(Literal(False, "boolean"))

    def between(self, low: object, high: object) -> Condition:
        """Be not below the one and not above the other."""
        return _join("and", self >= low, self <= high)

    def is_null(self) -> Condition:
        """Have no value."""
        return self._test("isnull")

    def is_not_null(self) -> Condition:
        """Have a value."""
        return self._test("isnotnull")

    def is_nan(self) -> Condition:
        """Be NaN, of float and double columns."""
        return self._test("isnan")

    def is_true(self) -> Condition:
        """Be true, of boolean columns."""
        return self._test("<=>", True)

    def starts_with(self, prefix: str) -> Condition:
        """Begin with a text."""
        if not isinstance(prefix, str):
            raise InvalidRequestError(f"Cannot test whether {self!r} starts with {prefix!r}: it is not text")
        return self._test("startswith", prefix)

    def _test(self, name: str, *values: object) -> Condition:
        return _condition(Call(name, (self._name, *map(self._value, values))))

    def _value(self, value: object) -> Expression:
        if isinstance(value, Column):
            return value._name
        if value is None:
            raise InvalidRequestError(
                f"Cannot compare {self!r} with None: no row is equal to null, and none is unequal",
                hint="Use is_null() or is_not_null().",
            )
        if isinstance(value, float) and math.isnan(value):
            raise InvalidRequestError(f"Cannot compare {self!r} with {value}: it is no literal", hint="Use is_nan().")
        return literal_of(parameter_value(show_sql(self._name, quotes_names=True), value))


def col(name: str) -> Column:
    """Name a column, to build a condition with.

    `t.scan((frazil.col("id") > 5) & frazil.col("kind").isin("a", "b"))`. Parts of structs follow a dot, as in
    `col("point.x")`. A name that has a dot of its own is given in backticks.
    """
    if not isinstance(name, str) or not name:
        raise InvalidRequestError(f"Cannot name a column {name!r}: give its name as text")
    quoted = list(_QUOTED.finditer(name))
    if quoted and "".join(step[0] for step in quoted) == name and not name.endswith("."):
        return Column(Name(tuple(step[1].replace("``", "`") for step in quoted)))
    return Column(Name(tuple(name.split("."))))


def _condition(expression: Expression) -> Condition:
    return Condition(show_sql(expression, quotes_names=True), expression)


def _join(word: str, left: str, other: str) -> Condition:
    if not isinstance(left, str) or not isinstance(other, str):
        raise TypeError(f"Cannot combine {left!r} and {other!r}: put each comparison in brackets")
    parts: list[Expression] = []
    for side in (left, other):
        expression = side.expression if isinstance(side, Condition) else parse_condition(side)
        joined = isinstance(expression, Call) and expression.name == word
        parts += expression.arguments if joined and isinstance(expression, Call) else (expression,)
    return Condition(f" {word} ".join(_side(word, side) for side in (left, other)), Call(word, tuple(parts)), word)


def _side(word: str, side: str) -> str:
    """Return a side as part of a longer condition; what the same word joins needs no brackets."""
    is_plain = isinstance(side, Condition) and side._joined_by in (None, word)
    return str(side) if is_plain else f"({side!s})"
