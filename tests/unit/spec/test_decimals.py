from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.spec.decimals import decimal_of, fits_precision, scale_of, unscaled_value


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_38_digits_are_preserved_in_any_decimal_context(unscaled: int, scale: int) -> None:
    with localcontext() as context:
        context.prec = 3
        value = decimal_of(unscaled, scale)
        assert scale_of(value) == scale
        assert unscaled_value(value, scale) == unscaled


@pytest.mark.parametrize(
    "text, scale, unscaled",
    [("1.5", 2, 150), ("1.500", 2, 150), ("-0.0", 2, 0), ("1E+3", 0, 1000), ("0E-5000", 2, 0), ("-12.34", 2, -1234)],
)
def test_decimal_is_rescaled_if_lossless(text: str, scale: int, unscaled: int) -> None:
    assert unscaled_value(Decimal(text), scale) == unscaled


@pytest.mark.parametrize("text", ["1.234", "1E-5000", "1E+999999", "NaN", "Infinity", "1E-999999"])
def test_lossy_or_huge_decimal_has_no_unscaled_value(text: str) -> None:
    assert unscaled_value(Decimal(text), 2) is None


def test_precision_counts_digits() -> None:
    assert fits_precision(999, 3)
    assert fits_precision(-999, 3)
    assert not fits_precision(1000, 3)
    assert not fits_precision(-1000, 3)


def test_infinite_decimals_have_no_scale() -> None:
    assert scale_of(Decimal("Infinity")) is None
