"""Boxes around the geometries of a file. Specification: "Bounds for Geometry and Geography".

The lower and upper bound of a geospatial column are the corners of a box that contains all of the column's values.
Planning asks whether a box may overlap a region or hold a point. A box that breaks its own rules is never a reason
to skip a file: the answers are then "may".

For geography the X of the lower bound may be above that of the upper one: the box then goes eastward across the
antimeridian, and an X lies within it if it is at least the lower X or at most the upper X.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import InvalidRequestError

HEADING = "Bounds for Geometry and Geography"


@dataclass(frozen=True, slots=True)
class GeoPoint:
    """A point, or a corner of a box; Z and M may be missing."""

    x: float
    y: float
    z: float | None = None
    m: float | None = None

    def __post_init__(self) -> None:
        # A missing dimension is stored as NaN, and NaN has no place in a bound.
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
    """The corners of a box."""

    lower: GeoPoint
    upper: GeoPoint

    def find_fault(self, *, is_geography: bool) -> str | None:
        """Return which rule the box breaks, or None where it breaks none."""
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
        """Return whether something in this box can be in the other one; only dimensions that both have count."""
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
        """Return whether the point can be in the box; only dimensions that both have count."""
        return self.may_overlap(BoundingBox(point, point), is_geography=is_geography)


def _range(box: BoundingBox, name: str) -> tuple[float | None, float | None]:
    return getattr(box.lower, name), getattr(box.upper, name)


def _ranges_meet(low: float | None, high: float | None, other_low: float | None, other_high: float | None) -> bool:
    if low is None or high is None or other_low is None or other_high is None:
        return True
    return low <= other_high and other_low <= high
