from __future__ import annotations

import contextlib
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.datafile.project import DICTIONARY
from frazil.datafile.raw_batch import Range, RawBatch, ReadRules
from frazil.datafile.read_file import read_columns
from frazil.datafile.read_parquet import ParquetReader
from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import BINARY, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, NestedField, StructType, Type
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import Rows, encode_parquet, rows_to_table, table_to_rows

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "text", STRING), NestedField(3, "a.b", LONG)))
ROWS: Rows = [{"id": at, "text": f"t{at % 3}", "a.b": -at} for at in range(10)]


def encode(rows: Rows = ROWS, schema: Schema = SCHEMA, **options: Any) -> bytes:
    return encode_parquet(rows_to_table(rows, schema), schema, **options)


def store(data: bytes) -> MemoryStorage:
    storage = MemoryStorage()
    storage.create("f", data)
    return storage


def open_bytes(data: bytes, schema: Schema = SCHEMA) -> ParquetReader:
    return ParquetReader(store(data), "f", ReadRules(schema))


def read(data: bytes, wanted: Schema) -> Rows:
    file = DataFile("f", FileFormat.PARQUET, 0, len(data))
    batches = read_columns(store(data), file, wanted, ReadRules(wanted))
    return [row for batch in batches for row in table_to_rows(pa.Table.from_batches([batch]), wanted)]


def ids(batches: list[RawBatch]) -> list[tuple[int, list[int]]]:
    return [(one.start, [] if one.columns is None else one.columns.column(0).to_pylist()) for one in batches]


def test_batches_have_the_position_of_their_first_row() -> None:
    reader = open_bytes(encode(row_group_size=4))
    found = ids(list(reader.batches({0}, batch_rows=3)))
    assert found == [(0, [0, 1, 2]), (3, [3]), (4, [4, 5, 6]), (7, [7]), (8, [8, 9])]


def test_skipped_row_groups_count_for_positions() -> None:
    reader = open_bytes(encode(row_group_size=4))
    found = ids(list(reader.batches({0}, batch_rows=100, may_match=lambda group: group != 0)))
    assert found == [(4, [4, 5, 6, 7]), (8, [8, 9])]


def test_without_columns_rows_are_counted() -> None:
    found = list(open_bytes(encode(row_group_size=4)).batches(set(), batch_rows=3))
    assert [(one.start, one.length, one.columns) for one in found] == [
        (0, 3, None), (3, 1, None), (4, 3, None), (7, 1, None), (8, 2, None),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 37, 200, 10_000])
def test_every_row_group_is_in_exactly_one_split(size: int) -> None:
    data = encode(row_group_size=2)
    reader = open_bytes(data)
    found = []
    for start in range(0, len(data), size):
        within = Range(start, size, is_last=start + size >= len(data))
        found += list(reader.batches({0}, within=within, batch_rows=100))
    assert ids(found) == [(at, [at, at + 1]) for at in range(0, 10, 2)]


def test_splits_of_a_file_with_a_wrong_size_hold_all_rows() -> None:
    reader = open_bytes(encode(row_group_size=2))
    first = ids(list(reader.batches({0}, within=Range(0, 10), batch_rows=100)))
    last = ids(list(reader.batches({0}, within=Range(10, 20, is_last=True), batch_rows=100)))
    assert first + last == [(at, [at, at + 1]) for at in range(0, 10, 2)]


def test_only_requested_columns_are_fetched() -> None:
    fetched = 0

    class Counting(MemoryStorage):
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            nonlocal fetched
            fetched += length
            return super().read_range(path, offset, length)

    rng = random.Random(1)
    rows: Rows = [{"id": at, "text": rng.randbytes(1000).hex(), "a.b": at} for at in range(2000)]
    data = encode(rows, compression="none", use_dictionary=False)
    storage = Counting()
    storage.create("f", data)
    file = DataFile("f", FileFormat.PARQUET, 2000, len(data))
    (batch,) = read_columns(storage, file, SCHEMA.select(["id"]), ReadRules(SCHEMA))
    assert batch.num_rows == 2000
    assert fetched < 400_000 < len(data)


def test_wide_rows_come_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.datafile.read_parquet.BATCH_BYTES", 10_000)
    schema = Schema((NestedField(1, "blob", BINARY), NestedField(2, "id", LONG)))
    rng = random.Random(1)
    rows: Rows = [{"blob": rng.randbytes(1000), "id": at} for at in range(25)]
    reader = open_bytes(encode(rows, schema, compression="none", use_dictionary=False), schema)
    lengths = [one.length for one in reader.batches({0}, batch_rows=100_000)]
    assert sum(lengths) == 25
    assert max(lengths) <= 10
    assert [one.length for one in reader.batches({1}, batch_rows=100_000)] == [25]


def test_columns_with_dots_in_their_names_are_read() -> None:
    assert read(encode(), SCHEMA.select(["a.b"])) == [{"a.b": -at} for at in range(10)]


def test_low_cardinality_text_can_be_read_as_a_dictionary() -> None:
    rows: Rows = [{"id": at, "text": f"t{at % 3}", "a.b": at} for at in range(1000)]
    reader = open_bytes(encode(rows))
    reader.prefer_dictionaries({0, 1, 2})
    assert [part.arrow for part in reader.schema.fields] == [pa.int64(), DICTIONARY, pa.int64()]
    (batch,) = reader.batches({1}, batch_rows=10_000)
    assert batch.columns is not None
    assert batch.columns.column(0).type == DICTIONARY
    assert batch.columns.column(0).to_pylist() == [row["text"] for row in rows]
    many = open_bytes(encode([row | {"text": f"text-number-{row['id']}"} for row in rows]))
    many.prefer_dictionaries({1})
    assert many.schema.fields[1].arrow == pa.string()


def test_files_without_rows_or_row_groups_are_read() -> None:
    assert read(encode([]), SCHEMA) == []
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])).close()
    assert read(bytes(sink.getvalue()), SCHEMA.select(["id"])) == []


@pytest.mark.parametrize("kind", [TIMESTAMP, TIMESTAMPTZ])
def test_int96_timestamps_are_read_in_their_full_range(kind: Type) -> None:
    micros = [0, -62_135_596_800_000_000, 253_402_300_799_999_999]
    sink = pa.BufferOutputStream()
    table = pa.table({"t": pa.array(micros, pa.int64()).view(pa.timestamp("us"))})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=False)
    assert read(bytes(sink.getvalue()), Schema((NestedField(1, "t", kind),))) == [{"t": one} for one in micros]


def test_missing_column_of_a_delete_file_is_named() -> None:
    wanted = Schema((NestedField(1, "id", LONG), NestedField(9, "gone", LONG)))
    with pytest.raises(InvalidDataFileError, match="no column 'gone'") as caught:
        read(encode(), wanted)
    assert caught.value.context["path"] == "f"
    nested = Schema((NestedField(1, "s", StructType((NestedField(2, "x", LONG), NestedField(3, "y", LONG)))),))
    stored = Schema((NestedField(1, "s", StructType((NestedField(2, "x", LONG),))),))
    with pytest.raises(InvalidDataFileError, match="no column 'y'"):
        read(encode([{"s": {"x": 1}}], stored), nested)


@pytest.mark.parametrize("length", [0, 3, 11, 12, 100])
def test_truncated_files_are_refused_with_the_path(length: int) -> None:
    with pytest.raises(InvalidDataFileError, match="Cannot read Parquet file") as caught:
        open_bytes(encode()[:length])
    assert caught.value.context["path"] == "f"


def test_encrypted_files_are_refused_as_such() -> None:
    with pytest.raises(UnsupportedError, match="encrypted"):
        open_bytes(encode()[:-4] + b"PARE")
    file = DataFile("f", FileFormat.PARQUET, 1, 1, key_metadata=b"key")
    with pytest.raises(UnsupportedError, match="encrypted"):
        list(read_columns(store(encode()), file, SCHEMA, ReadRules(SCHEMA)))


def test_damaged_pages_are_detected_by_checksum() -> None:
    data = bytearray(encode(write_page_checksum=True, compression="none", use_dictionary=False))
    at = data.index((5).to_bytes(8, "little"))
    data[at] ^= 0xFF
    with pytest.raises(InvalidDataFileError, match="Cannot read Parquet file"):
        read(bytes(data), SCHEMA.select(["id"]))


def test_damaged_files_never_raise_errors_of_other_libraries() -> None:
    data = encode(row_group_size=4)
    rng = random.Random(7)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        with contextlib.suppress(InvalidDataFileError, UnsupportedError):
            reader = open_bytes(bytes(broken))
            reader.prefer_dictionaries({1})
            reader.footer({0, 1, 2})
            for batch in reader.batches({0, 1, 2}, batch_rows=3, within=Range(0, 10**9)):
                assert batch.columns is not None
