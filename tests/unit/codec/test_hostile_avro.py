"""Manifests and manifest lists made to break a reader: each gives an error of ours, soon, in little memory."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from frazil.codec.avro_container import AvroLimits
from frazil.codec.manifest_avro import decode_manifest
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.errors import CorruptTableError, UnsupportedError
from tests.support.avro_builders import (
    DAY,
    SYNC,
    compress,
    container,
    deflate,
    entry,
    entry_schema,
    list_row,
    manifest_list_schema,
    optional,
    required,
    rows_of,
    text,
    varint,
    write_avro,
)

SCHEMA = entry_schema(DAY)
ROW = rows_of(SCHEMA, [entry(partition={"ts_day": 3})])
GOOD = container(SCHEMA, (1, ROW))
HUGE = b"\xff" * 9 + b"\x01"
BOMB = 24 << 20
LIMITS = AvroLimits(inflated_floor_bytes=16 << 20, inflated_ratio=16)
"""Tighter than usual, so that making the bombs takes no time; `tests/property/test_avro_fuzz.py` has real ones."""


def schema_with(*fields: Any) -> dict[str, Any]:
    return {**SCHEMA, "fields": [*fields, *SCHEMA["fields"]]}


def nested(depth: int) -> Any:
    kind: Any = "int"
    for at in range(depth):
        kind = {"type": "record", "name": f"n{at}", "fields": [{"name": "a", "type": kind}]}
    return kind


def doubling(levels: int) -> list[dict[str, Any]]:
    """Records of two fields of the record before: a short schema that stands for 2^levels fields."""
    fields: list[dict[str, Any]] = [
        required("d0", {"type": "record", "name": "d0", "fields": [{"name": "a", "type": "int"}]}, 9000)
    ]
    for at in range(1, levels):
        parts = [{"name": "a", "type": f"d{at - 1}"}, {"name": "b", "type": f"d{at - 1}"}]
        fields.append(required(f"d{at}", {"type": "record", "name": f"d{at}", "fields": parts}, 9000 + at))
    return fields


RECURSIVE = {"type": "record", "name": "self", "fields": [{"name": "next", "type": ["null", "self"]}]}
HEADER_END = len(container(SCHEMA))

CASES: dict[str, bytes] = {
    "empty file": b"",
    "magic only": b"Obj\x01",
    "wrong magic": b"Obj\x02" + GOOD[4:],
    "JSON instead of Avro": b'{"format-version": 2}',
    "header count of 2^63": b"Obj\x01" + HUGE,
    "header count of a million": b"Obj\x01" + varint(10**6),
    "header count of more than 64 bits": b"Obj\x01" + b"\xff" * 11,
    "negative header count": b"Obj\x01" + varint(-(2**40)) + varint(5),
    "key of 2^40 bytes": b"Obj\x01" + varint(1) + varint(2**40),
    "key of negative length": b"Obj\x01" + varint(1) + varint(-3),
    "key that is not UTF-8": b"Obj\x01" + varint(1) + text(b"\xff\xfe") + text(b"") + b"\x00" + SYNC,
    "value of 2^62 bytes": b"Obj\x01" + varint(1) + text("avro.schema") + varint(2**62),
    "header without a sync marker": GOOD[: HEADER_END - 5],
    "header without a schema": b"Obj\x01" + varint(1) + text("avro.codec") + text("null") + b"\x00" + SYNC,
    "schema that is not JSON": container(b"{"),
    "schema that is not UTF-8": container(b'"\xff"'),
    "schema nested 100,000 deep in JSON": container(b"[" * 100_000),
    "schema with a number of a million digits": container(b'{"type":' + b"9" * 10**6 + b"}"),
    "schema that is a string": container('"string"'),
    "schema that is an array": container({"type": "array", "items": "int"}),
    "schema nested 1000 records deep": container(schema_with(required("deep", nested(40), 9000))),
    "schema that contains itself": container(schema_with(required("self", RECURSIVE, 9000))),
    "schema of 2^40 fields by reuse": container(schema_with(*doubling(40))),
    "schema that names an unknown type": container(schema_with(required("x", "nowhere", 9000))),
    "schema that defines a type twice": container(
        schema_with(*(required(f"x{at}", {"type": "fixed", "name": "t", "size": 1}, 9000 + at) for at in range(2)))
    ),
    "schema with a fixed of 2^40 bytes": container(
        schema_with(required("x", {"type": "fixed", "name": "t", "size": 2**40}, 9000)), (1, ROW)
    ),
    "schema with a fixed of negative size": container(
        schema_with(required("x", {"type": "fixed", "name": "t", "size": -1}, 9000))
    ),
    "schema with a union of three": container(schema_with(required("x", ["null", "int", "long"], 9000))),
    "schema with a union of no null": container(schema_with(required("x", ["string", "int"], 9000))),
    "schema with a union in a union": container(schema_with(required("x", ["null", ["null", "int"]], 9000))),
    "schema with a negative field id": container(schema_with(required("x", "int", -5))),
    "schema with a field id of 2^80": container(schema_with(required("x", "int", 2**80))),
    "schema with a field that is a number": container({**SCHEMA, "fields": [7, *SCHEMA["fields"]]}),
    "schema with fields that are no list": container({**SCHEMA, "fields": {"a": 1}}),
    "schema of one boolean": container(
        {"type": "record", "name": "r", "fields": [required("status", "boolean", 0)]}, (1, b"\x01")
    ),
    "array of items of no bytes": container(
        schema_with(required("x", {"type": "array", "items": "null"}, 9000)), (1, varint(2**31 - 2) + b"\x00" + ROW)
    ),
    "array of empty records": container(
        schema_with(required("x", {"type": "array", "items": {"type": "record", "name": "e", "fields": []}}, 9000)),
        (1, varint(2**40) + b"\x00" + ROW),
    ),
    "map of values of no bytes": container(schema_with(required("x", {"type": "map", "values": "null"}, 9000))),
    "block count of 2^60": container(SCHEMA, (2**60, ROW)),
    "block count of a hundred million": container(SCHEMA, (10**8, ROW)),
    "negative block count": container(SCHEMA, (-1, ROW)),
    "block count too small": container(SCHEMA, (1, ROW + ROW)),
    "block count too large": container(SCHEMA, (3, ROW + ROW)),
    "block without rows": container(SCHEMA, (0, ROW)),
    "block with a byte too few": container(SCHEMA, (1, ROW[:-1])),
    "block with a byte too many": container(SCHEMA, (1, ROW + b"\x00")),
    "block of 2^40 bytes": container(SCHEMA) + varint(1) + varint(2**40) + ROW + SYNC,
    "block of negative size": container(SCHEMA) + varint(1) + varint(-8) + ROW + SYNC,
    "block head of more than 64 bits": container(SCHEMA) + b"\xff" * 12 + SYNC,
    "block with another sync marker": GOOD[:-16] + bytes(16),
    "block without a sync marker": GOOD[:-16],
    "bytes after the last block": GOOD + b"\x02",
    "rows of another schema": container(SCHEMA, (1, rows_of(manifest_list_schema(), [list_row()]))),
    "rows of 0xff": container(SCHEMA, (1, b"\xff" * 500)),
    "rows of zeros": container(SCHEMA, (1, bytes(500))),
    "text of 2^40 bytes": container(SCHEMA, (1, b"\x02\x00\x00\x00\x00" + varint(2**40) + bytes(50))),
    "text of negative length": container(SCHEMA, (1, b"\x02\x00\x00\x00\x00" + varint(-4) + bytes(50))),
    "text that is not UTF-8": container(SCHEMA, (1, ROW.replace(b"s3:", b"\xff\xfe\xfd"))),
    "union with a branch that is not there": container(SCHEMA, (1, b"\x02\x08" + ROW[2:])),
    "deflate that is not deflate": container(SCHEMA, (1, ROW), codec="deflate"),
    "deflate cut short": container(SCHEMA, (1, deflate(ROW)[:-4]), codec="deflate"),
    "deflate with a tail": container(SCHEMA, (1, deflate(ROW) + bytes(9)), codec="deflate"),
    "deflate bomb": container(SCHEMA, (1, deflate(bytes(BOMB))), codec="deflate"),
    "zstandard bomb": container(SCHEMA, (1, zstandard.compress(bytes(BOMB))), codec="zstandard"),
    "zstandard bomb that hides its size": container(SCHEMA, (1, compress("zstandard", bytes(BOMB))), codec="zstandard"),
    "zstandard that announces 2^62 bytes": container(
        SCHEMA, (1, b"\x28\xb5\x2f\xfd\xe0" + (2**62).to_bytes(8, "little") + bytes(20)), codec="zstandard"
    ),
    "bzip2 bomb": container(SCHEMA, (1, compress("bzip2", bytes(BOMB))), codec="bzip2"),
    "xz that is not xz": container(SCHEMA, (1, ROW), codec="xz"),
    "snappy that announces 4 GiB": container(SCHEMA, (1, b"\xff\xff\xff\xff\x0f" + bytes(30)), codec="snappy"),
    "snappy with a wrong checksum": container(SCHEMA, (1, compress("snappy", ROW)[:-1] + b"\x00"), codec="snappy"),
    "snappy of three bytes": container(SCHEMA, (1, b"abc"), codec="snappy"),
    "bomb of rows": container(
        {"type": "record", "name": "r", "fields": [required("status", "int", 0), optional("x", "long", 1)]},
        (BOMB // 2, deflate(bytes(BOMB))),
        codec="deflate",
    ),
    "bomb of null fixed values": container(
        schema_with(optional("x", {"type": "fixed", "name": "t", "size": 1 << 20}, 4)),
        (10_000, deflate((b"\x00" + ROW) * 10_000)),
        codec="deflate",
    ),
    "list items without end": container(
        {
            "type": "record",
            "name": "r",
            "fields": [required("x", {"type": "array", "items": "long"}, 0), *SCHEMA["fields"][1:]],
        },
        (1, varint(2**30) + bytes(1 << 16)),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("decode", [decode_manifest, decode_manifest_list], ids=["manifest", "list"])
def test_hostile_bytes_give_a_frazil_error(name: str, decode: Callable[..., Any]) -> None:
    begin = time.process_time()
    with pytest.raises((CorruptTableError, UnsupportedError)) as failure:
        decode(CASES[name], path="s3://b/hostile.avro", limits=LIMITS)
    assert time.process_time() - begin < 5
    assert failure.value.context["path"] == "s3://b/hostile.avro"
    assert len(str(failure.value)) < 600


def test_unknown_codec_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="'lz77'"):
        decode_manifest(container(SCHEMA, (1, ROW), codec="lz77"))


def test_oversized_header_is_refused() -> None:
    data = container(SCHEMA, (1, ROW), metadata={"comment": bytes(1 << 20)})
    assert len(decode_manifest(data)) == 1
    with pytest.raises(CorruptTableError, match="the header is larger than 65536 bytes"):
        decode_manifest(data, limits=AvroLimits(header_bytes=65536))


def test_limits_can_be_raised_for_valid_files() -> None:
    rows = [entry(at, partition={"ts_day": 1}) for at in range(2000)]
    data = write_avro(SCHEMA, rows)
    with pytest.raises(CorruptTableError, match="inflates to more than"):
        decode_manifest(data, limits=AvroLimits(inflated_floor_bytes=1 << 16, inflated_ratio=1))
    assert len(decode_manifest(data, limits=AvroLimits(inflated_floor_bytes=1 << 24, inflated_ratio=1))) == 2000


@pytest.mark.parametrize("count", [2, 200])
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_manifest_truncated_anywhere_is_refused(count: int, codec: str) -> None:
    content = rows_of(SCHEMA, [entry(at, partition={"ts_day": at}) for at in range(count)])
    data = container(SCHEMA, (count, compress(codec, content)), codec=codec)
    body = len(data) - 16 - len(compress(codec, content))
    for end in [*range(0, body, 97), *range(body - 4, len(data), max(1, (len(data) - body) // 60))]:
        if end == len(container(SCHEMA, codec=codec)):
            continue
        with pytest.raises(CorruptTableError):
            decode_manifest(data[:end])


def test_leftover_bytes_between_blocks_are_detected_in_large_files() -> None:
    content = rows_of(SCHEMA, [entry(at, partition={"ts_day": at}) for at in range(300)])
    for tail in (b"\x00", b"\x02\x00", ROW[:40], ROW):
        data = container(SCHEMA, (300, content + tail))
        with pytest.raises(CorruptTableError, match=r"do not end where their blocks do|do not follow"):
            decode_manifest(data)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [3, 200])
def test_flipped_bits_give_rows_or_a_frazil_error(seed: int, count: int) -> None:
    random_source = random.Random(seed)
    content = rows_of(SCHEMA, [entry(at, partition={"ts_day": at}) for at in range(count)])
    for _ in range(25):
        changed = bytearray(content)
        for _ in range(random_source.randrange(1, 4)):
            changed[random_source.randrange(len(changed))] = random_source.choice([0, 1, 0x7F, 0x80, 0xFF])
        try:
            assert len(decode_manifest(container(SCHEMA, (count, bytes(changed))))) == count
        except (CorruptTableError, UnsupportedError):
            pass


def test_schema_json_of_any_shape_gives_a_frazil_error() -> None:
    documents: list[Any] = [None, True, 7, "int", [], {}, [[]], {"type": None}, {"type": {}}, {"type": "record"}]
    for document in documents:
        with pytest.raises(CorruptTableError):
            decode_manifest(container(json.dumps(document).encode(), (1, b"\x00")))


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("part", [0, 1])
def test_map_pairs_without_key_or_value_are_refused(part: int, count: int) -> None:
    schema = entry_schema()
    sizes = next(one for one in schema["fields"][-1]["type"]["fields"] if one["name"] == "column_sizes")
    sizes["type"][1]["items"]["fields"][part]["type"] = "null"
    rows = [entry(at, column_sizes=[{"key": 1, "value": 1} | {("key", "value")[part]: None}]) for at in range(count)]
    with pytest.raises(CorruptTableError, match="field 'column_sizes' is stored as array"):
        decode_manifest(container(schema, (count, rows_of(schema, rows))))
