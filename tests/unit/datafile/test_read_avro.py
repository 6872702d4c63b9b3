from __future__ import annotations

import contextlib
import io
import random
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from frazil.codec.avro_container import AvroLimits
from frazil.datafile.raw_batch import Range, RawBatch, ReadRules
from frazil.datafile.read_avro import AvroReader
from frazil.datafile.read_file import read_columns
from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.name_mapping import MappedField, NameMapping
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
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import Rows, encode_avro, rows_to_table, table_to_rows

SCHEMA = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "text", STRING)))
ROWS: Rows = [{"id": at, "text": f"text-{at}"} for at in range(2000)]


def encode(rows: Rows = ROWS, schema: Schema = SCHEMA, **options: Any) -> bytes:
    return encode_avro(rows_to_table(rows, schema), schema, **options)


MANY_BLOCKS = encode(sync_interval=1000)


def store(data: bytes) -> MemoryStorage:
    storage = MemoryStorage()
    storage.create("f", data)
    return storage


def open_bytes(data: bytes, schema: Schema = SCHEMA, **options: Any) -> AvroReader:
    return AvroReader(store(data), "f", ReadRules(schema), **options)


def read(data: bytes, wanted: Schema, mapping: NameMapping | None = None) -> Rows:
    file = DataFile("f", FileFormat.AVRO, 0, len(data))
    batches = read_columns(store(data), file, wanted, ReadRules(wanted, mapping))
    return [row for batch in batches for row in table_to_rows(pa.Table.from_batches([batch]), wanted)]


def ids(batches: list[RawBatch]) -> list[int]:
    found: list[int] = []
    for one in batches:
        assert one.columns is not None
        values = one.columns.column(0).to_pylist()
        assert values == list(range(one.start, one.start + one.length))
        found += values
    return found


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_every_codec_is_read(codec: str) -> None:
    try:
        data = encode(ROWS[:100], codec=codec)
    except ValueError:
        pytest.skip(f"fastavro cannot write {codec} here")
    assert read(data, SCHEMA) == ROWS[:100]


def test_batches_have_the_position_of_their_first_row() -> None:
    for batch_rows in (7, 300, 100_000):
        batches = list(open_bytes(MANY_BLOCKS).batches({0, 1}, batch_rows=batch_rows))
        assert ids(batches) == list(range(2000))
        assert max(one.length for one in batches) <= batch_rows


@pytest.mark.parametrize("size", [100, 1500, 20_000])
def test_every_block_is_in_exactly_one_split(size: int) -> None:
    reader = open_bytes(MANY_BLOCKS)
    found: list[RawBatch] = []
    for start in range(0, len(MANY_BLOCKS), size):
        within = Range(start, size, is_last=start + size >= len(MANY_BLOCKS))
        found += reader.batches({0}, within=within, batch_rows=500)
    assert ids(found) == list(range(2000))


def test_without_columns_rows_are_counted_from_block_headers() -> None:
    found = list(open_bytes(MANY_BLOCKS).batches(set(), batch_rows=300))
    assert sum(one.length for one in found) == 2000
    assert all(one.columns is None for one in found)


def test_only_a_window_of_a_large_file_is_in_memory() -> None:
    largest = 0

    class Watching(MemoryStorage):
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            nonlocal largest
            largest = max(largest, length)
            return super().read_range(path, offset, length)

    rng = random.Random(1)
    rows: Rows = [{"id": at, "text": rng.randbytes(500).hex()} for at in range(8000)]
    storage = Watching()
    data = encode(rows, codec="null")
    assert len(data) > 7_000_000
    storage.create("f", data)
    reader = AvroReader(storage, "f", ReadRules(SCHEMA))
    assert ids(list(reader.batches({0}, batch_rows=1000))) == list(range(8000))
    assert largest < 2_000_000


DEEP = StructType(
    (
        NestedField(30, "a", INT, required=True),
        NestedField(31, "b", StructType((NestedField(32, "c", STRING), NestedField(33, "d", DATE))), required=True),
    )
)
TYPES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, None]),
    (INT, [5, None, -(2**31)]),
    (FLOAT, [0.5, None]),
    (DOUBLE, [0.25, None]),
    (DecimalType(9, 2), [Decimal("1.25"), None, Decimal("-9999999.99")]),
    (DecimalType(38, 0), [Decimal(10**38 - 1), None]),
    (DATE, [-1, None, 20000]),
    (TIME, [1, None]),
    (TIMESTAMP, [-62_135_596_800_000_000, None]),
    (TIMESTAMPTZ, [253_402_300_799_999_999, None]),
    (TIMESTAMP_NS, [5, None]),
    (UUID, [uuid.UUID(int=7), None]),
    (FixedType(3), [b"abc", None]),
    (BINARY, [b"", None, b"\xff"]),
    (UNKNOWN, [None, None]),
    (DEEP, [{"a": 1, "b": {"c": "x", "d": 1}}, None, {"a": 2, "b": {"c": None, "d": None}}]),
    (ListType(40, DEEP), [[{"a": 1, "b": {"c": "x", "d": None}}, None], None, []]),
    (ListType(40, ListType(41, LONG)), [[[1], None, []], None]),
    (MapType(50, STRING, 51, DEEP), [{"k": None, "l": {"a": 1, "b": {"c": "x", "d": 2}}}, None, {}]),
    (MapType(50, LONG, 51, STRING), [{1: "x", 2: None}, None, {}]),
    (MapType(50, STRING, 51, DOUBLE, value_required=True), [{"a": 1.5}, None]),
    (MapType(50, DecimalType(5, 1), 51, ListType(52, DATE)), [{Decimal("1.5"): [1, None]}, {}]),
]


@pytest.mark.parametrize("kind, values", TYPES, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("repeat", [1, 800])
def test_every_type_is_read(kind: Type, values: list[Any], repeat: int) -> None:
    """Few rows go through the decoder in Python, many through the fast one."""
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "v", kind)))
    rows: Rows = [{"id": at, "v": value} for at, value in enumerate(values * repeat)]
    assert read(encode(rows, schema), schema) == rows


@pytest.mark.parametrize("kind, values", TYPES, ids=lambda one: str(one)[:40])
def test_column_of_any_type_can_be_read_alone(kind: Type, values: list[Any]) -> None:
    schema = Schema((NestedField(2, "v", kind),))
    rows: Rows = [{"v": value} for value in values * 50]
    data = encode(rows, schema)
    if kind == UNKNOWN:
        assert [one.length for one in open_bytes(data, schema).batches({0}, batch_rows=1000)] == [100]
        return
    assert read(data, schema) == rows


def test_required_structs_are_reassembled() -> None:
    schema = Schema((NestedField(1, "s", DEEP, required=True), NestedField(2, "z", LONG)))
    rows: Rows = [
        {"s": {"a": 1, "b": {"c": "x", "d": 5}}, "z": 2},
        {"s": {"a": 3, "b": {"c": None, "d": None}}, "z": None},
    ]
    assert read(encode(rows, schema), schema) == rows
    assert read(encode(rows, schema), schema.project({33})) == [{"s": {"b": {"d": 5}}}, {"s": {"b": {"d": None}}}]


def test_optional_zero_byte_structs_keep_their_nulls() -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", StructType((NestedField(3, "u", UNKNOWN),)))))
    rows: Rows = [{"id": 1, "s": None}, {"id": 2, "s": {"u": None}}] * 2000
    assert read(encode(rows[:4], schema), schema) == rows[:4]
    assert read(encode(rows, schema), schema) == rows


def test_columns_are_matched_by_id_or_else_by_name() -> None:
    renamed = Schema((NestedField(2, "id", STRING), NestedField(1, "text", LONG)))
    assert read(encode(ROWS[:2]), renamed) == [{"id": "text-0", "text": 0}, {"id": "text-1", "text": 1}]
    bare = encode(ROWS[:1], with_ids=False)
    assert read(bare, SCHEMA) == ROWS[:1]
    mapping = NameMapping((MappedField(("text",), 7),))
    assert read(bare, Schema((NestedField(7, "new", STRING),)), mapping) == [{"new": "text-0"}]


def test_type_encodings_of_other_writers_are_read() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "ms", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "field-id": 1},
            {"name": "dec", "type": [{"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "null"],
             "field-id": 2},
            {"name": "uu", "type": {"type": "string", "logicalType": "uuid"}, "field-id": 3},
        ],
    }  # fmt: skip
    sink = io.BytesIO()
    key = uuid.UUID(int=9)
    fastavro.writer(
        sink, schema, [{"ms": 5, "dec": Decimal("1.25"), "uu": str(key)}, {"ms": None, "dec": None, "uu": str(key)}]
    )
    wanted = Schema(
        (NestedField(1, "ms", TIMESTAMP), NestedField(2, "dec", DecimalType(9, 2)), NestedField(3, "uu", UUID))
    )
    assert read(sink.getvalue(), wanted) == [
        {"ms": 5000, "dec": Decimal("1.25"), "uu": key},
        {"ms": None, "dec": None, "uu": key},
    ]


def test_union_of_several_types_is_refused() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "u", "type": ["int", "string"], "field-id": 1}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"u": 1}])
    with pytest.raises((InvalidDataFileError, UnsupportedError), match="Cannot read Avro file"):
        read(sink.getvalue(), Schema((NestedField(1, "u", INT),)))


def test_header_longer_than_the_first_read_is_read() -> None:
    schema = Schema(tuple(NestedField(at, f"column_{at}", LONG, doc="d" * 100) for at in range(1, 600)))
    row = {f"column_{at}": at for at in range(1, 600)}
    data = encode([row], schema)
    assert len(data) > 70_000
    assert read(data, schema.project({599})) == [{"column_599": 599}]


@pytest.mark.parametrize("length", [0, 3, 40, len(MANY_BLOCKS) - 20])
def test_truncated_files_are_refused_with_the_path(length: int) -> None:
    with pytest.raises(InvalidDataFileError, match="Cannot read Avro file") as caught:
        read(MANY_BLOCKS[:length], SCHEMA)
    assert caught.value.context["path"] == "f"


def test_files_of_another_format_are_refused() -> None:
    with pytest.raises(InvalidDataFileError, match="not an Avro file"):
        read(b"PAR0" + bytes(100), SCHEMA)


def test_decompression_bombs_are_refused() -> None:
    rows: Rows = [{"id": 0, "text": "a" * 1000}] * 2000
    data = encode(rows, sync_interval=10**9)
    reader = open_bytes(data, limits=AvroLimits(inflated_floor_bytes=100_000, inflated_ratio=1))
    with pytest.raises(InvalidDataFileError, match="inflates to more"):
        list(reader.batches({0}, batch_rows=100))


def test_damaged_files_never_raise_errors_of_other_libraries() -> None:
    data = encode(ROWS[:300], sync_interval=1000, codec="null")
    rng = random.Random(5)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        with contextlib.suppress(InvalidDataFileError, UnsupportedError):
            reader = open_bytes(bytes(broken))
            for batch in reader.batches({*range(len(reader.schema.fields))}, batch_rows=100):
                assert batch.length <= 100
