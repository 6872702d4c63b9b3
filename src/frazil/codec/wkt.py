"""Geometries as well-known text (WKT), as used in JSON. Specification: "JSON single-value serialization".

    POINT (30 10)    LINESTRING Z (1 2 3, 4 5 6)    MULTIPOINT ((1 2), EMPTY)    POLYGON M EMPTY

Written text has explicit dimensions (Z, M, ZM), names in upper case and points of a multi-point in parentheses. Names
in any case, dimensions joined to the name (POINTZ) and bare points of a multi-point are accepted on read. The number
of coordinates must match the dimensions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from frazil.codec.wkb import (
    HEADING,
    MAX_GEOMETRY_DEPTH,
    PART_KINDS,
    Geometry,
    GeometryKind,
    Points,
    decode_wkb,
    encode_wkb,
)
from frazil.errors import TextSyntaxError

T = TypeVar("T")

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf(?:inity)?)\b))"
    r"|(?P<word>[A-Za-z]+)|(?P<mark>[(),])|(?P<end>\Z)|(?P<other>.))",
    re.DOTALL,
)
_MAX_NUMBER = 1000
_DIMENSIONS = {"": (False, False), "Z": (True, False), "M": (False, True), "ZM": (True, True)}
_TAGS = {flags: tag for tag, flags in _DIMENSIONS.items()}


def wkb_to_wkt(data: bytes) -> str:
    """Convert a geometry from WKB to text."""
    return format_wkt(decode_wkb(data))


def wkt_to_wkb(text: str) -> bytes:
    """Convert a geometry from text to WKB."""
    return encode_wkb(parse_wkt(text))


def format_wkt(geometry: Geometry) -> str:
    """Format a geometry as text."""
    tag = _TAGS[geometry.has_z, geometry.has_m]
    return f"{geometry.kind.name} {tag + ' ' if tag else ''}{_format_body(geometry)}"


def parse_wkt(text: str) -> Geometry:
    """Parse the text of a geometry."""
    parser = _Parser(text)
    geometry = parser.geometry(0)
    parser.finish()
    return geometry


def _format_body(geometry: Geometry) -> str:
    kind = geometry.kind
    if kind is GeometryKind.POINT or kind is GeometryKind.LINESTRING:
        return _format_points(geometry.lines[0])
    if kind.has_rings:
        items = [_format_points(line) for line in geometry.lines]
    elif kind is GeometryKind.GEOMETRYCOLLECTION:
        items = [format_wkt(member) for member in geometry.parts]
    else:
        items = [_format_body(member) for member in geometry.parts]
    return f"({', '.join(items)})" if items else "EMPTY"


def _format_points(points: Points) -> str:
    if len(points) == 0:
        return "EMPTY"
    return f"({', '.join(' '.join(map(_format_number, point)) for point in points.tolist())})"


def _format_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    text = repr(value)
    return text.removesuffix(".0")


class _Parser:
    """A parser of one text, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = _TOKEN.match(text, 0)

    def geometry(self, depth: int) -> Geometry:
        """Parse a geometry with its name."""
        if depth > MAX_GEOMETRY_DEPTH:
            raise self._unexpected(f"at most {MAX_GEOMETRY_DEPTH} levels")
        kind, (has_z, has_m) = self._head()
        return self._body(Geometry(kind, has_z, has_m), depth)

    def finish(self) -> None:
        """Check that nothing follows."""
        if self._kind() != "end":
            raise self._unexpected("the end")

    def _head(self) -> tuple[GeometryKind, tuple[bool, bool]]:
        word = self._word()
        if word is None:
            raise self._unexpected("the name of a geometry")
        tag = ""
        if word not in GeometryKind.__members__:
            # POINTZ is POINT Z; no geometry's name is that of another plus a tag.
            for suffix in ("ZM", "Z", "M"):
                if word.endswith(suffix) and word.removesuffix(suffix) in GeometryKind.__members__:
                    word, tag = word.removesuffix(suffix), suffix
                    break
            else:
                raise self._unexpected("the name of a geometry")
        self._advance()
        following = self._word()
        if not tag and following in ("Z", "M", "ZM"):
            tag = following
            self._advance()
        return GeometryKind[word], _DIMENSIONS[tag]

    def _body(self, empty: Geometry, depth: int) -> Geometry:
        kind, has_z, has_m = empty.kind, empty.has_z, empty.has_m
        if kind is GeometryKind.POINT:
            return Geometry(kind, has_z, has_m, (self._points(empty, most=1),))
        if kind is GeometryKind.LINESTRING:
            return Geometry(kind, has_z, has_m, (self._points(empty),))
        if kind.has_rings:
            return Geometry(kind, has_z, has_m, tuple(self._list(lambda: self._points(empty))))
        if kind is GeometryKind.GEOMETRYCOLLECTION:
            return Geometry(kind, has_z, has_m, parts=tuple(self._list(lambda: self._member(empty, depth))))
        geometry = Geometry(PART_KINDS[kind], has_z, has_m)
        if kind is GeometryKind.MULTIPOINT:
            return Geometry(kind, has_z, has_m, parts=tuple(self._list(lambda: self._multi_point_part(geometry))))
        return Geometry(kind, has_z, has_m, parts=tuple(self._list(lambda: self._body(geometry, depth + 1))))

    def _member(self, collection: Geometry, depth: int) -> Geometry:
        start = self._next
        member = self.geometry(depth + 1)
        if (member.has_z, member.has_m) != (collection.has_z, collection.has_m):
            self._next = start
            raise self._unexpected("a geometry of the collection's dimensions")
        return member

    def _multi_point_part(self, geometry: Geometry) -> Geometry:
        if self._kind() == "number":
            return Geometry(
                geometry.kind, geometry.has_z, geometry.has_m, (self._as_points([self._point(geometry)], geometry),)
            )
        return self._body(geometry, 0)

    def _points(self, geometry: Geometry, *, most: int | None = None) -> Points:
        points = self._list(lambda: self._point(geometry), most=most)
        return self._as_points(points, geometry)

    def _as_points(self, points: list[list[float]], geometry: Geometry) -> Points:
        return np.array(points, dtype=np.float64).reshape(len(points), geometry.dimensions)

    def _point(self, geometry: Geometry) -> list[float]:
        point = []
        for _ in range(geometry.dimensions):
            if self._kind() != "number":
                tag = _TAGS[geometry.has_z, geometry.has_m]
                raise self._unexpected(f"{geometry.dimensions} numbers for a point of dimensions XY{tag}")
            point.append(self._number())
        return point

    def _list(self, item: Callable[[], T], *, most: int | None = None) -> list[T]:
        if self._word() == "EMPTY":
            self._advance()
            return []
        self._mark("(")
        items = [item()]
        while self._shown() == "," and (most is None or len(items) < most):
            self._advance()
            items.append(item())
        self._mark(")")
        return items

    def _number(self) -> float:
        text = self._shown()
        if len(text) > _MAX_NUMBER:
            raise self._unexpected(f"a number of at most {_MAX_NUMBER} characters")
        self._advance()
        return float(text)

    def _mark(self, expected: str) -> None:
        if self._shown() != expected:
            raise self._unexpected(repr(expected))
        self._advance()

    def _kind(self) -> str:
        return (self._next.lastgroup if self._next is not None else None) or "end"

    def _shown(self) -> str:
        return self._next[self._kind()] if self._next is not None else ""

    def _word(self) -> str | None:
        return self._shown().upper() if self._kind() == "word" else None

    def _advance(self) -> None:
        if self._next is not None:
            self._next = _TOKEN.match(self._text, self._next.end())

    def _unexpected(self, expected: str) -> TextSyntaxError:
        offset = self._next.start(self._kind()) if self._next is not None else len(self._text)
        actual = repr(self._shown()[:40]) if self._kind() != "end" else "the end"
        return TextSyntaxError(
            f"Cannot parse the geometry: expected {expected} at character {offset}, found {actual}",
            hint="Geometries look like POINT (30 10) or LINESTRING Z (1 2 3, 4 5 6).",
            heading=HEADING,
        )
