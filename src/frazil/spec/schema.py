"""A table's schema: a struct with an id, identifier fields, and lookups. Specification: "Schemas and Data Types".

Fields are looked up by id or by full name. The full name of a nested field joins names with dots, with
`element`, `key` and `value` for the parts of lists and maps (`points.element.x`). If no field has that name,
the short form without `element` and `value` before fields of structs works too (`points.x`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_tuples
from frazil.spec.types import (
    DoubleType,
    FloatType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    PrimitiveType,
    StructType,
    Type,
)

INITIAL_SCHEMA_ID = 0
MAX_NESTING_DEPTH = 64
"""The deepest nesting of types; comparing and pickling recurse, and Python's stack is limited to about 1,000 calls."""


@dataclass(frozen=True)
class Schema:
    """A list of columns with unique ids and names."""

    fields: tuple[NestedField, ...] = ()
    schema_id: int = INITIAL_SCHEMA_ID
    identifier_field_ids: tuple[int, ...] = ()
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields", "identifier_field_ids")
        _check_unique(self)
        for field_id in self.identifier_field_ids:
            check_identifier_field(self, field_id)

    def __getstate__(self) -> dict[str, Any]:
        names = ("fields", "schema_id", "identifier_field_ids", "extra")
        return {name: self.__dict__[name] for name in names}

    @cached_property
    def struct(self) -> StructType:
        """The schema as a struct type."""
        return StructType(self.fields)

    @cached_property
    def fields_by_id(self) -> dict[int, NestedField]:
        """All fields, including nested ones, by id."""
        return {nested_field.field_id: nested_field for nested_field, _, _ in walk_fields(self.struct)}

    @cached_property
    def names_by_id(self) -> dict[int, str]:
        """The full names of all fields, by id."""
        return {nested_field.field_id: name for nested_field, name, _ in walk_fields(self.struct)}

    @cached_property
    def parents_by_id(self) -> dict[int, int]:
        """The id of each nested field's parent field; columns have none."""
        return {
            nested_field.field_id: parent for nested_field, _, parent in walk_fields(self.struct) if parent is not None
        }

    @cached_property
    def ids_by_name(self) -> dict[str, int]:
        """Field ids by full name and, if unambiguous, by short name."""
        names = {name: field_id for field_id, name in self.names_by_id.items()}
        for nested_field, name, _ in _walk_short_names(self.struct):
            names.setdefault(name, nested_field.field_id)
        return names

    @cached_property
    def _ids_by_lower_name(self) -> dict[str, tuple[int, ...]]:
        lowered: dict[str, tuple[int, ...]] = {}
        for name, field_id in self.ids_by_name.items():
            ids = lowered.get(name.lower(), ())
            if field_id not in ids:
                lowered[name.lower()] = (*ids, field_id)
        return lowered

    @cached_property
    def highest_field_id(self) -> int:
        """The largest field id in use, or 0 if there are no fields."""
        return max(self.fields_by_id, default=0)

    def find_field(self, name_or_id: str | int, *, case_sensitive: bool = True) -> NestedField | None:
        """Return a field by full name or id, or None."""
        if isinstance(name_or_id, int):
            return self.fields_by_id.get(name_or_id)
        if case_sensitive:
            field_id = self.ids_by_name.get(name_or_id)
            return None if field_id is None else self.fields_by_id[field_id]
        ids = self._ids_by_lower_name.get(name_or_id.lower(), ())
        if len(ids) > 1:
            candidates = ", ".join(self.names_by_id[candidate_id] for candidate_id in ids)
            raise InvalidRequestError(
                f"Cannot resolve column {name_or_id!r}: it matches {candidates}",
                hint="Names that differ only in case need a case-sensitive lookup.",
            )
        return self.fields_by_id[ids[0]] if ids else None

    def field(self, name_or_id: str | int, *, case_sensitive: bool = True) -> NestedField:
        """Return a field by full name or id."""
        matching = self.find_field(name_or_id, case_sensitive=case_sensitive)
        if matching is None:
            what = f"field id {name_or_id}" if isinstance(name_or_id, int) else f"column {name_or_id!r}"
            raise FieldNotFoundError(
                f"Cannot find {what}: the schema has no such field",
                hint=f"The columns are: {', '.join(nested_field.name for nested_field in self.fields) or '(none)'}.",
            )
        return matching

    def name_of(self, field_id: int) -> str:
        """Return the full name of a field."""
        self.field(field_id)
        return self.names_by_id[field_id]

    def ancestors_of(self, field_id: int) -> list[NestedField]:
        """Return the fields that contain a field, the nearest first."""
        chain = []
        parent = self.parents_by_id.get(field_id)
        while parent is not None:
            chain.append(self.fields_by_id[parent])
            parent = self.parents_by_id.get(parent)
        return chain

    def select(self, names: Iterable[str], *, case_sensitive: bool = True) -> Schema:
        """Return this schema with only the named columns and their nested fields."""
        ids = {self.field(name, case_sensitive=case_sensitive).field_id for name in names}
        return self.project(ids)

    def project(self, field_ids: Iterable[int]) -> Schema:
        """Return this schema with only the fields of these ids, their nested fields and their ancestors.

        Order and ids stay the same. A struct whose id is given keeps all of its fields; a struct that is only
        an ancestor keeps the requested fields below it.
        """
        requested = set(field_ids)
        columns = tuple(
            nested_field
            for nested_field in (_project_field(nested_field, requested) for nested_field in self.fields)
            if nested_field is not None
        )
        projected = StructType(columns)
        present = {nested_field.field_id for nested_field, _, _ in walk_fields(projected)}
        identifiers = tuple(field_id for field_id in self.identifier_field_ids if field_id in present)
        return Schema(columns, self.schema_id, identifiers)

    def same_columns(self, other: Schema) -> bool:
        """Return whether both have the same fields and identifier fields, ignoring schema ids."""
        return self.fields == other.fields and set(self.identifier_field_ids) == set(other.identifier_field_ids)

    def with_schema_id(self, schema_id: int) -> Schema:
        """Return this schema with another id."""
        return Schema(self.fields, schema_id, self.identifier_field_ids, self.extra)

    def __str__(self) -> str:
        return "table {\n" + "\n".join(f"  {nested_field}" for nested_field in self.fields) + "\n}"

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def walk_fields(root: NestedType) -> Iterator[tuple[NestedField, str, int | None]]:
    """Yield every field below a type with its full name and its parent's id, parents before children."""
    stack: list[tuple[NestedField, str, int | None, int]] = [
        (column, column.name, None, 1) for column in reversed(root.fields)
    ]
    while stack:
        nested_field, name, parent, depth = stack.pop()
        if depth > MAX_NESTING_DEPTH:
            raise InvalidRequestError(f"Cannot use the schema: types are nested deeper than {MAX_NESTING_DEPTH} levels")
        yield nested_field, name, parent
        if isinstance(nested_field.field_type, NestedType):
            stack += [
                (child, f"{name}.{child.name}", nested_field.field_id, depth + 1)
                for child in reversed(nested_field.field_type.fields)
            ]


def _walk_short_names(root: NestedType) -> Iterator[tuple[NestedField, str, None]]:
    """Yield fields with names that omit `element` and `value` before fields of structs."""
    stack = [(column, column.name) for column in reversed(root.fields)]
    while stack:
        nested_field, name = stack.pop()
        yield nested_field, name, None
        inner = nested_field.field_type
        if isinstance(inner, StructType):
            stack += [(child, f"{name}.{child.name}") for child in reversed(inner.fields)]
        elif isinstance(inner, ListType):
            skips = isinstance(inner.element_type, StructType)
            stack.append((inner.element_field, name if skips else f"{name}.element"))
        elif isinstance(inner, MapType):
            skips = isinstance(inner.value_type, StructType)
            stack.append((inner.value_field, name if skips else f"{name}.value"))
            stack.append((inner.key_field, f"{name}.key"))


def _project_field(nested_field: NestedField, requested: set[int]) -> NestedField | None:
    if nested_field.field_id in requested:
        return nested_field
    projected = _project_type(nested_field.field_type, requested)
    if projected is None:
        return None
    return NestedField(
        nested_field.field_id,
        nested_field.name,
        projected,
        nested_field.required,
        nested_field.doc,
        nested_field.initial_default,
        nested_field.write_default,
        nested_field.extra,
    )


def _project_type(data_type: Type, requested: set[int]) -> Type | None:
    """Return the part of a type that contains requested fields, or None if it contains none."""
    if isinstance(data_type, StructType):
        projected = tuple(
            nested_field
            for nested_field in (_project_field(nested_field, requested) for nested_field in data_type.fields)
            if nested_field is not None
        )
        return StructType(projected, data_type.extra) if projected else None
    if isinstance(data_type, ListType):
        element = _project_field(data_type.element_field, requested)
        if element is None:
            return None
        return ListType(data_type.element_id, element.field_type, data_type.element_required, data_type.extra)
    if isinstance(data_type, MapType):
        if data_type.key_id in requested or _project_type(data_type.key_type, requested) is not None:
            return data_type
        value = _project_field(data_type.value_field, requested)
        if value is None:
            return None
        return MapType(
            data_type.key_id,
            data_type.key_type,
            data_type.value_id,
            value.field_type,
            data_type.value_required,
            data_type.extra,
        )
    return None


def _check_unique(schema: Schema) -> None:
    """Refuse a schema in which two fields share an id or a full name."""
    seen: dict[int, str] = {}
    names: set[str] = set()
    for nested_field, name, _ in walk_fields(StructType(schema.fields)):
        other = seen.setdefault(nested_field.field_id, name)
        if other is not name:
            raise InvalidRequestError(
                f"Cannot make the schema: fields {other!r} and {name!r} share the id {nested_field.field_id}"
            )
        if name in names:
            raise InvalidRequestError(f"Cannot make the schema: two fields are named {name!r}")
        names.add(name)


def check_identifier_field(schema: Schema, field_id: int) -> None:
    """Refuse a field that cannot identify rows. Specification: "Identifier Field IDs"."""
    nested_field = schema.find_field(field_id)
    if nested_field is None:
        raise InvalidRequestError(
            f"Cannot use field id {field_id} as an identifier field: the schema has no such field"
        )
    what = f"Cannot use {schema.name_of(field_id)!r} as an identifier field"
    if not isinstance(nested_field.field_type, PrimitiveType):
        raise InvalidRequestError(f"{what}: {nested_field.field_type} is not a primitive type")
    if isinstance(nested_field.field_type, FloatType | DoubleType):
        raise InvalidRequestError(f"{what}: {nested_field.field_type} values cannot be compared exactly")
    if nested_field.optional:
        raise InvalidRequestError(f"{what}: it is optional", hint="Identifier fields must be required.")
    for ancestor in schema.ancestors_of(field_id):
        if not isinstance(ancestor.field_type, StructType):
            raise InvalidRequestError(f"{what}: it is inside a list or map ({ancestor.name!r})")
        if ancestor.optional:
            raise InvalidRequestError(f"{what}: it is inside the optional struct {ancestor.name!r}")
