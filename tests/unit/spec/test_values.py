from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
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
    NestedField,
    StructType,
    Type,
)
from frazil.spec.values import (
    compare_values,
    format_value,
    shortest_float32,
    show_value,
    sort_key,
    to_internal,
    to_python,
)

UTC = datetime.UTC
PLUS_TWO = datetime.timezone(datetime.timedelta(hours=2))
SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MICROS = 1_510_871_468_123_456  # 2017-11-16T22:31:08.123456
POINT = StructType((NestedField(1, "x", INT, required=True), NestedField(2, "y", LONG)))


@pytest.mark.parametrize(
    "value, kind, internal",
    [
        (True, BOOLEAN, True),
        (np.bool_(False), BOOLEAN, False),
        (2**31 - 1, INT, 2**31 - 1),
        (np.int8(5), LONG, 5),
        (-(2**63), LONG, -(2**63)),
        (1, DOUBLE, 1.0),
        (0.1, DOUBLE, 0.1),
        (Decimal("0.1"), DOUBLE, 0.1),
        (0.1, FLOAT, 0.10000000149011612),
        (math.inf, FLOAT, math.inf),
        (Decimal("1.5"), DecimalType(9, 2), Decimal("1.50")),
        (Decimal("1.500"), DecimalType(9, 2), Decimal("1.50")),
        (Decimal("1E+3"), DecimalType(9, 2), Decimal("1000.00")),
        (7, DecimalType(9, 2), Decimal("7.00")),
        (0.25, DecimalType(9, 2), Decimal("0.25")),
        ("12.34", DecimalType(9, 2), Decimal("12.34")),
        (Decimal("9" * 38), DecimalType(38, 0), Decimal("9" * 38)),
        (datetime.date(2017, 11, 16), DATE, 17486),
        ("2017-11-16", DATE, 17486),
        ("+10000-01-01", DATE, 2932897),
        (17486, DATE, 17486),
        (datetime.time(22, 31, 8, 123456), TIME, 81_068_123_456),
        ("22:31:08.123456", TIME, 81_068_123_456),
        (81_068_123_456, TIME, 81_068_123_456),
        (MICROS, TIMESTAMPTZ, MICROS),
        (datetime.datetime(2017, 11, 16, 22, 31, 8, 123456), TIMESTAMP, MICROS),
        ("2017-11-16T22:31:08.123456", TIMESTAMP, MICROS),
        ("2017-11-16 22:31:08.123456000", TIMESTAMP, MICROS),
        (datetime.datetime(2017, 11, 17, 0, 31, 8, 123456, PLUS_TWO), TIMESTAMPTZ, MICROS),
        ("2017-11-16T14:31:08.123456-08:00", TIMESTAMPTZ, MICROS),
        ("2017-11-16T22:31:08.123456Z", TIMESTAMPTZ, MICROS),
        ("2017-11-16", TIMESTAMPTZ, 17486 * 86_400 * 10**6),
        (datetime.date(2017, 11, 16), TIMESTAMP, 17486 * 86_400 * 10**6),
        ("2017-11-16T22:31:08.123456789", TIMESTAMP_NS, MICROS * 1000 + 789),
        ("2017-11-16T22:31:08.123456789+00:00", TIMESTAMPTZ_NS, MICROS * 1000 + 789),
        (np.datetime64("2017-11-16T22:31:08.123456789", "ns"), TIMESTAMP_NS, MICROS * 1000 + 789),
        ("a\0b", STRING, "a\0b"),
        ("", STRING, ""),
        (SOME_UUID, UUID, SOME_UUID),
        ("F79C3E09-677C-4BBD-A479-3F349CB785E7", UUID, SOME_UUID),
        (SOME_UUID.bytes, UUID, SOME_UUID),
        (bytearray(b"ab"), FixedType(2), b"ab"),
        (memoryview(b""), BINARY, b""),
        (b"wkb", GeometryType(), b"wkb"),
        (None, UNKNOWN, None),
        (None, INT, None),
        ({"x": 1}, POINT, {"x": 1, "y": None}),
        ((1, None), ListType(3, INT), [1, None]),
        ({"2017-11-16": 1}, MapType(3, DATE, 4, LONG), {17486: 1}),
    ],
)  # fmt: skip
def test_python_values_are_converted_to_internal_ones(value: Any, kind: Type, internal: Any) -> None:
    converted = to_internal(value, kind)
    assert converted == internal
    assert type(converted) is type(internal)


@pytest.mark.parametrize(
    "value, kind, reason",
    [
        (1, BOOLEAN, "expected True or False, not int"),
        (True, INT, "expected an int, not bool"),
        (1.0, INT, "expected an int, not float"),
        ("1", LONG, "expected an int, not str"),
        (2**31, INT, "it does not fit 32 bits"),
        (-(2**63) - 1, LONG, "it does not fit 64 bits"),
        (2**53 + 1, DOUBLE, "more digits than double holds"),
        (10**400, DOUBLE, "it is out of range"),
        (1e39, FLOAT, "it is out of range"),
        (Decimal("1E+400"), DOUBLE, "it is out of range"),
        ("1.0", DOUBLE, "expected a number, not str"),
        (b"1", DecimalType(9, 2), "expected a decimal, not bytes"),
        (Decimal("1.234"), DecimalType(9, 2), "more than 2 digits after the point"),
        (0.1 + 0.2, DecimalType(9, 2), "more than 2 digits after the point"),
        (Decimal("12345678.90"), DecimalType(9, 2), "more than 9 digits"),
        (Decimal("1E+99999"), DecimalType(9, 2), "more than 7 digits before the point"),
        pytest.param(10**5000, DecimalType(38, 0), "more than 38 digits", id="huge"),
        (Decimal("NaN"), DecimalType(9, 2), "decimals are finite"),
        ("1_000", DecimalType(9, 2), "expected a decimal"),
        ("x", DecimalType(9, 2), "the text is not a decimal"),
        ("1" * 1000, DecimalType(9, 2), "expected a decimal"),
        ("16.11.2017", DATE, "expected a date such as '2017-11-16'"),
        (datetime.datetime(2017, 11, 16), DATE, "a datetime has a time of day"),
        (1.5, DATE, "expected a date, not float"),
        ("+9999999-01-01", DATE, "it does not fit 32 bits"),
        (datetime.time(1, tzinfo=UTC), TIME, "the time has a zone"),
        (-1, TIME, "not a number of microseconds within a day"),
        ("25:00", TIME, "expected a time such as"),
        (datetime.datetime(2017, 11, 16), TIMESTAMPTZ, "the timestamp has no zone"),
        (datetime.datetime(2017, 11, 16, tzinfo=UTC), TIMESTAMP, "the timestamp has a zone"),
        ("2017-11-16T00:00:00", TIMESTAMPTZ, "the timestamp has no zone"),
        ("2017-11-16T00:00:00Z", TIMESTAMP, "the timestamp has a zone"),
        ("2017-11-16T22:31:08.123456789", TIMESTAMP, "finer than a microsecond"),
        (np.datetime64("NaT", "us"), TIMESTAMP, "expected a timestamp"),
        ("yesterday", TIMESTAMPTZ, "expected a timestamp such as '2017-11-16T22:31:08.123456+00:00'"),
        ("+300000-01-01T00:00", TIMESTAMP, "it does not fit 64 bits"),
        ("1600-01-01T00:00", TIMESTAMP_NS, "it does not fit 64 bits"),
        (b"x", STRING, "expected text, not bytes"),
        ("\ud800", STRING, "lone surrogate"),
        ("not-a-uuid", UUID, "expected a uuid"),
        ("z" * 36, UUID, "expected a uuid"),
        (b"short", UUID, "expected a uuid"),
        (b"abc", FixedType(2), "it has 3 bytes"),
        ("ab", BINARY, "expected bytes, not str"),
        (1, UNKNOWN, "always null"),
        ([1], POINT, "expected a dict by field name, not list"),
        ({"z": 1}, POINT, "the struct has no field 'z'"),
        ({"y": 1}, POINT, "(at x): a required value is missing"),
        ({"x": "a"}, POINT, "(at x): expected an int, not str"),
        ("abc", ListType(3, STRING), "expected a list, not str"),
        ([None], ListType(3, INT, element_required=True), "(at element): a required value is missing"),
        ([{"x": None}], ListType(3, POINT), "(at element.x): a required value is missing"),
        ([], MapType(3, STRING, 4, INT), "expected a dict, not list"),
        ({"a": None}, MapType(3, STRING, 4, INT, value_required=True), "(at value): a required value is missing"),
        ({datetime.date(2017, 11, 16): 1, "2017-11-16": 2}, MapType(3, DATE, 4, INT), "two keys stand for 17486"),
    ],
)
def test_incompatible_values_are_refused_with_the_reason(value: Any, kind: Type, reason: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        to_internal(value, kind)
    assert reason in caught.value.message
    assert str(kind) in caught.value.message
    assert len(str(caught.value)) < 600


def test_pandas_timestamps_keep_nanoseconds() -> None:
    pd = pytest.importorskip("pandas")
    text = "2017-11-16T22:31:08.123456789"
    assert to_internal(pd.Timestamp(text), TIMESTAMP_NS) == MICROS * 1000 + 789
    in_paris = (MICROS - 3600 * 10**6) * 1000 + 789
    assert to_internal(pd.Timestamp(text, tz="Europe/Paris"), TIMESTAMPTZ_NS) == in_paris
    with pytest.raises(SchemaMismatchError, match="finer than a microsecond"):
        to_internal(pd.Timestamp(text), TIMESTAMP)
    with pytest.raises(SchemaMismatchError, match="it is not a point in time"):
        to_internal(pd.NaT, TIMESTAMP)


def test_variant_values_are_unsupported_except_null() -> None:
    assert to_internal(None, VARIANT) is None
    with pytest.raises(UnsupportedError):
        to_internal({"a": 1}, VARIANT)


def test_structs_and_lists_can_be_map_keys() -> None:
    by_list = to_internal({(1, 2): "a"}, MapType(1, ListType(2, INT), 3, STRING))
    assert by_list == {(1, 2): "a"}
    key = FrozenMap({"x": 1, "y": 2})
    assert to_internal({key: "a"}, MapType(3, POINT, 4, STRING)) == {key: "a"}


@pytest.mark.parametrize(
    "internal, kind, value",
    [
        (17486, DATE, datetime.date(2017, 11, 16)),
        (-719162, DATE, datetime.date(1, 1, 1)),
        (-719163, DATE, "0000-12-31"),
        (2932897, DATE, "+10000-01-01"),
        (81_068_123_456, TIME, datetime.time(22, 31, 8, 123456)),
        (MICROS, TIMESTAMP, datetime.datetime(2017, 11, 16, 22, 31, 8, 123456)),
        (MICROS, TIMESTAMPTZ, datetime.datetime(2017, 11, 16, 22, 31, 8, 123456, UTC)),
        (MICROS * 1000, TIMESTAMPTZ_NS, datetime.datetime(2017, 11, 16, 22, 31, 8, 123456, UTC)),
        (MICROS * 1000 + 1, TIMESTAMP_NS, "2017-11-16T22:31:08.123456001"),
        (2**63 - 1, TIMESTAMPTZ, "+294247-01-10T04:00:54.775807+00:00"),
        (-(2**63), TIMESTAMP, "-290308-12-21T19:59:05.224192"),
        (None, DATE, None),
        ({"x": 1}, POINT, {"x": 1, "y": None}),
        ([17486], ListType(1, DATE), [datetime.date(2017, 11, 16)]),
        ({17486: 0}, MapType(1, DATE, 2, DATE), {datetime.date(2017, 11, 16): datetime.date(1970, 1, 1)}),
    ],
)
def test_internal_values_become_python_values_if_representable(internal: Any, kind: Type, value: Any) -> None:
    converted = to_python(internal, kind)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    "internal, kind, text",
    [
        (None, INT, "null"),
        (True, BOOLEAN, "true"),
        (-5, LONG, "-5"),
        (1.5, DOUBLE, "1.5"),
        (12.210000038146973, FLOAT, "12.21"),
        (math.nan, DOUBLE, "NaN"),
        (-math.inf, FLOAT, "-Infinity"),
        (Decimal("0.0000000001"), DecimalType(38, 10), "0.0000000001"),
        (17486, DATE, "2017-11-16"),
        (-719529, DATE, "-0001-12-31"),
        (36_900_000_000, TIME, "10:15"),
        (36_930_000_000, TIME, "10:15:30"),
        (36_930_100_000, TIME, "10:15:30.100"),
        (36_930_123_456, TIME, "10:15:30.123456"),
        (MICROS, TIMESTAMP, "2017-11-16T22:31:08.123456"),
        (MICROS - 123456, TIMESTAMPTZ, "2017-11-16T22:31:08+00:00"),
        (MICROS * 1000 + 780, TIMESTAMP_NS, "2017-11-16T22:31:08.12345678"),
        (MICROS * 1000, TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456+00:00"),
        (SOME_UUID, UUID, str(SOME_UUID)),
        (b"\x00\x01\xff", BINARY, "AAH/"),
        (b"\x00\x01\xff", FixedType(3), "AAH/"),
        ({"x": 1, "y": None}, POINT, "{x: 1, y: null}"),
        ([True, None], ListType(1, BOOLEAN), "[true, null]"),
        ({"a": 17486}, MapType(1, STRING, 2, DATE), "{a: 2017-11-16}"),
    ],
)
def test_values_have_a_display_text(internal: Any, kind: Type, text: str) -> None:
    assert format_value(internal, kind) == text


def test_floats_sort_from_negative_nan_to_nan_with_negative_zero_before_zero() -> None:
    ordered = [-math.nan, -math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]
    ordered[0], ordered[-1] = math.copysign(math.nan, -1.0), math.copysign(math.nan, 1.0)
    keys = [sort_key(value, DOUBLE) for value in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "less, greater, kind",
    [
        (False, True, BOOLEAN),
        (0, 1, INT),
        (-1, 0, DATE),
        (0.1, 0.2, FLOAT),
        ("a", "b", STRING),
        ("a", "aa", STRING),
        ("\uffff", "\U00010000", STRING),
        (b"\x7f", b"\x80", BINARY),
        (b"\x01\x01", b"\x01\x01\x01", BINARY),
        (b"\x01\x01\x03", b"\x01\x02\x01", FixedType(3)),
        (uuid.UUID("10000000-0000-0000-0000-000000000000"), uuid.UUID("81873e7d-1374-4493-8e1d-9095eff7046c"), UUID),
        (Decimal("0.10"), Decimal("0.20"), DecimalType(5, 2)),
        ([1, 1], [1, 1, 1], ListType(1, INT)),
        ([None], [1], ListType(1, INT)),
        ({"x": 1, "y": None}, {"x": 1, "y": 0}, POINT),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, MapType(1, STRING, 2, INT)),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, MapType(1, STRING, 2, INT)),
        ({"a": 1}, {"a": 1, "b": 2}, MapType(1, STRING, 2, INT)),
        ({"a": 1, "c": 3, "b": 2}, {"a": 1, "b": 2, "c": 4}, MapType(1, STRING, 2, INT)),
        ({"a": 1, "b": None, "c": 2}, {"a": 1, "b": 2, "c": 3}, MapType(1, STRING, 2, INT)),
    ],
)
def test_values_are_ordered_like_in_iceberg_java(less: Any, greater: Any, kind: Type) -> None:
    assert compare_values(less, greater, kind) == -1
    assert compare_values(greater, less, kind) == 1
    assert compare_values(less, less, kind) == 0


@pytest.mark.parametrize("kind", [GeometryType(), GeographyType(), VARIANT])
def test_types_without_an_order_are_refused(kind: Type) -> None:
    with pytest.raises(InvalidRequestError, match="has no order"):
        compare_values(b"", b"", kind)


def test_shortest_float_text_round_trips() -> None:
    assert shortest_float32(12.210000038146973) == 12.21
    largest = 3.4028234663852886e38
    assert to_internal(shortest_float32(largest), FLOAT) == largest


def test_displayed_values_are_short() -> None:
    assert show_value(10**5000) == "a very large integer"
    assert len(show_value("x" * 1000)) <= 80
    assert len(show_value(list(range(1000)))) <= 80
