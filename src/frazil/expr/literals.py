"""Where a literal lies among the values of a column's type.

A user compares a column with whatever the text said: `price > 10` on a decimal column, `n < 2.5` on an
int, `day >= '2024-01-01'` on a date, `ts < timestamp_ns '…'` on microseconds. A literal need not be a value
of the column's type, yet each comparison has an exact answer. `place_literal` finds it: the literal is a
value of the type, or lies in the gap between two neighbouring values, or beyond the last one.
`bind.py` turns that into a comparison with real values.

Floating point is the exception: a literal for a `float` column is rounded to the nearest float, as users of
`x = 0.1` expect and as Iceberg Java does.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from frazil.errors import SchemaMismatchError
from frazil.spec.iso8601 import NANOS_PER_DAY, parse_date, parse_timestamp
from frazil.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
)
from frazil.spec.values import to_internal

_EXACT = decimal.Context(prec=200, traps=[decimal.InvalidOperation])
_MAX_EXPONENT = 500
_MICROS_PER_DAY = 86_400_000_000
_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_INTEGER_RANGES: dict[type[Type], tuple[int, int]] = {
    IntType: (-(2**31), 2**31 - 1),
    DateType: (-(2**31), 2**31 - 1),
    LongType: (-(2**63), 2**63 - 1),
    TimestampType: (-(2**63), 2**63 - 1),
    TimestamptzType: (-(2**63), 2**63 - 1),
    TimestampNsType: (-(2**63), 2**63 - 1),
    TimestamptzNsType: (-(2**63), 2**63 - 1),
    TimeType: (0, _MICROS_PER_DAY - 1),
}
_NANOS_PER_UNIT: dict[type[Type], int] = {
    DateType: _MICROS_PER_DAY * 1000,
    TimestampType: 1000,
    TimestamptzType: 1000,
    TimestampNsType: 1,
    TimestamptzNsType: 1,
}


@dataclass(frozen=True, slots=True)
class LiteralBounds:
    """A literal among a type's values: `below` = `above` where it is one, else its neighbours; None is past the end."""

    below: Any
    above: Any

    @property
    def is_value(self) -> bool:
        """Whether the literal is a value of the type."""
        return self.below is not None and self.above is not None and bool(self.below == self.above)


def place_literal(literal: object, data_type: Type) -> LiteralBounds:
    """Return where a literal lies among the values of a type; refuse what cannot be compared with it."""
    if isinstance(literal, str) and type(data_type) in _NANOS_PER_UNIT:
        return place_instant(literal, data_type)
    if isinstance(literal, datetime.datetime) and type(data_type) in _NANOS_PER_UNIT:
        return place_instant(literal.isoformat(), data_type)
    if isinstance(literal, str) and isinstance(data_type, IntType | LongType | DecimalType | FloatType | DoubleType):
        literal = _parse_number(literal, data_type)
    if isinstance(data_type, BooleanType) and getattr(getattr(literal, "dtype", None), "kind", None) == "b":
        literal = bool(literal)  # numpy's
    if isinstance(literal, bool) or isinstance(data_type, BooleanType):
        if isinstance(literal, bool) and isinstance(data_type, BooleanType):
            return LiteralBounds(literal, literal)
        raise _mismatch(literal, data_type)
    if isinstance(literal, int | float | Decimal):
        return _place_number(literal, data_type)
    value = to_internal(literal, data_type)
    return LiteralBounds(value, value)


def _parse_number(text: str, data_type: Type) -> Decimal:
    try:
        return _EXACT.create_decimal(text.strip()) if len(text) < 100 else _refuse_number(text, data_type)
    except decimal.InvalidOperation:
        return _refuse_number(text, data_type)


def _refuse_number(text: str, data_type: Type) -> Decimal:
    raise _mismatch(text, data_type)


def _place_number(literal: int | float | Decimal, data_type: Type) -> LiteralBounds:
    if isinstance(data_type, FloatType | DoubleType):
        return _place_float(literal, data_type)
    if literal != literal:
        raise _mismatch(literal, data_type)
    exact = _exact(literal)
    if exact.is_infinite():
        return (
            LiteralBounds(_bounds_of(data_type)[1], None)
            if exact > 0
            else LiteralBounds(None, _bounds_of(data_type)[0])
        )
    if isinstance(data_type, DecimalType):
        return _place_decimal(exact, data_type)
    limits = _INTEGER_RANGES.get(type(data_type))
    if limits is None or (type(data_type) in _NANOS_PER_UNIT and not isinstance(literal, int)):
        raise _mismatch(literal, data_type)
    return _place_between(math.floor(exact), math.ceil(exact), *limits)


def _exact(literal: int | float | Decimal) -> Decimal:
    """Return a number as a decimal, with what is beyond every type's values, or below every step, cut short."""
    if isinstance(literal, float):
        # The decimal that a person writes for it: 34.56, not the 34.5600000000000022737 that its bits are.
        exact = Decimal(float.__repr__(literal))
    else:
        is_small = not isinstance(literal, int) or literal.bit_length() <= 600
        exact = Decimal(literal) if is_small else Decimal("Infinity")
    if isinstance(literal, int) and exact.is_infinite():
        return exact if literal > 0 else -exact
    if not exact.is_finite() or exact == 0:
        return exact
    if exact.adjusted() > _MAX_EXPONENT:
        return Decimal("Infinity").copy_sign(exact)
    return Decimal(f"1e-{_MAX_EXPONENT}").copy_sign(exact) if exact.adjusted() < -_MAX_EXPONENT else exact


def _bounds_of(data_type: Type) -> tuple[Any, Any]:
    if isinstance(data_type, DecimalType):
        largest = Decimal(10**data_type.precision - 1).scaleb(-data_type.scale, _EXACT)
        return -largest, largest
    limits = _INTEGER_RANGES.get(type(data_type))
    if limits is None:
        raise _mismatch(math.inf, data_type)
    return limits


def _place_decimal(exact: Decimal, data_type: DecimalType) -> LiteralBounds:
    unscaled = exact.scaleb(data_type.scale, decimal.Context(prec=1200, Emax=10**6, Emin=-(10**6)))
    below, above = math.floor(unscaled), math.ceil(unscaled)
    largest = 10**data_type.precision - 1
    bounds = _place_between(below, above, -largest, largest)
    scaled = [
        None if unscaled is None else Decimal(unscaled).scaleb(-data_type.scale, _EXACT)
        for unscaled in (bounds.below, bounds.above)
    ]
    return LiteralBounds(scaled[0], scaled[1])


def _place_between(below: int, above: int, smallest: int, largest: int) -> LiteralBounds:
    """Return the bounds of a literal between two integers, in a type that ends at `smallest` and `largest`."""
    if below > largest or above < smallest:
        return LiteralBounds(largest, None) if below > largest else LiteralBounds(None, smallest)
    return LiteralBounds(below if below >= smallest else None, above if above <= largest else None)


def _place_float(literal: int | float | Decimal, data_type: Type) -> LiteralBounds:
    try:
        value = float(literal)
    except OverflowError:
        value = math.inf if literal > 0 else -math.inf
    if value != value:
        raise _mismatch(literal, data_type)
    largest = _FLOAT_MAX if isinstance(data_type, FloatType) else float.fromhex("0x1.fffffffffffffp+1023")
    if math.isinf(value) and isinstance(literal, int | Decimal) and not _is_infinite(literal):
        return LiteralBounds(largest, math.inf) if value > 0 else LiteralBounds(-math.inf, -largest)
    if isinstance(data_type, FloatType) and not math.isinf(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return LiteralBounds(largest, math.inf) if value > 0 else LiteralBounds(-math.inf, -largest)
    return LiteralBounds(value, value)


def _is_infinite(literal: int | Decimal) -> bool:
    return isinstance(literal, Decimal) and literal.is_infinite()


def place_instant(text: str, data_type: Type, *, may_have_zone: bool = False) -> LiteralBounds:
    """Return the bounds of a date or timestamp in text; where one of text and column has a zone, the other is in UTC.

    Text with a zone for a column without one is refused, unless it `may_have_zone`.
    """
    days = parse_date(text.strip())
    parsed = (days * NANOS_PER_DAY, None) if days is not None else parse_timestamp(text.strip())
    if parsed is None:
        raise _mismatch(text, data_type)
    nanos, offset = parsed
    if offset is not None:
        if not may_have_zone and not isinstance(data_type, TimestamptzType | TimestamptzNsType):
            raise SchemaMismatchError(
                f"Cannot compare {data_type} values with {text!r}: the literal has a zone and the column has none",
                hint="Leave the zone out.",
            )
        nanos -= offset * 1_000_000_000
    unit = _NANOS_PER_UNIT[type(data_type)]
    below = nanos // unit
    above = below if nanos % unit == 0 else below + 1
    return _place_between(below, above, *_INTEGER_RANGES[type(data_type)])


def _mismatch(literal: object, data_type: Type) -> SchemaMismatchError:
    text = repr(literal) if len(repr(literal)) <= 80 else repr(literal)[:77] + "..."
    return SchemaMismatchError(
        f"Cannot compare {data_type} values with {text}: {type(literal).__name__} and {data_type} have no common order",
        hint=f"Write a literal that is a {data_type}.",
    )
