"""Values of Python in the place of names in a text: `:name` stands for the literal that Spark would make of it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.expr.predicates import TypedText


def parameter_value(name: str, value: Any) -> Any:
    """Return a Python value as the literal that Spark would make of it."""
    value = python_value(name, value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        type_name = "timestamp_ntz" if value.tzinfo is None else "timestamp"
        return TypedText(type_name, value.isoformat(sep=" "))
    if isinstance(value, datetime.time):
        return TypedText("time", value.isoformat("microseconds"))
    if isinstance(value, datetime.date):
        return TypedText("date", value.isoformat())
    if value is None or isinstance(value, bool | int | float | Decimal | str | bytes):
        return value
    raise _no_literal(name, f"a {type(value).__name__}")


def python_value(name: str, value: Any) -> Any:
    """Return a parameter as a plain value of Python; refuse values that no engine has.

    Members of enumerations and other subclasses become the text or the number that they are.
    """
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = _of_numpy(name, value)
    for plain, convert in _PLAIN.items():
        if isinstance(value, plain) and not isinstance(value, bool):
            value = convert(value)
    is_lone = isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
    if is_lone or (isinstance(value, Decimal) and not value.is_finite()):
        raise _no_literal(name, repr(value) if is_lone else str(value))
    if isinstance(value, datetime.datetime) and value != value:  # NaT of pandas
        raise _no_literal(name, str(value))
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise _no_literal(name, f"{value.isoformat()}, a time of day with a zone,")
    return value


_PLAIN: dict[type, Callable[[Any], Any]] = {int: int.__index__, float: float.__float__, str: str.__str__}


def _no_literal(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot use the parameter {name!r}: {what} is no literal")


def _of_numpy(name: str, value: Any) -> Any:
    """Return a value of NumPy's as Python's; times in nanoseconds would become numbers."""
    type_name = type(value).__name__
    if value.ndim:
        raise _no_literal(name, f"a {type_name}")
    if type_name not in ("datetime64", "timedelta64") or isinstance(value.item(), datetime.date):
        return value.item()
    exact = value.astype(f"{type_name}[us]")
    if exact != value:
        raise InvalidRequestError(f"Cannot use the parameter {name!r}: {value} is no whole number of microseconds")
    return exact.item()
