"""What a test in the text of a condition means to Spark SQL, written in two truth values over a column of a schema.

The meaning is Spark's with its defaults (ANSI): null makes a test neither true nor false, NaN equals itself and is
greater than every number, and a literal of another type than the column is compared in their common type. Where that
common type is not exact for all values of the column (a long and a double beyond 2^53), or would change the column's
values and not the literal (text compared with a number), the test is refused: only Spark computes that. Times without a
zone are in UTC here.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from frazil.errors import FrazilError, SchemaMismatchError
from frazil.expr.bind_leaf import bind_place, bind_places, bind_unary, check_order
from frazil.expr.literals import LiteralBounds, place_instant, place_literal
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    Bound,
    BoundTerm,
    Op,
    Predicate,
    SqlTest,
    TypedText,
    all_of,
    any_of,
)
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
)
from frazil.spec.values import to_internal
from frazil.text.literals import MAX_DIGITS, digits_of

SPARKS_WAY = "Write a literal of the column's type, or leave it to Spark: `scan().to_spark().where(…)`."
_OPPOSITE = {Op.LT: Op.GT_EQ, Op.LT_EQ: Op.GT, Op.GT: Op.LT_EQ, Op.GT_EQ: Op.LT}
_GREATER = (Op.GT, Op.GT_EQ)
_NUMBERS = (IntType, LongType, DecimalType, FloatType, DoubleType)
_EXACT_LONG = 2.0**53
_EXACT_DIGITS = 15
_TRUE_WORDS = frozenset({"t", "true", "y", "yes", "1"})
_FALSE_WORDS = frozenset({"f", "false", "n", "no", "0"})
_WHOLE = re.compile("[+-]?[0-9]{1,18}")
_NUMBER = re.compile("[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")
_ZONED = re.compile(r"(Z|[+-]\d\d:\d\d)$")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_FINE = re.compile(r"\.\d{7,}", re.ASCII)
_TIME_TEXT = re.compile(r"\d\d:\d\d:\d\d\.\d{6}", re.ASCII)
_TIMESTAMPS = ("timestamp", "timestamp_ltz")


def bind_sql_test(test: SqlTest, term: BoundTerm) -> Predicate:
    """Return where Spark SQL says that a test of a term is true, or false, as a bound predicate of two values."""
    op, result_type = test.op, term.result_type
    if op is Op.IS_NULL:
        return bind_unary(Op.IS_NULL if test.is_true else Op.NOT_NULL, term)
    if op is Op.IS_NAN:
        if not isinstance(result_type, _NUMBERS):
            raise SchemaMismatchError(
                f"Cannot test whether {term} is NaN: it holds {result_type} values", hint=SPARKS_WAY
            )
        return bind_unary(Op.IS_NAN if test.is_true else Op.NOT_NAN, term)
    if isinstance(result_type, UnknownType):
        # Every value is null, and so is what is said of it.
        return FALSE
    check_order(term)
    try:
        return _bind(op, term, test.literals, is_true=test.is_true)
    except SchemaMismatchError as problem:
        raise SchemaMismatchError(
            f"Cannot use the condition {test}: {_reason(problem)}", hint=problem.hint
        ) from problem


def _reason(problem: FrazilError) -> str:
    return problem.message.partition(": ")[2] or problem.message


def _bind(op: Op, term: BoundTerm, literals: tuple[Any, ...], *, is_true: bool) -> Predicate:
    result_type = term.result_type
    if op is Op.STARTS_WITH:
        if not isinstance(result_type, StringType) or not isinstance(literals[0], str):
            raise _refusal(f"{result_type} values are no text")
        prefix = to_internal(literals[0], result_type)
        if prefix == "":
            return bind_unary(Op.NOT_NULL, term) if is_true else FALSE
        return _known(Bound(Op.STARTS_WITH if is_true else Op.NOT_STARTS_WITH, term, (prefix,)), term)
    if op is Op.IN:
        return _bind_in(term, literals, is_true=is_true)
    if literals[0] is None:
        return FALSE
    if _is_nan(literals[0]) and isinstance(result_type, FloatType | DoubleType):
        return _bind_nan(op if is_true else _OPPOSITE.get(op, Op.NOT_EQ), term)
    if isinstance(result_type, UuidType) and op is not Op.EQ:
        raise _refusal("the order of uuids is their text's")
    beyond = _beyond(literals[0], result_type)
    if beyond and op is not Op.EQ:
        return TRUE if ((beyond > 0) is (op not in _GREATER)) is is_true else FALSE
    bounds = _place(literals[0], result_type)
    if op is Op.EQ:
        return _known(bind_place(Op.EQ if is_true else Op.NOT_EQ, term, bounds), term)
    return _ordered(op if is_true else _OPPOSITE[op], term, bounds)


def _beyond(literal: Any, data_type: Type) -> int:
    """Return 1 for a literal above all whole numbers of 64 bits, -1 for one below them, else 0.

    Beside such a literal Spark does not look at a column of whole numbers: the answer is one for all rows, also for
    those without a value.
    """
    if (
        not isinstance(data_type, IntType | LongType)
        or isinstance(literal, bool)
        or not isinstance(literal, int | Decimal)
    ):
        return 0
    return 1 if literal > 2**63 - 1 else -1 if literal < -(2**63) else 0


def _known(found: Predicate, term: BoundTerm) -> Predicate:
    """Return a test without the nulls for which it holds: to SQL they are neither true nor false."""
    if isinstance(found, Bound) and not found.op.is_true_for_null:
        return found
    return all_of(bind_unary(Op.NOT_NULL, term), found)


def _ordered(op: Op, term: BoundTerm, bounds: LiteralBounds) -> Predicate:
    found = bind_place(op, term, bounds)
    if op in _GREATER and isinstance(term.result_type, FloatType | DoubleType):
        return any_of(found, bind_unary(Op.IS_NAN, term))
    return found


def _bind_in(term: BoundTerm, literals: tuple[Any, ...], *, is_true: bool) -> Predicate:
    known, result_type = [literal for literal in literals if literal is not None], term.result_type
    families = {_family(literal) for literal in known}
    if len(families) > 1 and not (families == {"exact", "binary"} and isinstance(result_type, FloatType | DoubleType)):
        raise _refusal("the literals are of different types")
    if families == {"exact"} and isinstance(result_type, IntType | LongType | DecimalType):
        _check_digits([*known, result_type])
    has_nan = isinstance(result_type, FloatType | DoubleType) and any(_is_nan(literal) for literal in known)
    places = [_place(literal, result_type) for literal in known if not (has_nan and _is_nan(literal))]
    if is_true:
        return any_of(bind_places(Op.IN, term, places), bind_unary(Op.IS_NAN, term) if has_nan else FALSE)
    if len(known) < len(literals):
        return FALSE
    found = bind_places(Op.NOT_IN, term, places)
    return _known(all_of(found, bind_unary(Op.NOT_NAN, term)) if has_nan else found, term)


def _bind_nan(op: Op, term: BoundTerm) -> Predicate:
    """Return a comparison with NaN, which equals itself and is greater than every number."""
    if op is Op.GT:
        return FALSE
    if op in (Op.EQ, Op.GT_EQ):
        return bind_unary(Op.IS_NAN, term)
    known = bind_unary(Op.NOT_NULL, term)
    return known if op is Op.LT_EQ else all_of(known, bind_unary(Op.NOT_NAN, term))


def _is_nan(literal: Any) -> bool:
    return isinstance(literal, float) and math.isnan(literal)


def _family(literal: Any) -> str:
    if isinstance(literal, TypedText):
        return literal.kind
    if isinstance(literal, int | Decimal) and not isinstance(literal, bool):
        return "exact"
    return "binary" if isinstance(literal, float) else type(literal).__name__


def _place(literal: Any, data_type: Type) -> LiteralBounds:
    """Return where a literal lies among a column's values in the order of the type Spark compares them in."""
    return _PLACES[type(data_type)](literal, data_type)


def _place_boolean(literal: Any, data_type: Type) -> LiteralBounds:
    word = literal.strip(" ").lower() if isinstance(literal, str) else ""
    if word in _TRUE_WORDS or word in _FALSE_WORDS:
        literal = word in _TRUE_WORDS
    if isinstance(literal, bool):
        return LiteralBounds(literal, literal)
    raise _mismatch(literal, data_type)


def _place_whole(literal: Any, data_type: Type) -> LiteralBounds:
    if isinstance(literal, str) and _WHOLE.fullmatch(literal):
        literal = int(literal)
    if isinstance(literal, float) and isinstance(data_type, LongType) and abs(literal) > _EXACT_LONG:
        raise _refusal(f"long values are compared with {literal!r} as doubles, which are not exact there")
    return _place_exact(literal, data_type)


def _place_exact(literal: Any, data_type: Type) -> LiteralBounds:
    if isinstance(literal, int | Decimal) and not isinstance(literal, bool):
        _check_digits([literal, data_type])
        return place_literal(literal, data_type)
    if isinstance(literal, float):
        return place_literal(literal, data_type)
    raise _mismatch(literal, data_type)


def _place_decimal(literal: Any, data_type: Any) -> LiteralBounds:
    if isinstance(literal, str) and _NUMBER.fullmatch(literal):
        literal = float(literal)
    if isinstance(literal, float) and (data_type.precision > _EXACT_DIGITS or math.isinf(literal)):
        raise _refusal(f"{data_type} values are compared with {literal!r} as doubles, which are not exact for them")
    return _place_exact(literal, data_type)


def _check_digits(compared: list[Any]) -> None:
    """Refuse exact numbers whose common type would need more digits than a decimal has."""
    sizes = [_digits(literal) for literal in compared]
    if max(size[0] for size in sizes) + max(size[1] for size in sizes) > MAX_DIGITS:
        raise _refusal(f"comparing them exactly needs more than {MAX_DIGITS} digits")


def _digits(data_type: Any) -> tuple[int, int]:
    if isinstance(data_type, DecimalType):
        return data_type.precision - data_type.scale, data_type.scale
    if isinstance(data_type, Type):
        return (10, 0) if isinstance(data_type, IntType) else (20, 0)
    return (len(str(abs(data_type))), 0) if isinstance(data_type, int) else digits_of(Decimal(data_type))


def _place_floating(literal: Any, data_type: Type) -> LiteralBounds:
    """Return the bounds of a literal as a double, among doubles or among the doubles that are floats."""
    if isinstance(literal, str) and _NUMBER.fullmatch(literal):
        literal = float(literal)
    if not isinstance(literal, int | float | Decimal) or isinstance(literal, bool):
        raise _mismatch(literal, data_type)
    value = float(literal)
    if isinstance(data_type, DoubleType):
        return LiteralBounds(value, value)
    try:
        near: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        near = math.copysign(math.inf, value)
    if near == value:
        return LiteralBounds(value, value)
    return LiteralBounds(near, _next_float(near, 1)) if near < value else LiteralBounds(_next_float(near, -1), near)


def _next_float(value: float, step: int) -> float:
    """Return the next float above or below one."""
    if value == 0:
        return float(struct.unpack("<f", b"\1\0\0\0")[0]) * step
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<i", bits + (step if value > 0 else -step)))[0])


def _place_text(literal: Any, data_type: Type) -> LiteralBounds:
    if not isinstance(literal, str):
        raise _mismatch(literal, data_type)
    value = to_internal(literal, data_type)
    return LiteralBounds(value, value)


def _place_bytes(literal: Any, data_type: Type) -> LiteralBounds:
    if isinstance(literal, str):
        literal = to_internal(literal, StringType()).encode()
    if not isinstance(literal, bytes):
        raise _mismatch(literal, data_type)
    if isinstance(data_type, FixedType) and len(literal) != data_type.length:
        raise _refusal(f"it holds {len(literal)} bytes and a {data_type} has {data_type.length}")
    return LiteralBounds(literal, literal)


def _place_moment(literal: Any, data_type: Type) -> LiteralBounds:
    text = literal.text if isinstance(literal, TypedText) else literal
    type_name = literal.kind if isinstance(literal, TypedText) else ""
    has_zone = isinstance(data_type, TimestamptzType | TimestamptzNsType) or type_name in _TIMESTAMPS
    is_fine = isinstance(data_type, TimestampNsType | TimestamptzNsType)
    if not isinstance(text, str) or type_name == "time" or not _MOMENT.fullmatch(text):
        raise _mismatch(literal, data_type)
    if _FINE.search(text) and not is_fine:
        raise _refusal(f"{text!r} is finer than microseconds, which Spark cuts off")
    if len(text) > len("2024-01-01") and (type_name == "date" or (type_name == "" and isinstance(data_type, DateType))):
        raise _refusal(f"a date has no time of day, and {text!r} has one")
    if _ZONED.search(text) and (not has_zone or type_name == "timestamp_ntz"):
        raise _refusal(f"{text!r} has a zone, and local times have none")
    # Dates and local times are compared with a moment as the moments at which they are in UTC.
    return place_instant(text, data_type, may_have_zone=has_zone)


def _place_time(literal: Any, data_type: Type) -> LiteralBounds:
    text = literal.text if isinstance(literal, TypedText) and literal.kind == "time" else literal
    if not isinstance(text, str) or (text is literal and not _TIME_TEXT.fullmatch(text)):
        raise _mismatch(literal, data_type)
    return place_literal(text, data_type)


def _place_uuid(literal: Any, data_type: Type) -> LiteralBounds:
    try:
        value = uuid.UUID(literal) if isinstance(literal, str) else None
    except ValueError:
        value = None
    if value is None or str(value) != literal:
        raise _refusal(f"{literal!r} is not the text of a uuid: 8-4-4-4-12 small hexadecimal digits")
    return LiteralBounds(value, value)


_PLACES: dict[type[Type], Callable[[Any, Any], LiteralBounds]] = {
    BooleanType: _place_boolean,
    IntType: _place_whole,
    LongType: _place_whole,
    DecimalType: _place_decimal,
    FloatType: _place_floating,
    DoubleType: _place_floating,
    StringType: _place_text,
    BinaryType: _place_bytes,
    FixedType: _place_bytes,
    DateType: _place_moment,
    TimestampType: _place_moment,
    TimestamptzType: _place_moment,
    TimestampNsType: _place_moment,
    TimestamptzNsType: _place_moment,
    TimeType: _place_time,
    UuidType: _place_uuid,
}


def shown_value(literal: Any, data_type: Type) -> Any:
    """Return the value of a type that a literal says, such as the text that Spark shows; refuse any other."""
    return _place(literal, data_type).below


def depends_on_zone(test: SqlTest, term: BoundTerm) -> bool:
    """Return whether the zone of Spark's session has a say in what a test means; here it is UTC."""
    result_type = term.result_type
    for literal in test.literals:
        text = literal.text if isinstance(literal, TypedText) else literal
        if not isinstance(text, str):
            continue
        is_moment = isinstance(literal, TypedText) and literal.kind in _TIMESTAMPS
        if isinstance(result_type, TimestamptzType | TimestamptzNsType):
            if not _ZONED.search(text):
                return True
        elif is_moment:
            return True
    return False


def _refusal(reason: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"Cannot compare: {reason}", hint=SPARKS_WAY)


def _mismatch(literal: Any, data_type: Type) -> SchemaMismatchError:
    return _refusal(f"{data_type} values are not compared with {literal!r} here")
