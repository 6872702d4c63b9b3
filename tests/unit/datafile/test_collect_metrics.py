"""Metrics of a file from the rows written to it. The laws are in `tests/property/test_written_files.py`."""

from __future__ import annotations

import math
import struct
import uuid
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.geo_bounds import decode_geo_bound
from frazil.codec.single_value import decode_bound
from frazil.datafile.collect_metrics import Metrics, MetricsCollector
from frazil.errors import SchemaMismatchError
from frazil.spec.bounding_box import GeoPoint
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.metrics_mode import FULL
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ_NS,
    UUID,
    VARIANT,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
)
from tests.support.builders import field, schema
from tests.support.file_writers import rows_to_table


def collect(table: Schema, *batches: list[dict[str, Any]], **properties: str) -> Metrics:
    collector = MetricsCollector(table, metrics_modes(table, properties))
    for rows in batches:
        collector.add(rows_to_table(rows, table))
    assert collector.row_count == sum(map(len, batches))
    return collector.metrics()


def test_counts_and_bounds_accumulate_over_batches() -> None:
    table = schema(field(1, "a", LONG), field(2, "b", STRING))
    found = collect(table, [{"a": 5, "b": "m"}, {"a": None, "b": "c"}], [{"a": -1, "b": None}], [])
    assert found.value_counts == {1: 3, 2: 3}
    assert found.null_value_counts == {1: 1, 2: 1}
    assert found.nan_value_counts == {}
    assert found.lower_bounds == {1: struct.pack("<q", -1), 2: b"c"}
    assert found.upper_bounds == {1: struct.pack("<q", 5), 2: b"m"}


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE], ids=str)
def test_nan_is_counted_but_not_part_of_bounds(kind: Any) -> None:
    table = schema(field(1, "x", kind))
    found = collect(table, [{"x": math.nan}, {"x": None}], [{"x": 1.5}, {"x": -math.inf}, {"x": math.nan}])
    assert found.nan_value_counts == {1: 2}
    assert found.null_value_counts == {1: 1}
    assert decode_bound(found.lower_bounds[1], kind) == -math.inf
    assert decode_bound(found.upper_bounds[1], kind) == 1.5
    found = collect(table, [{"x": math.nan}], [{"x": None}])
    assert (found.lower_bounds, found.upper_bounds) == ({}, {})


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, math.nan, 0.0]], ids=str)
def test_zero_bounds_cover_both_zeros(values: list[float]) -> None:
    found = collect(schema(field(1, "x", DOUBLE)), [{"x": value} for value in values])
    assert found.lower_bounds[1] == struct.pack("<d", -0.0)
    assert found.upper_bounds[1] == struct.pack("<d", 0.0)


def test_struct_fields_have_metrics_and_lists_and_maps_have_none() -> None:
    inner = StructType((field(2, "x", LONG), field(3, "y", StructType((field(4, "z", LONG, required=True),)))))
    table = schema(field(1, "s", inner), field(5, "l", ListType(6, LONG)), field(7, "m", MapType(8, STRING, 9, LONG)))
    rows: list[dict[str, Any]] = [
        {"s": {"x": 1, "y": None}, "l": [1], "m": {"a": 1}},
        {"s": None},
        {"s": {"x": None, "y": {"z": 7}}},
    ]
    found = collect(table, rows)
    assert found.value_counts == {2: 3, 4: 3}
    assert found.null_value_counts == {2: 2, 4: 2}
    assert set(found.lower_bounds) == {2, 4}
    assert found.lower_bounds[4] == struct.pack("<q", 7)


def test_metrics_modes_select_counts_and_bounds() -> None:
    table = schema(field(1, "a", STRING), field(2, "b", STRING), field(3, "c", STRING), field(4, "d", STRING))
    prefix = "write.metadata.metrics.column."
    rows = [dict.fromkeys("abcd", "x" * 20)]
    found = collect(
        table, rows, **{f"{prefix}a": "none", f"{prefix}b": "counts", f"{prefix}c": "truncate(3)", f"{prefix}d": "full"}
    )
    assert set(found.value_counts) == {2, 3, 4}
    assert found.lower_bounds == {3: b"xxx", 4: b"x" * 20}
    assert found.upper_bounds == {3: b"xxy", 4: b"x" * 20}


TEXTS = [
    ("a" * 17, b"a" * 15 + b"b"), ("\U0010ffff" * 17, None), ("é" * 17, ("é" * 15 + "ê").encode()),
    ("a" * 15 + "\ud7ff" + "z", ("a" * 15 + "\ue000").encode()), ("a" * 15 + "\U0010ffff" + "z", b"a" * 14 + b"b"),
    ("a" * 16, b"a" * 16), ("", b""),
]  # fmt: skip


@pytest.mark.parametrize("value, upper", TEXTS, ids=[str(len(value)) + ascii(value[-2:]) for value, _ in TEXTS])
def test_truncated_upper_bounds_of_text_are_greater_and_valid_utf8(value: str, upper: bytes | None) -> None:
    found = collect(schema(field(1, "s", STRING)), [{"s": value}])
    assert found.lower_bounds[1] == value[:16].encode()
    assert found.upper_bounds.get(1) == upper
    assert upper is None or upper.decode() >= value


def test_truncated_upper_bounds_of_binary_are_greater() -> None:
    table = schema(field(1, "b", BINARY))
    assert collect(table, [{"b": b"\xff" * 17}]).upper_bounds == {}
    assert collect(table, [{"b": b"a\xff" + b"\xff" * 17}]).upper_bounds == {1: b"b"}


def test_every_batch_may_hold_the_bounds_of_a_uuid_or_a_nanosecond() -> None:
    table = schema(field(1, "u", UUID), field(2, "t", TIMESTAMPTZ_NS))
    ids = [uuid.UUID(int=value) for value in (5, 2**127, 1)]
    found = collect(table, *[[{"u": one, "t": -(2**63) + at}] for at, one in enumerate(ids)])
    assert found.lower_bounds == {1: ids[2].bytes, 2: struct.pack("<q", -(2**63))}
    assert found.upper_bounds == {1: ids[1].bytes, 2: struct.pack("<q", -(2**63) + 2)}


def test_variants_are_counted_and_have_no_bounds() -> None:
    table = schema(field(1, "v", VARIANT))
    found = collect(table, [{"v": {"metadata": b"\x01\0\0", "value": b"\0"}}, {"v": None}])
    assert (found.value_counts, found.null_value_counts, found.lower_bounds) == ({1: 2}, {1: 1}, {})


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def line(*points: tuple[float, float]) -> bytes:
    return struct.pack("<BII", 1, 2, len(points)) + b"".join(struct.pack("<dd", *one) for one in points)


@pytest.mark.parametrize(
    "values",
    [
        [point(1, 2), point(-3, 8), point(0, 0)],
        [point(1, 2), None, point(-3, 8), point(0, 0), point(math.nan, math.nan)],
        [line((1, 2), (-3, 0)), point(0, 8)],
        [point(1, 0), struct.pack(">BIdd", 0, 1, -3, 8), point(0, 2)],
    ],
)
def test_geometries_are_bounded_by_a_box(values: list[bytes | None]) -> None:
    table = schema(field(1, "g", GeometryType()))
    found = collect(table, [{"g": value} for value in values])
    lower, upper = decode_geo_bound(found.lower_bounds[1]), decode_geo_bound(found.upper_bounds[1])
    assert (lower.x, upper.x, upper.y) == (-3, 1, 8)
    assert isinstance(lower, GeoPoint)


def test_geographies_are_bounded_if_a_box_is_safe() -> None:
    table = schema(field(1, "g", GeographyType()))
    assert set(collect(table, [{"g": point(1, 2)}, {"g": point(3, 4)}, {"g": point(5, 6)}]).lower_bounds) == {1}
    assert collect(table, [{"g": line((170, 0), (-170, 5))}]).lower_bounds == {}


def test_invalid_geometry_bytes_are_refused_with_their_column() -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot write the column 'g': a value is not WKB"):
        collect(schema(field(1, "g", GeometryType())), [{"g": b"not wkb"}])


def test_no_rows_have_no_bounds() -> None:
    table = schema(field(1, "a", INT))
    collector = MetricsCollector(table, {1: FULL})
    collector.add(pa.table({"a": pa.array([], pa.int32())}))
    assert collector.metrics() == Metrics({1: 0}, {1: 0}, {}, {}, {})
