"""Geometries as WKB and WKT. Specification: "Appendix G: Geospatial Notes", "JSON single-value serialization"."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from frazil.codec.wkb import MAX_GEOMETRY_DEPTH, Geometry, GeometryKind, decode_wkb, encode_wkb
from frazil.codec.wkt import format_wkt, parse_wkt, wkb_to_wkt, wkt_to_wkb
from frazil.errors import InvalidRequestError, TextSyntaxError

TEXTS = [
    "POINT (30 10)",
    "POINT Z (30 10 5)",
    "POINT M (30 10 5)",
    "POINT ZM (30 10 5 -1)",
    "POINT EMPTY",
    "POINT ZM EMPTY",
    "POINT (1 NaN)",
    "POINT (-Inf Inf)",
    "POINT (0.1 -1e-07)",
    "POINT (1e+22 -0)",
    "LINESTRING (30 10, 10 30, 40 40)",
    "LINESTRING EMPTY",
    "LINESTRING ZM (1 2 3 4, 5 6 7 8)",
    "POLYGON ((30 10, 40 40, 20 40, 10 20, 30 10))",
    "POLYGON ((35 10, 45 45, 15 40, 10 20, 35 10), (20 30, 35 35, 30 20, 20 30))",
    "POLYGON M EMPTY",
    "POLYGON (EMPTY)",
    "MULTIPOINT ((10 40), (40 30), EMPTY)",
    "MULTIPOINT Z EMPTY",
    "MULTILINESTRING ((10 10, 20 20), (40 40, 30 30, 40 20))",
    "MULTILINESTRING (EMPTY, (1 2, 3 4))",
    "MULTIPOLYGON (((30 20, 45 40, 10 40, 30 20)), ((15 5, 40 10, 10 20, 5 10, 15 5), (9 9, 8 8, 7 7, 9 9)))",
    "GEOMETRYCOLLECTION (POINT (40 10), LINESTRING (10 10, 20 20), POLYGON ((40 40, 20 45, 45 30, 40 40)))",
    "GEOMETRYCOLLECTION Z (GEOMETRYCOLLECTION Z EMPTY, MULTIPOINT Z ((1 2 3)))",
    "GEOMETRYCOLLECTION EMPTY",
    "POLYHEDRALSURFACE Z (((0 0 0, 0 0 1, 0 1 1, 0 0 0)), ((0 0 0, 0 1 0, 1 1 0, 0 0 0)))",
    "TIN (((0 0, 0 1, 1 1, 0 0)), ((0 0, 1 0, 1 1, 0 0)))",
    "TRIANGLE ((0 0, 0 1, 1 1, 0 0))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_wkb_agree(text: str) -> None:
    data = wkt_to_wkb(text)
    assert wkb_to_wkt(data) == text
    assert encode_wkb(decode_wkb(data)) == data


def test_every_kind_and_dimension_is_covered() -> None:
    geometries = [parse_wkt(text) for text in TEXTS]
    assert {geometry.kind for geometry in geometries} == set(GeometryKind)
    assert {(geometry.has_z, geometry.has_m) for geometry in geometries} == {
        (False, False), (True, False), (False, True), (True, True),
    }  # fmt: skip


@pytest.mark.parametrize(
    "data, text",
    [
        ("01 01000000 0000000000003e40 0000000000002440", "POINT (30 10)"),
        ("00 00000001 403e000000000000 4024000000000000", "POINT (30 10)"),
        ("01 e9030000 000000000000f03f 0000000000000040 0000000000000840", "POINT Z (1 2 3)"),
        ("00 000007d1 3ff0000000000000 4000000000000000 4008000000000000", "POINT M (1 2 3)"),
        ("01 b90b0000 000000000000f03f 0000000000000040 0000000000000840 0000000000001040", "POINT ZM (1 2 3 4)"),
        ("01 01000000 000000000000f87f 000000000000f87f", "POINT EMPTY"),
        ("01 02000000 00000000", "LINESTRING EMPTY"),
        ("00 00000004 00000001 01 01000000 0000000000003e40 0000000000002440", "MULTIPOINT ((30 10))"),
    ],
)
def test_both_byte_orders_are_read(data: str, text: str) -> None:
    assert wkb_to_wkt(bytes.fromhex(data)) == text


def test_big_endian_points_are_converted() -> None:
    data = struct.pack(">BII4d", 0, 2, 2, 1.0, 2.0, 3.0, 4.0)
    line = decode_wkb(data).lines[0]
    assert line.dtype == np.dtype(np.float64)
    assert line.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "text, normal",
    [
        ("point(30 10)", "POINT (30 10)"),
        ("  Point\n( 30.0\t10. ) ", "POINT (30 10)"),
        ("POINTZ(1 2 3)", "POINT Z (1 2 3)"),
        ("POINT zm (1 2 3 4)", "POINT ZM (1 2 3 4)"),
        ("PointM empty", "POINT M EMPTY"),
        ("POINT (+1e2 .5)", "POINT (100 0.5)"),
        ("POINT (1 nan)", "POINT (1 NaN)"),
        ("POINT (infinity -inf)", "POINT (Inf -Inf)"),
        ("MULTIPOINT (10 40, 40 30)", "MULTIPOINT ((10 40), (40 30))"),
    ],
)
def test_lenient_text_is_read(text: str, normal: str) -> None:
    assert format_wkt(parse_wkt(text)) == normal


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "POINT", "POINT 1 2", "POINT ()", "POINT (1)", "POINT (1 2", "POINT (1 2, 3 4)", "POINT (1 2))",
        "POINT (1 2 3)", "POINT Z (1 2)", "POINT ZZ (1 2)", "POINT Z M (1 2 3 4)", "POINT (1,2)", "POINT (1 2) x",
        "SRID=4326;POINT (1 2)", "CIRCULARSTRING (0 0, 1 1, 2 0)", "LINESTRING (1 2,)", "LINESTRING (1 2, EMPTY)",
        "POLYGON (1 2, 3 4)", "MULTIPOINT ((1 2), (3))", "GEOMETRYCOLLECTION (1 2)",
        "GEOMETRYCOLLECTION (POINT Z (1 2 3))",
        "POINT (1_0 2)", "POINT (0x10 2)", "POINT (١ 2)", "POINT (1 2;)", "POINT (--1 2)", "\0", "POINT (1 \ud800)",
        "POINT (" + "1" * 2000 + " 2)", "GEOMETRYCOLLECTION (" * 50_000, "(" * 100_000, " " * 100_000,
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(TextSyntaxError, match="Cannot parse the geometry: expected") as caught:
        parse_wkt(text)
    assert caught.value.context["heading"] == "Appendix G: Geospatial Notes"
    assert len(str(caught.value)) < 500


def nested(levels: int) -> Geometry:
    geometry = parse_wkt("POINT (1 2)")
    for _ in range(levels):
        geometry = Geometry(GeometryKind.GEOMETRYCOLLECTION, False, False, parts=(geometry,))
    return geometry


def test_nesting_limit_is_inclusive() -> None:
    data = encode_wkb(nested(MAX_GEOMETRY_DEPTH))
    assert encode_wkb(parse_wkt(wkb_to_wkt(data))) == data
    with pytest.raises(InvalidRequestError, match="nested deeper"):
        encode_wkb(nested(MAX_GEOMETRY_DEPTH + 1))
