"""New field ids for a type or schema, in the order of Iceberg Java. Specification: "Schema Evolution".

Ids are assigned level by level within a struct: first to all of its own fields, in order, then to the content of the
first field, then to that of the second, and so on; a map's key and value get theirs before their content. This is used
when a table is created or replaced and when a column with a nested type is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import overload

from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField, StructType, Type


@overload
def assign_fresh_ids(numbered: Schema, next_id: Callable[[], int], *, base: Schema | None = None) -> Schema: ...


@overload
def assign_fresh_ids(numbered: Type, next_id: Callable[[], int]) -> Type: ...


def assign_fresh_ids(
    numbered: Type | Schema, next_id: Callable[[], int], *, base: Schema | None = None
) -> Type | Schema:
    """Return a type or schema in which every field has a new id from `next_id`.

    With a `base` schema, fields keep the id that the field of the same full name has there: replacing a table reuses
    the ids of remaining columns. Identifier fields are renumbered too.
    """
    if not isinstance(numbered, Schema):
        return reassign_ids(numbered, lambda _: next_id())
    names = numbered.names_by_id
    new_ids: dict[int, int] = {}

    def new_id(old_id: int) -> int:
        base_field = None if base is None else base.find_field(names[old_id])
        new_ids[old_id] = next_id() if base_field is None else base_field.field_id
        return new_ids[old_id]

    fields = _reassign_fields(numbered.fields, new_id)
    return Schema(
        fields,
        numbered.schema_id,
        tuple(new_ids[field_id] for field_id in numbered.identifier_field_ids),
        numbered.extra,
    )


def reassign_ids(data_type: Type, new_id: Callable[[int], int]) -> Type:
    """Return a type with every field id replaced by `new_id(old_id)`, called in the order of this module."""
    if isinstance(data_type, StructType):
        return StructType(_reassign_fields(data_type.fields, new_id))
    if isinstance(data_type, ListType):
        element_id = new_id(data_type.element_id)
        return ListType(element_id, reassign_ids(data_type.element_type, new_id), data_type.element_required)
    if isinstance(data_type, MapType):
        key_id, value_id = new_id(data_type.key_id), new_id(data_type.value_id)
        key, value = reassign_ids(data_type.key_type, new_id), reassign_ids(data_type.value_type, new_id)
        return MapType(key_id, key, value_id, value, data_type.value_required)
    return data_type


def _reassign_fields(fields: tuple[NestedField, ...], new_id: Callable[[int], int]) -> tuple[NestedField, ...]:
    ids = [new_id(field.field_id) for field in fields]
    return tuple(
        replace(field, field_id=field_id, field_type=reassign_ids(field.field_type, new_id))
        for field, field_id in zip(fields, ids, strict=True)
    )
