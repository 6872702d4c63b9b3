"""Rows of columns to Avro: the same bytes for a row, however many are encoded with it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.avro_container import AvroOrigin
from frazil.codec.avro_encode import encode_blocks
from frazil.codec.avro_schema import AvroType, flatten, parse_schema
from frazil.codec.json_text import encode_json

NUMBERS = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8193, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
CASES: dict[str, tuple[object, pa.DataType, list[Any]]] = {
    "long": ("long", pa.int64(), NUMBERS),
    "int": ("int", pa.int32(), [one for one in NUMBERS if -(2**31) <= one < 2**31]),
    "string": ("string", pa.string(), ["", "a", "é" * 40, "x" * 63, "x" * 64, "x" * 9000]),
    "boolean": ("boolean", pa.bool_(), [True, False]),
    "double": ("double", pa.float64(), [0.0, -1.5, 1e300]),
    "list": ({"type": "array", "items": "long"}, pa.list_(pa.int64()), [[], [1], NUMBERS, NUMBERS * 3]),
    "list of optional": (
        {"type": "array", "items": ["null", "string"]},
        pa.list_(pa.string()),
        [[], [None], ["a", None, "b"], ["x" * 70] * 20],
    ),
}


def leaves_of(kind: object) -> list[AvroType]:
    origin = AvroOrigin("test", "test")
    schema = {"type": "record", "name": "row", "fields": [{"name": "value", "type": kind}]}
    return [leaf.avro_type for leaf in flatten(parse_schema(encode_json(schema), origin), origin)]


def encoded(leaves: list[AvroType], column: pa.Array) -> bytes:
    return b"".join(content for _, content in encode_blocks(leaves, [column], bytes))


@pytest.mark.parametrize("nulls", ["none", "first", "last"])
@pytest.mark.parametrize("case", CASES)
def test_row_has_the_same_bytes_alone_and_in_a_batch(case: str, nulls: str) -> None:
    kind, arrow, values = CASES[case]
    rows = values * (40 // len(values) + 1)
    union = {"none": kind, "first": ["null", kind], "last": [kind, "null"]}[nulls]
    if nulls != "none":
        rows = [value for one in rows for value in (one, None)]
    leaves, column = leaves_of(union), pa.array(rows, arrow)
    together = encoded(leaves, column)
    assert b"".join(encoded(leaves, column.slice(at, 1)) for at in range(len(rows))) == together
    assert b"".join(encoded(leaves, column.slice(at, 16)) for at in range(0, len(rows), 16)) == together


@pytest.mark.parametrize("rows", [1, 20])
def test_integers_are_zigzag_varints(rows: int) -> None:
    forms = {0: "00", -1: "01", 1: "02", 63: "7e", -64: "7f", 64: "8001", 2**63 - 1: "feffffffffffffffff01"}
    for value, form in forms.items():
        assert encoded(leaves_of("long"), pa.array([value] * rows, pa.int64())) == bytes.fromhex(form) * rows
