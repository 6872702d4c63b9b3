"""Metadata columns. Specification: "Reserved Field IDs"."""

from __future__ import annotations

import pytest

from frazil.spec import reserved_columns
from frazil.spec.reserved_columns import (
    LAST_UPDATED_SEQUENCE_NUMBER,
    RESERVED_COLUMN_NAMES,
    ROW_ID,
    deleted_row_column,
    is_reserved_id,
    partition_column,
    with_row_lineage,
)
from frazil.spec.schema import Schema
from frazil.spec.types import BOOLEAN, INT, LONG, STRING, NestedField, StructType, Type

TABLE: list[tuple[int, str, Type | None]] = [
    (2147483646, "_file", STRING),
    (2147483645, "_pos", LONG),
    (2147483644, "_deleted", BOOLEAN),
    (2147483643, "_spec_id", INT),
    (2147483642, "_partition", None),
    (2147483546, "file_path", STRING),
    (2147483545, "pos", LONG),
    (2147483544, "row", None),
    (2147483543, "_change_type", STRING),
    (2147483542, "_change_ordinal", INT),
    (2147483541, "_commit_snapshot_id", LONG),
    (2147483540, "_row_id", LONG),
    (2147483539, "_last_updated_sequence_number", LONG),
]


def test_reserved_columns_match_the_specification() -> None:
    assert {field_id: name for field_id, name, _ in TABLE} == dict(RESERVED_COLUMN_NAMES)
    columns = [value for value in vars(reserved_columns).values() if isinstance(value, NestedField)]
    fixed = {(field_id, name, kind) for field_id, name, kind in TABLE if kind is not None}
    assert {(column.field_id, column.name, column.field_type) for column in columns} == fixed


def test_table_dependent_reserved_columns_are_built() -> None:
    inner = StructType((NestedField(1000, "day", INT),))
    assert (partition_column(inner).field_id, partition_column(inner).name) == (2147483642, "_partition")
    assert partition_column(inner).optional
    assert deleted_row_column(inner) == NestedField(2147483544, "row", inner, required=True, doc="Deleted row values")
    assert deleted_row_column(inner, required=False).optional


@pytest.mark.parametrize(
    "field_id, reserved", [(0, False), (1, False), (2147483447, False), (2147483448, True), (2147483647, True)]
)
def test_reserved_ids_follow_the_highest_column_id(field_id: int, reserved: bool) -> None:
    assert is_reserved_id(field_id) is reserved


def test_row_lineage_columns_are_added_once() -> None:
    schema = Schema((NestedField(1, "id", LONG, required=True),), 4, (1,))
    once = with_row_lineage(schema)
    assert once.fields == (*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    assert (once.schema_id, once.identifier_field_ids) == (4, (1,))
    assert with_row_lineage(once) == once
