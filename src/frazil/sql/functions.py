"""The functions of a lake: `lake.system.bucket(16, id)` and the others. `spark/read/sql_functions.py` makes them."""

from __future__ import annotations

from frazil.errors import NotFoundError

ICEBERG_VERSION = "iceberg_version"
_UNARY = ("day", "days", "hour", "hours", "month", "months", "year", "years")
_WITH_NUMBER = ("bucket", "truncate")


def known_functions() -> list[str]:
    """Return the names of a lake's functions."""
    return sorted([*_UNARY, *_WITH_NUMBER, ICEBERG_VERSION])


def function_usage(name: str) -> str:
    """Return how a function is called; refuse one that there is not."""
    if name not in known_functions():
        raise NotFoundError(
            f"Cannot find the function {name!r} in a lake", hint=f"There are: {', '.join(known_functions())}."
        )
    if name == ICEBERG_VERSION:
        return f"{name}()"
    return f"{name}(column)" if name in _UNARY else f"{name}(number, column)"


def describe_function(name: str) -> str:
    """Return what a function does."""
    if name == ICEBERG_VERSION:
        return "iceberg_version() - The library that reads and writes the lake's tables, and its version."
    return f"{function_usage(name)} - The value that the partition transform {name} gives."
