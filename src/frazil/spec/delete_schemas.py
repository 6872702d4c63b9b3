"""The schemas of delete files. Specification: "Position Delete Files", "Equality Delete Files".

They tell writers of delete files the schema to write, and readers the columns to request. A position
delete file identifies rows by file and position; an equality delete file holds some of the table's columns
under the table's field ids, and the manifest states which of them are compared.
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
"""The schema of a position delete file without the deleted rows."""


def position_delete_read_schema(row_type: StructType) -> Schema:
    """Return the schema for reading position deletes with their rows, which a file may lack."""
    return Schema((DELETE_FILE_PATH, DELETE_POS, deleted_row_column(row_type, required=False)))


def check_equality_field(schema: Schema, field_id: int) -> None:
    """Refuse a field that cannot identify rows: nested types, floating point, parts of lists and maps."""
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
    """Return the columns by which an equality delete file matches rows, including dropped ones.

    `schemas` are the table's schemas, the current one first, then from newest to oldest: a dropped column still
    counts, with the description in the newest schema that has it. Any column that a writer chose to compare is
    accepted; `equality_delete_schema` is strict.
    """
    ids = _distinct(equality_ids)
    missing = set(ids)
    merged: tuple[NestedField, ...] = ()
    for schema in schemas:
        present = {field_id for field_id in missing if schema.find_field(field_id) is not None}
        if present:
            merged = _merge_fields(merged, schema.project(present).fields)
            missing -= present
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
    """Return the fields of both, merging structs that both have; descriptions of the first win."""
    by_id = {field.field_id: field for field in first}
    for field in second:
        existing = by_id.get(field.field_id)
        if existing is None:
            by_id[field.field_id] = field
        elif isinstance(existing.field_type, StructType) and isinstance(field.field_type, StructType):
            joined = StructType(_merge_fields(existing.field_type.fields, field.field_type.fields))
            by_id[field.field_id] = replace(existing, field_type=joined)
    return tuple(by_id.values())


def _with_unique_names(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Rename fields whose name a newer field uses, since only ids identify columns."""
    used_names: set[str] = set()
    renamed = []
    for field in fields:
        name = field.name
        while name in used_names:
            name = f"{name}_{field.field_id}"
        used_names.add(name)
        data_type = field.field_type
        if isinstance(data_type, StructType):
            data_type = StructType(_with_unique_names(data_type.fields))
        renamed.append(replace(field, name=name, field_type=data_type))
    return tuple(renamed)
