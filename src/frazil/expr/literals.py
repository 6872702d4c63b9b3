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
class Place:
    """Where a literal lies: at `below` = `above` when it is a value, else between; None is past the end."""

    below: Any
    above: Any

    @property
    def is_value(self) -> bool:
        """Whether the literal is a value of the type."""
        return self.below is not None and self.above is not None and bool(self.below == self.above)


def place_literal(literal: object, kind: Type) -> Place:
    """Return where a literal lies among the values of a type; refuse what cannot be compared with it."""
    if isinstance(literal, str) and type(kind) in _NANOS_PER_UNIT:
        return place_instant(literal, kind)
    if isinstance(literal, datetime.datetime) and type(kind) in _NANOS_PER_UNIT:
        return place_instant(literal.isoformat(), kind)
    if isinstance(literal, str) and isinstance(kind, IntType | LongType | DecimalType | FloatType | DoubleType):
        literal = _parse_number(literal, kind)
    if isinstance(kind, BooleanType) and getattr(getattr(literal, "dtype", None), "kind", None) == "b":
        literal = bool(literal)  # numpy's
    if isinstance(literal, bool) or isinstance(kind, BooleanType):
        if isinstance(literal, bool) and isinstance(kind, BooleanType):
            return Place(literal, literal)
        raise _mismatch(literal, kind)
    if isinstance(literal, int | float | Decimal):
        return _place_number(literal, kind)
    value = to_internal(literal, kind)
    return Place(value, value)


def _parse_number(text: str, kind: Type) -> Decimal:
    try:
        return _EXACT.create_decimal(text.strip()) if len(text) < 100 else _refuse_number(text, kind)
    except decimal.InvalidOperation:
        return _refuse_number(text, kind)


def _refuse_number(text: str, kind: Type) -> Decimal:
    raise _mismatch(text, kind)


def _place_number(literal: int | float | Decimal, kind: Type) -> Place:
    if isinstance(kind, FloatType | DoubleType):
        return _place_float(literal, kind)
    if literal != literal:
        raise _mismatch(literal, kind)
    exact = _exact(literal)
    if exact.is_infinite():
        return Place(_bounds_of(kind)[1], None) if exact > 0 else Place(None, _bounds_of(kind)[0])
    if isinstance(kind, DecimalType):
        return _place_decimal(exact, kind)
    limits = _INTEGER_RANGES.get(type(kind))
    if limits is None or (type(kind) in _NANOS_PER_UNIT and not isinstance(literal, int)):
        raise _mismatch(literal, kind)
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


def _bounds_of(kind: Type) -> tuple[Any, Any]:
    if isinstance(kind, DecimalType):
        largest = Decimal(10**kind.precision - 1).scaleb(-kind.scale, _EXACT)
        return -largest, largest
    limits = _INTEGER_RANGES.get(type(kind))
    if limits is None:
        raise _mismatch(math.inf, kind)
    return limits


def _place_decimal(exact: Decimal, kind: DecimalType) -> Place:
    unscaled = exact.scaleb(kind.scale, decimal.Context(prec=1200, Emax=10**6, Emin=-(10**6)))
    below, above = math.floor(unscaled), math.ceil(unscaled)
    largest = 10**kind.precision - 1
    place = _place_between(below, above, -largest, largest)
    scaled = [None if one is None else Decimal(one).scaleb(-kind.scale, _EXACT) for one in (place.below, place.above)]
    return Place(scaled[0], scaled[1])


def _place_between(below: int, above: int, smallest: int, largest: int) -> Place:
    """Return the place of a literal between two integers, in a type that ends at `smallest` and `largest`."""
    if below > largest or above < smallest:
        return Place(largest, None) if below > largest else Place(None, smallest)
    return Place(below if below >= smallest else None, above if above <= largest else None)


def _place_float(literal: int | float | Decimal, kind: Type) -> Place:
    try:
        value = float(literal)
    except OverflowError:
        value = math.inf if literal > 0 else -math.inf
    if value != value:
        raise _mismatch(literal, kind)
    largest = _FLOAT_MAX if isinstance(kind, FloatType) else float.fromhex("0x1.fffffffffffffp+1023")
    if math.isinf(value) and isinstance(literal, int | Decimal) and not _is_infinite(literal):
        return Place(largest, math.inf) if value > 0 else Place(-math.inf, -largest)
    if isinstance(kind, FloatType) and not math.isinf(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return Place(largest, math.inf) if value > 0 else Place(-math.inf, -largest)
    return Place(value, value)


def _is_infinite(literal: int | Decimal) -> bool:
    return isinstance(literal, Decimal) and literal.is_infinite()


def place_instant(text: str, kind: Type, *, may_have_zone: bool = False) -> Place:
    """Return the place of a date or timestamp in text; where one of text and column has a zone, the other is in UTC.

    Text with a zone for a column without one is refused, unless it `may_have_zone`.
    """
    days = parse_date(text.strip())
    parsed = (days * NANOS_PER_DAY, None) if days is not None else parse_timestamp(text.strip())
    if parsed is None:
        raise _mismatch(text, kind)
    nanos, offset = parsed
    if offset is not None:
        if not may_have_zone and not isinstance(kind, TimestamptzType | TimestamptzNsType):
            raise SchemaMismatchError(
                f"Cannot compare {kind} values with {text!r}: the literal has a zone and the column has none",
                hint="Leave the zone out.",
            )
        nanos -= offset * 1_000_000_000
    unit = _NANOS_PER_UNIT[type(kind)]
    below = nanos // unit
    above = below if nanos % unit == 0 else below + 1
    return _place_between(below, above, *_INTEGER_RANGES[type(kind)])


def _mismatch(literal: object, kind: Type) -> SchemaMismatchError:
    shown = repr(literal) if len(repr(literal)) <= 80 else repr(literal)[:77] + "..."
    return SchemaMismatchError(
        f"Cannot compare {kind} values with {shown}: {type(literal).__name__} and {kind} have no common order",
        hint=f"Write a literal that is a {kind}.",
    )
