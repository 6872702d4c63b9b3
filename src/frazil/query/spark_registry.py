"""The registry of scalar functions that are allowed in views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from frazil.query.spark_casts import cast
from frazil.query.spark_types import (
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    call,
    cast_to,
    combine,
)

Scalar = Callable[[Sequence[Typed]], Typed]
SCALARS: dict[str, Scalar] = {}
"""The allowed functions by Spark's name, in lower case."""


def register(names: str, least: int, most: int | None = None) -> Callable[[Scalar], Scalar]:
    """Register a function under several names, with its number of arguments."""

    def decorate(scalar: Scalar) -> Scalar:
        for name in names.split():

            def checked(arguments: Sequence[Typed], name: str = name) -> Typed:
                if not least <= len(arguments) <= (least if most is None else most):
                    raise NotTranslatable(f"the function {name} with {len(arguments)} arguments")
                try:
                    # The result of a function is no longer a literal.
                    return replace(scalar(arguments), literal=None)
                except NotTranslatable as error:
                    raise NotTranslatable(f"the function {name}: {error.reason}") from None

            SCALARS[name] = checked
        return scalar

    return decorate


MANY = 1_000


def of_type(value: Typed, *types: SparkType) -> Typed:
    """Return an argument if it has one of these types; a null gets the first."""
    if value.type == VOID:
        return cast(value, types[0])
    if value.type not in types:
        raise NotTranslatable(f"an argument is {value.type}")
    return value


def whole_number(value: Typed, least: int) -> int:
    """Return an argument that must be an integer literal."""
    if type(value.literal) is not int or value.literal < least:
        raise NotTranslatable(f"an argument is not a literal number from {least}")
    return value.literal


def literal_text(value: Typed) -> str:
    """Return an argument that must be a text literal."""
    if not isinstance(value.literal, str):
        raise NotTranslatable("an argument is not a literal text")
    return value.literal


def register_simple(names: str, duckdb: str, result: SparkType, *types: SparkType) -> None:
    """Register a function that differs only in its name."""

    @register(names, len(types))
    def scalar(arguments: Sequence[Typed]) -> Typed:
        values = [of_type(value, expected) for value, expected in zip(arguments, types, strict=True)]
        return combine(call(duckdb, *(value.copy_tree() for value in values)), result, values)


def register_cast(names: str, duckdb: str, result: SparkType, *types: SparkType) -> None:
    """Register a function that returns another integer type in DuckDB."""

    @register(names, len(types))
    def scalar(arguments: Sequence[Typed]) -> Typed:
        values = [of_type(value, expected) for value, expected in zip(arguments, types, strict=True)]
        tree = cast_to(call(duckdb, *(value.copy_tree() for value in values)), result)
        return combine(tree, result, values)
