"""Geometries that were damaged or made to do harm: each ends in frazil's error, under the specification's heading."""

from __future__ import annotations

import random
import struct

import pytest

from frazil.codec.wkb import MAX_GEOMETRY_DEPTH, decode_wkb, encode_wkb
from frazil.codec.wkt import wkt_to_wkb
from frazil.errors import CorruptTableError, InvalidDataFileError, InvalidMetadataError, UnsupportedError

POINT = wkt_to_wkb("POINT (1 2)")


def header(code: int, count: int) -> bytes:
    """Return the start of a little-endian geometry of parts."""
    return struct.pack("<BII", 1, code, count)


CORRUPT: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "5 bytes are needed at 0"),
    "only a byte order": (b"\x01", "5 bytes are needed"),
    "byte order 2": (b"\x02" + POINT[1:], "byte order mark is 2"),
    "byte order of text": (b"POINT (1 2)", "byte order mark is 80"),
    "point cut off": (POINT[:-1], "16 bytes are needed"),
    "bytes after the point": (POINT + b"\0", "1 bytes follow the geometry"),
    "two points": (POINT + POINT, "21 bytes follow the geometry"),
    "dimensions 4000": (struct.pack("<BI", 1, 4001) + bytes(16), "no known dimensions"),
    "extended form with Z": (struct.pack("<BI", 1, 0x80000001) + bytes(24), "the extended form"),
    "extended form with M": (struct.pack("<BI", 1, 0x40000001) + bytes(24), "the extended form"),
    "extended form with SRID": (struct.pack("<BII", 1, 0x20000001, 4326) + bytes(16), "the extended form"),
    "line without a count": (struct.pack("<BI", 1, 2), "4 bytes are needed"),
    "line of four billion points": (header(2, 2**32 - 1), "68719476720 bytes are needed"),
    "line in the other byte order": (struct.pack("<BI", 1, 2) + struct.pack(">I", 1) + bytes(16), "bytes are needed"),
    "polygon of four billion rings": (header(3, 2**32 - 1), "17179869180 bytes are needed"),
    "ring of four billion points": (header(3, 1) + struct.pack("<I", 2**32 - 1), "68719476720 bytes are needed"),
    "collection of four billion parts": (header(7, 2**32 - 1), "38654705655 bytes are needed"),
    "multi-point of a line": (header(4, 1) + wkt_to_wkb("LINESTRING (1 2, 3 4)"), "a LINESTRING is a part"),
    "multi-line of a point": (header(5, 1) + POINT, "a POINT is a part of a MULTILINESTRING"),
    "multi-polygon of itself": (header(6, 1) + header(6, 0), "a MULTIPOLYGON is a part of a MULTIPOLYGON"),
    "surface of triangles": (header(15, 1) + header(17, 0), "a TRIANGLE is a part of a POLYHEDRALSURFACE"),
    "triangles of polygons": (header(16, 1) + header(3, 0), "a POLYGON is a part of a TIN"),
    "a flat part of a whole with Z": (header(1004, 1) + POINT, "dimensions of a part differ"),
    "a part with M of a whole with Z": (header(1007, 1) + wkt_to_wkb("POINT M (1 2 3)"), "dimensions of a part differ"),
    "a part cut off": (header(4, 1) + POINT[:-1], "16 bytes are needed"),
    "parts missing": (header(4, 2) + POINT, "bytes are needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRUPT)
def test_damaged_geometry_is_refused_with_its_heading(name: str) -> None:
    data, reason = CORRUPT[name]
    for error in (InvalidDataFileError, InvalidMetadataError):
        with pytest.raises(error, match=reason) as caught:
            decode_wkb(data, error=error)
        assert caught.value.context["heading"] == "Appendix G: Geospatial Notes"
        assert caught.value.message.startswith("Cannot read the geometry: ")


@pytest.mark.parametrize("code", [0, 8, 9, 10, 11, 12, 13, 14, 18, 999, 1008, 2018])
def test_unknown_kinds_are_unsupported(code: int) -> None:
    with pytest.raises(UnsupportedError, match=f"its type {code} is not known") as caught:
        decode_wkb(header(code, 0))
    assert caught.value.context["heading"] == "Appendix G: Geospatial Notes"


@pytest.mark.parametrize("levels", [MAX_GEOMETRY_DEPTH + 1, 1000, 100_000])
def test_excessive_nesting_is_refused(levels: int) -> None:
    with pytest.raises(UnsupportedError, match="nested deeper"):
        decode_wkb(header(7, 1) * levels + POINT)


def test_every_truncation_is_refused() -> None:
    data = wkt_to_wkb("GEOMETRYCOLLECTION Z (POINT Z (1 2 3), POLYGON Z ((0 0 0, 1 1 1, 2 2 2, 0 0 0)))")
    for length in range(len(data)):
        with pytest.raises(InvalidDataFileError):
            decode_wkb(data[:length])


def test_corrupted_bytes_are_a_geometry_or_an_error() -> None:
    chance = random.Random(11)
    source = wkt_to_wkb(
        "GEOMETRYCOLLECTION (MULTIPOINT ((1 2), EMPTY), POLYGON ((0 0, 1 1, 2 2, 0 0)), LINESTRING EMPTY)"
    )
    outcomes: set[str] = set()
    for _ in range(3000):
        changed = bytearray(source)
        for _ in range(chance.choice((1, 2, 4))):
            changed[chance.randrange(len(changed))] = chance.choice((0, 1, 255, chance.randrange(256)))
        try:
            geometry = decode_wkb(bytes(changed))
        except (CorruptTableError, UnsupportedError) as error:
            outcomes.add(type(error).__name__)
        else:
            assert encode_wkb(decode_wkb(encode_wkb(geometry))) == encode_wkb(geometry)
            outcomes.add("a geometry")
    assert outcomes == {"a geometry", "InvalidDataFileError", "UnsupportedError"}
