"""Bounding boxes of a file's geometries. Specification: "Bounds for Geometry and Geography".

The lower and upper bound of a geospatial column are the corners of a box that contains all of the column's values.
Planning asks whether a box may overlap a region or contain a point. An invalid box is never a reason to skip a file:
both answers are then True.

For geography, the X of the lower bound may be above that of the upper bound: the box then extends eastward across the
antimeridian, and contains every X that is at least the lower X or at most the upper X.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import InvalidRequestError

HEADING = "Bounds for Geometry and Geography"


@dataclass(frozen=True, slots=True)
class GeoPoint:
    """A point, or a corner of a box, optionally with Z and M."""

    x: float
    y: float
    z: float | None = None
    m: float | None = None

    def __post_init__(self) -> None:
        # A missing dimension is stored as NaN; a bound never is NaN.
        for name in ("z", "m"):
            value = getattr(self, name)
            if value is not None and value != value:
                object.__setattr__(self, name, None)
        if self.x != self.x or self.y != self.y:
            raise InvalidRequestError(
                f"Cannot make the point ({self.x} {self.y}): X and Y must be numbers", heading=HEADING
            )


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A box, given by its lower and upper corners."""

    lower: GeoPoint
    upper: GeoPoint

    def find_fault(self, *, is_geography: bool) -> str | None:
        """Return the reason why the box is invalid, or None if it is valid."""
        for name in ("x", "y", "z", "m"):
            low, high = getattr(self.lower, name), getattr(self.upper, name)
            may_wrap = is_geography and name == "x"
            if low is not None and high is not None and low > high and not may_wrap:
                return f"the lower {name.upper()} {low} is above the upper {high}"
        if is_geography:
            for name, most in (("x", 180.0), ("y", 90.0)):
                for corner in (self.lower, self.upper):
                    if abs(getattr(corner, name)) > most:
                        return f"the {name.upper()} {getattr(corner, name)} is not from -{most:g} to {most:g}"
        return None

    def may_overlap(self, other: BoundingBox, *, is_geography: bool) -> bool:
        """Return whether the box may share a point with another, comparing the dimensions that both have."""
        if self.find_fault(is_geography=is_geography) or other.find_fault(is_geography=is_geography):
            return True
        for name in ("y", "z", "m"):
            if not _ranges_meet(*_range(self, name), *_range(other, name)):
                return False
        (low, high), (other_low, other_high) = (
            (self.lower.x, self.upper.x),
            (other.lower.x, other.upper.x),
        )
        wraps, other_wraps = low > high, other_low > other_high
        if wraps and other_wraps:
            return True  # both hold the antimeridian
        if wraps or other_wraps:
            return low <= other_high or other_low <= high
        return _ranges_meet(low, high, other_low, other_high)

    def may_contain(self, point: GeoPoint, *, is_geography: bool) -> bool:
        """Return whether a point may be in the box, comparing the dimensions that both have."""
        return self.may_overlap(BoundingBox(point, point), is_geography=is_geography)


def _range(box: BoundingBox, name: str) -> tuple[float | None, float | None]:
    return getattr(box.lower, name), getattr(box.upper, name)


def _ranges_meet(low: float | None, high: float | None, other_low: float | None, other_high: float | None) -> bool:
    if low is None or high is None or other_low is None or other_high is None:
        return True
    return low <= other_high and other_low <= high
