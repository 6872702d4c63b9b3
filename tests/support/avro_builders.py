"""Avro metadata files made by hand or by fastavro, for tests."""

from __future__ import annotations

import bz2
import copy
import io
import json
import lzma
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa
import zstandard

SYNC = bytes(range(16))


def pairs(name: str, key_id: int, value_id: int, value_type: Any, field_id: int) -> dict[str, Any]:
    """A map with keys that are not strings: an array of key-value records."""
    record = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key_id},
            {"name": "value", "type": value_type, "field-id": value_id},
        ],
    }
    array = {"type": "array", "logicalType": "map", "items": record}
    return {"name": name, "type": ["null", array], "default": None, "field-id": field_id}


def optional(name: str, kind: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def required(name: str, kind: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


DAY = optional("ts_day", {"type": "int", "logicalType": "date"}, 1000)


def entry_schema(*partition: dict[str, Any], version: int = 2) -> dict[str, Any]:
    """The schema of a manifest as Iceberg Java writes it."""
    data_file = [
        *([required("content", "int", 134)] if version > 1 else []),
        required("file_path", "string", 100),
        required("file_format", "string", 101),
        required("partition", {"type": "record", "name": "r102", "fields": list(partition)}, 102),
        required("record_count", "long", 103),
        required("file_size_in_bytes", "long", 104),
        *([required("block_size_in_bytes", "long", 105)] if version == 1 else []),
        pairs("column_sizes", 117, 118, "long", 108),
        pairs("value_counts", 119, 120, "long", 109),
        pairs("null_value_counts", 121, 122, "long", 110),
        pairs("nan_value_counts", 138, 139, "long", 137),
        pairs("lower_bounds", 126, 127, "bytes", 125),
        pairs("upper_bounds", 129, 130, "bytes", 128),
        optional("key_metadata", "bytes", 131),
        optional("split_offsets", {"type": "array", "items": "long", "element-id": 133}, 132),
        *([optional("equality_ids", {"type": "array", "items": "int", "element-id": 136}, 135)] if version > 1 else []),
        optional("sort_order_id", "int", 140),
    ]
    if version > 2:
        data_file += [
            optional("first_row_id", "long", 142),
            optional("referenced_data_file", "string", 143),
            optional("content_offset", "long", 144),
            optional("content_size_in_bytes", "long", 145),
        ]
    numbers = [optional("sequence_number", "long", 3), optional("file_sequence_number", "long", 4)]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            required("status", "int", 0),
            optional("snapshot_id", "long", 1),
            *(numbers if version > 1 else []),
            required("data_file", {"type": "record", "name": "r2", "fields": data_file}, 2),
        ],
    }


def entry(at: int = 0, *, partition: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """An added data file with two columns' metrics; `changes` go to the entry or to its data file."""
    row: dict[str, Any] = {
        "status": 1,
        "snapshot_id": None,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": {
            "content": 0,
            "file_path": f"s3://bucket/data/{at:05d}.parquet",
            "file_format": "PARQUET",
            "partition": partition or {},
            "record_count": 100 + at,
            "file_size_in_bytes": 1000 + at,
            "block_size_in_bytes": 67108864,
            "column_sizes": [{"key": 1, "value": 11}, {"key": 2, "value": 22}],
            "value_counts": [{"key": 1, "value": 100 + at}, {"key": 2, "value": 100 + at}],
            "null_value_counts": [{"key": 1, "value": 0}, {"key": 2, "value": 5}],
            "nan_value_counts": None,
            "lower_bounds": [{"key": 1, "value": at.to_bytes(8, "little")}, {"key": 2, "value": b""}],
            "upper_bounds": [{"key": 1, "value": (at + 9).to_bytes(8, "little")}, {"key": 2, "value": b"zz"}],
            "key_metadata": None,
            "split_offsets": [4, 400],
            "equality_ids": None,
            "sort_order_id": 0,
            "first_row_id": None,
            "referenced_data_file": None,
            "content_offset": None,
            "content_size_in_bytes": None,
        },
    }
    for name, value in changes.items():
        (row if name in row else row["data_file"])[name] = value
    return row


def write_avro(
    schema: dict[str, Any], rows: Sequence[dict[str, Any]], /, *, codec: str = "deflate", **metadata: str
) -> bytes:
    """A container written by fastavro; header keys are given with underscores for dashes."""
    out = io.BytesIO()
    header = {key.replace("_", "-"): value for key, value in metadata.items()}
    fastavro.writer(out, copy.deepcopy(schema), list(rows), codec=codec, metadata=header, sync_marker=SYNC)
    return out.getvalue()


def manifest_list_schema(version: int = 2) -> dict[str, Any]:
    """The schema of a manifest list as Iceberg Java writes it."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            required("contains_null", "boolean", 509),
            optional("contains_nan", "boolean", 518),
            optional("lower_bound", "bytes", 510),
            optional("upper_bound", "bytes", 511),
        ],
    }
    count = required if version > 1 else optional
    return {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            required("manifest_path", "string", 500),
            required("manifest_length", "long", 501),
            required("partition_spec_id", "int", 502),
            *(
                [
                    required("content", "int", 517),
                    required("sequence_number", "long", 515),
                    required("min_sequence_number", "long", 516),
                ]
                if version > 1
                else []
            ),
            required("added_snapshot_id", "long", 503),
            count("added_files_count", "int", 504),
            count("existing_files_count", "int", 505),
            count("deleted_files_count", "int", 506),
            count("added_rows_count", "long", 512),
            count("existing_rows_count", "long", 513),
            count("deleted_rows_count", "long", 514),
            optional("partitions", {"type": "array", "items": summary, "element-id": 508}, 507),
            optional("key_metadata", "bytes", 519),
            *([optional("first_row_id", "long", 520)] if version > 2 else []),
        ],
    }


def list_row(at: int = 0, **changes: Any) -> dict[str, Any]:
    """A data manifest with one added file of ten rows."""
    row: dict[str, Any] = {
        "manifest_path": f"s3://bucket/metadata/m{at}.avro",
        "manifest_length": 5000 + at,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 3,
        "min_sequence_number": 2,
        "added_snapshot_id": 77,
        "added_files_count": 1,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 10,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [{"contains_null": False, "contains_nan": None, "lower_bound": b"a", "upper_bound": b"z"}],
        "key_metadata": None,
        "first_row_id": None,
    }
    row.update(changes)
    return row


def varint(value: int) -> bytes:
    """A zigzag varint, of any size."""
    rest = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


def container(
    schema: Any, *blocks: tuple[int, bytes], codec: str = "null", metadata: dict[str, bytes] | None = None
) -> bytes:
    """A container put together by hand; a block is a row count and its content as stored."""
    raw = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    header = {"avro.schema": raw, "avro.codec": codec.encode(), **(metadata or {})}
    out = b"Obj\x01" + varint(len(header)) + b"".join(text(key) + text(value) for key, value in header.items())
    out += b"\x00" + SYNC
    return out + b"".join(varint(count) + varint(len(content)) + content + SYNC for count, content in blocks)


def rows_of(schema: dict[str, Any], rows: Sequence[dict[str, Any]]) -> bytes:
    """The bytes of rows, as they stand in an uncompressed block."""
    out = io.BytesIO()
    parsed = _parsed(json.dumps(schema))
    for row in rows:
        fastavro.schemaless_writer(out, parsed, row)
    return out.getvalue()


@cache
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def compress(codec: str, content: bytes) -> bytes:
    """A block's content as each codec of the Avro specification stores it."""
    if codec == "snappy":
        return bytes(pa.Codec("snappy").compress(content, asbytes=True)) + zlib.crc32(content).to_bytes(4, "big")
    if codec == "zstandard":
        # Streams, as Iceberg Java writes them, do not say how long they are.
        stream = zstandard.ZstdCompressor().compressobj()
        return stream.compress(content) + stream.flush()
    makers: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": deflate,
        "bzip2": bz2.compress,
        "xz": lzma.compress,
    }
    return makers[codec](content)


def deflate(content: bytes) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()
