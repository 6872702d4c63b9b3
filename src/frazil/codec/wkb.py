"""Geometries as well-known binary (WKB). Specification: "Appendix G: Geospatial Notes".

Values of geometry and geography columns are WKB in the ISO form. Data passes through frazil as those bytes; they are
decoded to a `Geometry` only for bounds (`codec/geo_bounds.py`) and text (`codec/wkt.py`).

    byte order, 1 byte | type, 4 bytes: kind + 1000 for Z, 2000 for M, 3000 for both | body

    point          x y [z] [m]; all NaN if empty
    line string    count, points
    polygon        count, rings, each a count and points; a triangle the same
    all others     count, geometries with their own byte order and type

Either byte order is read, per part; little-endian is written. The kinds are those of OGC Simple Features 1.2.1.
Counts are checked against the available bytes before anything is allocated, and nesting is limited.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from frazil.errors import CorruptTableError, InvalidDataFileError, InvalidRequestError, UnsupportedError

HEADING = "Appendix G: Geospatial Notes"

MAX_GEOMETRY_DEPTH = 32
"""The deepest nesting of collections."""

Points = npt.NDArray[np.float64]
"""An array of points: a row per point, a column per coordinate."""

_SMALLEST_GEOMETRY = 9
_FOREIGN_FLAGS = 0xE0000000


class GeometryKind(IntEnum):
    """The kinds of geometries, by their number in WKB."""

    POINT = 1
    LINESTRING = 2
    POLYGON = 3
    MULTIPOINT = 4
    MULTILINESTRING = 5
    MULTIPOLYGON = 6
    GEOMETRYCOLLECTION = 7
    POLYHEDRALSURFACE = 15
    TIN = 16
    TRIANGLE = 17

    @property
    def has_rings(self) -> bool:
        """Whether the body is a list of rings."""
        return self is GeometryKind.POLYGON or self is GeometryKind.TRIANGLE

    @property
    def has_parts(self) -> bool:
        """Whether the body is a list of geometries."""
        return self in PART_KINDS or self is GeometryKind.GEOMETRYCOLLECTION


PART_KINDS = {
    GeometryKind.MULTIPOINT: GeometryKind.POINT,
    GeometryKind.MULTILINESTRING: GeometryKind.LINESTRING,
    GeometryKind.MULTIPOLYGON: GeometryKind.POLYGON,
    GeometryKind.POLYHEDRALSURFACE: GeometryKind.POLYGON,
    GeometryKind.TIN: GeometryKind.TRIANGLE,
}
"""The kind of the parts, for kinds whose parts are all of one kind; a collection may have any."""


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """A geometry: points in `lines` (one for a point or line string, one per ring), or other geometries in `parts`.

    An empty point has one line of no points.
    """

    kind: GeometryKind
    has_z: bool
    has_m: bool
    lines: tuple[Points, ...] = ()
    parts: tuple[Geometry, ...] = ()

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a point."""
        return 2 + self.has_z + self.has_m

    def walk_simple(self) -> Iterator[Geometry]:
        """Yield this geometry or, if it has parts, the partless geometries below it."""
        stack = [self]
        while stack:
            geometry = stack.pop()
            if geometry.kind.has_parts:
                stack += reversed(geometry.parts)
            else:
                yield geometry


def decode_wkb(data: bytes, *, error: type[CorruptTableError] = InvalidDataFileError) -> Geometry:
    """Decode a geometry; all bytes must be used up."""
    reader = _Reader(data, error)
    geometry = reader.geometry(0, None)
    if reader.at != len(data):
        raise reader.corrupt(f"{len(data) - reader.at} bytes follow the geometry")
    return geometry


def encode_wkb(geometry: Geometry) -> bytes:
    """Encode a geometry in little-endian form."""
    parts: list[bytes] = []
    _encode(geometry, parts, 0)
    return b"".join(parts)


class _Reader:
    """A reader of one geometry; `at` is the current offset."""

    def __init__(self, data: bytes, error: type[CorruptTableError]) -> None:
        self._data = data
        self._error = error
        self.at = 0

    def geometry(self, depth: int, parent: Geometry | None) -> Geometry:
        """Read a geometry with its byte order and type, checking that it may be a part of `parent`."""
        if depth > MAX_GEOMETRY_DEPTH:
            raise UnsupportedError(
                f"Cannot read the geometry: it is nested deeper than {MAX_GEOMETRY_DEPTH} levels", heading=HEADING
            )
        self._need(5)
        mark = self._data[self.at]
        if mark > 1:
            raise self.corrupt(f"the byte order mark is {mark}, neither 0 nor 1")
        order = "<" if mark == 1 else ">"
        (code,) = struct.unpack_from(f"{order}I", self._data, self.at + 1)
        self.at += 5
        empty = self._empty_geometry(code)
        if parent is not None:
            self._check_part(parent, empty)
        kind, has_z, has_m = empty.kind, empty.has_z, empty.has_m
        if kind is GeometryKind.POINT:
            points = self._points(order, 1, empty.dimensions)
            if np.isnan(points).all():
                points = points[:0]
            return Geometry(kind, has_z, has_m, (points,))
        count = self._count(order)
        if kind is GeometryKind.LINESTRING:
            return Geometry(kind, has_z, has_m, (self._points(order, count, empty.dimensions),))
        if kind.has_rings:
            self._need(4 * count)
            lines = tuple(self._points(order, self._count(order), empty.dimensions) for _ in range(count))
            return Geometry(kind, has_z, has_m, lines)
        self._need(_SMALLEST_GEOMETRY * count)
        parts = tuple(self.geometry(depth + 1, empty) for _ in range(count))
        return Geometry(kind, has_z, has_m, parts=parts)

    def corrupt(self, reason: str) -> CorruptTableError:
        """Return the error for these bytes."""
        return self._error(f"Cannot read the geometry: {reason}", heading=HEADING)

    def _empty_geometry(self, code: int) -> Geometry:
        if code & _FOREIGN_FLAGS:
            raise self.corrupt(f"its type {code:#010x} has flags of the extended form; only the ISO form is allowed")
        dimensions, number = divmod(code, 1000)
        try:
            kind = GeometryKind(number)
        except ValueError:
            raise UnsupportedError(f"Cannot read the geometry: its type {code} is not known", heading=HEADING) from None
        if dimensions > 3:
            raise self.corrupt(f"its type {code} has no known dimensions")
        return Geometry(kind, dimensions in (1, 3), dimensions in (2, 3))

    def _check_part(self, parent: Geometry, geometry: Geometry) -> None:
        expected = PART_KINDS.get(parent.kind, geometry.kind)
        if geometry.kind is not expected:
            raise self.corrupt(f"a {geometry.kind.name} is a part of a {parent.kind.name}")
        if (geometry.has_z, geometry.has_m) != (parent.has_z, parent.has_m):
            raise self.corrupt("the dimensions of a part differ from those of the whole")

    def _points(self, order: str, count: int, dimensions: int) -> Points:
        size = 8 * count * dimensions
        self._need(size)
        values = np.frombuffer(self._data, f"{order}f8", count * dimensions, self.at)
        self.at += size
        return values.astype(np.float64, copy=False).reshape(count, dimensions)

    def _count(self, order: str) -> int:
        self._need(4)
        (count,) = struct.unpack_from(f"{order}I", self._data, self.at)
        self.at += 4
        return int(count)

    def _need(self, size: int) -> None:
        if self.at + size > len(self._data):
            raise self.corrupt(f"{size} bytes are needed at {self.at}, and the value has {len(self._data)}")


def _encode(geometry: Geometry, parts: list[bytes], depth: int) -> None:
    if depth > MAX_GEOMETRY_DEPTH:
        raise InvalidRequestError(
            f"Cannot write the geometry: it is nested deeper than {MAX_GEOMETRY_DEPTH} levels", heading=HEADING
        )
    kind = geometry.kind
    parts.append(struct.pack("<BI", 1, kind + 1000 * geometry.has_z + 2000 * geometry.has_m))
    if kind is GeometryKind.POINT:
        points = geometry.lines[0]
        parts.append(_points_bytes(points) if len(points) else struct.pack("<d", np.nan) * geometry.dimensions)
    elif kind is GeometryKind.LINESTRING:
        parts += [struct.pack("<I", len(geometry.lines[0])), _points_bytes(geometry.lines[0])]
    elif kind.has_rings:
        parts.append(struct.pack("<I", len(geometry.lines)))
        for line in geometry.lines:
            parts += [struct.pack("<I", len(line)), _points_bytes(line)]
    else:
        parts.append(struct.pack("<I", len(geometry.parts)))
        for member in geometry.parts:
            _encode(member, parts, depth + 1)


def _points_bytes(points: Points) -> bytes:
    return points.astype("<f8", copy=False).tobytes()
