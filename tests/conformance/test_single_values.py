"""Appendix D: single values as bytes and as JSON, and the lengths of bounds after a promotion."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import pytest

from frazil.codec.single_value import decode_bound, decode_value, encode_bound, encode_value
from frazil.codec.single_value_json import decode_json_value, encode_json_value
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
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MICROS = 1_510_871_468_123_456
PAIR = StructType((NestedField(1, "a", INT), NestedField(2, "b", STRING)))


@pytest.mark.parametrize(
    "value, kind, data",
    [
        (False, BOOLEAN, "00"),
        (True, BOOLEAN, "01"),
        (84202, INT, "ea480100"),
        (200, LONG, "c800000000000000"),
        (-4.5, FLOAT, "000090c0"),
        (6.0, DOUBLE, "0000000000001840"),
        (1000, DATE, "e8030000"),
        (10000, TIME, "1027000000000000"),
        (400000, TIMESTAMP, "801a060000000000"),
        (400000, TIMESTAMPTZ, "801a060000000000"),
        (400000000, TIMESTAMP_NS, "0084d71700000000"),
        (400000000, TIMESTAMPTZ_NS, "0084d71700000000"),
        ("ABC", STRING, "414243"),
        (SOME_UUID, UUID, "f79c3e09677c4bbda4793f349cb785e7"),
        (b"ab", FixedType(2), "6162"),
        (b"Z", BINARY, "5a"),
        (Decimal("3.45"), DecimalType(3, 2), "0159"),
        (Decimal("123.4567"), DecimalType(7, 4), "12d687"),
        (Decimal("-123.4567"), DecimalType(7, 4), "ed2979"),
        (Decimal("0.011"), DecimalType(10, 3), "0b"),
        (Decimal("14.20"), DecimalType(9, 2), "058c"),
        (b"\x01\x01\x00\x00\x00" + bytes(16), GeometryType(), "0101000000" + "00" * 16),
        (b"\x01\x01\x00\x00\x00" + bytes(16), GeographyType(), "0101000000" + "00" * 16),
    ],
)
def test_binary_single_values_have_the_specified_bytes(value: Any, kind: Type, data: str) -> None:
    assert encode_value(value, kind).hex() == data
    assert decode_value(bytes.fromhex(data), kind) == value
    if not isinstance(kind, GeometryType | GeographyType):
        assert encode_bound(value, kind).hex() == data


@pytest.mark.parametrize(
    "current, length, written, value, read",
    [
        (LONG, 4, INT, -7, -7),
        (LONG, 8, LONG, 2**40, 2**40),
        (DOUBLE, 4, FLOAT, -4.5, -4.5),
        (DOUBLE, 8, DOUBLE, 0.1, 0.1),
        (TIMESTAMP, 4, DATE, -1, -86_400_000_000),
        (TIMESTAMP, 8, TIMESTAMP, 400000, 400000),
        (TIMESTAMP_NS, 4, DATE, 17486, 17486 * 86_400 * 10**9),
        (TIMESTAMP_NS, 8, TIMESTAMP_NS, 400000000, 400000000),
        (DecimalType(38, 2), 2, DecimalType(3, 2), Decimal("3.45"), Decimal("3.45")),
    ],
)
def test_bounds_written_before_a_promotion_are_decoded_by_their_length(
    current: Type, length: int, written: Type, value: Any, read: Any
) -> None:
    data = encode_bound(value, written)
    assert len(data) == length
    assert decode_bound(data, current) == read
    assert type(decode_bound(data, current)) is type(read)


def test_nan_bound_of_a_float_is_preserved_when_read_as_double() -> None:
    assert math.isnan(decode_bound(encode_bound(math.nan, FLOAT), DOUBLE))


@pytest.mark.parametrize(
    "value, kind, json_value",
    [
        (True, BOOLEAN, True),
        (34, INT, 34),
        (34, LONG, 34),
        (1.0, FLOAT, 1.0),
        (1.0, DOUBLE, 1.0),
        (Decimal("14.20"), DecimalType(9, 2), "14.20"),
        (17486, DATE, "2017-11-16"),
        (81_068_123_456, TIME, "22:31:08.123456"),
        (MICROS, TIMESTAMP, "2017-11-16T22:31:08.123456"),
        (MICROS, TIMESTAMPTZ, "2017-11-16T22:31:08.123456+00:00"),
        (MICROS * 1000 + 789, TIMESTAMP_NS, "2017-11-16T22:31:08.123456789"),
        (MICROS * 1000 + 789, TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456789+00:00"),
        ("iceberg", STRING, "iceberg"),
        (SOME_UUID, UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (b"\x00\x01\x02\xff", FixedType(4), "000102ff"),
        (b"\x00\x01\x02\xff", BINARY, "000102ff"),
        ({"a": 1, "b": "bar"}, PAIR, {"1": 1, "2": "bar"}),
        ([1, 2, 3], ListType(1, INT), [1, 2, 3]),
        ({"a": 1, "b": 2}, MapType(1, STRING, 2, INT), {"keys": ["a", "b"], "values": [1, 2]}),
    ],
)
def test_json_single_values_have_the_specified_form(value: Any, kind: Type, json_value: Any) -> None:
    assert encode_json_value(value, kind) == json_value
    assert decode_json_value(json_value, kind) == value


@pytest.mark.parametrize(
    "kind, json_value",
    [
        (BOOLEAN, None),
        (BOOLEAN, True),
        (INT, 1),
        (LONG, 9999999),
        (FLOAT, 1.23),
        (DOUBLE, 123.456),
        (DATE, "2007-12-03"),
        (TIME, "10:15:30"),
        (TIMESTAMP, "2007-12-03T10:15:30"),
        (TIMESTAMPTZ, "2007-12-03T10:15:30+00:00"),
        (TIMESTAMP_NS, "2007-12-03T10:15:30.123456789"),
        (TIMESTAMPTZ_NS, "2007-12-03T10:15:30.123456789+00:00"),
        (STRING, "foo"),
        (UUID, "eb26bdb1-a1d8-4aa6-990e-da940875492c"),
        (FixedType(2), "111f"),
        (BINARY, "0000ff"),
        (DecimalType(9, 4), "123.4500"),
        (DecimalType(9, 0), "2"),
        (ListType(1, INT), [1, 2, 3]),
        (MapType(2, INT, 3, STRING), {"keys": [1, 2], "values": ["foo", "bar"]}),
        (
            ListType(6, StructType((NestedField(7, "f1", INT, required=True), NestedField(8, "f2", STRING)))),
            [{"7": 1, "8": "bar"}, {"7": 2, "8": "foo"}],
        ),
        (
            MapType(9, INT, 10, StructType((NestedField(11, "f1", INT), NestedField(12, "f2", STRING)))),
            {"keys": [1, 2], "values": [{"11": 1, "12": "bar"}, {"11": 2, "12": "foo"}]},
        ),
        (
            StructType(
                (
                    NestedField(13, "f1", StructType((NestedField(14, "ff1", INT), NestedField(15, "ff2", STRING)))),
                    NestedField(16, "f2", StructType((NestedField(17, "ff1", STRING), NestedField(18, "ff2", INT)))),
                )
            ),
            {"13": {"14": 1, "15": "bar"}, "16": {"17": "bar", "18": 1}},
        ),
    ],
)
def test_json_values_of_iceberg_java_round_trip(kind: Type, json_value: Any) -> None:
    assert encode_json_value(decode_json_value(json_value, kind), kind) == json_value
