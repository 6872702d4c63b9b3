"""Transforms as values: their text, their order, their limits."""

from __future__ import annotations

import pickle
from decimal import Decimal
from uuid import UUID as UuidValue

import pytest

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec.murmur3 import hash_value, minimal_big_endian
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
    UnknownTransform,
    parse_transform,
    promotion_changes_partition,
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
    GeometryType,
    Type,
)

ALL: list[Transform] = [IDENTITY, Bucket(16), Truncate(4), YEAR, MONTH, DAY, HOUR, VOID, UnknownTransform("zorder[a]")]


@pytest.mark.parametrize("transform", ALL, ids=str)
def test_transform_round_trips_through_text_and_pickle(transform: Transform) -> None:
    assert parse_transform(str(transform)) == transform
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert hash(parse_transform(str(transform))) == hash(transform)


def test_transforms_of_different_kinds_are_never_equal() -> None:
    assert len({(type(one), one) for one in ALL}) == len(ALL)
    assert len(set(ALL)) == len(ALL)
    assert len({Bucket(4), Truncate(4)}) == 2


@pytest.mark.parametrize(
    "text, expected",
    [
        ("IDENTITY", IDENTITY),
        ("Bucket[16]", Bucket(16)),
        ("TRUNCATE[007]", Truncate(7)),
        ("Day", DAY),
        ("VOID", VOID),
    ],
)
def test_known_names_are_case_insensitive(text: str, expected: Transform) -> None:
    assert parse_transform(text) == expected


@pytest.mark.parametrize(
    "text", ["Zorder", "bucket", "bucket[]", "bucket[-1]", "bucket[16", "days", "", "year[4]", " day"]
)
def test_unknown_text_is_kept_unchanged(text: str) -> None:
    transform = parse_transform(text)
    assert transform == UnknownTransform(text)
    assert str(transform) == text


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[2147483648]", "truncate[99999999999999999999]"])
def test_parameter_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"Cannot make (bucket|truncate)"):
        parse_transform(text)


def test_parameter_of_a_million_digits_is_refused_quickly() -> None:
    with pytest.raises(InvalidRequestError, match="does not fit 32 bits"):
        parse_transform(f"bucket[{'9' * 1_000_000}]")


def test_unknown_transform_cannot_be_applied() -> None:
    unknown = UnknownTransform("zorder")
    assert unknown.can_transform(INT)
    assert unknown.result_type(INT) == STRING
    assert unknown.apply(None, INT) is None
    assert unknown.human_text(5, STRING) == "5"
    with pytest.raises(UnsupportedError, match="it is not supported"):
        unknown.apply(1, INT)


def test_unsupported_source_type_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="Cannot apply hour to a date value"):
        HOUR.apply(1, DATE)


@pytest.mark.parametrize(
    ("width", "value", "kind", "result"),
    [
        (10, -(2**31), INT, 2147483646),
        (7, -(2**31), INT, 2147483643),
        (300, -(2**31), INT, 2147483596),
        (10, -(2**63), LONG, 9223372036854775806),
        (10, -(2**31), LONG, -2147483650),
        (16, -(2**31), INT, -(2**31)),
    ],
)
def test_truncation_near_the_smallest_integer_wraps_around(width: int, value: int, kind: Type, result: int) -> None:
    assert Truncate(width).apply(value, kind) == result
    wrapped = Truncate(width).wrapped_range(kind)
    if value == getattr(kind, "MIN", None):
        assert (wrapped is None) is (result == value)
    if wrapped is not None:
        assert Truncate(width).apply(wrapped.last, kind) == wrapped.result
        assert Truncate(width).apply(wrapped.last + 1, kind) == wrapped.last + 1


def test_overflowing_results_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"does not fit decimal\(2, 0\)"):
        Truncate(10).apply(Decimal(-99), DecimalType(2, 0))
    with pytest.raises(SchemaMismatchError, match="do not fit int"):
        HOUR.apply(2**63 - 1, TIMESTAMP)
    assert HOUR.apply(2**63 - 1, TIMESTAMP_NS) == 2562047


def test_width_near_the_largest_integer_truncates_exactly() -> None:
    assert Truncate(2**31 - 1).apply(2**31 - 2, INT) == 0
    assert Truncate(2**31 - 1).apply(2**31 - 1, INT) == 2**31 - 1


def test_decimals_of_38_digits_truncate_and_hash_exactly() -> None:
    kind = DecimalType(38, 2)
    value = Decimal("123456789012345678901234567890123456.78")
    assert Truncate(100).apply(value, kind) == Decimal("123456789012345678901234567890123456.00")
    assert str(Truncate(100).apply(Decimal("0.01"), kind)) == "0.00"
    assert hash_value(value, kind) != hash_value(value + 1, kind)


@pytest.mark.parametrize("value", [Decimal("1.555"), Decimal(10) ** 9, Decimal("NaN"), Decimal("1E+999999"), "1.5"])
def test_decimal_exceeding_its_type_is_refused(value: Decimal) -> None:
    with pytest.raises(SchemaMismatchError):
        hash_value(value, DecimalType(9, 2))


def test_value_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="it is not a string value"):
        hash_value(5, STRING)
    with pytest.raises(SchemaMismatchError, match="it is not a long value"):
        hash_value("5", LONG)


@pytest.mark.parametrize(
    "value, expected",
    [(0, b"\0"), (1, b"\x01"), (-1, b"\xff"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f")],
)
def test_twos_complement_takes_the_fewest_bytes(value: int, expected: bytes) -> None:
    assert minimal_big_endian(value) == expected


TEXT = STRING


@pytest.mark.parametrize(
    "one, other, kind, expected",
    [
        (IDENTITY, IDENTITY, INT, True),
        (IDENTITY, Truncate(4), INT, True),
        (IDENTITY, DAY, DATE, True),
        (IDENTITY, Bucket(4), INT, False),
        (IDENTITY, VOID, INT, False),
        (Bucket(4), Bucket(4), INT, True),
        (Bucket(4), Bucket(8), INT, False),
        (Bucket(4), IDENTITY, INT, False),
        (HOUR, HOUR, None, True),
        (HOUR, DAY, None, True),
        (HOUR, MONTH, None, True),
        (HOUR, YEAR, None, True),
        (DAY, HOUR, None, False),
        (DAY, MONTH, None, True),
        (MONTH, YEAR, None, True),
        (YEAR, MONTH, None, False),
        (DAY, IDENTITY, None, False),
        (Truncate(4), Truncate(4), None, True),
        (Truncate(4), Truncate(2), TEXT, True),
        (Truncate(2), Truncate(4), TEXT, False),
        (Truncate(4), Truncate(2), BINARY, True),
        (Truncate(4), Truncate(8), INT, True),
        (Truncate(8), Truncate(4), INT, False),
        (Truncate(15), Truncate(10), INT, False),
        (Truncate(4), Truncate(2), None, False),
        (Truncate(4), IDENTITY, TEXT, False),
        (UnknownTransform("z"), UnknownTransform("z"), None, True),
        (UnknownTransform("z"), UnknownTransform("y"), None, False),
    ],
)
def test_order_satisfies_coarser_ones(one: Transform, other: Transform, kind: Type | None, *, expected: bool) -> None:
    assert one.satisfies_order_of(other, kind) is expected


@pytest.mark.parametrize(
    "transform, from_type, to_type, expected",
    [
        (IDENTITY, INT, LONG, False),
        (Bucket(4), INT, LONG, False),
        (Truncate(4), INT, LONG, False),
        (IDENTITY, FLOAT, DOUBLE, False),
        (Bucket(4), DecimalType(9, 2), DecimalType(18, 2), False),
        (Truncate(4), DecimalType(9, 2), DecimalType(18, 2), False),
        (Bucket(4), DecimalType(9, 2), DecimalType(18, 3), True),
        (IDENTITY, DATE, TIMESTAMP, True),
        (IDENTITY, DATE, TIMESTAMP_NS, True),
        (Bucket(4), DATE, TIMESTAMP, True),
        (YEAR, DATE, TIMESTAMP, False),
        (MONTH, DATE, TIMESTAMP_NS, False),
        (DAY, DATE, TIMESTAMP, False),
        (VOID, DATE, TIMESTAMP, False),
        (Bucket(4), INT, STRING, True),
        (IDENTITY, UNKNOWN, STRING, False),
        (IDENTITY, UNKNOWN, GeometryType(), True),
        (VOID, UNKNOWN, VARIANT, False),
        (UnknownTransform("z"), INT, LONG, True),
        (UnknownTransform("z"), INT, INT, False),
    ],
)
def test_promotions_that_change_partition_values_are_recognised(
    transform: Transform, from_type: Type, to_type: Type, *, expected: bool
) -> None:
    assert promotion_changes_partition(transform, from_type, to_type) is expected


@pytest.mark.parametrize(
    "kind, value, expected",
    [
        (BOOLEAN, True, "true"),
        (BOOLEAN, False, "false"),
        (INT, -5, "-5"),
        (LONG, 2**40, "1099511627776"),
        (STRING, "", ""),
        (STRING, "a/b c", "a/b c"),
        (BINARY, b"\x00\x01\x02", "AAEC"),
        (FixedType(3), b"abc", "YWJj"),
        (UUID, UuidValue("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (DecimalType(9, 2), Decimal("14.20"), "14.20"),
        (DecimalType(9, 2), Decimal(14), "14.00"),
        (DecimalType(18, 9), Decimal(0), "0E-9"),
        (DecimalType(18, 9), Decimal("0.000000001"), "1E-9"),
        (DATE, 17501, "2017-12-01"),
        (DATE, -1, "1969-12-31"),
        (DATE, 2932897, "10000-01-01"),
        (DATE, -719529, "-001-12-31"),
        (TIME, 36_775_038_194, "10:12:55.038194"),
        (TIME, 36_775_038_000, "10:12:55.038"),
        (TIME, 36_720_000_000, "10:12"),
        (TIME, 36_721_000_000, "10:12:01"),
        (TIMESTAMP, 1_512_123_175_038_194, "2017-12-01T10:12:55.038194"),
        (TIMESTAMP, 1_512_123_175_500_000, "2017-12-01T10:12:55.5"),
        (TIMESTAMP, 1_512_123_120_000_000, "2017-12-01T10:12:00"),
        (TIMESTAMPTZ, 1_512_123_175_038_194, "2017-12-01T10:12:55.038194+00:00"),
        (TIMESTAMP_NS, 1_512_123_175_038_194_789, "2017-12-01T10:12:55.038194789"),
        (TIMESTAMPTZ_NS, 1_512_123_175_038_194_789, "2017-12-01T10:12:55.038194789+00:00"),
        (DOUBLE, 1.0, "1.0"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 9999999.0, "9999999.0"),
        (DOUBLE, 0.001, "0.001"),
        (DOUBLE, 1.5e-4, "1.5E-4"),
        (DOUBLE, 123456789.125, "1.23456789125E8"),
        (DOUBLE, -0.0, "-0.0"),
        (DOUBLE, 5e-324, "4.9E-324"),
        (DOUBLE, float("nan"), "NaN"),
        (DOUBLE, float("-inf"), "-Infinity"),
        (FLOAT, 1.100000023841858, "1.1"),
        (FLOAT, 1.401298464324817e-45, "1.4E-45"),
        (FLOAT, 3.4028234663852886e38, "3.4028235E38"),
        (FLOAT, 113505105608704.0, "1.13505106E14"),
    ],
)
def test_identity_values_print_like_in_iceberg_java(kind: Type, value: object, expected: str) -> None:
    assert IDENTITY.human_text(value, kind) == expected


def test_time_values_print_as_their_unit() -> None:
    assert YEAR.human_text(47, INT) == "2017"
    assert YEAR.human_text(-2000, INT) == "-030"
    assert MONTH.human_text(575, INT) == "2017-12"
    assert DAY.human_text(17501, INT) == "2017-12-01"
    assert HOUR.human_text(-1, INT) == "1969-12-31-23"
    assert Bucket(4).human_text(3, INT) == "3"
    assert VOID.human_text(3, INT) == "null"
