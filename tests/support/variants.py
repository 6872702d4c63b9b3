"""Variants of Python values, and values of whole variants: what tests write and compare."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from frazil.codec.variant import _corrupt, decode_metadata, decode_value
from frazil.errors import CorruptTableError, InvalidDataFileError, InvalidRequestError
from frazil.spec.variant import (
    DECIMAL_DIGITS,
    HEADING,
    INTEGER_BITS,
    MAX_SCALE,
    VARIANT_NULL,
    VariantKind,
    VariantValue,
    _fits,
)


def variant_of(value: Any) -> VariantValue:
    """Return a Python value as a variant, with numbers in the smallest type that holds them.

    Dates, times and timestamps are integers in frazil and must be passed as a `VariantValue` of their kind.
    """
    match value:
        case VariantValue():
            return value
        case None:
            return VARIANT_NULL
        case bool():
            return VariantValue(VariantKind.BOOLEAN, value)
        case int():
            return _variant_of_int(value)
        case float():
            return VariantValue(VariantKind.DOUBLE, value)
        case Decimal():
            return _variant_of_decimal(value)
        case str():
            return VariantValue(VariantKind.STRING, value)
        case bytes():
            return VariantValue(VariantKind.BINARY, value)
        case uuid.UUID():
            return VariantValue(VariantKind.UUID, value)
        case Mapping():
            return VariantValue(VariantKind.OBJECT, {name: variant_of(item) for name, item in value.items()})
        case list() | tuple():
            return VariantValue(VariantKind.ARRAY, tuple(variant_of(item) for item in value))
        case _:
            raise InvalidRequestError(
                f"Cannot make a variant of a {type(value).__name__}: no variant type holds it", heading=HEADING
            )


def _variant_of_int(value: int) -> VariantValue:
    for kind in (VariantKind.INT8, VariantKind.INT16, VariantKind.INT32, VariantKind.INT64):
        if _fits(value, INTEGER_BITS[kind]):
            return VariantValue(kind, value)
    if abs(value) < 10 ** DECIMAL_DIGITS[VariantKind.DECIMAL16]:
        return VariantValue(VariantKind.DECIMAL16, Decimal(value))
    raise InvalidRequestError("Cannot make a variant of an integer of more than 38 digits", heading=HEADING)


def _variant_of_decimal(value: Decimal) -> VariantValue:
    most_digits = DECIMAL_DIGITS[VariantKind.DECIMAL16]
    if value.is_finite():
        _, digits, exponent = value.as_tuple()
        if int(exponent) > 0 and len(digits) + int(exponent) <= most_digits:
            # A scale cannot be negative: 1E+3 is stored as 1000.
            value = Decimal(int(value))
        _, digits, exponent = value.as_tuple()
        if 0 <= -int(exponent) <= MAX_SCALE:
            for key, most in DECIMAL_DIGITS.items():
                if len(digits) <= most:
                    return VariantValue(key, value)
    raise InvalidRequestError(
        f"Cannot make a variant of the decimal {str(value)[:60]}: it has no form of at most {most_digits} digits and "
        f"a scale of at most {MAX_SCALE}",
        heading=HEADING,
    )


def decode_variant(
    metadata: bytes, value: bytes, *, error: type[CorruptTableError] = InvalidDataFileError
) -> VariantValue:
    """Decode a variant from its two byte strings, both of which must be used up."""
    names, end = decode_metadata(metadata, error=error)
    if end != len(metadata):
        raise _corrupt(error, f"{len(metadata) - end} bytes follow the metadata")
    return decode_value(names, value, error=error)
