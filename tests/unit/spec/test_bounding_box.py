"""Boxes around geometries. Specification: "Bounds for Geometry and Geography"."""

from __future__ import annotations

import math

import pytest

from frazil.errors import InvalidRequestError
from frazil.spec.bounding_box import BoundingBox, GeoPoint


def box(*values: float) -> BoundingBox:
    """Return the box of x, y lower and x, y upper."""
    return BoundingBox(GeoPoint(values[0], values[1]), GeoPoint(values[2], values[3]))


def test_missing_dimension_may_be_nan() -> None:
    assert GeoPoint(1, 2, math.nan, math.nan) == GeoPoint(1, 2)
    assert GeoPoint(1, 2, math.nan, 4.0).z is None


def test_x_and_y_are_required() -> None:
    with pytest.raises(InvalidRequestError, match="X and Y must be numbers"):
        GeoPoint(math.nan, 1)


@pytest.mark.parametrize(
    "one, other, expected",
    [
        (box(0, 0, 10, 10), box(5, 5, 15, 15), True),
        (box(0, 0, 10, 10), box(10, 10, 20, 20), True),
        (box(0, 0, 10, 10), box(11, 0, 20, 10), False),
        (box(0, 0, 10, 10), box(0, 11, 10, 20), False),
        (box(0, 0, 10, 10), box(2, 2, 3, 3), True),
    ],
)
@pytest.mark.parametrize("is_geography", [False, True])
def test_boxes_overlap_if_their_ranges_do(
    one: BoundingBox, other: BoundingBox, expected: bool, is_geography: bool
) -> None:
    assert one.may_overlap(other, is_geography=is_geography) is expected
    assert other.may_overlap(one, is_geography=is_geography) is expected


@pytest.mark.parametrize(
    "other, expected",
    [
        (box(175, 0, 178, 5), True),
        (box(-178, 0, -175, 5), True),
        (box(0, 0, 10, 10), False),
        (box(-160, 0, 160, 5), False),
        (box(-170, 0, 160, 5), True),
        (box(171, 0, -179, 5), True),
        (box(175, 20, -179, 25), False),
    ],
)
def test_geography_box_wraps_around_the_antimeridian(other: BoundingBox, expected: bool) -> None:
    wrapping = box(170, 0, -170, 10)
    assert wrapping.may_overlap(other, is_geography=True) is expected
    assert other.may_overlap(wrapping, is_geography=True) is expected


@pytest.mark.parametrize(
    "x, expected", [(170, True), (180, True), (-180, True), (-170, True), (0, False), (169, False)]
)
def test_wrapping_box_contains_points_on_both_sides(x: float, expected: bool) -> None:
    assert box(170, 0, -170, 10).may_contain(GeoPoint(x, 5), is_geography=True) is expected


def test_only_common_dimensions_are_compared() -> None:
    high = BoundingBox(GeoPoint(0, 0, 100), GeoPoint(1, 1, 200))
    low = BoundingBox(GeoPoint(0, 0, 0, 7), GeoPoint(1, 1, 50, 9))
    assert not high.may_overlap(low, is_geography=False)
    assert high.may_overlap(box(0, 0, 1, 1), is_geography=False)
    assert not low.may_contain(GeoPoint(0, 0, m=10), is_geography=False)
    assert low.may_contain(GeoPoint(0, 0, m=8), is_geography=False)


@pytest.mark.parametrize(
    "faulty, is_geography, fault",
    [
        (box(10, 0, 0, 1), False, "the lower X 10 is above the upper 0"),
        (box(0, 10, 1, 0), True, "the lower Y 10 is above the upper 0"),
        (box(0, 0, 181, 1), True, "the X 181 is not from -180 to 180"),
        (box(0, -91, 1, 1), True, "the Y -91 is not from -90 to 90"),
        (BoundingBox(GeoPoint(0, 0, 5), GeoPoint(1, 1, 4)), False, "the lower Z 5 is above the upper 4"),
    ],
)
def test_invalid_box_never_excludes_anything(faulty: BoundingBox, is_geography: bool, fault: str) -> None:
    assert faulty.find_fault(is_geography=is_geography) == fault
    far = box(-1, -1, -1, -1)
    assert faulty.may_overlap(far, is_geography=is_geography)
    assert far.may_overlap(faulty, is_geography=is_geography)


def test_wrapping_box_is_valid_for_geography() -> None:
    assert box(170, 0, -170, 10).find_fault(is_geography=True) is None
