"""Avro data files as the specification wants them, read back by another implementation."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from frazil.codec.schema_json import encode_schema
from frazil.datafile.write import write_data_files
from frazil.errors import InvalidRequestError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    ListType,
    MapType,
    StructType,
)
from frazil.storage.base import Storage
from tests.support.builders import field, schema
from tests.support.file_writers import rows_to_table
from tests.support.written_files import ids, read_rows, settings, target


def write(table: Schema, rows: Any, **properties: str) -> tuple[Storage, list[DataFile]]:
    place = target(table, properties={"write.format.default": "avro", **settings(properties)})
    data = rows_to_table(rows, table) if isinstance(rows, list) else rows
    return place.storage, write_data_files(data, place, new_id=ids(), threads=1)


def opened(storage: Storage, file: DataFile) -> Any:
    return fastavro.reader(io.BytesIO(storage.read(file.file_path)))


def test_ids_and_logical_types_are_in_the_schema() -> None:
    table = schema(
        field(1, "a b", LONG, required=True),
        field(2, "t", TIMESTAMPTZ_NS),
        field(3, "u", UUID),
        field(4, "d", DecimalType(9, 2)),
        field(5, "l", ListType(6, UUID, True)),
        field(7, "m", MapType(8, STRING, 9, INT)),
        field(10, "k", MapType(11, INT, 12, STRING, True)),
        field(13, "v", VARIANT),
        field(14, "g", GeometryType()),
        field(15, "unk", UNKNOWN),
    )
    storage, files = write(table, [{"a b": 1}])
    found = json.loads(opened(storage, files[0]).metadata["avro.schema"])
    assert [(one["name"], one["field-id"]) for one in found["fields"]] == [
        ("a_x20b", 1), ("t", 2), ("u", 3), ("d", 4), ("l", 5), ("m", 7), ("k", 10), ("v", 13), ("g", 14),
    ]  # fmt: skip
    kinds = {one["name"]: one["type"] for one in found["fields"]}
    assert kinds["a_x20b"] == "long"
    assert kinds["t"][1] == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}
    assert kinds["u"][1] == {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
    assert kinds["d"][1]["size"] == 4
    assert kinds["l"][1] == {"type": "array", "items": "uuid_fixed", "element-id": 6}
    assert kinds["m"][1] == {"type": "map", "values": ["null", "int"], "key-id": 8, "value-id": 9}
    assert kinds["k"][1]["logicalType"] == "map"
    assert [one["field-id"] for one in kinds["k"][1]["items"]["fields"]] == [11, 12]
    assert kinds["v"][1] == {
        "type": "record",
        "name": "r13",
        "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
        "logicalType": "variant",
    }
    assert kinds["g"] == ["null", "bytes"]
    kept = json.loads(opened(storage, files[0]).metadata["iceberg.schema"])
    assert kept == json.loads(json.dumps(encode_schema(_stored(table))))


def _stored(table: Schema) -> Schema:
    return Schema(tuple(part for part in table.fields if part.field_type != UNKNOWN))


def test_fastavro_reads_the_written_values() -> None:
    inner = StructType((field(21, "x", INT, required=True), field(22, "y", ListType(23, STRING))))
    table = schema(
        field(1, "i", INT),
        field(2, "l", LONG),
        field(3, "f", FLOAT),
        field(4, "d", DOUBLE),
        field(5, "s", STRING),
        field(6, "b", BINARY),
        field(7, "fx", FixedType(2)),
        field(8, "dec", DecimalType(20, 3)),
        field(9, "day", DATE),
        field(10, "time", TIME),
        field(11, "ts", TIMESTAMP),
        field(12, "st", inner),
        field(24, "sts", ListType(25, StructType((field(26, "p", LONG),)))),
        field(27, "m", MapType(28, STRING, 29, StructType((field(30, "q", LONG, required=True),)))),
    )
    rows: list[dict[str, Any]] = [
        {
            "i": -5, "l": 2**62, "f": 1.5, "d": -0.25, "s": "é", "b": b"\0\xff", "fx": b"ab", "dec": Decimal("-1.234"),
            "day": 3, "time": 4, "ts": -7, "st": {"x": 1, "y": ["a", None]}, "sts": [{"p": 1}, None, {"p": None}],
            "m": {"a": {"q": 7}, "b": None},
        },
        {"st": None, "sts": None, "m": None},
        {"st": {"x": 2, "y": None}, "sts": [], "m": {}},
    ]  # fmt: skip
    rows = [{part.name: row.get(part.name) for part in table.fields} for row in rows] * 3000
    storage, files = write(table, rows)
    found = list(opened(storage, files[0]))
    assert len(found) == 9000
    first = found[0]
    assert (first["i"], first["l"], first["f"], first["s"], first["fx"]) == (-5, 2**62, 1.5, "é", b"ab")
    assert first["dec"] == Decimal("-1.234")
    assert (first["st"], first["sts"], first["m"]) == (rows[0]["st"], rows[0]["sts"], rows[0]["m"])
    assert [row["st"] for row in found] == [row["st"] for row in rows]
    assert [row["m"] for row in found] == [row["m"] for row in rows]
    assert read_rows(storage, files, table) == rows


@pytest.mark.parametrize(
    "codec, stored", [("gzip", "deflate"), ("zstd", "zstandard"), ("snappy", "snappy"), ("uncompressed", "null")]
)
def test_requested_codec_is_used(codec: str, stored: str) -> None:
    rows = [{"id": at, "kind": "k" * (at % 50)} for at in range(5000)]
    storage, files = write(schema(), rows, write__avro__compression_codec=codec)
    assert opened(storage, files[0]).metadata["avro.codec"] == stored
    assert [row["id"] for row in read_rows(storage, files, schema())] == list(range(5000))
    assert files[0].file_format is FileFormat.AVRO
    assert files[0].split_offsets is None


def test_files_of_one_write_have_different_sync_markers() -> None:
    rows = pa.table({"id": pa.array(range(200_000)), "kind": pa.array(["x"] * 200_000)})
    storage, files = write(
        schema(), rows, write__target_file_size_bytes="50000", write__parquet__row_group_size_bytes="10000"
    )
    assert len(files) > 2
    assert len({storage.read(file.file_path)[-16:] for file in files}) == len(files)
    assert sum(file.record_count for file in files) == 200_000


def test_metadata_format_is_refused_for_rows() -> None:
    with pytest.raises(InvalidRequestError, match="Cannot write rows to a puffin file"):
        write_data_files([{"id": 1}], target(schema()), file_format="puffin")
    with pytest.raises(InvalidRequestError, match="Cannot use file format 'csv'"):
        write_data_files([{"id": 1}], target(schema()), file_format="csv")
