"""PySpark's functions and columns without call-site recording, for the columns that frazil creates.

PySpark records the caller's line with each column, to show it in error messages. That takes half a dozen calls to the
JVM: about half of all calls of a read or a write, for lines inside frazil that would help no user. `F` has PySpark's
functions, and the columns that they return have PySpark's methods, both without the decorator that records the line.
PySpark itself is not changed: users' columns record their call sites.
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
"""Reflected operators. Python would prefer an override in this subclass to the left operand's own method."""


class OwnColumn(ClassicColumn):
    """A column whose methods, and those of the columns that they return, record no call site."""


def own(value: Any) -> Any:
    """Convert a classic column to an `OwnColumn`; return anything else, such as a Spark Connect column, unchanged."""
    return OwnColumn(value._jc) if type(value) is ClassicColumn else value


def _method(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(self: OwnColumn, *args: Any, **kwargs: Any) -> Any:
        return own(plain(self, *args, **kwargs))

    return call


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    plain = inspect.unwrap(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_remote():
            return function(*args, **kwargs)
        return own(plain(*map(_argument, args), **{name: _argument(value) for name, value in kwargs.items()}))

    return call


def _argument(argument: Any) -> Any:
    """Wrap an argument that is a function of columns, so that it receives columns of frazil's own."""
    if isinstance(argument, Column) or not callable(argument):
        return argument

    @functools.wraps(argument)
    def call(*columns: Any) -> Any:
        return argument(*map(own, columns))

    return call


class _Functions:
    """The module `pyspark.sql.functions`, with functions that record no call site."""

    def __getattr__(self, name: str) -> Any:
        function = _function(getattr(functions, name))
        setattr(self, name, function)
        return function


for _name, _theirs in vars(ClassicColumn).items():
    _plain = getattr(_theirs, "__wrapped__", None)
    if _plain is not None and _name not in _REFLECTED:
        setattr(OwnColumn, _name, _method(_plain))

if TYPE_CHECKING:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
else:
    F = _Functions()
