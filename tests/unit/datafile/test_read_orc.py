from __future__ import annotations

import contextlib
import random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from frazil.datafile.orc_tail import Stripe, decode_stripes
from frazil.datafile.raw_batch import Range, RawBatch, ReadRules
from frazil.datafile.read_file import read_columns
from frazil.datafile.read_orc import OrcReader
from frazil.errors import InvalidDataFileError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.name_mapping import MappedField, NameMapping
from frazil.spec.schema import Schema
from frazil.spec.types import INT, LONG, STRING, TIMESTAMP, NestedField, StructType
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import Rows, encode_orc, rows_to_table, table_to_rows

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "text", STRING),
        NestedField(3, "s", StructType((NestedField(4, "x", INT), NestedField(5, "y", INT)))),
    )
)
ROWS: Rows = [{"id": at, "text": f"t{at}", "s": {"x": at, "y": -at}} for at in range(4000)]


def encode(rows: Rows = ROWS, schema: Schema = SCHEMA, **options: Any) -> bytes:
    return encode_orc(rows_to_table(rows, schema), schema, **options)


MANY_STRIPES = encode(stripe_size=1000)


def open_bytes(data: bytes, schema: Schema = SCHEMA, mapping: NameMapping | None = None) -> OrcReader:
    storage = MemoryStorage()
    storage.create("f", data)
    return OrcReader(storage, "f", ReadRules(schema, mapping))


def read(data: bytes, wanted: Schema, mapping: NameMapping | None = None) -> Rows:
    storage = MemoryStorage()
    storage.create("f", data)
    file = DataFile("f", FileFormat.ORC, 0, len(data))
    batches = read_columns(storage, file, wanted, ReadRules(wanted, mapping))
    return [row for batch in batches for row in table_to_rows(pa.Table.from_batches([batch]), wanted)]


def first_ids(batches: list[RawBatch]) -> list[tuple[int, int, int]]:
    return [(one.start, one.columns.column(0)[0].as_py(), one.length) for one in batches if one.columns is not None]


def test_stripes_are_found_with_their_rows() -> None:
    reader = open_bytes(MANY_STRIPES)
    assert len(reader.stripes) == 4
    assert sum(one.rows for one in reader.stripes) == 4000
    assert reader.stripes[0].offset == 3


def test_batches_have_the_position_of_their_first_row() -> None:
    batches = list(open_bytes(MANY_STRIPES).batches({0}, batch_rows=700))
    assert all(start == first for start, first, _ in first_ids(batches))
    assert sum(one.length for one in batches) == 4000
    assert max(one.length for one in batches) <= 700


def test_skipped_stripes_count_for_positions() -> None:
    reader = open_bytes(MANY_STRIPES)
    found = first_ids(list(reader.batches({0}, batch_rows=10_000, may_match=lambda stripe: stripe == 2)))
    assert found == [(2048, 2048, 1024)]


@pytest.mark.parametrize("size", [100, 3000])
def test_every_stripe_is_in_exactly_one_split(size: int) -> None:
    reader = open_bytes(MANY_STRIPES)
    found: list[RawBatch] = []
    for start in range(0, len(MANY_STRIPES), size):
        within = Range(start, size, is_last=start + size >= len(MANY_STRIPES))
        found += reader.batches({0}, within=within, batch_rows=10_000)
    assert [one.start for one in found] == [0, 1024, 2048, 3072]


def test_without_columns_rows_are_counted() -> None:
    found = list(open_bytes(MANY_STRIPES).batches(set(), batch_rows=1000))
    assert sum(one.length for one in found) == 4000
    assert all(one.columns is None for one in found)


def test_nested_field_reads_the_whole_column() -> None:
    reader = open_bytes(encode(ROWS[:3]))
    (column,) = reader.pruned({3}).fields
    assert (column.name, column.index, [part.name for part in column.parts]) == ("s", 0, ["x", "y"])
    assert read(encode(ROWS[:2]), SCHEMA.select(["s.y"])) == [{"s": {"y": 0}}, {"s": {"y": -1}}]


def test_ids_come_from_type_attributes() -> None:
    renamed = Schema((NestedField(2, "id", STRING), NestedField(1, "text", LONG)))
    assert read(encode(ROWS[:2]), renamed) == [{"id": "t0", "text": 0}, {"id": "t1", "text": 1}]


def test_files_without_ids_are_matched_by_name() -> None:
    data = encode(ROWS[:2], with_ids=False)
    assert read(data, SCHEMA.select(["text"])) == [{"text": "t0"}, {"text": "t1"}]
    mapping = NameMapping((MappedField(("text",), 9),))
    assert read(data, Schema((NestedField(9, "new", STRING),)), mapping) == [{"new": "t0"}, {"new": "t1"}]


def test_dots_in_column_names_are_not_nested_fields() -> None:
    schema = Schema(
        (
            NestedField(1, "s.x", LONG),
            NestedField(2, "s", StructType((NestedField(3, "y", LONG),))),
            NestedField(4, "t", LONG),
        )
    )
    rows: Rows = [{"s.x": 1, "s": {"y": 2}, "t": 3}]
    assert read(encode(rows, schema), schema) == rows
    assert read(encode(rows, schema), schema.project({1})) == [{"s.x": 1}]


def test_files_without_rows_are_read() -> None:
    assert read(encode([]), SCHEMA) == []


def test_timestamps_beyond_nanoseconds_are_refused() -> None:
    schema = Schema((NestedField(1, "t", TIMESTAMP),))
    data = encode([{"t": -62_135_596_800_000_000}], schema)
    with pytest.raises(InvalidDataFileError, match="Cannot read ORC file"):
        read(data, schema)


@pytest.mark.parametrize("length", [0, 3, 50, 1000])
def test_truncated_files_are_refused_with_the_path(length: int) -> None:
    with pytest.raises(InvalidDataFileError, match="Cannot read ORC file") as caught:
        open_bytes(MANY_STRIPES[:length])
    assert caught.value.context["path"] == "f"


def test_contradictory_tails_are_refused() -> None:
    stripe = b"\x08\x03\x28\x0a"
    footer = b"\x1a" + bytes([len(stripe)]) + stripe

    def tail(inner: bytes) -> bytes:
        return b"\x12" + bytes([len(inner)]) + inner

    assert decode_stripes(tail(footer + b"\x30\x0a")) == [Stripe(3, 10)]
    with pytest.raises(ValueError, match="10 rows, but its footer says 11"):
        decode_stripes(tail(footer + b"\x30\x0b"))
    for broken in (b"\x12\xff", b"\x12", b"\x0b", b"\xff" * 11):
        with pytest.raises(ValueError, match="its footer"):
            decode_stripes(broken)


def test_damaged_footers_never_raise_errors_of_other_libraries() -> None:
    data = encode(ROWS[:50])
    rng = random.Random(5)
    for _ in range(100):
        broken = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            broken[-rng.randrange(1, len(broken) // 3)] = rng.randrange(256)
        with contextlib.suppress(InvalidDataFileError):
            for batch in open_bytes(bytes(broken)).batches({0, 1, 2, 3}, batch_rows=100):
                assert batch.columns is not None


def test_other_orc_integer_widths_are_read() -> None:
    table = pa.table({"a": pa.array([1, None], pa.int8()), "b": pa.array([2, None], pa.int16())})
    fields = [table.schema.field(at).with_metadata({"iceberg.id": str(at + 1)}) for at in range(2)]
    sink = pa.BufferOutputStream()
    orc.write_table(table.cast(pa.schema(fields)), sink)
    wanted = Schema((NestedField(1, "a", INT), NestedField(2, "b", LONG)))
    assert read(bytes(sink.getvalue()), wanted) == [{"a": 1, "b": 2}, {"a": None, "b": None}]
