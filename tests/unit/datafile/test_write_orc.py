"""ORC files as the specification wants them, and without the faults of the library that writes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from frazil.datafile.orc_tail import decode_stripes
from frazil.datafile.write import write_data_files
from frazil.errors import UnsupportedError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    FixedType,
    GeographyType,
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
    place = target(table, properties={"write.format.default": "orc", **settings(properties)})
    data = rows_to_table(rows, table) if isinstance(rows, list) else rows
    return place.storage, write_data_files(data, place, new_id=ids(), threads=1)


def opened(storage: Storage, file: DataFile) -> orc.ORCFile:
    return orc.ORCFile(pa.BufferReader(storage.read(file.file_path)))


def attributes(part: pa.Field) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (part.metadata or {}).items()}


def test_ids_and_types_are_in_type_attributes() -> None:
    table = schema(
        field(1, "t", TIME, required=True),
        field(2, "l", LONG),
        field(3, "u", UUID),
        field(4, "fx", FixedType(3)),
        field(5, "b", BINARY),
        field(6, "g", GeometryType()),
        field(7, "gg", GeographyType()),
        field(8, "ts", TIMESTAMP),
        field(9, "tz", TIMESTAMPTZ_NS),
        field(10, "v", VARIANT),
        field(11, "unk", UNKNOWN),
        field(12, "s", StructType((field(13, "x y", INT),))),
        field(14, "li", ListType(15, STRING, True)),
        field(16, "m", MapType(17, STRING, 18, TIME)),
    )
    storage, files = write(table, [{"t": 1}])
    found = opened(storage, files[0]).schema
    assert found.names == ["t", "l", "u", "fx", "b", "g", "gg", "ts", "tz", "v", "s", "li", "m"]
    assert {one.name: attributes(one) for one in found} == {
        "t": {"iceberg.id": "1", "iceberg.required": "true", "iceberg.long-type": "TIME"},
        "l": {"iceberg.id": "2", "iceberg.required": "false", "iceberg.long-type": "LONG"},
        "u": {"iceberg.id": "3", "iceberg.required": "false", "iceberg.binary-type": "UUID"},
        "fx": {"iceberg.id": "4", "iceberg.required": "false", "iceberg.binary-type": "FIXED", "iceberg.length": "3"},
        "b": {"iceberg.id": "5", "iceberg.required": "false", "iceberg.binary-type": "BINARY"},
        "g": {"iceberg.id": "6", "iceberg.required": "false", "iceberg.binary-type": "GEOMETRY"},
        "gg": {"iceberg.id": "7", "iceberg.required": "false", "iceberg.binary-type": "GEOGRAPHY"},
        "ts": {"iceberg.id": "8", "iceberg.required": "false", "iceberg.timestamp-unit": "MICROS"},
        "tz": {"iceberg.id": "9", "iceberg.required": "false", "iceberg.timestamp-unit": "NANOS"},
        "v": {"iceberg.id": "10", "iceberg.required": "false", "iceberg.struct-type": "VARIANT"},
        "s": {"iceberg.id": "12", "iceberg.required": "false"},
        "li": {"iceberg.id": "14", "iceberg.required": "false"},
        "m": {"iceberg.id": "16", "iceberg.required": "false"},
    }
    assert found.field("tz").type.tz == "UTC"
    assert attributes(found.field("s").type.field(0)) == {"iceberg.id": "13", "iceberg.required": "false"}
    assert attributes(found.field("li").type.value_field) == {"iceberg.id": "15", "iceberg.required": "true"}
    assert attributes(found.field("m").type.key_field) == {"iceberg.id": "17", "iceberg.required": "true"}
    assert attributes(found.field("m").type.item_field)["iceberg.long-type"] == "TIME"
    assert attributes(found.field("v").type.field(0)) == {}


NESTED = schema(
    field(1, "s", StructType((field(2, "c", StructType((field(3, "x", INT, required=True), field(4, "y", STRING)))),))),
    field(5, "l", ListType(6, StructType((field(7, "c", StructType((field(8, "z", BINARY),))),)))),
    field(9, "m", MapType(10, STRING, 11, StructType((field(12, "w", TIMESTAMP),)))),
)


def test_values_after_a_null_struct_are_preserved() -> None:
    rows: list[dict[str, Any]] = []
    for at in range(300):
        inner = None if at % 3 == 0 else {"x": at, "y": None if at % 5 == 0 else f"y{at}"}
        item = None if at % 4 == 0 else {"c": None if at % 4 == 1 else {"z": b"%d" % at}}
        rows.append(
            {
                "s": None if at % 7 == 0 else {"c": inner},
                "l": None if at % 11 == 0 else [item, None, item][: at % 4],
                "m": {"a": None if at % 2 else {"w": at}},
            }
        )
    storage, files = write(NESTED, rows)
    assert read_rows(storage, files, NESTED) == rows
    # No struct around the one that is null has a null of its own.
    rows = [{"s": {"c": None}}, {"s": {"c": {"x": 5, "y": "a"}}}, {"s": {"c": {"x": 6, "y": None}}}]
    storage, files = write(NESTED, rows)
    assert [row["s"] for row in read_rows(storage, files, NESTED)] == [row["s"] for row in rows]


def test_table_slices_are_written_from_their_offset() -> None:
    rows = [{"s": None if at % 3 == 0 else {"c": {"x": at, "y": f"y{at}"}}} for at in range(100)]
    whole = rows_to_table(rows, NESTED)
    for start in (1, 7, 33):
        storage, files = write(NESTED, whole.slice(start, 20))
        assert [row["s"] for row in read_rows(storage, files, NESTED)] == [row["s"] for row in rows[start : start + 20]]


@pytest.mark.parametrize("kind", [TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS], ids=str)
def test_sub_second_times_before_1970_are_refused(kind: Any) -> None:
    second = 1_000_000_000 if str(kind).endswith("_ns") else 1_000_000
    table = schema(field(1, "t", kind), field(2, "l", ListType(3, StructType((field(4, "u", kind),)))))
    good = [{"t": -second, "l": [{"u": -5 * second}]}, {"t": 1, "l": None}, {"t": None, "l": [None]}]
    storage, files = write(table, good)
    assert read_rows(storage, files, table) == good
    for bad, column in (({"t": -1, "l": None}, "t"), ({"t": 0, "l": [{"u": -second - 1}]}, r"l\.element\.u")):
        with pytest.raises(UnsupportedError, match=f"the column '{column}' to ORC"):
            write(table, [*good, bad])


@pytest.mark.parametrize(
    "codec, stored",
    [("zlib", "ZLIB"), ("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")],
)
def test_requested_codec_is_used_and_stripes_are_described(codec: str, stored: str) -> None:
    rows = pa.table({"id": pa.array(range(100_000)), "kind": pa.array([str(at * at) for at in range(100_000)])})
    storage, files = write(schema(), rows, write__orc__compression_codec=codec, write__orc__stripe_size_bytes="65536")
    file = opened(storage, files[0])
    assert str(file.compression) == stored
    assert file.nstripes > 1
    stripes = decode_stripes(file.reader.serialized_file_tail())
    assert files[0].split_offsets == tuple(one.offset for one in stripes)
    assert files[0].file_format is FileFormat.ORC
    assert files[0].column_sizes is None


def test_unsupported_codec_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the codec lzo"):
        write(schema(), [{"id": 1}], write__orc__compression_codec="lzo")


def test_bloom_filters_are_written_for_named_columns() -> None:
    table = schema(field(1, "s", StructType((field(2, "x", LONG), field(3, "y", LONG)))), field(4, "z", LONG))
    rows = [{"s": {"x": at, "y": at}, "z": at} for at in range(1000)]
    sizes = []
    for names in ("", "z", "z,s.y", "gone"):
        storage, files = write(table, rows, write__orc__bloom__filter__columns=names)
        assert read_rows(storage, files, table) == rows
        sizes.append(files[0].file_size_in_bytes)
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[3] == sizes[0]
