"""Boxes around geometries, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.codec.geo_bounds import GeoBoundsCollector, decode_geo_bound
from frazil.codec.wkb import Geometry, decode_wkb
from frazil.errors import CorruptTableError, InvalidDataFileError
from frazil.spec.bounding_box import BoundingBox


def decode_bounding_box(lower: bytes, upper: bytes) -> BoundingBox:
    """Decode the lower and upper bound of a column as a box."""
    return BoundingBox(decode_geo_bound(lower), decode_geo_bound(upper))


def bounding_box_of(geometry: Geometry) -> BoundingBox | None:
    """Return the box around a geometry's points, or None if it has no X or no Y."""
    collector = GeoBoundsCollector()
    collector.add_geometry(geometry)
    return collector.bounding_box()


def collect_geo_bounds(
    values: Iterable[bytes | None],
    *,
    is_geography: bool = False,
    error: type[CorruptTableError] = InvalidDataFileError,
) -> BoundingBox | None:
    """Return the box around WKB values, or None if there is no safe one."""
    collector = GeoBoundsCollector(is_geography=is_geography)
    for value in values:
        if value is not None:
            collector.add_geometry(decode_wkb(value, error=error))
    return collector.bounding_box()
