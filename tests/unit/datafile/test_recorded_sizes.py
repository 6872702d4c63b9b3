"""A manifest may be wrong about a file's size: rows are right all the same, whatever keeps the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from frazil.datafile.read_task import read_task, view_table
from frazil.scan.plan import plan_scan
from frazil.scan.split import split_task
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.storage.memory import MemoryStorage
from frazil.table.scan import scan_table
from tests.support.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
ROWS = [{"id": at, "name": f"n{at}"} for at in range(300)]
WRONG: list[Callable[[int], int]] = [
    lambda _: 0,
    lambda _: 1,
    lambda size: size // 2,
    lambda size: size - 4,
    lambda size: size + 1,
    lambda size: size * 10,
]


class Counting(MemoryStorage):
    """Counts who asks for sizes."""

    asked = 0

    def size(self, path: str) -> int:
        self.asked += 1
        return super().size(path)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_are_read_whole_whatever_size_the_manifest_records(file_format: str, wrong: Callable[[int], int]) -> None:
    table = TableBuilder(SCHEMA, storage=MemoryStorage())
    cut: dict[str, Any] = {"row_group_size": 50} if file_format == "parquet" else {}
    file = table.write_data(ROWS, file_format=file_format, **cut)
    table.commit(replace(file, file_size_in_bytes=wrong(file.file_size_in_bytes)))
    loaded = table.load()
    assert scan_table(loaded).to_arrow().to_pylist() == ROWS
    (task,) = plan_scan(loaded).tasks
    view = view_table(loaded.metadata)
    parts = list(split_task(replace(task, data_file=replace(task.data_file, split_offsets=None)), 100))
    batches = [batch for part in parts for batch in read_task(part, view, SCHEMA, loaded.storage)]
    assert [row for batch in batches for row in batch.to_pylist()] == ROWS


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", ["position", "equality"])
def test_delete_files_are_read_whole_whatever_size_the_manifest_records(kind: str, wrong: Callable[[int], int]) -> None:
    table = TableBuilder(SCHEMA, storage=MemoryStorage())
    data = table.write_data(ROWS)
    table.commit(data)
    if kind == "position":
        deletes = table.write_position_deletes({data.file_path: range(100)})
    else:
        deletes = table.write_equality_deletes([{"id": at} for at in range(100)], [1])
    table.commit(replace(deletes, file_size_in_bytes=wrong(deletes.file_size_in_bytes)))
    assert scan_table(table.load()).to_arrow().to_pylist() == ROWS[100:]


def test_correct_recorded_size_saves_a_request() -> None:
    storage = Counting()
    table = TableBuilder(SCHEMA, storage=storage)
    table.append(ROWS)
    table.append(ROWS, file_format="orc")
    storage.asked = 0
    assert scan_table(table.load()).to_arrow().num_rows == 600
    assert storage.asked == 0


def test_vectors_are_found_whatever_file_size_the_manifest_records() -> None:
    table = TableBuilder(SCHEMA, storage=MemoryStorage(), format_version=3)
    data = table.write_data(ROWS)
    table.commit(data)
    (vector,) = table.write_vectors({data: range(100)})
    table.commit(replace(vector, file_size_in_bytes=1))
    assert scan_table(table.load()).to_arrow().to_pylist() == ROWS[100:]
