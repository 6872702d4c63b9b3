"""Arithmetic of Spark's ANSI mode in DuckDB: result types, overflow, and division by zero as an error."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from frazil.query.spark_casts import coerce
from frazil.query.spark_types import (
    BIGINT,
    DOUBLE,
    INT,
    MAX_PRECISION,
    NotTranslatable,
    SparkType,
    Typed,
    as_decimal,
    binary,
    call,
    cast_to,
    cast_to_hugeint,
    choose,
    combine,
    common_type,
    decimal_type,
    fail,
    is_null,
    number,
    repeated,
)

DIVISION_BY_ZERO = "Cannot divide by zero"
_CALLS = {"+": "add", "-": "subtract", "*": "multiply"}
_INT64_DIGITS = 18
_MAX_HUGEINT_DIGITS = 37
_MIN_QUOTIENT_SCALE = 6
_NODES: dict[str, type[exp.Binary]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
    "div": exp.IntDiv,
}


def arithmetic(operator: str, left: Typed, right: Typed) -> Typed:
    """Return `left operator right` for numbers, with the type of Spark."""
    for operand in (left, right):
        if not operand.type.is_numeric:
            raise NotTranslatable(f"{operator} over {left.type} and {right.type}")
    if left.type.is_floating or right.type.is_floating:
        return _of_floats(operator, left, right)
    if left.type.is_decimal or right.type.is_decimal:
        return _of_decimals(operator, _exact(left), _exact(right))
    if operator == "/":
        return _of_floats(operator, left, right)
    shared = BIGINT if operator == "div" else common_type(left.type, right.type, operator)
    return _of_integers(operator, coerce(left, shared), coerce(right, shared))


def negated(value: Typed) -> Typed:
    """Return `-value`; DuckDB widens the least integer where Spark fails, so integers are subtracted from 0."""
    if value.type.is_integral:
        zero = Typed(number(0, value.type), value.type, literal=0)
        return arithmetic("-", zero, value)
    if not value.type.is_numeric:
        raise NotTranslatable(f"- over {value.type}")
    return combine(exp.Neg(this=exp.Paren(this=value.copy_tree())), value.type, [value])


def _of_floats(operator: str, left: Typed, right: Typed) -> Typed:
    shared = DOUBLE if operator == "/" else common_type(left.type, right.type, operator)
    if operator == "div":
        raise NotTranslatable(f"div over {left.type} and {right.type}")
    left, right = coerce(left, shared), _divisor(coerce(right, shared), right)
    if operator in "/%":
        return guarded(left, right, lambda a, b: binary(_NODES[operator], a, b), shared)
    return combine(binary(_NODES[operator], left.copy_tree(), right.copy_tree()), shared, [left, right])


def _divisor(value: Typed, origin: Typed) -> Typed:
    """Return a coerced operand that keeps its literal, which tells whether it may be zero."""
    return Typed(value.tree, value.type, value.can_fail, origin.literal, value.loose)


def _of_integers(operator: str, left: Typed, right: Typed) -> Typed:
    type_name = _NODES[operator]
    if operator in {"%", "div"}:

        def divided(a: exp.Expr, b: exp.Expr) -> exp.Expr:
            if operator == "%" and right.literal is None:
                # The remainder by -1 equals that by 1, which does not fail for the least integer in DuckDB.
                minus_one = exp.EQ(this=b.copy(), expression=number(-1, right.type))
                b = choose([(minus_one, number(1, right.type))], b)
            return binary(type_name, a, b)

        return guarded(left, right, divided, left.type)
    # As calls: DuckDB rewrites `x + 1 > 3` to `x > 2`, which loses the overflow.
    return combine(call(_CALLS[operator], left.copy_tree(), right.copy_tree()), left.type, [left, right], can_fail=True)


def guarded(
    left: Typed,
    right: Typed,
    divided: Callable[[exp.Expr, exp.Expr], exp.Expr],
    spark_type: SparkType,
) -> Typed:
    """Return a division that fails for a divisor of zero, unless the dividend is null."""
    if right.literal not in (None, 0):
        can_fail = spark_type.is_integral and right.literal == -1
        return combine(divided(left.copy_tree(), right.copy_tree()), spark_type, [left, right], can_fail=can_fail)
    is_zero = exp.EQ(this=repeated(right), expression=number(0, right.type))
    has_dividend = exp.Not(this=is_null(repeated(left)))
    when = exp.And(this=exp.Paren(this=is_zero), expression=exp.Paren(this=has_dividend))
    quotient = divided(left.copy_tree(), right.copy_tree())
    return combine(choose([(when, fail(DIVISION_BY_ZERO))], quotient), spark_type, [left, right], can_fail=True)


def _exact(value: Typed) -> Typed:
    """Return an integer as Spark's decimal; a literal with just its digits."""
    if not value.type.is_integral:
        return value
    if value.literal is None:
        if isinstance(value.tree, exp.Cast) and not value.tree.find(exp.Column):
            raise NotTranslatable("arithmetic of decimals and integer literals with a type")
        return _divisor(coerce(value, as_decimal(value.type)), value)
    digits = SparkType("decimal", len(str(abs(value.literal))), 0)
    return Typed(number(str(value.literal), digits), digits, literal=value.literal)


def _of_decimals(operator: str, left: Typed, right: Typed) -> Typed:
    (p1, s1), (p2, s2) = ((node.type.precision, node.type.scale) for node in (left, right))
    index = f"{operator} over {left.type} and {right.type}"
    scale, whole = max(s1, s2), max(p1 - s1, p2 - s2)
    if operator in {"+", "-"}:
        result = decimal_type(whole + scale + 1, scale, index)
        operands = [coerce(node, result).copy_tree() for node in (left, right)]
        return combine(cast_to(binary(_NODES[operator], *operands), result), result, [left, right])
    if operator == "*":
        result = decimal_type(p1 + p2 + 1, s1 + s2, index)
        first = left.copy_tree()
        if p1 + p2 > _INT64_DIGITS >= max(p1, p2):
            first = cast_to(first, SparkType("decimal", _INT64_DIGITS + 1, s1))
        return combine(cast_to(binary(exp.Mul, first, right.copy_tree()), result), result, [left, right])
    if operator == "/":
        return _decimal_quotient(left, right, index)
    if operator == "%":
        result = decimal_type(min(p1 - s1, p2 - s2) + scale, scale, index)
        wide = decimal_type(whole + scale, scale, index)
        return guarded(
            left,
            right,
            lambda a, b: cast_to(binary(exp.Mod, cast_to(a, wide), cast_to(b, wide)), result),
            result,
        )
    raise NotTranslatable(index)


def _decimal_quotient(left: Typed, right: Typed, index: str) -> Typed:
    (p1, s1), (p2, s2) = ((node.type.precision, node.type.scale) for node in (left, right))
    scale = max(_MIN_QUOTIENT_SCALE, s1 + p2 + 1)
    result = decimal_type(p1 - s1 + s2 + scale, scale, index)
    return guarded(left, right, lambda a, b: exact_quotient((a, left.type), (b, right.type), result, index), result)


def exact_quotient(
    dividend: tuple[exp.Expr, SparkType], divisor: tuple[exp.Expr, SparkType], result: SparkType, index: str
) -> exp.Expr:
    """Return a quotient of decimals, rounded half up, computed in 128-bit integers, since DuckDB would use floats.

    Spark first rounds to 39 digits. No quotient with so few digits is close enough to a half for a difference.
    """
    (a, of_a), (b, of_b) = dividend, divisor
    digits = of_a.precision - of_a.scale + result.scale + of_b.scale
    if max(digits, of_b.precision + result.scale, of_a.precision + of_a.scale) > _MAX_HUGEINT_DIGITS:
        raise NotTranslatable(f"{index}, whose quotient has too many digits")
    n = _times_power(a, of_a, result.scale + of_b.scale)
    d = _times_power(b, of_b, of_b.scale)
    two = exp.Literal.number(2)
    doubled = binary(exp.Add, binary(exp.Mul, call("abs", n), two), call("abs", d))
    magnitude = binary(exp.IntDiv, doubled, binary(exp.Mul, call("abs", d.copy()), two.copy()))
    signed = binary(exp.Mul, binary(exp.Mul, magnitude, call("sign", n.copy())), call("sign", d.copy()))
    whole = cast_to(signed, SparkType("decimal", MAX_PRECISION, 0))
    unit = number("0." + "0" * (result.scale - 1) + "1", SparkType("decimal", result.scale + 1, result.scale))
    return cast_to(binary(exp.Mul, whole, unit), result)


def _times_power(tree: exp.Expr, of: SparkType, power: int) -> exp.Expr:
    """Multiply a decimal by a power of ten, at least that of its scale, as a 128-bit integer."""
    scaled = tree
    if of.scale:
        factor = number("1" + "0" * of.scale, SparkType("decimal", of.scale + 1, 0))
        wide = SparkType("decimal", min(MAX_PRECISION, of.precision + of.scale + 1), of.scale)
        scaled = binary(exp.Mul, cast_to(tree.copy(), wide), factor)
    integer = cast_to_hugeint(scaled.copy())
    if power == of.scale:
        return integer
    return binary(exp.Mul, integer, cast_to_hugeint(exp.Literal.string("1" + "0" * (power - of.scale))))


__all__ = ["INT", "arithmetic", "exact_quotient", "guarded", "negated"]
