"""Bounds of geospatial columns. Specification: "Bounds for Geometry and Geography", "Bound serialization"."""

from __future__ import annotations

import math
import struct

import pytest

from frazil.codec.geo_bounds import decode_geo_bound, encode_geo_bound
from frazil.codec.wkt import parse_wkt, wkt_to_wkb
from frazil.errors import InvalidDataFileError, InvalidManifestError
from frazil.spec.bounding_box import BoundingBox, GeoPoint
from tests.support.geo_boxes import bounding_box_of, collect_geo_bounds, decode_bounding_box

NAN = math.nan


@pytest.mark.parametrize(
    "point, coordinates",
    [
        (GeoPoint(1, 2), (1, 2)),
        (GeoPoint(1, 2, 3), (1, 2, 3)),
        (GeoPoint(1, 2, 3, 4), (1, 2, 3, 4)),
        (GeoPoint(1, 2, m=4), (1, 2, NAN, 4)),
        (GeoPoint(-180.0, -0.0), (-180.0, -0.0)),
    ],
)
def test_bounds_are_stored_as_coordinates(point: GeoPoint, coordinates: tuple[float, ...]) -> None:
    data = struct.pack(f"<{len(coordinates)}d", *coordinates)
    assert encode_geo_bound(point) == data
    assert decode_geo_bound(data) == point


def test_nan_coordinates_are_unset() -> None:
    assert decode_geo_bound(struct.pack("<3d", 1, 2, NAN)) == GeoPoint(1, 2)
    assert decode_geo_bound(struct.pack("<4d", 1, 2, 3, NAN)) == GeoPoint(1, 2, 3)


@pytest.mark.parametrize("size", [0, 8, 15, 17, 21, 33, 40])
def test_bound_of_invalid_size_is_refused(size: int) -> None:
    with pytest.raises(InvalidManifestError, match=f"it has {size} bytes and not 16, 24 or 32") as caught:
        decode_geo_bound(bytes(size))
    assert caught.value.context["heading"] == "Bound serialization"


@pytest.mark.parametrize("coordinates", [(NAN, 1), (1, NAN), (NAN, NAN, 1)])
def test_bound_without_x_and_y_is_refused(coordinates: tuple[float, ...]) -> None:
    with pytest.raises(InvalidManifestError, match="X and Y must be numbers"):
        decode_geo_bound(struct.pack(f"<{len(coordinates)}d", *coordinates))


def test_two_bounds_make_a_box() -> None:
    lower, upper = GeoPoint(170, -10), GeoPoint(-170, 10)
    assert decode_bounding_box(encode_geo_bound(lower), encode_geo_bound(upper)) == BoundingBox(lower, upper)


def corners(box: BoundingBox | None) -> tuple[tuple[float | None, ...], tuple[float | None, ...]] | None:
    if box is None:
        return None
    return (box.lower.x, box.lower.y, box.lower.z, box.lower.m), (box.upper.x, box.upper.y, box.upper.z, box.upper.m)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("POINT (30 10)", ((30, 10, None, None), (30, 10, None, None))),
        ("LINESTRING M (1 5 9, 3 2 7)", ((1, 2, None, 7), (3, 5, None, 9))),
        ("LINESTRING Z (1 5 9, 3 2 7)", ((1, 2, 7, None), (3, 5, 9, None))),
        ("POLYGON ZM ((0 0 1 1, 9 0 2 2, 9 9 3 3, 0 0 1 1))", ((0, 0, 1, 1), (9, 9, 3, 3))),
        ("GEOMETRYCOLLECTION (POINT (1 1), MULTIPOINT ((5 -5), EMPTY))", ((1, -5, None, None), (5, 1, None, None))),
        ("LINESTRING ZM (9 10 11 12, NaN NaN NaN NaN, 13 14 15 16)", ((9, 10, 11, 12), (13, 14, 15, 16))),
        ("LINESTRING Z (1 2 NaN, 3 4 NaN)", ((1, 2, None, None), (3, 4, None, None))),
        ("POINT (1 NaN)", None),
        ("POINT EMPTY", None),
        ("GEOMETRYCOLLECTION EMPTY", None),
    ],
)  # fmt: skip
def test_box_contains_all_numeric_coordinates(
    text: str, expected: tuple[tuple[float | None, ...], tuple[float | None, ...]] | None
) -> None:
    assert corners(bounding_box_of(parse_wkt(text))) == expected


def test_each_dimension_is_bounded_by_the_values_that_have_it() -> None:
    values = ["POINT (1 NaN)", "POINT Z (5 5 100)", "POINT (3 9)"]
    box = collect_geo_bounds([None, *map(wkt_to_wkb, values)])
    assert corners(box) == ((1, 5, 100, None), (5, 9, 100, None))


def test_column_without_values_has_no_bounds() -> None:
    assert collect_geo_bounds([]) is None
    assert collect_geo_bounds([None, wkt_to_wkb("POINT EMPTY")]) is None


def test_geography_points_have_bounds() -> None:
    values = [wkt_to_wkb(text) for text in ("POINT (-179 10)", "MULTIPOINT ((179 -10), (0 90))")]
    box = collect_geo_bounds(values, is_geography=True)
    assert corners(box) == ((-179, -10, None, None), (179, 90, None, None))


@pytest.mark.parametrize(
    "text",
    [
        "LINESTRING (-60 60, 60 60)",  # whose shortest way on a globe passes far north of 60
        "GEOMETRYCOLLECTION (POINT (0 0), POLYGON ((0 0, 1 0, 1 1, 0 0)))",
        "POINT (181 0)",
        "POINT (0 -91)",
    ],
)
def test_geographies_with_unsafe_boxes_have_no_bounds(text: str) -> None:
    assert collect_geo_bounds([wkt_to_wkb("POINT (1 1)"), wkt_to_wkb(text)], is_geography=True) is None
    assert collect_geo_bounds([wkt_to_wkb(text)], is_geography=False) is not None


def test_invalid_geometry_is_refused() -> None:
    with pytest.raises(InvalidDataFileError):
        collect_geo_bounds([b"nonsense"])
