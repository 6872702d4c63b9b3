"""Conditions built in Python instead of written: `frazil.col("id") > 5`. What is built is the text of a condition.

So it is taken wherever a text is, and means what the text means (docs/conditions.md). Values become literals: nothing
in a value is read as SQL.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from frazil.errors import InvalidRequestError
from frazil.expr.parameters import parameter_value
from frazil.expr.predicates import sql_literal

_QUOTED = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
_AND: Final = "and"
_OR: Final = "or"


class Condition(str):
    """The text of a condition; combine with `&`, `|` and `~`, each side in brackets: `(col("a") > 1) & (…)`."""

    __slots__ = ("_joined_by",)

    _joined_by: str | None

    def __new__(cls, text: str, joined_by: str | None = None) -> Condition:
        """Keep a text, and the word that joins its outermost parts."""
        made = super().__new__(cls, text)
        made._joined_by = joined_by
        return made

    def __and__(self, other: str) -> Condition:
        return _join(_AND, self, other)

    def __rand__(self, other: str) -> Condition:
        return _join(_AND, other, self)

    def __or__(self, other: str) -> Condition:
        return _join(_OR, self, other)

    def __ror__(self, other: str) -> Condition:
        return _join(_OR, other, self)

    def __invert__(self) -> Condition:
        return Condition(f"not ({self!s})")

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth value; combine conditions with &, | and ~, each in brackets")


class Column:
    """A column by name, to build conditions with. Make it with `frazil.col`."""

    __slots__ = ("_text",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"col({self._text})"

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compare(">=", other)

    def __bool__(self) -> bool:
        raise TypeError(f"a column has no truth value; compare it, or use {self!r}.is_true()")

    def isin(self, *values: Any) -> Condition:
        """Be one of some values, given one by one or as one list; of none is false."""
        if len(values) == 1 and not isinstance(values[0], str | bytes) and hasattr(values[0], "__iter__"):
            values = tuple(values[0])
        if not values:
            return Condition("false")
        return Condition(f"{self._text} in ({', '.join(self._value(value) for value in values)})")

    def between(self, low: object, high: object) -> Condition:
        """Be not below the one and not above the other."""
        return Condition(f"{self._text} between {self._value(low)} and {self._value(high)}")

    def is_null(self) -> Condition:
        """Have no value."""
        return Condition(f"{self._text} is null")

    def is_not_null(self) -> Condition:
        """Have a value."""
        return Condition(f"{self._text} is not null")

    def is_nan(self) -> Condition:
        """Be NaN, of float and double columns."""
        return Condition(f"isnan({self._text})")

    def is_true(self) -> Condition:
        """Be true, of boolean columns."""
        return Condition(f"{self._text} is true")

    def starts_with(self, prefix: str) -> Condition:
        """Begin with a text."""
        if not isinstance(prefix, str):
            raise InvalidRequestError(f"Cannot test whether {self!r} starts with {prefix!r}: it is not text")
        return Condition(f"startswith({self._text}, {sql_literal(prefix)})")

    def _compare(self, sign: str, other: object) -> Condition:
        return Condition(f"{self._text} {sign} {self._value(other)}")

    def _value(self, value: object) -> str:
        if isinstance(value, Column):
            return value._text
        if value is None:
            raise InvalidRequestError(
                f"Cannot compare {self!r} with None: no row is equal to null, and none is unequal",
                hint="Use is_null() or is_not_null().",
            )
        if isinstance(value, float) and math.isnan(value):
            raise InvalidRequestError(f"Cannot compare {self!r} with {value}: it is no literal", hint="Use is_nan().")
        return sql_literal(parameter_value(self._text, value))


def col(name: str) -> Column:
    """Name a column, to build a condition with.

    `t.scan((frazil.col("id") > 5) & frazil.col("kind").isin("a", "b"))`. Parts of structs follow a dot, as in
    `col("point.x")`. A name that has a dot of its own is given in backticks.
    """
    if not isinstance(name, str) or not name:
        raise InvalidRequestError(f"Cannot name a column {name!r}: give its name as text")
    if _QUOTED.fullmatch(name):
        return Column(name)
    return Column(".".join(f"`{piece.replace('`', '``')}`" for piece in name.split(".")))


def _join(word: str, left: str, other: str) -> Condition:
    if not isinstance(left, str) or not isinstance(other, str):
        raise TypeError(f"Cannot combine {left!r} and {other!r}: put each comparison in brackets")
    return Condition(f" {word} ".join(_side(word, side) for side in (left, other)), word)


def _side(word: str, side: str) -> str:
    """Return a side as it stands in a longer condition; what the same word joins needs no brackets."""
    is_plain = isinstance(side, Condition) and side._joined_by in (None, word)
    return str(side) if is_plain else f"({side!s})"
