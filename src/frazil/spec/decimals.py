"""Decimals as the format stores them: an unscaled integer and the scale of the column's type.

Hashing, truncation and serialisation all work on the unscaled integer. Conversions here are exact,
whatever the precision of the caller's decimal context.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow

from frazil.errors import SchemaMismatchError
from frazil.spec.types import MAX_DECIMAL_PRECISION

_EXACT = Context(prec=2 * MAX_DECIMAL_PRECISION, traps=[Inexact, InvalidOperation, Overflow])


def unscaled_value(value: Decimal, scale: int) -> int:
    """Return a decimal as an integer count of 10^-scale."""
    try:
        shifted = _EXACT.scaleb(value, scale)
        if shifted.adjusted() <= MAX_DECIMAL_PRECISION:
            unscaled = int(shifted)
            if shifted == unscaled:
                return unscaled
    except (ArithmeticError, ValueError):
        pass
    raise SchemaMismatchError(f"Cannot use {_shown(value)} as a decimal of scale {scale}: it does not fit exactly")


def decimal_from_unscaled(unscaled: int, scale: int) -> Decimal:
    """Return the decimal that is an integer count of 10^-scale, with exactly that scale."""
    return _EXACT.scaleb(Decimal(unscaled), -scale)


def _shown(value: Decimal) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
