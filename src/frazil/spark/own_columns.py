"""Columns that frazil makes: PySpark's functions and methods, which do not note where a column was made.

PySpark notes the caller's line with each column, to show it in error messages, and asks the JVM half a dozen times for
that: about half of all calls of a read or a write. Lines within frazil would help nobody. `F` has PySpark's functions,
and what they return has PySpark's methods, both without the decorator that notes the line. Nothing of PySpark is
changed: columns of users note theirs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, functions
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.utils import is_remote

__all__ = ["F", "OwnColumn", "own"]

_REFLECTED = frozenset(f"__r{name}__" for name in ("add", "sub", "mul", "div", "truediv", "mod", "pow", "and", "or"))
"""What Python asks the right side for, and before the left one where a class has its own: PySpark's order stays."""


class OwnColumn(ClassicColumn):
    """A column whose methods note no line, nor do those of what they return."""


def own(made: Any) -> Any:
    """Return a column as one of frazil's own; anything else, and columns of Spark Connect, as they are."""
    return OwnColumn(made._jc) if type(made) is ClassicColumn else made


def _method(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(self: OwnColumn, *given: Any, **named: Any) -> Any:
        return own(plain(self, *given, **named))

    return call


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    plain = inspect.unwrap(function)

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if is_remote():
            return function(*given, **named)
        return own(plain(*map(_argument, given), **{name: _argument(value) for name, value in named.items()}))

    return call


def _argument(given: Any) -> Any:
    """Return what a function is given; a function of columns is given columns of frazil's own."""
    if isinstance(given, Column) or not callable(given):
        return given

    @functools.wraps(given)
    def call(*columns: Any) -> Any:
        return given(*map(own, columns))

    return call


class _Functions:
    """PySpark's functions, by their names."""

    def __getattr__(self, name: str) -> Any:
        made = _function(getattr(functions, name))
        setattr(self, name, made)
        return made


for _name, _theirs in vars(ClassicColumn).items():
    _plain = getattr(_theirs, "__wrapped__", None)
    if _plain is not None and _name not in _REFLECTED:
        setattr(OwnColumn, _name, _method(_plain))

if TYPE_CHECKING:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
else:
    F = _Functions()
