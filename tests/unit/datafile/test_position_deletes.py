from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.codec.deletion_vector import DeletionVector
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.position_deletes import read_positions
from frazil.errors import InvalidDataFileError, InvalidManifestError, InvalidPuffinError, StorageError
from frazil.scan.tasks import DeleteTask
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import encode_parquet, rows_to_table
from tests.support.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "text", STRING)))
FORMATS = ["parquet", "orc", "avro"]


class CountingStorage(MemoryStorage):
    """Counts what is fetched of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: dict[str, int] = {}

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.fetched[path] = self.fetched.get(path, 0) + 1
        return super().read_range(path, offset, length)


def new_table(version: int = 2) -> tuple[TableBuilder, list[DataFile], CountingStorage]:
    storage = CountingStorage()
    table = TableBuilder(SCHEMA, storage=storage, format_version=version)
    files = [table.write_data([{"id": at, "text": "x"} for at in range(10)]) for _ in range(3)]
    return table, files, storage


def positions(
    table: TableBuilder, delete: DataFile, data: DataFile | str, cache: DeleteCache | None = None
) -> list[int]:
    path = data if isinstance(data, str) else data.file_path
    found = read_positions(table.storage, DeleteTask(delete, 5), path, cache or DeleteCache())
    return list(found)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("has_rows", [False, True])
def test_positions_of_each_file_are_found(file_format: str, has_rows: bool) -> None:
    table, (a, b, c), _ = new_table()
    deletes = {b: [7, 1], a: [3, 3, 0]}
    rows = {(file.file_path, at): {"id": at, "text": "x"} for file, found in deletes.items() for at in found}
    delete = table.write_position_deletes(deletes, file_format=file_format, rows=rows if has_rows else None)
    for cache in (DeleteCache(), DeleteCache(budget_bytes=1)):
        assert positions(table, delete, a, cache) == [0, 3]
        assert positions(table, delete, b, cache) == [1, 7]
        assert positions(table, delete, c, cache) == []


def test_unsorted_paths_are_supported() -> None:
    table, (a, b, _), _ = new_table()
    schema = Schema((DELETE_FILE_PATH, DELETE_POS))
    pairs = [(a, 5), (b, 1), (a, 2), (b, 9), (a, 0)]
    content = [{"file_path": file.file_path, "pos": at} for file, at in pairs]
    data = encode_parquet(rows_to_table(content, schema), schema)
    table.storage.create("memory://lake/db/t/data/unsorted.parquet", data)
    delete = table.write_position_deletes({a: [1]})
    delete = replace(delete, file_path="memory://lake/db/t/data/unsorted.parquet", file_size_in_bytes=len(data))
    for cache in (DeleteCache(), DeleteCache(budget_bytes=1)):
        assert positions(table, delete, a, cache) == [0, 2, 5]
        assert positions(table, delete, b, cache) == [1, 9]


def test_delete_file_of_a_partition_is_read_once() -> None:
    table, (a, b, c), storage = new_table()
    delete = table.write_position_deletes({a: [1], b: [2]})
    cache = DeleteCache()
    for file in (a, b, c, a):
        positions(table, delete, file, cache)
    assert storage.fetched[delete.file_path] == 1


def test_oversized_delete_file_is_read_per_data_file() -> None:
    table, (a, b, _), storage = new_table()
    delete = table.write_position_deletes({a: list(range(10)), b: list(range(10))}, row_group_size=10)
    cache = DeleteCache(budget_bytes=50)
    assert positions(table, delete, a, cache) == list(range(10))
    assert positions(table, delete, b, cache) == list(range(10))
    assert cache.size_bytes == 0
    assert storage.fetched[delete.file_path] >= 2


def test_paths_are_compared_as_written() -> None:
    table, (a, _, _), _ = new_table()
    delete = table.write_position_deletes({a: [1]})
    assert positions(table, delete, a.file_path.replace("memory://", "memory:")) == []


def test_delete_files_without_ids_are_read_by_name() -> None:
    table, (a, _, _), _ = new_table()
    delete = table.write_position_deletes({a: [4]}, with_ids=False)
    assert positions(table, delete, a) == [4]


def test_file_without_both_columns_is_refused() -> None:
    table, (a, b, _), _ = new_table()
    delete = table.write_position_deletes({a: [4]})
    delete = replace(delete, file_path=b.file_path, file_size_in_bytes=b.file_size_in_bytes)
    with pytest.raises(InvalidDataFileError, match="file_path") as caught:
        positions(table, delete, a)
    assert caught.value.context["path"] == b.file_path


def test_negative_positions_are_refused() -> None:
    table, (a, _, _), _ = new_table()
    delete = table.write_position_deletes({a: [-1]})
    with pytest.raises(InvalidDataFileError, match="-1"):
        positions(table, delete, a)


def test_deletion_vector_takes_one_ranged_read() -> None:
    table, (a, b, _), storage = new_table(3)
    first, second = table.write_vectors({a: [1, 5], b: [2]})
    assert positions(table, first, a) == [1, 5]
    assert positions(table, second, b) == [2]
    assert storage.fetched == {first.file_path: 2}


@pytest.mark.parametrize(
    "change, error, reason",
    [
        ({"record_count": 3}, InvalidPuffinError, "2 positions where 3 are recorded"),
        ({"content_size_in_bytes": 30}, InvalidPuffinError, "length field"),
        ({"content_offset": 5}, InvalidPuffinError, "Cannot read"),
        ({"content_offset": None}, InvalidManifestError, "has no offset or no size"),
        ({"content_size_in_bytes": 10**6}, StorageError, "the file has"),
        ({"referenced_data_file": "other"}, InvalidManifestError, "refers to other"),
    ],
)
def test_deletion_vector_differing_from_its_entry_is_refused(
    change: dict[str, Any], error: type[Exception], reason: str
) -> None:
    table, (a, _, _), _ = new_table(3)
    (vector,) = table.write_vectors({a: [1, 5]})
    with pytest.raises(error, match=reason):
        positions(table, replace(vector, **change), a)


def test_damaged_vector_is_refused_with_the_path() -> None:
    table, (a, _, _), storage = new_table(3)
    (vector,) = table.write_vectors({a: [1, 5]})
    data = bytearray(storage.read(vector.file_path))
    data[(vector.content_offset or 0) + 20] ^= 1
    storage.replace(vector.file_path, bytes(data))
    with pytest.raises(InvalidPuffinError, match="CRC-32") as caught:
        positions(table, vector, a)
    assert caught.value.context["path"] == vector.file_path


def test_vectors_hold_any_position() -> None:
    table, (a, _, _), _ = new_table(3)
    (vector,) = table.write_vectors({a: [0, 2**40]})
    found = read_positions(table.storage, DeleteTask(vector, 1), a.file_path, DeleteCache())
    assert found == DeletionVector([0, 2**40])
