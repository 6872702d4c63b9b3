"""Parquet files as the specification wants them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.schema_json import encode_schema
from frazil.datafile.parquet_footer import annotate_footer
from frazil.datafile.write import write_data_files
from frazil.errors import InvalidPropertyError, UnsupportedError
from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
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
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from frazil.storage.base import Storage
from tests.support.builders import field, schema
from tests.support.file_writers import rows_to_table
from tests.support.written_files import ids, read_rows, settings, target

ALL_TYPES = schema(
    field(1, "b", BOOLEAN),
    field(2, "i", INT, required=True),
    field(3, "l", LONG),
    field(4, "f", FLOAT),
    field(5, "d", DOUBLE),
    field(6, "dec9", DecimalType(9, 2)),
    field(7, "dec18", DecimalType(18, 0)),
    field(8, "dec19", DecimalType(19, 3)),
    field(9, "dec38", DecimalType(38, 38)),
    field(10, "day", DATE),
    field(11, "time", TIME),
    field(12, "ts", TIMESTAMP),
    field(13, "tz", TIMESTAMPTZ),
    field(14, "tsn", TIMESTAMP_NS),
    field(15, "tzn", TIMESTAMPTZ_NS),
    field(16, "s", STRING),
    field(17, "u", UUID),
    field(18, "fx", FixedType(3)),
    field(19, "bin", BINARY),
    field(20, "unk", UNKNOWN),
    field(21, "geo", GeometryType("EPSG:3857")),
    field(22, "gg", GeographyType()),
    field(23, "gk", GeographyType("srid:4326", "karney")),
    field(24, "v", VARIANT),
    field(25, "st", StructType((field(26, "x", INT, required=True), field(27, "unk", UNKNOWN)))),
    field(28, "li", ListType(29, StructType((field(30, "y", UUID),)), True)),
    field(31, "ma", MapType(32, STRING, 33, VARIANT)),
)

PARQUET_SCHEMA = """\
required group field_id=-1 schema {
  optional boolean field_id=1 b;
  required int32 field_id=2 i;
  optional int64 field_id=3 l;
  optional float field_id=4 f;
  optional double field_id=5 d;
  optional int32 field_id=6 dec9 (Decimal(precision=9, scale=2));
  optional int64 field_id=7 dec18 (Decimal(precision=18, scale=0));
  optional fixed_len_byte_array(9) field_id=8 dec19 (Decimal(precision=19, scale=3));
  optional fixed_len_byte_array(16) field_id=9 dec38 (Decimal(precision=38, scale=38));
  optional int32 field_id=10 day (Date);
  optional int64 field_id=11 time (Time(isAdjustedToUTC=false, timeUnit=microseconds));
  optional int64 field_id=12 ts (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds, \
is_from_converted_type=false, force_set_converted_type=false));
  optional int64 field_id=13 tz (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, \
is_from_converted_type=false, force_set_converted_type=false));
  optional int64 field_id=14 tsn (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds, \
is_from_converted_type=false, force_set_converted_type=false));
  optional int64 field_id=15 tzn (Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds, \
is_from_converted_type=false, force_set_converted_type=false));
  optional binary field_id=16 s (String);
  optional fixed_len_byte_array(16) field_id=17 u (UUID);
  optional fixed_len_byte_array(3) field_id=18 fx;
  optional binary field_id=19 bin;
  optional binary field_id=21 geo (Geometry(crs=EPSG:3857));
  optional binary field_id=22 gg (Geography(crs=, algorithm=spherical));
  optional binary field_id=23 gk (Geography(crs=srid:4326, algorithm=karney));
  optional group field_id=24 v (Variant(1)) {
    required binary field_id=-1 metadata;
    required binary field_id=-1 value;
  }
  optional group field_id=25 st {
    required int32 field_id=26 x;
  }
  optional group field_id=28 li (List) {
    repeated group field_id=-1 list {
      required group field_id=29 element {
        optional fixed_len_byte_array(16) field_id=30 y (UUID);
      }
    }
  }
  optional group field_id=31 ma (Map) {
    repeated group field_id=-1 key_value {
      required binary field_id=32 key (String);
      optional group field_id=33 value (Variant(1)) {
        required binary field_id=-1 metadata;
        required binary field_id=-1 value;
      }
    }
  }
}
"""


def write(
    table: Schema, rows: Any, properties: Mapping[str, str] | None = None, **more: str
) -> tuple[Storage, list[DataFile]]:
    place = target(table, properties={**(properties or {}), **settings(more)})
    data = rows_to_table(rows, table) if isinstance(rows, list) else rows
    return place.storage, write_data_files(data, place, new_id=ids(), threads=1)


def opened(storage: Storage, file: DataFile) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(storage.read(file.file_path)))


def write_one(table: Schema, rows: Any, properties: Mapping[str, str] | None = None, **more: str) -> pq.ParquetFile:
    storage, files = write(table, rows, properties, **more)
    assert len(files) == 1
    return opened(storage, files[0])


def test_every_type_is_stored_as_specified() -> None:
    file = write_one(ALL_TYPES, [{"i": 1}])
    assert str(file.schema).partition("\n")[2] == PARQUET_SCHEMA


def test_table_schema_is_stored_as_json_and_the_arrow_schema_is_not() -> None:
    file = write_one(schema(), [{"id": 1}])
    assert json.loads(file.metadata.metadata[b"iceberg.schema"]) == json.loads(json.dumps(encode_schema(schema())))
    assert b"ARROW:schema" not in file.metadata.metadata


def test_names_are_escaped_like_in_iceberg_java_and_ids_distinguish_columns() -> None:
    table = schema(
        field(1, "a.b", LONG),
        field(2, "a_x2Eb", LONG),
        field(3, "1st", LONG),
        field(4, "été", LONG),
        field(5, "s", StructType((field(6, "x y", LONG), field(7, "x_x20y", LONG)))),
    )
    rows = [{"a.b": 1, "a_x2Eb": 2, "1st": 3, "été": 4, "s": {"x y": 5, "x_x20y": 6}}, {"s": None}]
    storage, files = write(table, rows)
    names = opened(storage, files[0]).schema_arrow.names
    assert names == ["a_x2Eb_f1", "a_x2Eb", "_1st", "été", "s"]
    assert read_rows(storage, files, table) == [
        rows[0],
        {"a.b": None, "a_x2Eb": None, "1st": None, "été": None, "s": None},
    ]


@pytest.mark.parametrize(
    "codec, stored", [("zstd", "ZSTD"), ("gzip", "GZIP"), ("snappy", "SNAPPY"), ("lz4", "LZ4"), ("lz4_raw", "LZ4"),
                      ("brotli", "BROTLI"), ("uncompressed", "UNCOMPRESSED")],
)  # fmt: skip
def test_requested_codec_is_used(codec: str, stored: str) -> None:
    file = write_one(schema(), [{"id": at} for at in range(100)], write__parquet__compression_codec=codec)
    assert file.metadata.row_group(0).column(0).compression == stored


def test_default_codec_is_gzip() -> None:
    place = target(schema())
    plain = type(place)(place.schema, place.location, place.storage)
    files = write_data_files([{"id": 1}], plain, new_id=ids())
    assert opened(place.storage, files[0]).metadata.row_group(0).column(0).compression == "GZIP"


def test_compression_levels_are_used_and_validated() -> None:
    rows = [{"id": at, "kind": f"text {at * at % 7919} and {at}"} for at in range(20_000)]
    sizes = {}
    for level in ("1", "9"):
        _, files = write(
            schema(), rows, write__parquet__compression_codec="gzip", write__parquet__compression_level=level
        )
        sizes[level] = files[0].file_size_in_bytes
    assert sizes["9"] < sizes["1"]
    with pytest.raises(InvalidPropertyError, match="the level 10 of gzip"):
        write(schema(), rows, write__parquet__compression_codec="gzip", write__parquet__compression_level="10")
    write(schema(), rows[:5], write__parquet__compression_codec="snappy", write__parquet__compression_level="10")


def test_high_cardinality_column_has_no_dictionary() -> None:
    table = schema(field(1, "id", LONG), field(2, "kind", STRING), field(3, "key", STRING), field(4, "empty", LONG))
    rows = [{"id": at, "kind": f"v{at % 5}", "key": f"key-{at}", "empty": None} for at in range(5000)]
    file = write_one(table, rows, {})
    columns = [file.metadata.row_group(0).column(at) for at in range(4)]
    assert [column.has_dictionary_page for column in columns] == [False, True, False, True]
    assert file.read().to_pylist() == rows


def test_dictionaries_statistics_and_bloom_filters_are_configurable() -> None:
    table = schema(
        field(1, "a", STRING), field(2, "b", STRING), field(3, "l", ListType(4, STRING)), field(5, "f", BOOLEAN)
    )
    rows = [{"a": f"v{at % 5}", "b": f"v{at % 5}", "l": ["x"], "f": True} for at in range(1000)]
    file = write_one(
        table,
        rows,
        {
            "write.parquet.dict-encoding-enabled.column.b": "false",
            "write.parquet.stats-enabled.column.a": "false",
            "write.parquet.bloom-filter-enabled.column.a": "true",
            "write.parquet.bloom-filter-enabled.column.l.element": "true",
            "write.parquet.bloom-filter-enabled.column.f": "true",
            "write.parquet.bloom-filter-enabled.column.gone": "true",
            "write.parquet.bloom-filter-ndv.column.a": "100",
            "write.parquet.bloom-filter-fpp.column.a": "0.05",
            "write.parquet.bloom-filter-max-bytes": "5000",
        },
    )
    columns = [file.metadata.row_group(0).column(at) for at in range(4)]
    assert [column.has_dictionary_page for column in columns] == [True, False, True, False]
    assert [column.is_stats_set for column in columns] == [False, True, True, True]
    assert [column.bloom_filter_offset is not None for column in columns] == [True, False, True, False]
    assert columns[0].bloom_filter_length < 300
    assert columns[2].bloom_filter_length <= 5000


def test_page_size_is_configurable() -> None:
    rows = [{"id": at} for at in range(5000)]
    plain = write_one(schema(), rows)
    paged = write_one(schema(), rows, write__parquet__page_row_limit="100", write__parquet__page_version="v2")
    assert plain.metadata.row_group(0).column(0).has_offset_index
    assert (
        paged.metadata.row_group(0).column(0).total_compressed_size
        > plain.metadata.row_group(0).column(0).total_compressed_size
    )
    assert paged.read().num_rows == 5000


def test_geometries_have_no_ordered_statistics() -> None:
    file = write_one(ALL_TYPES, [{"i": 1, "geo": b"\x01\x01\0\0\0" + bytes(16)}])
    by_path = {file.metadata.row_group(0).column(at).path_in_schema: at for at in range(file.metadata.num_columns)}
    assert not file.metadata.row_group(0).column(by_path["geo"]).is_stats_set
    assert file.metadata.row_group(0).column(by_path["i"]).is_stats_set


def test_row_groups_are_split_and_described() -> None:
    table = schema(field(1, "id", LONG, required=True), field(2, "tags", ListType(3, STRING)), field(4, "v", VARIANT))
    rows = pa.table(
        {
            "id": pa.array(range(20_000)),
            "tags": pa.array([[str(at)] for at in range(20_000)]),
            "v": pa.nulls(20_000),
        }
    )
    storage, files = write(
        table, rows, write__parquet__row_group_size_bytes="20000", write__metadata__metrics__column__id="none"
    )
    metadata = opened(storage, files[0]).metadata
    assert metadata.num_row_groups > 5
    starts = []
    for at in range(metadata.num_row_groups):
        column = metadata.row_group(at).column(0)
        starts.append(min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset))
    assert files[0].split_offsets == tuple(starts)
    assert starts[0] == 4
    # The parts of a variant have no ids, and the first column is not measured.
    assert files[0].column_sizes == {
        3: sum(metadata.row_group(at).column(1).total_compressed_size for at in range(metadata.num_row_groups))
    }


def test_column_unique_across_row_groups_is_read_whole() -> None:
    rows = [{"id": at, "kind": f"{at:05d}"} for at in range(5000)]
    storage, files = write(schema(), rows, write__parquet__row_group_size_bytes="5000")
    assert opened(storage, files[0]).metadata.num_row_groups > 2
    assert [row["id"] for row in read_rows(storage, files, schema())] == list(range(5000))


def test_unreadable_footer_is_refused() -> None:
    place, files = write(schema(), [{"id": 1}])
    data = place.read(files[0].file_path)
    assert annotate_footer(data, {}) == data
    with pytest.raises(UnsupportedError, match="no column of field id 99"):
        annotate_footer(data, {99: VARIANT})
    with pytest.raises(UnsupportedError, match="already has an annotation"):
        annotate_footer(data, {3: VARIANT})
    for broken in (b"", data[:-4] + b"PARE", data[-8:], b"\x15\x02" + bytes(20) + (22).to_bytes(4, "little") + b"PAR1"):
        with pytest.raises(UnsupportedError, match="Cannot annotate the Parquet file"):
            annotate_footer(broken, {1: VARIANT})


def test_reserved_columns_are_written_with_their_ids() -> None:
    data = pa.table({"id": [1], "_row_id": [5], "_last_updated_sequence_number": pa.array([None], pa.int64())})
    file = write_one(Schema((NestedField(1, "id", LONG),)), data)
    assert "field_id=2147483540 _row_id" in str(file.schema)
    assert "field_id=2147483539 _last_updated_sequence_number" in str(file.schema)
