"""Variants as bytes. Specification: "Semi-structured Types"; the Parquet project's Variant encoding, version 1."""

from __future__ import annotations

import struct
import uuid
from decimal import Decimal

import pytest

from frazil.codec.variant import EMPTY_METADATA, decode_metadata, encode_metadata, encode_variant
from frazil.errors import InvalidRequestError
from frazil.spec.variant import MAX_VARIANT_DEPTH, VARIANT_NULL, VariantKind, VariantValue
from tests.support.variants import decode_variant, variant_of

UUID = uuid.UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56")

PRIMITIVES: list[tuple[VariantValue, str]] = [
    (VARIANT_NULL, "00"),
    (VariantValue(VariantKind.BOOLEAN, True), "04"),
    (VariantValue(VariantKind.BOOLEAN, False), "08"),
    (VariantValue(VariantKind.INT8, -2), "0c fe"),
    (VariantValue(VariantKind.INT16, 1234), "10 d204"),
    (VariantValue(VariantKind.INT32, 123456), "14 40e20100"),
    (VariantValue(VariantKind.INT64, -1), "18 ffffffffffffffff"),
    (VariantValue(VariantKind.DOUBLE, 1.5), "1c 000000000000f83f"),
    (VariantValue(VariantKind.DECIMAL4, Decimal("12.34")), "20 02 d2040000"),
    (VariantValue(VariantKind.DECIMAL8, Decimal("-0.5")), "24 01 fbffffffffffffff"),
    (VariantValue(VariantKind.DECIMAL16, Decimal(1)), "28 00 01" + "00" * 15),
    (VariantValue(VariantKind.DATE, 20194), "2c e24e0000"),
    (VariantValue(VariantKind.TIMESTAMPTZ, 1), "30 0100000000000000"),
    (VariantValue(VariantKind.TIMESTAMP, 2), "34 0200000000000000"),
    (VariantValue(VariantKind.FLOAT, 0.5), "38 0000003f"),
    (VariantValue(VariantKind.BINARY, b"\x03\x13"), "3c 02000000 0313"),
    (VariantValue(VariantKind.TIME, 45234123456), "44 c0f229880a000000"),
    (VariantValue(VariantKind.TIMESTAMPTZ_NS, -3), "48 fdffffffffffffff"),
    (VariantValue(VariantKind.TIMESTAMP_NS, 4), "4c 0400000000000000"),
    (VariantValue(VariantKind.UUID, UUID), "50 f24f9b6481fa49d1b74e8c09a6e31c56"),
    (VariantValue(VariantKind.STRING, ""), "01"),
    (VariantValue(VariantKind.STRING, "héllo"), "19 68c3a96c6c6f"),
    (VariantValue(VariantKind.STRING, "x" * 63), "fd" + "78" * 63),
    (VariantValue(VariantKind.STRING, "x" * 64), "40 40000000" + "78" * 64),
]


@pytest.mark.parametrize("value, text", PRIMITIVES, ids=[f"{value.kind}-{text[:8]}" for value, text in PRIMITIVES])
def test_primitives_have_their_specified_bytes(value: VariantValue, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode_variant(value) == (EMPTY_METADATA, data)
    decoded = decode_variant(EMPTY_METADATA, data)
    assert decoded == value
    assert str(decoded.value) == str(value.value)  # the scale of a decimal, which equality ignores


def test_every_primitive_type_is_covered() -> None:
    assert {value.kind for value, _ in PRIMITIVES} == {kind for kind in VariantKind if kind.is_primitive}


def test_short_string_may_use_the_long_form() -> None:
    assert decode_variant(EMPTY_METADATA, bytes.fromhex("40 02000000 6869")).value == "hi"


def test_object_fields_are_sorted_by_name() -> None:
    value = variant_of({"b": 1, "a": [True, None]})
    metadata, data = encode_variant(value)
    assert metadata.hex(" ") == "11 02 00 01 02 61 62"
    assert data.hex(" ") == "02 02 00 01 00 07 09 03 02 00 01 02 04 00 0c 01"
    assert decode_variant(metadata, data) == value


def test_fields_may_be_stored_in_any_order_and_share_a_value() -> None:
    metadata = bytes.fromhex("01 02 00 01 02 61 62")
    swapped = bytes.fromhex("02 02 00 01 02 00 04 0c 07 0c 08")
    assert decode_variant(metadata, swapped).to_python() == {"a": 8, "b": 7}
    shared = bytes.fromhex("02 02 00 01 00 00 02 0c 07")
    assert decode_variant(metadata, shared).to_python() == {"a": 7, "b": 7}


def test_reserved_bits_are_ignored() -> None:
    metadata = bytes.fromhex("21 01 00 01 61")
    assert decode_variant(metadata, bytes.fromhex("82 01 00 00 01 00")).to_python() == {"a": None}
    assert decode_variant(metadata, bytes.fromhex("e3 01 00 01 00")).to_python() == [None]


def test_wider_sizes_than_needed_are_read() -> None:
    metadata = bytes.fromhex("c1 01000000 00000000 01000000 61")
    large = bytes.fromhex("7e 01000000 00000000 00000000 01000000 00")
    assert decode_variant(metadata, large).to_python() == {"a": None}
    assert decode_variant(metadata, bytes.fromhex("1f 01000000 00000000 01000000 00")).to_python() == [None]


@pytest.mark.parametrize("count", [255, 256, 300, 70_000])
def test_many_fields_and_values_use_wider_sizes(count: int) -> None:
    array = VariantValue(VariantKind.ARRAY, (VARIANT_NULL,) * count)
    assert decode_variant(*encode_variant(array)) == array
    if count < 1000:
        fields = VariantValue(VariantKind.OBJECT, {f"name {at:05}": variant_of("x" * 70) for at in range(count)})
        assert decode_variant(*encode_variant(fields)) == fields


def test_names_beyond_the_first_plane_are_sorted_by_utf8() -> None:
    value = variant_of({"\U0001f600": 1, "\uffee": 2})
    metadata, data = encode_variant(value)
    names, _ = decode_metadata(metadata)
    assert names == ("\uffee", "\U0001f600")
    assert decode_variant(metadata, data) == value


def test_names_sorted_by_utf16_are_read() -> None:
    metadata = encode_metadata(["\U0001f600", "\uffee"])
    assert metadata[0] == 0x01  # not marked as sorted
    data = bytes.fromhex("02 02 00 01 00 02 04 0c 01 0c 02")
    assert decode_variant(metadata, data).to_python() == {"\U0001f600": 1, "\uffee": 2}
    marked = bytes([0x11]) + metadata[1:]
    assert decode_variant(marked, data).to_python() == {"\U0001f600": 1, "\uffee": 2}


def test_metadata_may_hold_unused_or_repeated_names() -> None:
    metadata = bytes.fromhex("01 03 00 01 02 03 62 61 61")
    assert decode_metadata(metadata) == (("b", "a", "a"), len(metadata))
    assert decode_variant(metadata, bytes.fromhex("02 01 02 00 01 00")).to_python() == {"a": None}


def test_nesting_limit_is_inclusive() -> None:
    value = VARIANT_NULL
    for _ in range(MAX_VARIANT_DEPTH):
        value = VariantValue(VariantKind.ARRAY, (value,))
    assert decode_variant(*encode_variant(value)) == value
    with pytest.raises(InvalidRequestError, match=f"nested deeper than {MAX_VARIANT_DEPTH} levels"):
        encode_variant(VariantValue(VariantKind.ARRAY, (value,)))


def test_invalid_unicode_is_refused() -> None:
    for value in ("\ud800", {"\ud800": 1}):
        with pytest.raises(InvalidRequestError, match="has no UTF-8 form"):
            encode_variant(variant_of(value))


def test_floats_keep_their_bits() -> None:
    for number in (0.1, -0.0, float("inf"), struct.unpack("<f", b"\x01\0\0\0")[0]):
        rounded = struct.unpack("<f", struct.pack("<f", number))[0]
        value = VariantValue(VariantKind.FLOAT, rounded)
        assert str(decode_variant(*encode_variant(value)).value) == str(rounded)
