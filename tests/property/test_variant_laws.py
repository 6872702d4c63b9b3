"""What holds for every variant, path and bound."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.json_path import format_json_path, parse_json_path
from frazil.codec.variant import encode_variant
from frazil.codec.variant_bounds import decode_variant_bounds, encode_variant_bounds
from frazil.errors import FrazilError
from frazil.spec.variant import DECIMAL_DIGITS, INTEGER_BITS, VARIANT_NULL, VariantKind, VariantValue
from tests.support.variants import decode_variant

TEXT = st.text(st.characters(codec="utf-8"), max_size=80)


def of(kind: VariantKind, values: st.SearchStrategy[Any]) -> st.SearchStrategy[VariantValue]:
    return values.map(lambda value: VariantValue(kind, value))


def decimals(digits: int) -> st.SearchStrategy[Decimal]:
    largest = 10**digits - 1
    return st.builds(
        lambda unscaled, scale: Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)),
        st.integers(-largest, largest),
        st.integers(0, 38),
    )


PRIMITIVES = st.one_of(
    st.just(VARIANT_NULL),
    of(VariantKind.BOOLEAN, st.booleans()),
    *(of(kind, st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)) for kind, bits in INTEGER_BITS.items()),
    *(of(kind, decimals(digits)) for kind, digits in DECIMAL_DIGITS.items()),
    of(VariantKind.FLOAT, st.floats(width=32, allow_nan=False)),
    of(VariantKind.DOUBLE, st.floats(allow_nan=False)),
    of(VariantKind.BINARY, st.binary(max_size=80)),
    of(VariantKind.STRING, TEXT),
    of(VariantKind.UUID, st.uuids()),
)
VARIANTS = st.recursive(
    PRIMITIVES,
    lambda inner: (
        of(VariantKind.ARRAY, st.lists(inner, max_size=6).map(tuple))
        | of(VariantKind.OBJECT, st.dictionaries(TEXT, inner, max_size=6))
    ),
    max_leaves=20,
)


@given(VARIANTS)
def test_variants_round_trip_with_their_types(value: VariantValue) -> None:
    metadata, data = encode_variant(value)
    decoded = decode_variant(metadata, data)
    assert decoded == value
    assert encode_variant(decoded) == (metadata, data)


@given(st.binary(max_size=60), st.binary(max_size=120))
def test_any_bytes_are_a_variant_or_an_error(metadata: bytes, data: bytes) -> None:
    for names in (metadata, b"\x01\x02\x00\x01\x02ab"):
        try:
            decode_variant(names, data)
        except FrazilError as error:
            assert error.context["heading"] == "Semi-structured Types"  # noqa: PT017


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=10) | st.integers(0, 10**15), max_size=5))
def test_variant_paths_round_trip_through_text(parts: list[str | int]) -> None:
    text = format_json_path(parts)
    assert parse_json_path(text) == tuple(parts)
    assert not any(char in text for char in "\n\t\r\b\f\0")


@given(st.text(max_size=20) | st.text(alphabet="$['\\]u0a1nb.\"", max_size=20).map(lambda rest: "$" + rest))
def test_parsed_variant_path_is_normalized(text: str) -> None:
    try:
        parts = parse_json_path(text)
    except FrazilError:
        return
    assert format_json_path(parts) == text


@given(
    st.dictionaries(
        st.lists(TEXT, max_size=3).map(format_json_path),
        PRIMITIVES.filter(lambda value: value.kind is not VariantKind.NULL),
        max_size=6,
    )
)
def test_variant_bounds_round_trip_by_path(bounds: dict[str, VariantValue]) -> None:
    assert decode_variant_bounds(encode_variant_bounds(bounds)) == bounds


@given(st.integers(0, 2**32 - 1))
def test_floats_are_compared_by_bits(bits: int) -> None:
    number = struct.unpack("<f", struct.pack("<I", bits))[0]
    decoded = decode_variant(*encode_variant(VariantValue(VariantKind.FLOAT, number))).value
    assert decoded == number or (math.isnan(decoded) and math.isnan(number))
