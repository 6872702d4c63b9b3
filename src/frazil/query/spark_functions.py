"""Scalar functions that were tested to have Spark's meaning in DuckDB: for nulls, choices, numbers and casts.

Text and time functions are in separate modules. A name that is not in `SCALARS` is refused. A function receives its
arguments with their types, and refuses types that were not tested.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from frazil.query.spark_arithmetic import arithmetic, negated
from frazil.query.spark_casts import NEEDS_SPARK, cast, coerce
from frazil.query.spark_registry import (
    MANY,
    SCALARS,
    of_type,
    register,
    whole_number,
)
from frazil.query.spark_text_functions import trimmed
from frazil.query.spark_time_functions import add_interval
from frazil.query.spark_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    call,
    cast_to,
    choose,
    combine,
    common_type,
    common_type_of,
    decimal_type,
    fail,
    is_null,
    number,
    paren,
    parse_spark_type,
    repeated,
)

# Nulls and choices


def _merged(arguments: Sequence[Typed]) -> tuple[list[Typed], SparkType]:
    shared = common_type_of((value.type for value in arguments), "the list of arguments")
    if shared == VOID:
        raise NotTranslatable("all arguments are null")
    return [coerce(value, shared) for value in arguments], shared


@register("coalesce", 1, MANY)
def _coalesce(arguments: Sequence[Typed]) -> Typed:
    values, shared = _merged(arguments)
    return combine(exp.Coalesce(this=values[0].copy_tree(), expressions=[node.copy_tree() for node in values[1:]]),
                   shared, values)  # fmt: skip


register("ifnull nvl", 2)(_coalesce)


@register("if", 3)
def _if(arguments: Sequence[Typed]) -> Typed:
    condition = of_type(arguments[0], BOOLEAN)
    values, shared = _merged(arguments[1:])
    tree = choose([(condition.copy_tree(), values[0].copy_tree())], values[1].copy_tree())
    return combine(tree, shared, [condition, *values])


@register("nvl2", 3)
def _nvl2(arguments: Sequence[Typed]) -> Typed:
    values, shared = _merged(arguments[1:])
    has_value = exp.Not(this=is_null(arguments[0].copy_tree()))
    return combine(choose([(has_value, values[0].copy_tree())], values[1].copy_tree()), shared, [arguments[0], *values])


@register("nullif", 2)
def _nullif(arguments: Sequence[Typed]) -> Typed:
    first, second = arguments
    shared = common_type(first.type, second.type, "the pair of arguments")
    if not shared.is_atomic or first.type == VOID:
        raise NotTranslatable(f"an argument is {shared}")
    is_equal = exp.EQ(
        this=paren(coerce(first, shared).copy_tree()), expression=paren(coerce(second, shared).copy_tree())
    )
    return combine(choose([(is_equal, cast_to(exp.Null(), first.type))], repeated(first)), first.type, arguments)


@register("isnull", 1)
def _isnull(arguments: Sequence[Typed]) -> Typed:
    return combine(is_null(arguments[0].copy_tree()), BOOLEAN, arguments)


@register("isnotnull", 1)
def _isnotnull(arguments: Sequence[Typed]) -> Typed:
    return combine(exp.Not(this=is_null(arguments[0].copy_tree())), BOOLEAN, arguments)


@register("isnan", 1)
def _isnan(arguments: Sequence[Typed]) -> Typed:
    """Return isnan, which is false for null in Spark."""
    value = arguments[0]
    if not value.type.is_floating:
        raise NotTranslatable(f"an argument is {value.type}")
    tree = exp.Coalesce(this=call("isnan", value.copy_tree()), expressions=[exp.Boolean(this=False)])
    return combine(tree, BOOLEAN, [value])


for _name in ("greatest", "least"):

    @register(_name, 2, MANY)
    def _extreme(arguments: Sequence[Typed], name: str = _name) -> Typed:
        values, shared = _merged(arguments)
        if not shared.is_atomic:
            raise NotTranslatable(f"an argument is {shared}")
        return combine(call(name, *(value.copy_tree() for value in values)), shared, values)


# Numbers


@register("abs", 1)
def _abs(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    if not value.type.is_numeric:
        raise NotTranslatable(f"an argument is {value.type}")
    return combine(cast_to(call("abs", value.copy_tree()), value.type), value.type, [value], can_fail=True)


register("negative", 1)(lambda arguments: negated(arguments[0]))
register("mod", 2)(lambda arguments: arithmetic("%", *arguments))

_LONG_LIMIT = "9223372036854775808"


def _to_whole(names: str, duckdb: str) -> None:
    """Register ceil or floor. For NaN and doubles beyond bigint, some versions of Spark fail and others do not."""

    @register(names, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        if value.type.is_integral:
            return coerce(value, BIGINT)
        if value.type.is_decimal:
            result = decimal_type(value.type.precision - value.type.scale + (value.type.scale > 0), 0, "the result")
            return combine(cast_to(call(duckdb, value.copy_tree()), result), result, [value])
        if not value.type.is_floating:
            raise NotTranslatable(f"an argument is {value.type}")
        value = coerce(value, DOUBLE)
        too_great = exp.GTE(this=call("abs", repeated(value)), expression=number(_LONG_LIMIT, DOUBLE))
        refusal = fail(f"Cannot compute {duckdb} of a number beyond bigint: {NEEDS_SPARK}")
        # NaN is greater than all numbers, so it is refused as well.
        tree = choose([(too_great, refusal)], cast_to(call(duckdb, value.copy_tree()), BIGINT))
        return combine(tree, BIGINT, [value], can_fail=True)


_to_whole("ceil ceiling", "ceil")
_to_whole("floor", "floor")


_MAX_PLACES = 10
_NO_FRACTION = "100000000000000000"


@register("round", 1, 2)
def _round(arguments: Sequence[Typed]) -> Typed:
    """Round half up; Spark rounds the printed digits of a double, DuckDB's function its value."""
    value = arguments[0]
    places = whole_number(arguments[1], 0) if len(arguments) > 1 else 0
    if value.type.is_integral:
        return value
    if value.type == DOUBLE and places <= _MAX_PLACES:
        printed = cast_to(cast_to(repeated(value), STRING), decimal_type(38, places, "the result"))
        rounded = cast_to(cast_to(printed, STRING), DOUBLE)
        # Greater doubles have no fraction. NaN is greater, too.
        is_small = exp.LT(this=call("abs", repeated(value)), expression=number(_NO_FRACTION, DOUBLE))
        return combine(choose([(is_small, rounded)], value.copy_tree()), DOUBLE, [value])
    if not value.type.is_decimal:
        raise NotTranslatable(f"an argument is {value.type}, which is not rounded as in Spark")
    scale = min(places, value.type.scale)
    result = decimal_type(value.type.precision - value.type.scale + 1 + scale, scale, "the result")
    return combine(cast_to(value.copy_tree(), result), result, [value])


@register("sqrt", 1)
def _sqrt(arguments: Sequence[Typed]) -> Typed:
    value = coerce(arguments[0], DOUBLE)
    negative = exp.LT(this=paren(repeated(value)), expression=number(0, DOUBLE))
    return combine(choose([(negative, number("NaN", DOUBLE))], call("sqrt", value.copy_tree())), DOUBLE, [value])


@register("size cardinality", 1)
def _size(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    name = {"array<": "len", "map<": "cardinality"}.get(value.type.name[: value.type.name.find("<") + 1])
    if name is None:
        raise NotTranslatable(f"an argument is {value.type}")
    return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


def _casts(names: str, target: SparkType) -> None:
    """Register a type name as the function that casts to it."""
    register(names, 1)(lambda arguments: cast(arguments[0], target))


for _name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp"):
    _casts(_name, parse_spark_type(_name))
_casts("to_date", DATE)
_casts("to_timestamp", TIMESTAMP)

__all__ = ["SCALARS", "add_interval", "trimmed"]
