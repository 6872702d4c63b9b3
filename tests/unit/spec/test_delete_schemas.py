"""Schemas of delete files. Specification: "Position Delete Files", "Equality Delete Files"."""

from __future__ import annotations

import pytest

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.spec.delete_schemas import check_equality_field, equality_read_schema, position_delete_read_schema
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, FLOAT, INT, LONG, STRING, ListType, MapType, NestedField, StructType
from tests.support.equality_delete_writer import equality_delete_schema, position_delete_schema

POINT = StructType((NestedField(11, "x", INT), NestedField(12, "y", FLOAT), NestedField(13, "name", STRING)))
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "category", STRING),
        NestedField(3, "weight", DOUBLE),
        NestedField(4, "point", POINT),
        NestedField(5, "tags", ListType(51, STRING)),
        NestedField(6, "counts", MapType(61, STRING, 62, INT)),
    ),
    schema_id=3,
    identifier_field_ids=(1,),
)


def test_position_deletes_store_path_and_position() -> None:
    schema = position_delete_schema()
    assert [(part.field_id, part.name, part.required) for part in schema] == [
        (2147483546, "file_path", True),
        (2147483545, "pos", True),
    ]


def test_deleted_rows_are_required_when_written_and_optional_when_read() -> None:
    row = StructType((SCHEMA.field("id"),))
    written, read = position_delete_schema(row), position_delete_read_schema(row)
    assert (written.field("row").field_id, written.field("row").required) == (2147483544, True)
    assert written.field("row.id").field_id == 1
    assert read.field("row").optional


def test_deleted_row_without_columns_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no columns") as caught:
        position_delete_schema(StructType())
    assert caught.value.context["heading"] == "Position Delete Files"


def test_equality_deletes_keep_the_table_fields() -> None:
    schema = equality_delete_schema(SCHEMA, [2, 1])
    assert schema.fields == (SCHEMA.field("id"), SCHEMA.field("category"))


def test_equality_deletes_may_store_uncompared_columns() -> None:
    schema = equality_delete_schema(SCHEMA, [1], other_ids=[3, 5])
    assert [part.name for part in schema] == ["id", "weight", "tags"]


def test_column_in_an_optional_struct_may_be_compared() -> None:
    schema = equality_delete_schema(SCHEMA, [11])
    assert [(part.name, [child.name for child in part.field_type]) for part in schema] == [("point", ["x"])]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "field_id, reason",
    [
        (3, "double values cannot be compared exactly"),
        (12, "float values cannot be compared exactly"),
        (4, "not a primitive type"),
        (5, "not a primitive type"),
        (51, r"inside a list or map \('tags'\)"),
        (61, r"inside a list or map \('counts'\)"),
        (62, r"inside a list or map \('counts'\)"),
        (99, "the schema has no such field"),
    ],
)
def test_incomparable_columns_are_refused(field_id: int, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason) as caught:
        check_equality_field(SCHEMA, field_id)
    assert caught.value.context["heading"] == "Equality Delete Files"
    with pytest.raises(InvalidRequestError, match=reason):
        equality_delete_schema(SCHEMA, [1, field_id])


@pytest.mark.parametrize("ids, reason", [([], "no columns"), ([1, 1], "an id occurs twice")])
def test_equality_ids_are_non_empty_and_distinct(ids: list[int], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        equality_delete_schema(SCHEMA, ids)


def test_stored_columns_must_exist() -> None:
    with pytest.raises(FieldNotFoundError):
        equality_delete_schema(SCHEMA, [1], other_ids=[99])


def test_dropped_columns_still_apply_to_deletes() -> None:
    current = SCHEMA.project([1, 11])
    read = equality_read_schema([current, SCHEMA], [1, 2, 11, 13])
    assert read.schema_id == current.schema_id
    assert read.field("category").field_id == 2
    assert [child.field_id for child in read.field("point").field_type.fields] == [11, 13]  # type: ignore[attr-defined]


def test_newest_definition_of_a_column_is_used() -> None:
    older = Schema((NestedField(1, "number", INT),))
    read = equality_read_schema([SCHEMA, older], [1])
    assert read.fields == (SCHEMA.field("id"),)


def test_dropped_column_with_a_reused_name_is_distinguished() -> None:
    older = Schema((NestedField(8, "id", STRING),))
    read = equality_read_schema([SCHEMA, older], [1, 8])
    assert [(part.field_id, part.name) for part in read] == [(1, "id"), (8, "id_8")]


def test_readers_accept_columns_that_writers_must_not_compare() -> None:
    assert equality_read_schema([SCHEMA], [3]).fields == (SCHEMA.field("weight"),)


def test_column_in_no_schema_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="field id 99: none of the table's schemas"):
        equality_read_schema([SCHEMA], [1, 99])
