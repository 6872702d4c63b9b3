"""The schemas of delete files. Specification: "Position Delete Files", "Equality Delete Files".

Writers of delete files take their schema from here, and readers the columns to ask for. A position
delete file names rows by file and position; an equality delete file holds some of the table's columns
under the table's field ids, and the manifest says which of them are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from frazil.errors import InvalidRequestError
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS, deleted_row_column
from frazil.spec.schema import Schema
from frazil.spec.types import DoubleType, FloatType, NestedField, PrimitiveType, StructType

POSITION_HEADING = "Position Delete Files"
EQUALITY_HEADING = "Equality Delete Files"

POSITION_DELETE_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))
"""What a position delete file stores when it does not keep the deleted rows."""


def position_delete_schema(row_type: StructType | None = None) -> Schema:
    """Return the schema to write position deletes with; `row_type` is any part of the table's schema.

    `row` is required where it is present: all entries hold the deleted values, or none does.
    """
    if row_type is None:
        return POSITION_DELETE_SCHEMA
    if len(row_type) == 0:
        raise InvalidRequestError(
            "Cannot make a position delete schema: the deleted rows have no columns",
            hint="Leave the row out instead.",
            heading=POSITION_HEADING,
        )
    return Schema((DELETE_FILE_PATH, DELETE_POS, deleted_row_column(row_type)))


def position_delete_read_schema(row_type: StructType) -> Schema:
    """Return the schema to read position deletes with their rows, which a file may not have."""
    return Schema((DELETE_FILE_PATH, DELETE_POS, deleted_row_column(row_type, required=False)))


def equality_delete_schema(schema: Schema, equality_ids: Iterable[int], *, other_ids: Iterable[int] = ()) -> Schema:
    """Return the schema to write equality deletes with, refusing columns that rows cannot be matched by.

    `other_ids` are columns of the deleted rows that are stored but not compared.
    """
    ids = _distinct(equality_ids)
    for field_id in ids:
        check_equality_field(schema, field_id)
    others = tuple(schema.field(field_id).field_id for field_id in other_ids)
    return schema.project((*ids, *others))


def check_equality_field(schema: Schema, field_id: int) -> None:
    """Refuse a field that rows cannot be matched by: nested types, floating point, parts of lists and maps."""
    field = schema.find_field(field_id)
    if field is None:
        raise InvalidRequestError(
            f"Cannot delete by field id {field_id}: the schema has no such field", heading=EQUALITY_HEADING
        )
    what = f"Cannot delete by equality of {schema.name_of(field_id)!r}"
    if not isinstance(field.field_type, PrimitiveType):
        raise InvalidRequestError(f"{what}: {field.field_type} is not a primitive type", heading=EQUALITY_HEADING)
    if isinstance(field.field_type, FloatType | DoubleType):
        raise InvalidRequestError(
            f"{what}: {field.field_type} values cannot be compared exactly", heading=EQUALITY_HEADING
        )
    for ancestor in schema.ancestors_of(field_id):
        if not isinstance(ancestor.field_type, StructType):
            raise InvalidRequestError(
                f"{what}: it is inside a list or map ({ancestor.name!r})", heading=EQUALITY_HEADING
            )


def equality_read_schema(schemas: Sequence[Schema], equality_ids: Iterable[int]) -> Schema:
    """Return the columns by which an equality delete file matches rows, dropped ones included.

    `schemas` are the table's schemas, the current one first and then the newer before the older: a column
    that was dropped since still takes part, as the newest schema that has it describes it. Whatever a
    writer chose to compare is accepted; `equality_delete_schema` is the strict one.
    """
    ids = _distinct(equality_ids)
    missing = set(ids)
    merged: tuple[NestedField, ...] = ()
    for schema in schemas:
        here = {field_id for field_id in missing if schema.find_field(field_id) is not None}
        if here:
            merged = _merge_fields(merged, schema.project(here).fields)
            missing -= here
    if missing:
        raise InvalidRequestError(
            f"Cannot read equality deletes by field id {min(missing)}: none of the table's schemas has such a field",
            heading=EQUALITY_HEADING,
        )
    return Schema(_with_unique_names(merged), schemas[0].schema_id)


def _distinct(equality_ids: Iterable[int]) -> tuple[int, ...]:
    ids = tuple(equality_ids)
    if not ids:
        raise InvalidRequestError("Cannot delete by equality: no columns are given", heading=EQUALITY_HEADING)
    if len(set(ids)) != len(ids):
        raise InvalidRequestError(
            f"Cannot delete by equality of field ids {list(ids)[:20]}: an id occurs twice", heading=EQUALITY_HEADING
        )
    return ids


def _merge_fields(first: tuple[NestedField, ...], second: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Return the fields of both, joining structs that both have; descriptions of the first win."""
    by_id = {field.field_id: field for field in first}
    for field in second:
        known = by_id.get(field.field_id)
        if known is None:
            by_id[field.field_id] = field
        elif isinstance(known.field_type, StructType) and isinstance(field.field_type, StructType):
            joined = StructType(_merge_fields(known.field_type.fields, field.field_type.fields))
            by_id[field.field_id] = replace(known, field_type=joined)
    return tuple(by_id.values())


def _with_unique_names(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Rename a field whose name a newer one has taken: ids tell columns apart, names only help people."""
    taken: set[str] = set()
    renamed = []
    for field in fields:
        name = field.name
        while name in taken:
            name = f"{name}_{field.field_id}"
        taken.add(name)
        data_type = field.field_type
        if isinstance(data_type, StructType):
            data_type = StructType(_with_unique_names(data_type.fields))
        renamed.append(replace(field, name=name, field_type=data_type))
    return tuple(renamed)
