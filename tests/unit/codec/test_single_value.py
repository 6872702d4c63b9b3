from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import pytest

from frazil.codec.single_value import (
    bound_decoder,
    decode_bound,
    decode_value,
    encode_bound,
    encode_unscaled,
    encode_value,
)
from frazil.errors import InvalidManifestError, InvalidRequestError, SchemaMismatchError
from frazil.spec.bounding_box import GeoPoint
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
    Type,
)
from frazil.spec.variant import VariantKind, VariantValue


@pytest.mark.parametrize(
    "value, kind, reason",
    [
        (1, BOOLEAN, "expected True or False"),
        (True, INT, "expected an integer"),
        (2**31, INT, "does not fit 32 bits"),
        (-(2**63) - 1, TIMESTAMP, "does not fit 64 bits"),
        (1, DOUBLE, "expected a float"),
        (1e300, FLOAT, "out of range"),
        ("1.00", DecimalType(9, 2), "expected a finite Decimal"),
        (Decimal("NaN"), DecimalType(9, 2), "expected a finite Decimal"),
        (Decimal("1.000"), DecimalType(9, 2), "its scale is 3"),
        (Decimal("12345678.90"), DecimalType(9, 2), "more than 9 digits"),
        (b"x", STRING, "expected text"),
        ("\udfff", STRING, "lone surrogate"),
        ("f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID, "expected a UUID"),
        (b"abc", FixedType(2), "it has 3 bytes"),
        ("ab", BINARY, "expected bytes"),
        (None, INT, "expected an integer"),
        pytest.param(10**5000, LONG, "does not fit 64 bits", id="huge"),
    ],
)
def test_values_out_of_range_are_not_encoded(value: Any, kind: Type, reason: str) -> None:
    with pytest.raises(SchemaMismatchError, match=reason):
        encode_value(value, kind)


@pytest.mark.parametrize(
    "data, kind, reason",
    [
        (b"", BOOLEAN, "expected 1 bytes, found 0"),
        (b"\x00\x01", BOOLEAN, "expected 1 bytes, found 2"),
        (b"\x00" * 8, INT, "expected 4 bytes, found 8"),
        (b"\x00" * 3, DATE, "expected 4 bytes, found 3"),
        (b"\x00" * 5, LONG, "expected 8 (or 4, from before a promotion) bytes, found 5"),
        (b"\x00" * 4, TIME, "expected 8 bytes, found 4"),
        (b"\x00" * 4, TIMESTAMPTZ, "expected 8 bytes, found 4"),
        (b"\x00" * 4, TIMESTAMPTZ_NS, "expected 8 bytes, found 4"),
        (b"\x00" * 8, FLOAT, "expected 4 bytes, found 8"),
        (b"\x00" * 2, DOUBLE, "found 2"),
        (b"", DecimalType(9, 2), "expected at least 1 bytes, found 0"),
        (b"\x3b\x9a\xca\x00", DecimalType(9, 2), "more than 9 digits"),
        (b"\x7f" * 100_000, DecimalType(38, 2), "more than 38 digits"),
        (b"\xff", STRING, "not UTF-8 at offset 0"),
        (b"ab\xed\xa0\x80", STRING, "not UTF-8 at offset 2"),
        (b"\x00" * 15, UUID, "expected 16 bytes, found 15"),
        (b"a", FixedType(2), "expected 2 bytes, found 1"),
        (b"\xff\xff\xff\x7f", TIMESTAMP, "the date +5881580-07-11 is out of its range"),
        ((106_752).to_bytes(4, "little"), TIMESTAMP_NS, "the date 2262-04-12 is out of its range"),
    ],
)
def test_invalid_bytes_are_refused(data: bytes, kind: Type, reason: str) -> None:
    with pytest.raises(InvalidManifestError) as caught:
        decode_value(data, kind)
    assert reason in caught.value.message
    assert caught.value.context["heading"] == "Binary single-value serialization"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("kind", [UNKNOWN, VARIANT, StructType(), ListType(1, INT), MapType(1, INT, 2, INT)])
def test_types_without_a_binary_form_are_refused_both_ways(kind: Type) -> None:
    with pytest.raises(InvalidRequestError, match="has no binary form"):
        encode_value(1, kind)
    with pytest.raises(InvalidRequestError, match="has no binary form"):
        decode_value(b"", kind)


def test_any_nonzero_byte_is_true() -> None:
    assert decode_value(b"\xff", BOOLEAN) is True
    assert decode_value(b"\x00", BOOLEAN) is False


@pytest.mark.parametrize(
    "unscaled, data",
    [(0, "00"), (-1, "ff"), (127, "7f"), (128, "0080"), (-128, "80"), (-129, "ff7f"), (255, "00ff"), (256, "0100")],
)
def test_unscaled_decimals_take_the_fewest_bytes(unscaled: int, data: str) -> None:
    assert encode_unscaled(unscaled).hex() == data


def test_overlong_decimals_are_read() -> None:
    assert decode_value(bytes(14) + b"\x01\x59", DecimalType(38, 2)) == Decimal("3.45")
    assert decode_value(b"\xff" * 16, DecimalType(3, 0)) == Decimal("-1")


def test_zero_decimal_keeps_its_scale_and_has_no_sign() -> None:
    assert str(decode_value(b"\x00", DecimalType(9, 2))) == "0.00"
    assert encode_value(Decimal("-0.00"), DecimalType(9, 2)) == b"\x00"


def test_nan_and_negative_zero_are_preserved() -> None:
    assert math.isnan(decode_value(encode_value(math.nan, FLOAT), FLOAT))
    assert math.copysign(1, decode_value(encode_value(-0.0, DOUBLE), DOUBLE)) == -1


def test_empty_text_and_bytes_are_values() -> None:
    assert decode_value(b"", STRING) == ""
    assert decode_value(b"", BINARY) == b""
    assert encode_value("", STRING) == b""


def test_bounds_of_fixed_columns_may_be_truncated() -> None:
    assert decode_bound(b"ab", FixedType(16)) == b"ab"
    with pytest.raises(InvalidManifestError):
        decode_bound(b"abc", FixedType(2))


@pytest.mark.parametrize("kind", [GeometryType(), GeographyType()])
def test_geospatial_bounds_are_points(kind: Type) -> None:
    point = GeoPoint(30.0, 10.0)
    assert encode_bound(point, kind) == bytes.fromhex("0000000000003e400000000000002440")
    assert decode_bound(encode_bound(point, kind), kind) == point
    with pytest.raises(InvalidManifestError):
        decode_bound(b"short", kind)


def test_variant_bounds_are_keyed_by_json_path() -> None:
    bounds = FrozenMap({"$['a']": VariantValue(VariantKind.INT8, 5)})
    assert decode_bound(encode_bound(bounds, VARIANT), VARIANT) == bounds
    with pytest.raises(InvalidManifestError):
        decode_bound(b"\x01", VARIANT)


def test_column_of_type_unknown_has_no_bound() -> None:
    assert decode_bound(b"\x01", UNKNOWN) is None


def test_bytes_may_be_a_memoryview() -> None:
    view: Any = memoryview(uuid.UUID(int=1).bytes)
    assert bound_decoder(UUID)(view) == uuid.UUID(int=1)
    assert bound_decoder(STRING)(memoryview(b"ab")) == "ab"  # type: ignore[arg-type]
    assert bound_decoder(BINARY)(memoryview(b"ab")) == b"ab"  # type: ignore[arg-type]
