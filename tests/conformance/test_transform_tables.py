"""The specification's tables of hashes and transforms, value by value."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID as UuidValue

import pyarrow as pa
import pytest

from frazil.errors import InvalidRequestError
from frazil.expr.columns.transforms import transform_column
from frazil.spec.iso8601 import parse_date, parse_time, parse_timestamp
from frazil.spec.murmur3 import hash_value
from frazil.spec.transforms import (
    DAY,
    HOUR,
    IDENTITY,
    MONTH,
    VOID,
    YEAR,
    Bucket,
    Transform,
    Truncate,
    parse_transform,
)
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
    Type,
)


def days(text: str) -> int:
    value = parse_date(text)
    assert value is not None
    return value


def nanos(text: str) -> int:
    parsed = parse_timestamp(text)
    assert parsed is not None
    return parsed[0] - (parsed[1] or 0) * 10**9


def micros(text: str) -> int:
    return nanos(text) // 1000


def time_of_day(text: str) -> int:
    value = parse_time(text)
    assert value is not None
    return value // 1000


FIXED = FixedType(4)
BUCKETABLE: list[tuple[Type, Any, int]] = [
    (INT, 34, 2017239379),
    (LONG, 34, 2017239379),
    (DecimalType(9, 2), Decimal("14.20"), -500754589),
    (DATE, days("2017-11-16"), -653330422),
    (TIME, time_of_day("22:31:08"), -662762989),
    (TIMESTAMP, micros("2017-11-16T22:31:08"), -2047944441),
    (TIMESTAMP, micros("2017-11-16T22:31:08.000001"), -1207196810),
    (TIMESTAMPTZ, micros("2017-11-16T14:31:08-08:00"), -2047944441),
    (TIMESTAMPTZ, micros("2017-11-16T14:31:08.000001-08:00"), -1207196810),
    (TIMESTAMP_NS, nanos("2017-11-16T22:31:08"), -2047944441),
    (TIMESTAMP_NS, nanos("2017-11-16T22:31:08.000001001"), -1207196810),
    (TIMESTAMPTZ_NS, nanos("2017-11-16T14:31:08-08:00"), -2047944441),
    (TIMESTAMPTZ_NS, nanos("2017-11-16T14:31:08.000001001-08:00"), -1207196810),
    (STRING, "iceberg", 1210000089),
    (UUID, UuidValue("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
    (FIXED, b"\x00\x01\x02\x03", -188683207),
    (BINARY, b"\x00\x01\x02\x03", -188683207),
]
NOT_BUCKETABLE: list[tuple[Type, Any, int | None]] = [
    (UNKNOWN, None, None),
    (BOOLEAN, True, 1392991556),
    (BOOLEAN, False, 1669671676),
    (FLOAT, 1.0, -142385009),
    (FLOAT, 0.0, 1669671676),
    (FLOAT, -0.0, 1669671676),
    (DOUBLE, 1.0, -142385009),
    (DOUBLE, 0.0, 1669671676),
    (DOUBLE, -0.0, 1669671676),
]


@pytest.mark.parametrize("kind, value, expected", [*BUCKETABLE, *NOT_BUCKETABLE], ids=str)
def test_hashes_match_appendix_b_of_the_specification(kind: Type, value: Any, expected: int | None) -> None:
    assert hash_value(value, kind) == expected


@pytest.mark.parametrize("kind, value, expected", BUCKETABLE, ids=str)
def test_bucket_is_the_non_negative_hash_modulo_the_bucket_count(kind: Type, value: Any, expected: int) -> None:
    for number in (1, 16, 100, 2**31 - 1):
        assert Bucket(number).apply(value, kind) == (expected & 0x7FFFFFFF) % number


def test_every_nan_has_the_hash_of_the_canonical_nan() -> None:
    signalling = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000001))[0]
    negative = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
    assert {hash_value(one, DOUBLE) for one in (math.nan, -math.nan, signalling, negative)} == {
        hash_value(math.nan, FLOAT)
    }


def test_float_has_the_hash_of_the_equal_double() -> None:
    value = struct.unpack("<f", struct.pack("<f", 1.1))[0]
    assert hash_value(value, FLOAT) == hash_value(value, DOUBLE)


@pytest.mark.parametrize("kind", [VARIANT, GeometryType(), GeographyType(), ListType(1, INT)], ids=str)
def test_types_without_a_hash_are_refused(kind: Type) -> None:
    with pytest.raises(InvalidRequestError, match="the specification defines no hash"):
        hash_value(b"", kind)


def test_hash_of_a_decimal_ignores_its_scale() -> None:
    assert hash_value(Decimal("14.20"), DecimalType(9, 2)) == hash_value(Decimal(1420), DecimalType(38, 0))
    assert hash_value(Decimal("14.2"), DecimalType(9, 2)) == hash_value(Decimal("14.20"), DecimalType(9, 2))


@pytest.mark.parametrize(
    "width, kind, value, expected",
    [
        (10, INT, 1, 0),
        (10, INT, -1, -10),
        (10, LONG, 1, 0),
        (10, LONG, -1, -10),
        (50, DecimalType(4, 2), Decimal("10.65"), Decimal("10.50")),
        (3, STRING, "iceberg", "ice"),
        (3, BINARY, b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
        # Iceberg Java's table (TestTruncate).
        (10, INT, 0, 0),
        (10, INT, 5, 0),
        (10, INT, 9, 0),
        (10, INT, 10, 10),
        (10, INT, 11, 10),
        (10, INT, -5, -10),
        (10, INT, -10, -10),
        (10, INT, -11, -20),
        (10, DecimalType(9, 2), Decimal("12.34"), Decimal("12.30")),
        (10, DecimalType(9, 2), Decimal("12.30"), Decimal("12.30")),
        (10, DecimalType(9, 2), Decimal("12.29"), Decimal("12.20")),
        (10, DecimalType(9, 2), Decimal("0.05"), Decimal("0.00")),
        (10, DecimalType(9, 2), Decimal("-0.05"), Decimal("-0.10")),
        (5, STRING, "abcdefg", "abcde"),
        (5, STRING, "abc", "abc"),
        (5, STRING, "abcde", "abcde"),
        (2, STRING, "\U0001f4a9\U0001f4a9\U0001f4a9", "\U0001f4a9\U0001f4a9"),
        (5, BINARY, b"abcde\x01", b"abcde"),
        (5, BINARY, b"\x01\x02", b"\x01\x02"),
    ],
)
def test_truncate_matches_the_examples_of_the_specification(width: int, kind: Type, value: Any, expected: Any) -> None:
    result = Truncate(width).apply(value, kind)
    assert result == expected
    assert str(result) == str(expected)


@pytest.mark.parametrize(
    "transform, kind, text, expected, human",
    [
        (YEAR, DATE, "2017-12-01", 47, "2017"),
        (MONTH, DATE, "2017-12-01", 575, "2017-12"),
        (DAY, DATE, "2017-12-01", 17501, "2017-12-01"),
        (YEAR, DATE, "1970-01-01", 0, "1970"),
        (MONTH, DATE, "1970-01-01", 0, "1970-01"),
        (DAY, DATE, "1970-01-01", 0, "1970-01-01"),
        (YEAR, DATE, "1969-12-31", -1, "1969"),
        (MONTH, DATE, "1969-12-31", -1, "1969-12"),
        (DAY, DATE, "1969-12-31", -1, "1969-12-31"),
        (YEAR, DATE, "1969-01-01", -1, "1969"),
        (MONTH, DATE, "1969-01-01", -12, "1969-01"),
        (YEAR, DATE, "1968-12-31", -2, "1968"),
        (YEAR, TIMESTAMP, "2017-12-01T10:12:55.038194", 47, "2017"),
        (MONTH, TIMESTAMP, "2017-12-01T10:12:55.038194", 575, "2017-12"),
        (DAY, TIMESTAMP, "2017-12-01T10:12:55.038194", 17501, "2017-12-01"),
        (HOUR, TIMESTAMP, "2017-12-01T10:12:55.038194", 420034, "2017-12-01-10"),
        (YEAR, TIMESTAMP, "1969-12-30T10:30:01.000123", -1, "1969"),
        (MONTH, TIMESTAMP, "1969-12-30T10:30:01.000123", -1, "1969-12"),
        (DAY, TIMESTAMP, "1969-12-30T10:30:01.000123", -2, "1969-12-30"),
        (HOUR, TIMESTAMP, "1969-12-30T10:30:01.000123", -38, "1969-12-30-10"),
        (HOUR, TIMESTAMP, "1969-12-31T23:00:00", -1, "1969-12-31-23"),
        # Iceberg Java says -2 here, and for every `…:00.999999` that opens a unit before 1970.
        (HOUR, TIMESTAMP, "1969-12-31T23:00:00.999999", -1, "1969-12-31-23"),
        (DAY, TIMESTAMP, "1969-12-31T00:00:00.999999", -1, "1969-12-31"),
        (YEAR, TIMESTAMP_NS, "2017-12-01T10:12:55.038194789", 47, "2017"),
        (HOUR, TIMESTAMP_NS, "2017-12-01T10:12:55.038194789", 420034, "2017-12-01-10"),
        (HOUR, TIMESTAMP_NS, "1969-12-31T23:59:59.999999999", -1, "1969-12-31-23"),
        (DAY, TIMESTAMPTZ, "2017-12-01T23:30:00-08:00", 17502, "2017-12-02"),
        (HOUR, TIMESTAMPTZ_NS, "2017-12-01T10:12:55.038194789-08:00", 420042, "2017-12-01-18"),
    ],
)
def test_time_transforms_count_whole_units_from_1970(
    transform: Transform, kind: Type, text: str, expected: int, human: str
) -> None:
    value = days(text) if kind == DATE else nanos(text) if "ns" in str(kind) else micros(text)
    result = transform.apply(value, kind)
    assert result == expected
    assert transform.human_text(result, transform.result_type(kind)) == human


PRIMITIVES: list[Type] = [
    UNKNOWN, BOOLEAN, INT, LONG, FLOAT, DOUBLE, DecimalType(9, 2), DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS,
    TIMESTAMPTZ_NS, STRING, UUID, FIXED, BINARY, GeometryType(), GeographyType(),
]  # fmt: skip
GEOSPATIAL = {"geometry", "geography"}
TIMESTAMPS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
SOURCES = {
    "identity": {str(one) for one in PRIMITIVES} - GEOSPATIAL,
    "bucket[4]": {"int", "long", "decimal(9, 2)", "date", "time", "string", "uuid", "fixed[4]", "binary"} | TIMESTAMPS,
    "truncate[4]": {"int", "long", "decimal(9, 2)", "string", "binary"},
    "year": {"date"} | TIMESTAMPS,
    "month": {"date"} | TIMESTAMPS,
    "day": {"date"} | TIMESTAMPS,
    "hour": TIMESTAMPS,
    "void": {str(one) for one in PRIMITIVES},
}


@pytest.mark.parametrize("text", list(SOURCES))
def test_source_types_match_the_specification(text: str) -> None:
    transform = parse_transform(text)
    assert {str(one) for one in PRIMITIVES if transform.can_transform(one)} == SOURCES[text]
    for nested in (VARIANT, ListType(1, INT)):
        assert transform.can_transform(nested) is (text == "void")


@pytest.mark.parametrize("text", list(SOURCES))
def test_result_types_match_the_specification(text: str) -> None:
    transform = parse_transform(text)
    for kind in PRIMITIVES:
        if transform.can_transform(kind):
            fixed = {"bucket[4]": INT, "year": INT, "month": INT, "day": DATE, "hour": INT}.get(text, kind)
            assert transform.result_type(kind) == fixed


@pytest.mark.parametrize("text", list(SOURCES))
def test_every_transform_maps_null_to_null(text: str) -> None:
    transform = parse_transform(text)
    for kind in PRIMITIVES:
        if transform.can_transform(kind):
            assert transform.apply(None, kind) is None
            assert transform.human_text(None, transform.result_type(kind)) == "null"


def test_column_hashes_match_scalar_hashes() -> None:
    text = pa.array(["iceberg", None])
    assert transform_column(Bucket(2**31 - 1), text, STRING).to_pylist() == [1210000089, None]
    assert transform_column(Bucket(2**31 - 1), pa.array([34], pa.int32()), INT).to_pylist() == [2017239379]
    assert VOID.apply(1, INT) is None
    assert IDENTITY.apply(1, INT) == 1
