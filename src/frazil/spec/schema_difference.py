"""Differences between two schemas, column by column, by id, so that a renamed column is not a new one."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, PrimitiveType


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that was added, removed or changed; `what` describes the column or the change."""

    kind: str
    column: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.column}{f': {self.what}' if self.what else ''}"


def schema_changes(before: Schema, after: Schema) -> list[ColumnChange]:
    """Return the added, removed and changed columns, in the order of the later schema."""
    old, new = before.fields_by_id, after.fields_by_id
    differences = []
    for field_id, nested_field in new.items():
        name = after.name_of(field_id)
        if field_id not in old:
            differences.append(ColumnChange("added", name, _type_text(nested_field)))
            continue
        changes = _changes(old[field_id], nested_field, before.name_of(field_id), name)
        if changes:
            differences.append(ColumnChange("changed", name, ", ".join(changes)))
    differences += [
        ColumnChange("removed", before.name_of(field_id), _type_text(field))
        for field_id, field in old.items()
        if field_id not in new
    ]
    order = [field.field_id for field in before.fields if field.field_id in new]
    if order != [field.field_id for field in after.fields if field.field_id in old]:
        differences.append(ColumnChange("changed", "the order of columns"))
    if before.identifier_field_ids != after.identifier_field_ids:
        differences.append(ColumnChange("changed", "the identifier fields"))
    return differences


def _changes(old: NestedField, new: NestedField, old_name: str, new_name: str) -> list[str]:
    differences = []
    if old.name != new.name:
        differences.append(f"was {old_name}")
    if isinstance(new.field_type, PrimitiveType) and old.field_type != new.field_type:
        differences.append(f"{old.field_type} to {new.field_type}")
    if old.required != new.required:
        differences.append("required" if new.required else "optional")
    if old.doc != new.doc:
        differences.append("another comment")
    if old.write_default != new.write_default:
        differences.append(f"default {new.write_default}")
    return differences


def _type_text(field: NestedField) -> str:
    return f"{field.field_type}{' required' if field.required else ''}"
