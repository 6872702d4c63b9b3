"""Aggregates and window functions that were tested to have Spark's meaning in DuckDB.

An aggregate is a call, to which FILTER and OVER are attached, inside a rewrite that gives it Spark's type. Sums of
floats
are added in varying order, in Spark too: their last digits are not deterministic in either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from frazil.query.spark_arithmetic import exact_quotient
from frazil.query.spark_casts import coerce
from frazil.query.spark_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    call,
    cast_to,
    choose,
    combine,
    common_type,
    decimal_type,
)

Attach = Callable[[exp.Expr], exp.Expr]
"""Attaches FILTER and OVER to a call."""
_SUM_DIGITS, _AVERAGE_DIGITS = 10, 4
_COUNT = SparkType("decimal", 20, 0)


def aggregate(name: str, arguments: Sequence[Typed], *, is_distinct: bool, attach: Attach) -> Typed:
    """Return an aggregate with its Spark type; the name is one of `AGGREGATES`."""
    if len(arguments) != 1:
        raise NotTranslatable(f"the function {name} with {len(arguments)} arguments")
    (value,) = arguments
    if (
        value.type == VOID
        or (name != "count" and not value.type.is_atomic)
        or (is_distinct and not value.type.is_atomic)
    ):
        raise NotTranslatable(f"the function {name} over {value.type}")
    build = AGGREGATES[name]

    def apply(duckdb: str, argument: Typed) -> exp.Expr:
        tree: exp.Expr = argument.copy_tree()
        return attach(call(duckdb, exp.Distinct(expressions=[tree]) if is_distinct else tree))

    result = build(name, value, apply)
    # The argument's rows are inside the aggregate, so its failures do not leak outside.
    return Typed(result.tree, result.type, value.can_fail or result.can_fail)


def count_rows(attach: Attach) -> Typed:
    """Return count(*)."""
    return Typed(attach(call("count", exp.Star())), BIGINT)


def _count(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    return Typed(apply("count", value), BIGINT)


def _count_if(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    if value.type != BOOLEAN:
        raise NotTranslatable(f"the function {name} over {value.type}")
    # DuckDB's count_if is null if all values are null.
    node = choose([(value.copy_tree(), exp.Literal.number(1))], None)
    return Typed(apply("count", replace(value, tree=node)), BIGINT)


def _sum(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    if value.type.is_integral:
        return Typed(cast_to(apply("sum", value), BIGINT), BIGINT, can_fail=True)
    if value.type.is_floating:
        return Typed(apply("sum", coerce(value, DOUBLE)), DOUBLE)
    if value.type.is_decimal:
        digits = value.type.precision + _SUM_DIGITS
        result = decimal_type(digits, value.type.scale, f"sum over {value.type}")
        return Typed(cast_to(apply("sum", value), result), result, can_fail=True)
    raise NotTranslatable(f"the function {name} over {value.type}")


def _average(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    if value.type.is_decimal:
        precision, scale = value.type.precision, value.type.scale
        index = f"avg over {value.type}"
        result = decimal_type(precision + _AVERAGE_DIGITS, scale + _AVERAGE_DIGITS, index)
        of_sum = decimal_type(precision + _SUM_DIGITS, scale, index)
        total = (cast_to(apply("sum", value), of_sum), of_sum)
        # No rows give null divided by null.
        count = (call("nullif", apply("count", value), exp.Literal.number(0)), _COUNT)
        return Typed(exact_quotient(total, count, result, index), result, can_fail=True)
    if not value.type.is_numeric:
        raise NotTranslatable(f"the function {name} over {value.type}")
    return Typed(apply("avg", coerce(value, DOUBLE)), DOUBLE)


def _extreme(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    return Typed(apply(name, value), value.type)


def _of_conditions(name: str, value: Typed, apply: Callable[[str, Typed], exp.Expr]) -> Typed:
    if value.type != BOOLEAN:
        raise NotTranslatable(f"the function {name} over {value.type}")
    return Typed(apply("bool_and" if name in {"bool_and", "every"} else "bool_or", value), BOOLEAN)


AGGREGATES: dict[str, Callable[[str, Typed, Any], Typed]] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extreme,
    "max": _extreme,
    **dict.fromkeys(("bool_and", "every", "bool_or", "some", "any"), _of_conditions),
}
"""The allowed aggregates by Spark's name, in lower case."""


def window_function(name: str, arguments: Sequence[Typed], attach: Attach) -> Typed:
    """Return a pure window function; the name is one of `WINDOW_FUNCTIONS`."""
    return WINDOW_FUNCTIONS[name](name, arguments, attach)


def _rank(name: str, arguments: Sequence[Typed], attach: Attach) -> Typed:
    if arguments:
        raise NotTranslatable(f"the function {name} with arguments")
    if name in {"percent_rank", "cume_dist"}:
        return Typed(attach(call(name)), DOUBLE)
    return Typed(cast_to(attach(call(name)), INT), INT)


def _ntile(name: str, arguments: Sequence[Typed], attach: Attach) -> Typed:
    if len(arguments) != 1 or type(arguments[0].literal) is not int or arguments[0].literal < 1:
        raise NotTranslatable("the function ntile without a literal number")
    return Typed(cast_to(attach(call(name, arguments[0].copy_tree())), INT), INT)


def _neighbour(name: str, arguments: Sequence[Typed], attach: Attach) -> Typed:
    if not 1 <= len(arguments) <= 3 or any(
        type(node.literal) is not int or node.literal < 0 for node in arguments[1:2]
    ):
        raise NotTranslatable(f"the function {name} without a literal distance")
    values = list(arguments)
    if len(values) == 3:
        shared = common_type(values[0].type, values[2].type, name)
        if shared != values[0].type:
            raise NotTranslatable(f"the function {name} with a default of {values[2].type}")
        values[2] = coerce(values[2], shared)
    if values[0].type == VOID:
        raise NotTranslatable(f"the function {name} over null")
    tree = attach(call(name, *(value.copy_tree() for value in values)))
    return combine(tree, values[0].type, values)


def _edge(name: str, arguments: Sequence[Typed], attach: Attach) -> Typed:
    if len(arguments) != 1 or arguments[0].type == VOID:
        raise NotTranslatable(f"the function {name} with these arguments")
    duckdb = {"first": "first_value", "last": "last_value"}.get(name, name)
    return combine(attach(call(duckdb, arguments[0].copy_tree())), arguments[0].type, arguments)


RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
"""Functions whose frame is fixed, like that of `NEIGHBOURS`."""
NEIGHBOURS = ("ntile", "lag", "lead")
WINDOW_FUNCTIONS: dict[str, Callable[[str, Sequence[Typed], Attach], Typed]] = {
    **dict.fromkeys(RANKS, _rank),
    "ntile": _ntile,
    "lag": _neighbour,
    "lead": _neighbour,
    **dict.fromkeys(("first_value", "last_value", "first", "last"), _edge),
}
"""The allowed window functions by Spark's name, in lower case."""
