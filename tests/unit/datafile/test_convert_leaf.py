from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import to_arrow_type
from frazil.datafile.convert_leaf import keep, leaf_converter
from frazil.datafile.value_arrays import values_of
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
    GeometryType,
    Type,
)

DAY_US = 86_400_000_000


def convert(array: pa.Array, kind: Type) -> list[Any]:
    target = to_arrow_type(kind)
    converter = leaf_converter(array.type, kind, target)
    assert converter is not None
    made = converter(array)
    assert made.type == target
    made.validate(full=True)
    return values_of(made, kind)


def ints(values: list[int | None], arrow: pa.DataType) -> pa.Array:
    plain = pa.int32() if arrow.bit_width == 32 else pa.int64()
    return pa.array(values, plain).view(arrow)


@pytest.mark.parametrize(
    "array, kind, expected",
    [
        # Promotions of the specification.
        (pa.array([1, None, -5], pa.int32()), LONG, [1, None, -5]),
        (pa.array([0.5, None], pa.float32()), DOUBLE, [0.5, None]),
        (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), DecimalType(20, 2), [Decimal("1.25"), None]),
        (ints([1, None, -1], pa.date32()), TIMESTAMP, [DAY_US, None, -DAY_US]),
        (ints([1, None], pa.date32()), TIMESTAMP_NS, [DAY_US * 1000, None]),
        # Other widths and units.
        (pa.array([1, None], pa.int8()), INT, [1, None]),
        (pa.array([65535, None], pa.uint16()), INT, [65535, None]),
        (pa.array([2**32 - 1, None], pa.uint32()), LONG, [2**32 - 1, None]),
        (pa.array([1.5, None], pa.float16()), FLOAT, [1.5, None]),
        (pa.array([dt.date(1970, 1, 2), None], pa.date64()), DATE, [1, None]),
        (ints([5, None], pa.time32("ms")), TIME, [5000, None]),
        (pa.array([5, None], pa.int64()), TIME, [5, None]),
        (ints([-5, None], pa.timestamp("ms")), TIMESTAMP, [-5000, None]),
        (ints([5, None], pa.timestamp("s")), TIMESTAMPTZ_NS, [5 * 10**9, None]),
        (ints([5000, None], pa.timestamp("ns")), TIMESTAMP, [5, None]),
        (ints([-5000, None], pa.timestamp("ns", "UTC")), TIMESTAMPTZ, [-5, None]),
        # The same number, whatever the file says of zones.
        (ints([5, None], pa.timestamp("us", "Europe/Paris")), TIMESTAMPTZ, [5, None]),
        (ints([5, None], pa.timestamp("us")), TIMESTAMPTZ, [5, None]),
        (ints([5, None], pa.timestamp("us", "UTC")), TIMESTAMP, [5, None]),
        # Other layouts of the same bytes.
        (pa.array(["a", None], pa.large_string()), STRING, ["a", None]),
        (pa.array(["a", None], pa.string_view()), STRING, ["a", None]),
        (pa.array(["a", None]).dictionary_encode(), STRING, ["a", None]),
        (pa.array([b"a", None], pa.binary()), STRING, ["a", None]),
        (pa.array([b"a", None], pa.large_binary()), BINARY, [b"a", None]),
        (pa.array(["a", None], pa.string()), BINARY, [b"a", None]),
        (pa.array([b"ab", None], pa.binary(2)), BINARY, [b"ab", None]),
        (pa.array([b"ab", None], pa.binary()), FixedType(2), [b"ab", None]),
        (pa.array([b"a", None], pa.large_binary()), GeometryType(), [b"a", None]),
        (pa.nulls(2), INT, [None, None]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([1, 2], pa.int32())), LONG, [1, 1, 2]),
    ],
    ids=lambda one: str(getattr(one, "type", one))[:40],
)
def test_stored_values_are_converted_to_table_values(array: pa.Array, kind: Type, expected: list[Any]) -> None:
    assert convert(array, kind) == expected


def test_uuids_are_read_in_three_forms() -> None:
    raw = [bytes(range(16)), None]
    expected = convert(pa.array(raw, pa.binary(16)), UUID)
    assert [None if one is None else one.bytes for one in expected] == raw
    assert convert(pa.array(raw, pa.binary()), UUID) == expected
    assert convert(pa.ExtensionArray.from_storage(pa.uuid(), pa.array(raw, pa.binary(16))), UUID) == expected


def test_column_of_the_right_type_is_returned_unchanged() -> None:
    assert leaf_converter(pa.int64(), LONG, pa.int64()) is keep


@pytest.mark.parametrize(
    "source, kind",
    [
        (pa.int64(), INT),
        (pa.uint32(), INT),
        (pa.uint64(), LONG),
        (pa.float64(), FLOAT),
        (pa.int32(), DOUBLE),
        (pa.int32(), BOOLEAN),
        (pa.decimal128(9, 3), DecimalType(9, 2)),
        (pa.int32(), DecimalType(9, 2)),
        (pa.int32(), DATE),
        (pa.timestamp("us"), DATE),
        (pa.date32(), TIMESTAMPTZ),
        (pa.int64(), TIMESTAMP),
        (pa.int32(), STRING),
        (pa.string(), LONG),
        (pa.binary(3), FixedType(4)),
        (pa.string(), UUID),
    ],
    ids=str,
)
def test_incompatible_types_are_refused(source: pa.DataType, kind: Type) -> None:
    assert leaf_converter(source, kind, to_arrow_type(kind)) is None


@pytest.mark.parametrize(
    "array, kind",
    [
        (ints([2**31 - 1], pa.date32()), TIMESTAMP_NS),
        (ints([2**62], pa.timestamp("s")), TIMESTAMP),
        (ints([5001], pa.timestamp("ns")), TIMESTAMP),
        (ints([1500], pa.time64("ns")), TIME),
        (pa.array([Decimal("123.45")], pa.decimal128(9, 2)), DecimalType(4, 2)),
        (pa.array([b"\xff"], pa.binary()), STRING),
        (pa.array([b"abc"], pa.binary()), FixedType(2)),
    ],
    ids=lambda one: str(getattr(one, "type", one))[:40],
)
def test_value_out_of_range_is_refused(array: pa.Array, kind: Type) -> None:
    converter = leaf_converter(array.type, kind, to_arrow_type(kind))
    assert converter is not None
    with pytest.raises(pa.ArrowInvalid):
        converter(array)


def test_values_below_null_are_ignored() -> None:
    hidden = pa.Array.from_buffers(
        pa.date32(), 2, [pa.array([True, False]).buffers()[1], pa.array([1, 2**31 - 1], pa.int32()).buffers()[1]]
    )
    assert convert(hidden, TIMESTAMP_NS) == [DAY_US * 1000, None]
