"""Exact arithmetic on decimals as unscaled integers and scales.

The `decimal` module rounds to the context's precision (28 digits by default), while Iceberg decimals have up to 38.
These functions use integers or text instead, so that the context never matters.
"""

from __future__ import annotations

from decimal import Decimal

_MAX_EXPONENT = 1000


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return the decimal `unscaled` / 10^`scale`, with that scale."""
    return Decimal(f"{unscaled}E{-scale}")


def unscaled_value(value: Decimal, scale: int) -> int | None:
    """Return a finite decimal times 10^`scale` as an integer, or None if that is not whole or is huge."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) > _MAX_EXPONENT:
        return None
    unscaled: int = int("".join(map(str, digits)))
    shift = exponent + scale
    if unscaled == 0:
        return 0
    if shift > _MAX_EXPONENT:
        return None
    if shift >= 0:
        unscaled *= int(10**shift)
    else:
        # If there are fewer digits than digits to drop, a nonzero digit would be lost.
        if -shift > len(digits):
            return None
        unscaled, rest = divmod(unscaled, int(10**-shift))
        if rest != 0:
            return None
    return -unscaled if sign else unscaled


def scale_of(value: Decimal) -> int | None:
    """Return the scale of a finite decimal, or None for NaN and the infinities."""
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else None


def fits_precision(unscaled: int, precision: int) -> bool:
    """Return whether an unscaled value has at most `precision` digits."""
    return -_POWERS_OF_TEN[precision] < unscaled < _POWERS_OF_TEN[precision]


_POWERS_OF_TEN: tuple[int, ...] = tuple(10**power for power in range(39))
