"""What holds for every geometry and every box."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.geo_bounds import decode_geo_bound, encode_geo_bound
from frazil.codec.wkb import PART_KINDS, Geometry, GeometryKind, decode_wkb, encode_wkb
from frazil.codec.wkt import format_wkt, parse_wkt
from frazil.errors import FrazilError
from frazil.spec.bounding_box import BoundingBox, GeoPoint
from tests.support.geo_boxes import bounding_box_of, collect_geo_bounds

NUMBERS = st.floats() | st.integers(-1000, 1000).map(float)
DIMENSIONS = st.tuples(st.booleans(), st.booleans())


def lines(dimensions: int, *, most: int = 5) -> st.SearchStrategy[np.ndarray]:
    points = st.lists(st.lists(NUMBERS, min_size=dimensions, max_size=dimensions), max_size=most)
    return points.map(lambda rows: np.array(rows, dtype=np.float64).reshape(len(rows), dimensions))


def simple(kind: GeometryKind, has_z: bool, has_m: bool) -> st.SearchStrategy[Geometry]:
    dimensions = 2 + has_z + has_m
    if kind is GeometryKind.POINT:
        # A point whose coordinates are all NaN is the empty point.
        found = lines(dimensions, most=1).filter(lambda line: not len(line) or not np.isnan(line).all())
        return found.map(lambda line: Geometry(kind, has_z, has_m, (line,)))
    if kind is GeometryKind.LINESTRING:
        return lines(dimensions).map(lambda line: Geometry(kind, has_z, has_m, (line,)))
    return st.lists(lines(dimensions), max_size=3).map(lambda rings: Geometry(kind, has_z, has_m, tuple(rings)))


def geometries_of(has_z: bool, has_m: bool) -> st.SearchStrategy[Geometry]:
    kinds = [kind for kind in GeometryKind if not kind.has_parts]
    leaves = st.sampled_from(kinds).flatmap(lambda kind: simple(kind, has_z, has_m))
    multis = st.sampled_from(list(PART_KINDS)).flatmap(
        lambda kind: st.lists(simple(PART_KINDS[kind], has_z, has_m), max_size=3).map(
            lambda parts: Geometry(kind, has_z, has_m, parts=tuple(parts))
        )
    )
    return st.recursive(
        leaves | multis,
        lambda inner: st.lists(inner, max_size=3).map(
            lambda parts: Geometry(GeometryKind.GEOMETRYCOLLECTION, has_z, has_m, parts=tuple(parts))
        ),
        max_leaves=4,
    )


GEOMETRIES = DIMENSIONS.flatmap(lambda flags: geometries_of(*flags))
COORDINATES = st.floats(-180, 180)
BOXES = st.builds(
    lambda xs, ys: BoundingBox(GeoPoint(xs[0], ys[0]), GeoPoint(xs[1], ys[1])),
    st.tuples(COORDINATES, COORDINATES),
    st.tuples(st.floats(-90, 90), st.floats(-90, 90)).map(sorted),
)


@given(GEOMETRIES)
def test_geometries_round_trip_through_bytes_and_text(geometry: Geometry) -> None:
    data = encode_wkb(geometry)
    decoded = decode_wkb(data)
    text = format_wkt(geometry)
    assert format_wkt(decoded) == text
    # Which NaN a coordinate is has no meaning and no text.
    assert format_wkt(parse_wkt(text)) == text
    if "NaN" not in text:
        assert encode_wkb(decoded) == data
        assert encode_wkb(parse_wkt(text)) == data


@given(st.binary(max_size=100))
def test_any_bytes_are_a_geometry_or_an_error(data: bytes) -> None:
    for candidate in (data, b"\x01\x07\x00\x00\x00" + data, b"\x01\x03\x00\x00\x00\x01\x00\x00\x00" + data):
        try:
            decode_wkb(candidate)
        except FrazilError as error:
            assert error.context["heading"] == "Appendix G: Geospatial Notes"  # noqa: PT017


@given(st.text(max_size=30) | st.text(alphabet="POINTZM(), 01.e-", max_size=30))
def test_any_text_is_a_geometry_or_an_error(text: str) -> None:
    for candidate in (text, f"POINT {text}", f"GEOMETRYCOLLECTION ({text})"):
        try:
            geometry = parse_wkt(candidate)
        except FrazilError:
            continue
        assert format_wkt(parse_wkt(format_wkt(geometry))) == format_wkt(geometry)


@given(GEOMETRIES)
def test_bounding_box_contains_all_its_points(geometry: Geometry) -> None:
    box = bounding_box_of(geometry)
    points = [point for part in geometry.walk_simple() for line in part.lines for point in line.tolist()]
    whole = [point for point in points if not math.isnan(point[0]) and not math.isnan(point[1])]
    if box is None:
        assert whole == []
        return
    for x, y, *_ in whole:
        assert box.may_contain(GeoPoint(x, y), is_geography=False)
    collected = collect_geo_bounds([encode_wkb(geometry), None])
    assert collected == box
    assert BoundingBox(*(decode_geo_bound(encode_geo_bound(corner)) for corner in (box.lower, box.upper))) == box


@given(BOXES, BOXES, COORDINATES, st.floats(-90, 90))
def test_boxes_that_share_a_point_overlap(one: BoundingBox, other: BoundingBox, x: float, y: float) -> None:
    point = GeoPoint(x, y)
    if one.may_contain(point, is_geography=True) and other.may_contain(point, is_geography=True):
        assert one.may_overlap(other, is_geography=True)
    assert one.may_overlap(other, is_geography=True) == other.may_overlap(one, is_geography=True)
    assert one.may_overlap(one, is_geography=True)


@given(BOXES, COORDINATES, st.floats(-90, 90))
def test_point_in_box_follows_the_specification(box: BoundingBox, x: float, y: float) -> None:
    low, high = box.lower.x, box.upper.x
    in_x = low <= x <= high if low <= high else x >= low or x <= high
    expected = in_x and box.lower.y <= y <= box.upper.y
    assert box.may_contain(GeoPoint(x, y), is_geography=True) is expected
