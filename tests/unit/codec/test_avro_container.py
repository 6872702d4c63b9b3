"""Avro containers: header and blocks, both ways."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.avro_container import (
    AvroLimits,
    AvroOrigin,
    encode_container,
    encode_header,
    find_blocks,
    read_header,
)
from frazil.codec.varint import encode_zigzag
from frazil.errors import CorruptTableError, InvalidManifestError, InvalidMetadataError
from tests.support.avro_builders import SYNC, container, entry, entry_schema, text, varint, write_avro

ORIGIN = AvroOrigin("manifest", "Manifests", "m.avro")
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long", "field-id": 1}]}


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_match_the_avro_specification(value: int) -> None:
    assert encode_zigzag(value) == varint(value)


@pytest.mark.parametrize("value, encoded", [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (-64, b"\x7f"), (64, b"\x80\x01")])
def test_containers_match_the_avro_specification_examples(value: int, encoded: bytes) -> None:
    assert encode_zigzag(value) == encoded


def test_header_has_metadata_codec_and_sync_marker() -> None:
    data = write_avro(entry_schema(), [entry()], schema="{}", format_version="2")
    header = read_header(data, ORIGIN)
    assert header.codec == "deflate"
    assert header.sync == SYNC
    assert (header.text("schema"), header.text("format-version"), header.text("absent")) == ("{}", "2", None)
    (block,) = find_blocks(data, header, ORIGIN)
    assert (block.count, block.end) == (1, len(data) - 16)


def test_metadata_may_consist_of_sized_parts() -> None:
    parts = [text("avro.schema") + text("{}"), text("avro.codec") + text("null") + text("a") + text(b"\xff")]
    data = b"Obj\x01" + varint(1) + parts[0] + varint(-2) + varint(len(parts[1])) + parts[1] + b"\x00" + SYNC
    header = read_header(data, ORIGIN)
    assert header.metadata == {"avro.schema": b"{}", "avro.codec": b"null", "a": b"\xff"}
    assert header.text("a") is None
    assert header.body_at == len(data)


def test_missing_codec_means_uncompressed() -> None:
    data = b"Obj\x01" + varint(1) + text("avro.schema") + text("{}") + b"\x00" + SYNC
    assert read_header(data, ORIGIN).codec == "null"


def test_blocks_without_rows_are_skipped() -> None:
    data = container(SCHEMA, (0, b""), (2, b"\x02\x04"), (0, b""))
    (block,) = find_blocks(data, read_header(data, ORIGIN), ORIGIN)
    assert (block.count, data[block.start : block.end]) == (2, b"\x02\x04")


def test_encoded_container_is_read_by_fastavro() -> None:
    metadata = {"avro.schema": json.dumps(SCHEMA).encode(), "avro.codec": b"null", "é": b"x" * 300}
    data = encode_container(metadata, SYNC, [(2, b"\x02\x04"), (1, b"\x06")])
    reader = fastavro.reader(io.BytesIO(data))
    assert [row["a"] for row in reader] == [1, 2, 3]  # type: ignore[index,call-overload]
    assert reader.metadata["é"] == "x" * 300
    assert [block.count for block in find_blocks(data, read_header(data, ORIGIN), ORIGIN)] == [2, 1]


def test_empty_header_round_trips() -> None:
    assert read_header(encode_header({}, SYNC), ORIGIN).metadata == {}


def test_errors_have_the_path_and_the_class_of_the_reader() -> None:
    with pytest.raises(InvalidManifestError) as failure:
        read_header(b"nope", ORIGIN)
    assert failure.value.context == {"path": "m.avro", "heading": "Manifests"}
    other = AvroOrigin("file", "Avro", error=InvalidMetadataError)
    with pytest.raises(InvalidMetadataError, match="Cannot read file: it is not an Avro file"):
        read_header(b"nope", other)


def test_limits_grow_with_the_file_size() -> None:
    limits = AvroLimits(inflated_floor_bytes=100, inflated_ratio=3)
    assert limits.inflated_bytes(50) == 250


@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_are_a_header_or_an_error(tail: bytes) -> None:
    try:
        header = read_header(b"Obj\x01" + tail, ORIGIN)
        find_blocks(b"Obj\x01" + tail, header, ORIGIN)
    except CorruptTableError:
        pass
