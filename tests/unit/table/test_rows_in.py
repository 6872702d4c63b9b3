"""Rows that users hand to the verbs of a table, in any form, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidRequestError, SchemaMismatchError


@pytest.fixture
def table() -> Any:
    with frazil.connect("memory:", catalog="memory") as lake:
        yield lake.create_table("db.t", "id int, name string")


def test_dicts_add_missing_columns_and_change_no_other(table: frazil.Table) -> None:
    table.append([{"id": 1, "score": 0.5}, {"id": 2, "tags": ["x"]}], merge_schema=True)
    assert [(one.name, str(one.field_type)) for one in table.schema.fields] == [
        ("id", "int"),
        ("name", "string"),
        ("score", "double"),
        ("tags", "list<string>"),
    ]
    assert table.scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "name": None, "score": 0.5, "tags": None}]


def test_new_dict_column_with_two_types_is_refused(table: frazil.Table) -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot tell the type of the column 'x'"):
        table.append([{"id": 1, "x": 1}, {"id": 2, "x": "text"}], merge_schema=True)


def test_iterator_cannot_add_columns(table: frazil.Table) -> None:
    with pytest.raises(InvalidRequestError, match="columns of an iterator") as refused:
        table.append(iter([{"id": 1, "x": 1}]), merge_schema=True)
    assert "RecordBatchReader" in str(refused.value)


def test_every_local_write_accepts_an_iterator(table: frazil.Table) -> None:
    table.append({"id": at, "name": "a"} for at in range(3))
    table.overwrite(({"id": at, "name": "b"} for at in range(2)), where="id < 3")
    table.overwrite_partitions(iter([pa.record_batch({"id": pa.array([7], pa.int32()), "name": ["c"]})]))
    assert table.scan().to_arrow().to_pylist() == [{"id": 7, "name": "c"}]
