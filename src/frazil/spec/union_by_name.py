"""The union of two schemas, with columns matched by name. Specification: "Schema Evolution".

Used when data may have new columns (merges and appends with schema evolution). Only changes that `schema_evolution`
allows are made: columns that the table lacks are added as optional ones, types widen, required columns become
optional if the data has them optional, and docs and write defaults are adopted. Types that are narrower than the
table's are ignored, and nothing is ever dropped or renamed.
"""

from __future__ import annotations

from frazil.errors import SchemaChangeError
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.type_promotion import is_promotion_allowed, promote_value
from frazil.spec.types import ListType, MapType, NestedField, StructType, Type, UnknownType


def union_by_name(update: SchemaUpdate, other: Schema) -> SchemaUpdate:
    """Add steps to an update that make its schema the union with another one, and return the update.

    The update determines whether names are case-sensitive. Types that cannot be united are refused.
    """
    _unite_structs(update, update.schema.struct, other.struct, ())
    return update


def _unite_structs(update: SchemaUpdate, existing: StructType, other: StructType, path: tuple[str, ...]) -> None:
    """Record the steps for one struct, recursively; schemas limit the depth."""
    key = str if update.case_sensitive else str.lower
    by_name = {key(field.name): field for field in existing.fields}
    seen: dict[str, str] = {}
    for field in other.fields:
        name = key(field.name)
        if seen.setdefault(name, field.name) != field.name:
            raise SchemaChangeError(
                f"Cannot unite the schemas: the columns {seen[name]!r} and {field.name!r} differ in case only",
                hint="Rename one of them, or match names case-sensitively.",
            )
        match = by_name.get(name)
        if match is None:
            field_path = (*path, field.name)
            update.add_column(field_path, field.field_type, doc=field.doc, default=field.initial_default)
            if field.write_default is not None:
                update.set_default(field_path, field.write_default)
        else:
            _unite_fields(update, match, field, (*path, match.name))


def _unite_fields(update: SchemaUpdate, existing: NestedField, other: NestedField, path: tuple[str, ...]) -> None:
    if existing.required and other.optional:
        update.make_optional(path)
    if other.doc is not None and other.doc != existing.doc:
        update.set_doc(path, other.doc)
    old, new, default = existing.field_type, other.field_type, other.write_default
    if isinstance(old, StructType) and isinstance(new, StructType):
        _unite_structs(update, old, new, path)
    elif isinstance(old, ListType) and isinstance(new, ListType):
        _unite_fields(update, old.element_field, new.element_field, (*path, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        _unite_fields(update, old.key_field, new.key_field, (*path, "key"))
        _unite_fields(update, old.value_field, new.value_field, (*path, "value"))
    elif _is_narrower(update, old, new):
        default = promote_value(default, new, old)
    else:
        update.set_type(path, new)
    if default is not None and default != existing.write_default:
        update.set_default(path, default)


def _is_narrower(update: SchemaUpdate, old: Type, new: Type) -> bool:
    """Return whether the table's type can hold all values of the other type."""
    if isinstance(new, UnknownType):
        return True
    return is_promotion_allowed(new, old, format_version=update.format_version)
