"""The part of a schema that files store: everything but columns of type unknown. Specification: "Writing data files".

Columns are stored even if the partition determines their value. A column of type unknown is always null and has no
representation in any format; a list, map or struct of only such values cannot be stored at all.
"""

from __future__ import annotations

from dataclasses import replace

from frazil.errors import UnsupportedError
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField, StructType, Type, UnknownType

HEADING = "Writing data files"


def stored_schema(schema: Schema) -> Schema:
    """Return the schema of a table's files: its own without fields of type unknown."""
    fields = _stored_fields(schema.fields, "")
    if not fields:
        raise UnsupportedError(
            "Cannot write a data file: the schema has no column that a file could store",
            hint="Add a column of another type than unknown.",
            heading=HEADING,
        )
    return replace(schema, fields=fields)


def _stored_fields(fields: tuple[NestedField, ...], parent: str) -> tuple[NestedField, ...]:
    return tuple(
        replace(field, field_type=stored_type(field.field_type, f"{parent}{field.name}"))
        for field in fields
        if not isinstance(field.field_type, UnknownType)
    )


def stored_type(data_type: Type, column: str) -> Type:
    """Return the stored form of a type; `column` is the name for errors."""
    if isinstance(data_type, StructType):
        fields = _stored_fields(data_type.fields, f"{column}.")
        if not fields:
            raise _unstorable(column, data_type)
        return replace(data_type, struct_fields=fields)
    if isinstance(data_type, ListType):
        return replace(data_type, element_type=_stored_part(data_type.element_field, column, data_type))
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key_type=_stored_part(data_type.key_field, column, data_type),
            value_type=_stored_part(data_type.value_field, column, data_type),
        )
    return data_type


def _stored_part(field: NestedField, column: str, owner: Type) -> Type:
    if isinstance(field.field_type, UnknownType):
        raise _unstorable(column, owner)
    return stored_type(field.field_type, f"{column}.{field.name}")


def _unstorable(column: str, data_type: Type) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot write the column {column!r}: files cannot store {data_type}, which holds only unknown values",
        hint="Set a type for the values inside.",
        heading=HEADING,
    )
