"""32-bit hashes of single values. Specification: "Appendix B: 32-bit Hash Requirements".

The hash is Murmur3, x86 variant, 32 bits, seed 0. Bucket partition values are derived from it, so it must never
change: a value that is hashed differently would go to another bucket and be missed by readers.
`expr/columns/murmur3.py` computes the same hash over whole Arrow columns.

`boolean`, `float` and `double` cannot be bucketed, but the specification defines their hashes too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import mmh3

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.decimals import fits_precision, unscaled_value
from frazil.spec.values import show_value

NANOS_PER_MICRO = 1000
_CANONICAL_NAN = struct.pack("<Q", 0x7FF8000000000000)


def hash_bytes(value: bytes) -> int:
    """Return the hash of bytes as a signed 32-bit integer."""
    return mmh3.mmh3_32_sintdigest(value, 0)


def hash_long(value: int) -> int:
    """Return the hash of a 64-bit integer; 32-bit integers hash as if they had 64 bits."""
    return mmh3.mmh3_32_sintdigest(struct.pack("<q", value), 0)


def hash_value(value: Any, value_type: ft.Type) -> int | None:
    """Return the hash of a value of a type, None for null."""
    if value is None:
        return None
    if isinstance(value_type, ft.DecimalType):
        return hash_bytes(minimal_big_endian(unscaled_decimal(value, value_type)))
    hash_of = _HASHES.get(type(value_type))
    if hash_of is None:
        raise InvalidRequestError(f"Cannot hash a value of type {value_type}: the specification defines no hash for it")
    try:
        return hash_of(value)
    except (TypeError, ValueError, AttributeError, struct.error) as problem:
        raise SchemaMismatchError(f"Cannot hash a {type(value).__name__}: it is not a {value_type} value") from problem


def unscaled_decimal(value: Decimal, value_type: ft.DecimalType) -> int:
    """Return a decimal as its unscaled integer at the type's scale."""
    unscaled = unscaled_value(value, value_type.scale) if isinstance(value, Decimal) else None
    if unscaled is None or not fits_precision(unscaled, value_type.precision):
        raise SchemaMismatchError(f"Cannot use {show_value(value)} as a {value_type} value: it does not fit")
    return unscaled


def minimal_big_endian(value: int) -> bytes:
    """Return an integer in big-endian two's complement, in the fewest bytes that hold it."""
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def _hash_double(value: float) -> int:
    if math.isnan(value):
        return hash_bytes(_CANONICAL_NAN)
    # Adding 0.0 turns -0.0 into 0.0 and changes no other value.
    return hash_bytes(struct.pack("<d", value + 0.0))


def _hash_nanos(value: int) -> int:
    # A timestamp hashes equally in both precisions, so that promotion keeps its bucket.
    return hash_long(value // NANOS_PER_MICRO)


_HASHES: dict[type[ft.Type], Callable[[Any], int]] = {
    ft.BooleanType: lambda value: hash_long(1 if value else 0),
    ft.IntType: hash_long,
    ft.LongType: hash_long,
    ft.FloatType: _hash_double,
    ft.DoubleType: _hash_double,
    ft.DateType: hash_long,
    ft.TimeType: hash_long,
    ft.TimestampType: hash_long,
    ft.TimestamptzType: hash_long,
    ft.TimestampNsType: _hash_nanos,
    ft.TimestamptzNsType: _hash_nanos,
    ft.StringType: lambda value: hash_bytes(value.encode("utf-8")),
    ft.UuidType: lambda value: hash_bytes(value.bytes),
    ft.FixedType: hash_bytes,
    ft.BinaryType: hash_bytes,
}
