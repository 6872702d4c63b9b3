"""Bounds of geospatial columns. Specification: "Bounds for Geometry and Geography", "Bound serialization".

A bound is a point: its coordinates as 8-byte little-endian doubles, x:y, x:y:z, x:y:z:m, or x:y:NaN:m without Z.
Writers compute the bounding box of a file's values with `collect_geo_bounds`; readers decode the corners.

The box around a geometry is the box around its points. Edges of a geography follow the surface of the earth and can
leave the box around their ends, so geography columns get bounds only if they hold nothing but points.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from frazil.codec.wkb import Geometry, GeometryKind
from frazil.errors import InvalidManifestError, InvalidRequestError
from frazil.spec.bounding_box import BoundingBox, GeoPoint

HEADING = "Bound serialization"

_SIZES = (16, 24, 32)


def encode_geo_bound(point: GeoPoint) -> bytes:
    """Encode a corner of a box as the bound of a column."""
    if point.m is not None:
        return struct.pack("<4d", point.x, point.y, math.nan if point.z is None else point.z, point.m)
    if point.z is not None:
        return struct.pack("<3d", point.x, point.y, point.z)
    return struct.pack("<2d", point.x, point.y)


def decode_geo_bound(data: bytes) -> GeoPoint:
    """Decode the bound of a column as a corner of a box."""
    if len(data) not in _SIZES:
        raise InvalidManifestError(
            f"Cannot read the geospatial bound: it has {len(data)} bytes and not 16, 24 or 32", heading=HEADING
        )
    try:
        return GeoPoint(*struct.unpack(f"<{len(data) // 8}d", data))
    except InvalidRequestError as error:
        raise InvalidManifestError(f"Cannot read the geospatial bound: {error.message}", heading=HEADING) from error


class GeoBoundsCollector:
    """A box that grows with each added geometry, ignoring NaN coordinates and empty geometries."""

    __slots__ = ("_has_bounds", "_highs", "_is_geography", "_lows")

    def __init__(self, *, is_geography: bool = False) -> None:
        self._is_geography = is_geography
        self._has_bounds = True
        self._lows = [math.inf] * 4
        self._highs = [-math.inf] * 4

    def add_geometry(self, geometry: Geometry) -> None:
        """Widen the box to hold a geometry."""
        for simple in geometry.walk_simple():
            if (
                self._is_geography
                and simple.kind is not GeometryKind.POINT
                and any(len(line) > 1 for line in simple.lines)
            ):
                self._has_bounds = False
            # The columns of XYM points are X, Y and M.
            dimensions = (0, 1, *((2,) if simple.has_z else ()), *((3,) if simple.has_m else ()))
            for line in simple.lines:
                for column, dimension in enumerate(dimensions):
                    values = line[:, column]
                    values = values[~np.isnan(values)]
                    if len(values):
                        self._lows[dimension] = min(self._lows[dimension], float(values.min()))
                        self._highs[dimension] = max(self._highs[dimension], float(values.max()))

    def bounding_box(self) -> BoundingBox | None:
        """Return the box so far, or None if X or Y has no values or no box would be safe."""
        seen = [low <= high for low, high in zip(self._lows, self._highs, strict=True)]
        if not self._has_bounds or not seen[0] or not seen[1]:
            return None
        lower, upper = (
            GeoPoint(
                corner[0],
                corner[1],
                corner[2] if seen[2] else None,
                corner[3] if seen[3] else None,
            )
            for corner in (self._lows, self._highs)
        )
        box = BoundingBox(lower, upper)
        # Coordinates of a geography outside its canonical range cannot be compared with a bound.
        return box if box.find_fault(is_geography=self._is_geography) is None else None
