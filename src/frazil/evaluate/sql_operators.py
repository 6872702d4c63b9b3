"""Comparisons and arithmetic of Spark SQL over Arrow columns. ANSI: overflow and division by zero are errors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import FUNCTIONS, Compiled, Compiler, Rows, Values, spread
from frazil.evaluate.sql_casts import cast

_DIVISION = Context(prec=t.MAX_PRECISION + 1, rounding=ROUND_DOWN)
_WIDE = Context(prec=200)


# Comparisons


def _compared(test: Callable[[Any, Any], Any]) -> Callable[[Compiler, list[Compiled]], Compiled]:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        left, right = compiler.unify(_two(arguments))
        may_fail = left.may_fail or right.may_fail

        def run(rows: Rows) -> Values:
            one, two = left.run(rows), right.run(rows)
            if left.data_type == t.NULL:
                return pa.scalar(None, t.BOOLEAN)
            return test(one, two)

        return Compiled(t.BOOLEAN, run, may_fail)

    return build


def _ordered(name: str, test: Callable[[Any, Any], Any]) -> Callable[[Compiler, list[Compiled]], Compiled]:
    """Return a test of order. Beside a number beyond all whole numbers, Spark does not look at the other side."""
    compared = _compared(test)

    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        left, right = _two(arguments)
        is_above = (
            _beyond(right) if t.is_integer(left.data_type) else -_beyond(left) if t.is_integer(right.data_type) else 0
        )
        if not is_above:
            return compared(compiler, arguments)
        holds = pa.scalar((is_above > 0) is (name[0] == "<"))
        return Compiled(t.BOOLEAN, lambda _: holds)

    return build


def _beyond(compiled: Compiled) -> int:
    """Return 1 for a decimal literal above all whole numbers of 64 bits, -1 for one below them, else 0."""
    if compiled.literal is None or not pa.types.is_decimal(compiled.data_type):
        return 0
    value = compiled.literal.value
    return 1 if value > 2**63 - 1 else -1 if value < -(2**63) else 0


def _two(arguments: list[Compiled]) -> list[Compiled]:
    if len(arguments) != 2:
        raise t.left_to_spark("an operator has two sides")
    return arguments


def equal_values(left: Any, right: Any) -> Any:
    """Return where two values are equal: NaN equals itself, and null is equal to nothing."""
    found = pc.equal(left, right)
    if t.is_floating(left.type):
        return pc.or_(found, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return found


def less_values(left: Any, right: Any) -> Any:
    """Return where a value comes before another; NaN comes last."""
    if left.type == t.BOOLEAN:
        return pc.and_(pc.invert(left), right)
    found = pc.less(left, right)
    if t.is_floating(left.type):
        return pc.or_(found, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return found


def same_values(left: Any, right: Any) -> Any:
    """Return where two values are equal or both null."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    if left.type == t.NULL:
        return both
    return pc.or_(pc.fill_null(equal_values(left, right), False), both)


def _same(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    left, right = compiler.unify(_two(arguments))
    return Compiled(
        t.BOOLEAN, lambda rows: same_values(left.run(rows), right.run(rows)), left.may_fail or right.may_fail
    )


def _not(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if len(arguments) != 1 or arguments[0].data_type not in (t.BOOLEAN, t.NULL):
        raise InvalidRequestError("Cannot negate what is neither true nor false")
    child = compiler.cast(arguments[0], t.BOOLEAN)
    return Compiled(t.BOOLEAN, lambda rows: pc.invert(child.run(rows)), child.may_fail)


def _swapped(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: test(right, left)


def _inverted(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: pc.invert(test(left, right))


# Arithmetic


def _arithmetic(name: str) -> Callable[[Compiler, list[Compiled]], Compiled]:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        left, right = _numbers(compiler, name, _two(arguments))
        if pa.types.is_decimal(left.data_type):
            return _decimal_operation(name, left, right)
        if name == "/":
            left, right = (compiler.cast(compiled, t.DOUBLE) for compiled in (left, right))
            return _computed(t.DOUBLE, _checked_division, left, right, name)
        operation = _WHOLE[name] if t.is_integer(left.data_type) else _FLOATING[name]
        data_type = t.LONG if name == "div" else left.data_type
        return _computed(data_type, operation, left, right, name)

    return build


def _numbers(compiler: Compiler, name: str, arguments: list[Compiled]) -> list[Compiled]:
    for argument in arguments:
        if not t.is_number(argument.data_type) and argument.data_type != t.NULL:
            raise t.left_to_spark(
                f"{name} is known for numbers here, not for {t.shown_name(argument.data_type)} values"
            )
    kinds = [operand.data_type for operand in arguments]
    if kinds == [t.NULL, t.NULL]:
        raise t.left_to_spark(f"{name} of two nulls has no type here")
    if name == "/" and kinds[0] == t.NULL:
        return [compiler.cast(operand, t.DOUBLE) for operand in arguments]
    if any(pa.types.is_decimal(operand) for operand in kinds) and not any(t.is_floating(operand) for operand in kinds):
        # Null is of the other's type.
        other = next(operand for operand in kinds if operand != t.NULL)
        return [
            compiler.cast(operand, other) if operand.data_type == t.NULL else _exact(compiler, operand)
            for operand in arguments
        ]
    if name == "div" and not all(t.is_integer(operand) or operand == t.NULL for operand in kinds):
        raise t.left_to_spark("div is known for whole numbers here")
    return compiler.unify(arguments)


def _exact(compiler: Compiler, compiled: Compiled) -> Compiled:
    """Return an exact number as a decimal; a literal has the digits that it is written with."""
    if t.is_integer(compiled.data_type):
        if compiled.literal is not None:
            return compiler.cast(compiled, pa.decimal128(max(1, len(str(abs(compiled.literal.value)))), 0))
        return compiler.cast(compiled, t.as_decimal(compiled.data_type))
    return compiled


def _computed(
    data_type: pa.DataType, operation: Callable[[Any, Any], Any], left: Compiled, right: Compiled, name: str
) -> Compiled:
    def run(rows: Rows) -> Values:
        one, two = left.run(rows), right.run(rows)
        try:
            made = operation(one, two)
        except pa.ArrowInvalid as problem:
            raise _overflow(name, left.data_type) from problem
        return cast(made, data_type)

    return Compiled(data_type, run, may_fail=True)


def _overflow(name: str, data_type: pa.DataType) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot compute {name}: the result does not fit {t.shown_name(data_type)}")


def _check_zero(left: Any, right: Any) -> None:
    zero = pc.fill_null(pc.equal(right, t.zero_of(right.type)), False)
    found = pc.and_(zero, pc.is_valid(left))
    if found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py():
        raise InvalidRequestError("Cannot divide by zero", hint="Use nullif(divisor, 0) to get null instead.")


def _checked_division(left: Any, right: Any) -> Any:
    _check_zero(left, right)
    return pc.divide(left, right)


def _remainder(one: Any, two: Any) -> Any:
    _check_zero(one, two)
    length = max(len(x) if not isinstance(x, pa.Scalar) else 1 for x in (one, two))
    is_scalar = isinstance(one, pa.Scalar) and isinstance(two, pa.Scalar)
    left, right = spread(one, length), spread(two, length)
    missing = pc.or_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
    divisor = right.fill_null(1).to_numpy(zero_copy_only=False)
    divisor = np.where(missing, np.ones(1, divisor.dtype), divisor)
    with np.errstate(all="ignore"):
        found = np.fmod(left.fill_null(0).to_numpy(zero_copy_only=False), divisor)
    if t.is_integer(left.type):
        # The smallest number divided by -1 leaves nothing, and numpy does not say so everywhere.
        found = np.where(divisor == -1, np.zeros(1, found.dtype), found)
    made = pa.array(found, left.type, mask=missing)
    return made[0] if is_scalar else made


def _whole_division(left: Any, right: Any) -> Any:
    _check_zero(left, right)
    # Zeros that are left stand beside null.
    safe = pc.if_else(pc.equal(right, pa.scalar(0, right.type)), pa.scalar(1, right.type), right)
    return pc.if_else(
        pc.is_valid(right), pc.divide_checked(left.cast(t.LONG), safe.cast(t.LONG)), pa.scalar(None, t.LONG)
    )


_WHOLE = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "%": _remainder,
    "div": _whole_division,
}
_FLOATING = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "%": _remainder}


def _decimal_operation(name: str, left: Compiled, right: Compiled) -> Compiled:
    """Return the operation on decimals, with as many digits as Spark gives its result, rounded half up."""
    one, two = left.data_type, right.data_type
    whole, other = one.precision - one.scale, two.precision - two.scale
    if name in ("+", "-"):
        scale = max(one.scale, two.scale)
        data_type = t.bounded_decimal(max(whole, other) + scale + 1, scale)
    elif name == "*":
        data_type = t.bounded_decimal(one.precision + two.precision + 1, one.scale + two.scale)
    elif name == "/":
        scale = max(6, one.scale + two.precision + 1)
        data_type = t.bounded_decimal(whole + two.scale + scale, scale)
    elif name == "%":
        scale = max(one.scale, two.scale)
        data_type = t.bounded_decimal(min(whole, other) + scale, scale)
    else:
        raise t.left_to_spark(f"{name} of decimals is not supported")
    fast: Any = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}.get(name)
    is_plain = fast is not None and data_type.precision < t.MAX_PRECISION

    def run(rows: Rows) -> Values:
        first, second = left.run(rows), right.run(rows)
        if is_plain:
            return fast(first, second).cast(data_type)
        if name in ("/", "%"):
            _check_zero(first, second)
        return _each(name, first, second, data_type)

    return Compiled(data_type, run, may_fail=True)


def _each(name: str, first: Any, second: Any, data_type: pa.DataType) -> Any:
    if isinstance(first, pa.Scalar) and isinstance(second, pa.Scalar):
        return _each(name, spread(first, 1), spread(second, 1), data_type)[0]
    length = len(second) if isinstance(first, pa.Scalar) else len(first)
    pairs = zip(spread(first, length).to_pylist(), spread(second, length).to_pylist(), strict=True)
    unit = Decimal(1).scaleb(-data_type.scale)
    made: list[Decimal | None] = []
    for left, right in pairs:
        if left is None or right is None:
            made.append(None)
            continue
        found = _DECIMALS[name](left, right).quantize(unit, ROUND_HALF_UP, _WIDE)
        if len(found.as_tuple().digits) > data_type.precision and found != 0:
            raise _overflow(name, data_type)
        made.append(found)
    return pa.array(made, data_type)


_DECIMALS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _WIDE.add,
    "-": _WIDE.subtract,
    "*": _WIDE.multiply,
    "/": _DIVISION.divide,
    "%": _WIDE.remainder,
}


def _negative(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = arguments[0]
    if len(arguments) != 1 or not t.is_number(child.data_type):
        raise t.left_to_spark("only numbers are negated here")

    def run(rows: Rows) -> Values:
        try:
            return pc.negate_checked(child.run(rows))
        except pa.ArrowInvalid as problem:
            raise _overflow("-", child.data_type) from problem

    return Compiled(child.data_type, run, may_fail=True)


def _positive(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if len(arguments) != 1 or not t.is_number(arguments[0].data_type):
        raise t.left_to_spark("+ is known for numbers here")
    return arguments[0]


def _bits(name: str, operation: Callable[[Any, Any], Any]) -> Callable[[Compiler, list[Compiled]], Compiled]:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        kinds = [compiled.data_type for compiled in _two(arguments)]
        if not all(t.is_integer(data_type) or data_type == t.NULL for data_type in kinds) or set(kinds) == {t.NULL}:
            raise t.left_to_spark(f"{name} is known for whole numbers here")
        left, right = compiler.unify(arguments)
        return Compiled(
            left.data_type, lambda rows: operation(left.run(rows), right.run(rows)), left.may_fail or right.may_fail
        )

    return build


def _other_bits(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = arguments[0]
    if len(arguments) != 1 or not t.is_integer(child.data_type):
        raise t.left_to_spark("~ is known for whole numbers here")
    return Compiled(child.data_type, lambda rows: pc.bit_wise_not(child.run(rows)), child.may_fail)


def _mod(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    return FUNCTIONS["%"](compiler, arguments)


FUNCTIONS |= {
    "=": _compared(equal_values),
    "<>": _compared(_inverted(equal_values)),
    "<": _ordered("<", less_values),
    ">": _ordered(">", _swapped(less_values)),
    "<=": _ordered("<=", _inverted(_swapped(less_values))),
    ">=": _ordered(">=", _inverted(less_values)),
    "<=>": _same,
    "not": _not,
    "negative": _negative,
    "positive": _positive,
    "mod": _mod,
    "&": _bits("&", pc.bit_wise_and),
    "|": _bits("|", pc.bit_wise_or),
    "^": _bits("^", pc.bit_wise_xor),
    "~": _other_bits,
    **{name: _arithmetic(name) for name in ("+", "-", "*", "/", "%", "div")},
}
