"""Bounds as values of their column's type, and the shape of `readable_metrics`."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.single_value import encode_bound
from frazil.metadata_tables.readable_metrics import bound_values, metric_sources, readable_metrics_field
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
from tests.support.builders import field, schema


def values(kind: Type, *bounds: bytes | None) -> list[Any]:
    target = to_arrow_type(kind)
    made = bound_values(pa.array(bounds, pa.binary()), kind, target)
    made.validate(full=True)
    assert made.type == target
    shown: list[Any] = made.to_pylist()
    return shown


@pytest.mark.parametrize(
    "kind, value, shown",
    [
        (BOOLEAN, True, True),
        (INT, -3, -3),
        (LONG, 1 << 40, 1 << 40),
        (FLOAT, 1.5, 1.5),
        (DOUBLE, -0.0, -0.0),
        (DATE, 1, datetime.date(1970, 1, 2)),
        (TIME, 1_000_000, datetime.time(0, 0, 1)),
        (TIMESTAMP, 1_000_000, datetime.datetime(1970, 1, 1, 0, 0, 1)),
        (TIMESTAMPTZ, 0, datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)),
        (STRING, "é", "é"),
        (STRING, "", ""),
        (BINARY, b"\xff", b"\xff"),
        (FixedType(2), b"ab", b"ab"),
        (UUID, uuid.UUID(int=7), uuid.UUID(int=7)),
        (DecimalType(9, 2), Decimal("-1.25"), Decimal("-1.25")),
        (DecimalType(38, 0), Decimal(10**38 - 1), Decimal(10**38 - 1)),
    ],
)
def test_bounds_have_the_type_of_their_column(kind: Type, value: Any, shown: Any) -> None:
    assert values(kind, encode_bound(value, kind), None) == [shown, None]


@pytest.mark.parametrize(
    "written, value, read, shown",
    [
        (INT, 7, LONG, 7),
        (FLOAT, 1.5, DOUBLE, 1.5),
        (DecimalType(4, 2), Decimal("1.25"), DecimalType(20, 2), Decimal("1.25")),
        (DATE, 1, TIMESTAMP, datetime.datetime(1970, 1, 2)),
    ],
)
def test_bounds_written_before_a_promotion_have_the_new_type(written: Type, value: Any, read: Type, shown: Any) -> None:
    assert values(read, encode_bound(value, written)) == [shown]


@pytest.mark.parametrize(
    "kind, broken",
    [
        (INT, b"\0" * 3),
        (LONG, b""),
        (DOUBLE, struct.pack("<d", float("nan"))),
        (STRING, b"\xff\xfe"),
        (UUID, b"\0" * 15),
        (FixedType(2), b"abc"),
        (DecimalType(3, 1), b"\x7f\xff\xff"),
        (DecimalType(38, 0), b"\x7f" + b"\xff" * 15),
        (DecimalType(3, 1), b"\0" * 17),
        (GeometryType(), b"\0" * 15),
    ],
)
def test_unusable_bound_is_null_and_does_not_affect_others(kind: Type, broken: bytes) -> None:
    known: dict[Type, Any] = {INT: 1, LONG: 1, DOUBLE: 1.0, STRING: "x", UUID: uuid.UUID(int=1)}
    usable = known.get(kind)
    if isinstance(kind, FixedType):
        usable = b"ok"
    elif isinstance(kind, DecimalType):
        usable = Decimal("1") if kind.scale == 0 else Decimal("9.9")
    good = struct.pack("<2d", 1, 2) if usable is None else encode_bound(usable, kind)
    shown = values(kind, broken, good)
    assert shown[0] is None
    assert shown[1] is not None


def test_truncated_bound_of_a_fixed_column_is_padded() -> None:
    assert values(FixedType(4), b"ab", b"abcd", None) == [b"ab\0\0", b"abcd", None]


def test_geospatial_bounds_are_points() -> None:
    for kind in (GeometryType(), GeographyType()):
        shown = values(
            kind,
            struct.pack("<2d", 1, 2),
            struct.pack("<3d", 1, 2, 3),
            struct.pack("<4d", 1, 2, 3, 4),
            struct.pack("<4d", 1, 2, float("nan"), 4),
        )
        assert shown == [
            struct.pack("<bi2d", 1, 1, 1, 2),
            struct.pack("<bi3d", 1, 1001, 1, 2, 3),
            struct.pack("<bi4d", 1, 3001, 1, 2, 3, 4),
            struct.pack("<bi3d", 1, 2001, 1, 2, 4),
        ]


def test_column_of_type_unknown_has_no_bounds() -> None:
    assert values(UNKNOWN, None, b"x") == [None, None]


def test_primitive_columns_are_sorted_by_full_name_at_any_depth() -> None:
    point = StructType((field(11, "y"), field(10, "x", TIMESTAMP_NS)))
    columns = schema(
        field(1, "z", STRING),
        field(2, "Point", point),
        field(3, "tags", MapType(12, STRING, 13, INT)),
        field(4, "items", ListType(14, StructType((field(15, "a", DATE),)))),
        field(5, "v", VARIANT),
        field(6, "g", GeometryType()),
    )
    shape = readable_metrics_field(columns)
    assert [part.name for part in shape.type] == [
        "Point.x",
        "Point.y",
        "g",
        "items.element.a",
        "tags.key",
        "tags.value",
        "z",
    ]
    assert [(part.name, str(part.type)) for part in shape.type[0].type] == [
        ("column_size", "int64"),
        ("value_count", "int64"),
        ("null_value_count", "int64"),
        ("nan_value_count", "int64"),
        ("lower_bound", "timestamp[ns]"),
        ("upper_bound", "timestamp[ns]"),
    ]


def test_only_requested_metrics_are_read() -> None:
    shape = pa.struct([("id", pa.struct([("lower_bound", pa.int64()), ("value_count", pa.int64())]))])
    assert metric_sources(shape) == {"lower_bounds", "value_counts"}
