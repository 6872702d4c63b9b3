from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import pytest

from frazil.codec.single_value_json import decode_json_value, encode_json_value
from frazil.errors import InvalidManifestError, InvalidMetadataError, SchemaMismatchError, UnsupportedError
from frazil.spec.schema import MAX_NESTING_DEPTH
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

POINT = StructType((NestedField(1, "x", INT), NestedField(2, "y", INT)))


@pytest.mark.parametrize(
    "json_value, kind, reason",
    [
        ("true", BOOLEAN, "expected true or false, found 'true'"),
        (1, BOOLEAN, "expected true or false, found 1"),
        (True, INT, "expected an integer for int, found True"),
        (1.0, INT, "expected an integer for int, found 1.0"),
        (2**31, INT, "does not fit the 32 bits of int"),
        (2**63, LONG, "does not fit the 64 bits of long"),
        pytest.param(10**5000, LONG, "a very large integer does not fit the 64 bits", id="huge-long"),
        pytest.param(10**5000, DOUBLE, "is out of the range of double", id="huge-double"),
        ("1.0", DOUBLE, "expected a number for double"),
        (1e39, FLOAT, "is out of the range of float"),
        (math.nan, DOUBLE, "nan is not a JSON number"),
        (math.inf, FLOAT, "inf is not a JSON number"),
        (123.456, DecimalType(5, 2), "expected text for decimal(5, 2)"),
        ("123.456", DecimalType(9, 2), "has the scale 3, not the scale 2"),
        ("14.2", DecimalType(9, 2), "has the scale 1, not the scale 2"),
        ("2E+20", DecimalType(38, 0), "has the scale -20, not the scale 0"),
        ("12345678.90", DecimalType(9, 2), "more than the 9 digits"),
        ("NaN", DecimalType(9, 2), "expected a decimal such as 14.20"),
        ("1_0.00", DecimalType(9, 2), "expected a decimal such as"),
        (" 1.00", DecimalType(9, 2), "expected a decimal such as"),
        ("1" * 100_000, DecimalType(38, 0), "expected a decimal such as 14"),
        (17486, DATE, "expected text for date"),
        ("2017-02-29", DATE, "expected a date such as 2017-11-16"),
        ("+9999999-01-01", DATE, "is out of the range of date"),
        ("24:00:00", TIME, "expected a time such as"),
        ("10:15:30.1234567", TIME, "finer than the microseconds of time"),
        ("2007-12-03 10:15:30", TIMESTAMP, "expected a timestamp such as"),
        ("2007-12-03", TIMESTAMP, "expected a timestamp such as"),
        ("2007-12-03T10:15:30+00:00", TIMESTAMP, "must not have a zone offset"),
        ("2007-12-03T10:15:30", TIMESTAMPTZ, "the zone offset of a timestamptz must be +00:00"),
        ("2007-12-03T10:15:30+01:00", TIMESTAMPTZ, "must be +00:00"),
        ("2007-12-03T10:15:30+01:00", TIMESTAMPTZ_NS, "must be +00:00"),
        ("2007-12-03T10:15:30.123456789", TIMESTAMP, "finer than the microseconds of timestamp"),
        ("2300-01-01T00:00:00", TIMESTAMP_NS, "is out of the range of timestamp_ns"),
        (5, STRING, "expected text for string"),
        ("\ud800", STRING, "lone surrogate"),
        ("eb26bdb1-a1d8-4aa6-990e-da940875492c-abcde", UUID, "expected a uuid such as"),
        ("{eb26bdb1-a1d8-4aa6-990e-da940875492c", UUID, "expected a uuid such as"),
        ("111ff", FixedType(2), "expected 4 hexadecimal digits for fixed[2], found 5 characters"),
        ("11zz", FixedType(2), "expected an even number of hexadecimal digits"),
        ("00 1", BINARY, "expected an even number of hexadecimal digits"),
        ("000", BINARY, "expected an even number of hexadecimal digits"),
        ([], POINT, "expected an object by field id"),
        ({"3": 1}, POINT, "no field with the id '3'"),
        ({"x": 1}, POINT, "no field with the id 'x'"),
        ({}, ListType(1, INT), "expected a list"),
        ([None], ListType(1, INT, element_required=True), "a null element"),
        (["a"], ListType(1, INT), "expected an integer for int, found 'a'"),
        ({"keys": [1, 2, 3], "values": ["a", "b"]}, MapType(1, INT, 2, STRING), "a map with 3 keys and 2 values"),
        ({"keys": [1]}, MapType(1, INT, 2, STRING), "expected an object of keys and values"),
        ({"keys": [None], "values": ["a"]}, MapType(1, INT, 2, STRING), "a null key"),
        ({"keys": [1], "values": [None]}, MapType(1, INT, 2, STRING, value_required=True), "a null value"),
        ({"keys": [1, 1], "values": ["a", "b"]}, MapType(1, INT, 2, STRING), "the key 1 occurs twice"),
        (0, UNKNOWN, "a value of type unknown is always null"),
    ],
)
def test_invalid_json_value_is_refused(json_value: Any, kind: Type, reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_json_value(json_value, kind, where="schema.fields[0].initial-default")
    assert reason in caught.value.message
    assert caught.value.message.startswith("Cannot read schema.fields[0].initial-default: ")
    assert caught.value.context["heading"] == "JSON single-value serialization"
    assert len(caught.value.message) < 400


def test_only_null_variants_have_a_json_form() -> None:
    assert decode_json_value(None, VARIANT) is None
    assert encode_json_value(None, VARIANT) is None
    with pytest.raises(UnsupportedError):
        decode_json_value("x", VARIANT)
    with pytest.raises(UnsupportedError):
        encode_json_value(b"x", VARIANT)


@pytest.mark.parametrize("kind", [GeometryType(), GeographyType()])
def test_geometries_are_text_in_json_and_wkb_internally(kind: Type) -> None:
    data = decode_json_value("POINT (30 10)", kind)
    assert data == bytes.fromhex("01010000000000000000003e400000000000002440")
    assert encode_json_value(data, kind) == "POINT (30 10)"
    with pytest.raises(InvalidMetadataError, match="POINT"):
        decode_json_value("BLOB (30 10)", kind)
    with pytest.raises(SchemaMismatchError):
        encode_json_value(b"wkb", kind)


@pytest.mark.parametrize(
    "value, kind, reason",
    [
        (1, BOOLEAN, "expected true or false"),
        (2**31, INT, "does not fit the 32 bits"),
        (math.nan, DOUBLE, "not a JSON number"),
        (-math.inf, FLOAT, "not a JSON number"),
        (Decimal("1.5"), DecimalType(9, 2), "has the scale 1"),
        (1.5, DecimalType(9, 2), "expected a decimal"),
        ("2017-11-16", DATE, "expected an integer for date"),
        (2**31, DATE, "out of the range of date"),
        (86_400_000_000, TIME, "are not a time of day"),
        (2**63, TIMESTAMPTZ, "out of the range of timestamptz"),
        ("f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID, "expected a UUID"),
        (b"abc", FixedType(2), "expected 2 bytes for fixed[2], found 3"),
        ("00", BINARY, "expected bytes"),
        ([1], POINT, "expected a dict by field name"),
        ({"z": 1}, POINT, "no field named 'z'"),
        ("abc", ListType(1, STRING), "expected a list"),
        ([None], ListType(1, INT, element_required=True), "a null element"),
        ([(1, 2)], MapType(1, INT, 2, INT), "expected a dict"),
        ({1: None}, MapType(1, INT, 2, INT, value_required=True), "a null value"),
        (1, UNKNOWN, "always null"),
    ],
)
def test_values_out_of_range_are_not_written(value: Any, kind: Type, reason: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        encode_json_value(value, kind)
    assert reason in caught.value.message


def test_error_class_and_position_come_from_the_caller() -> None:
    with pytest.raises(InvalidManifestError, match="Cannot read here: expected text"):
        decode_json_value(1, STRING, where="here", error=InvalidManifestError)


def test_whole_numbers_are_read_as_floating_point() -> None:
    value = decode_json_value(3, DOUBLE)
    assert value == 3.0
    assert isinstance(value, float)


def test_float_is_rounded_to_32_bits_and_written_shortest() -> None:
    value = decode_json_value(12.21, FLOAT)
    assert value == 12.210000038146973
    assert encode_json_value(value, FLOAT) == 12.21


def test_negative_zero_is_kept_in_floats_but_not_decimals() -> None:
    assert math.copysign(1, encode_json_value(decode_json_value(-0.0, DOUBLE), DOUBLE)) == -1
    assert encode_json_value(decode_json_value("-0.00", DecimalType(9, 2)), DecimalType(9, 2)) == "0.00"


def test_scientific_notation_determines_the_scale() -> None:
    assert decode_json_value("1.5E+1", DecimalType(9, 0)) == Decimal("15")
    assert decode_json_value("1.5E-1", DecimalType(9, 2)) == Decimal("0.15")


def test_utc_may_be_written_as_z_and_becomes_an_offset() -> None:
    assert encode_json_value(decode_json_value("2007-12-03T10:15:30Z", TIMESTAMPTZ), TIMESTAMPTZ).endswith("+00:00")


def test_upper_case_uuids_and_hexadecimal_become_lower_case() -> None:
    text = "F79C3E09-677C-4BBD-A479-3F349CB785E7"
    assert decode_json_value(text, UUID) == uuid.UUID(text)
    assert encode_json_value(decode_json_value(text, UUID), UUID) == text.lower()
    assert encode_json_value(decode_json_value("00FF", BINARY), BINARY) == "00ff"


def test_years_outside_the_python_range_are_kept() -> None:
    for text in ("+10000-01-01T00:00:00", "-0001-12-31T23:59:59.999999"):
        assert encode_json_value(decode_json_value(text, TIMESTAMP), TIMESTAMP) == text


def test_absent_struct_fields_stay_absent() -> None:
    assert decode_json_value({}, POINT) == {}
    assert decode_json_value({"2": 5}, POINT) == {"y": 5}
    assert encode_json_value({"x": None, "y": 5}, POINT) == {"2": 5}


def test_map_keys_may_be_nested() -> None:
    kind = MapType(3, POINT, 4, ListType(5, INT))
    json_value = {"keys": [{"1": 1, "2": 2}], "values": [[1]]}
    assert encode_json_value(decode_json_value(json_value, kind), kind) == json_value


def test_values_as_deep_as_the_deepest_schema_round_trip() -> None:
    kind: Type = INT
    json_value: Any = 1
    for level in range(MAX_NESTING_DEPTH):
        kind = ListType(level + 1, kind) if level % 2 else StructType((NestedField(level + 1, "x", kind),))
        json_value = [json_value] if level % 2 else {str(level + 1): json_value}
    assert encode_json_value(decode_json_value(json_value, kind), kind) == json_value
