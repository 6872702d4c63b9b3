"""Field ids by column name, for files without field ids. Specification: "Column Projection", name mapping.

The table property `schema.name-mapping.default` holds the mapping as JSON (`codec/name_mapping_json.py`). Readers use
it for files without field ids (`assign_ids_by_name`, `apply_name_mapping`), and schema changes update it
(`update_name_mapping`).

Names are literal: `a.b` is a column of that name. The parts of lists are named `element`, those of maps
`key` and `value`, in every file format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_tuples
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema, walk_fields
from frazil.spec.types import ListType, MapType, NestedField, NestedType, StructType, Type


@dataclass(frozen=True)
class MappedField:
    """The names that a field may have in files.

    `field_id` is None for a column that files have but the table lacks; `names` is empty for a field that no file
    without ids has. `fields` is None if the field has no parts.
    """

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] | None = None
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(dict.fromkeys(self.names)))
        freeze_tuples(self, "fields", may_be_none=True)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("names", "field_id", "fields", "extra")}

    @cached_property
    def parts_by_name(self) -> dict[str, MappedField]:
        """The mappings of this field's parts, by each of their names."""
        return _index_names(self.fields or ())


@dataclass(frozen=True)
class NameMapping:
    """The mappings of a table's columns; ids are unique throughout, names among siblings."""

    fields: tuple[MappedField, ...] = ()

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields")
        _check(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"fields": self.fields}

    @cached_property
    def columns_by_name(self) -> dict[str, MappedField]:
        """The mappings of top-level columns, by each of their names."""
        return _index_names(self.fields)

    @cached_property
    def fields_by_id(self) -> dict[int, MappedField]:
        """All mappings with a field id, including nested ones, by that id."""
        return {mapped.field_id: mapped for mapped, _ in _walk(self.fields) if mapped.field_id is not None}

    def find_field(self, path_or_id: str | tuple[str, ...] | int) -> MappedField | None:
        """Return the mapping of a field, given by id, by column name or by the path of names to a nested field."""
        if isinstance(path_or_id, int):
            return self.fields_by_id.get(path_or_id)
        path = (path_or_id,) if isinstance(path_or_id, str) else path_or_id
        names, mapped_field = self.columns_by_name, None
        for name in path:
            mapped_field = names.get(name)
            if mapped_field is None:
                return None
            names = mapped_field.parts_by_name
        return mapped_field

    def __iter__(self) -> Iterator[MappedField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def create_name_mapping(schema: Schema) -> NameMapping:
    """Return the mapping of a schema's current names to its ids."""
    return NameMapping(_map_parts(schema.struct))


def _map_parts(data_type: NestedType) -> tuple[MappedField, ...]:
    return tuple([_map_field(nested_field) for nested_field in data_type.fields])


def _map_field(nested_field: NestedField) -> MappedField:
    inner = nested_field.field_type
    return MappedField(
        (nested_field.name,), nested_field.field_id, _map_parts(inner) if isinstance(inner, NestedType) else None
    )


def update_name_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """Return the mapping updated for a change of schema.

    A renamed field gains its new name and keeps the old ones, so that old files stay readable. An added
    field is mapped by its name. A name that a renamed or added field uses is removed from the sibling
    that had it. Dropped fields stay mapped, since their ids are never reused.
    """
    return NameMapping(_update_parts(mapping.fields, after.struct, before, mapping.fields_by_id))


def _update_parts(
    mapped: tuple[MappedField, ...], data_type: NestedType, before: Schema, by_id: Mapping[int, MappedField]
) -> tuple[MappedField, ...]:
    """Return the updated mappings of one level, of a type in the new schema."""
    parts = {child.field_id: child for child in data_type.fields}
    renamed = {child.name: child.field_id for child in data_type.fields if _is_new_name(child, before)}
    result = []
    for mapped_field in mapped:
        nested_field = None if mapped_field.field_id is None else parts.get(mapped_field.field_id)
        names = [
            name for name in mapped_field.names if renamed.get(name, mapped_field.field_id) == mapped_field.field_id
        ]
        fields = mapped_field.fields
        if nested_field is not None:
            if nested_field.name in renamed and nested_field.name not in names:
                names.append(nested_field.name)
            if isinstance(nested_field.field_type, NestedType):
                fields = _update_parts(fields or (), nested_field.field_type, before, by_id) or fields
        result.append(replace(mapped_field, names=tuple(names), fields=fields))
    for nested_field in data_type.fields:
        # A field of the earlier schema without a mapping was omitted on purpose.
        if nested_field.field_id not in before.fields_by_id and nested_field.field_id not in by_id:
            result.append(_map_field(nested_field))
    return tuple(result)


def _is_new_name(nested_field: NestedField, before: Schema) -> bool:
    old = before.find_field(nested_field.field_id)
    return old is None or old.name != nested_field.name


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of a file without ids: its name and, if it is nested, its parts."""

    name: str
    parts: tuple[NamedColumn, ...] = ()


def assign_ids_by_name(columns: Iterable[NamedColumn], mapping: NameMapping) -> dict[tuple[str, ...], int]:
    """Return the field ids of a file's columns, by path, for columns that have one.

    Two columns of a file that map to the same id are refused as ambiguous.
    """
    ids: dict[tuple[str, ...], int] = {}
    paths: dict[int, tuple[str, ...]] = {}
    stack: list[tuple[tuple[str, ...], NamedColumn, dict[str, MappedField]]] = [
        ((column.name,), column, mapping.columns_by_name) for column in reversed(tuple(columns))
    ]
    while stack:
        path, column, names = stack.pop()
        mapped_field = names.get(column.name)
        if mapped_field is None:
            continue
        if mapped_field.field_id is not None:
            other = paths.setdefault(mapped_field.field_id, path)
            if other is not path:
                raise SchemaMismatchError(
                    f"Cannot map the file's columns {'.'.join(other)!r} and {'.'.join(path)!r}: both have the "
                    f"field id {mapped_field.field_id} in the name mapping",
                    hint="Remove one of the names from the table property schema.name-mapping.default.",
                )
            ids[path] = mapped_field.field_id
        _check_depth(len(path))
        stack += [
            ((*path, named_column.name), named_column, mapped_field.parts_by_name)
            for named_column in reversed(column.parts)
        ]
    return ids


def apply_name_mapping(struct: StructType, mapping: NameMapping) -> StructType:
    """Return a file's struct with ids assigned by name, replacing any others, without unmapped columns.

    A list or map with an unmapped part is omitted too.
    """
    for _ in walk_fields(struct):
        pass  # Bounds the depth, which files choose, before anything recurses.
    ids = assign_ids_by_name(_named_parts(struct), mapping)
    return StructType(_mapped_parts(struct, (), ids))


def _named_parts(data_type: Type) -> tuple[NamedColumn, ...]:
    if not isinstance(data_type, NestedType):
        return ()
    return tuple(
        [NamedColumn(nested_field.name, _named_parts(nested_field.field_type)) for nested_field in data_type.fields]
    )


def _mapped_parts(
    data_type: NestedType, path: tuple[str, ...], ids: Mapping[tuple[str, ...], int]
) -> tuple[NestedField, ...]:
    mapped_fields = []
    for nested_field in data_type.fields:
        child_path = (*path, nested_field.name)
        field_id = ids.get(child_path)
        if field_id is None:
            continue
        inner: Type | None = nested_field.field_type
        if isinstance(inner, NestedType):
            inner = _rebuild(inner, _mapped_parts(inner, child_path, ids))
        if inner is not None:
            mapped_fields.append(replace(nested_field, field_id=field_id, field_type=inner))
    return tuple(mapped_fields)


def _rebuild(data_type: NestedType, parts: tuple[NestedField, ...]) -> NestedType | None:
    if isinstance(data_type, StructType):
        return StructType(parts)
    if len(parts) < len(data_type.fields):
        return None
    if isinstance(data_type, ListType):
        return ListType(parts[0].field_id, parts[0].field_type, data_type.element_required)
    assert isinstance(data_type, MapType)
    key, value = parts
    return MapType(key.field_id, key.field_type, value.field_id, value.field_type, data_type.value_required)


def _index_names(fields: Iterable[MappedField]) -> dict[str, MappedField]:
    return {name: mapped for mapped in fields for name in mapped.names}


def _walk(fields: Iterable[MappedField]) -> Iterator[tuple[MappedField, int]]:
    """Yield every mapping with its depth, parents before children."""
    stack = [(top, 1) for top in reversed(tuple(fields))]
    while stack:
        mapped, depth = stack.pop()
        yield mapped, depth
        stack += [(child, depth + 1) for child in reversed(mapped.fields or ())]


def _check_depth(depth: int) -> None:
    if depth > MAX_NESTING_DEPTH:
        raise InvalidRequestError(f"Cannot use the name mapping: it is nested deeper than {MAX_NESTING_DEPTH} levels")


def _check(mapping: NameMapping) -> None:
    """Refuse a mapping in which an id, or a name among siblings, occurs twice."""
    ids: set[int] = set()
    _check_siblings(mapping.fields)
    for mapped, depth in _walk(mapping.fields):
        _check_depth(depth)
        _check_siblings(mapped.fields or ())
        if mapped.field_id is not None:
            if mapped.field_id in ids:
                raise InvalidRequestError(
                    f"Cannot use the name mapping: the field id {mapped.field_id} is mapped twice"
                )
            ids.add(mapped.field_id)


def _check_siblings(fields: Iterable[MappedField]) -> None:
    seen: dict[str, MappedField] = {}
    for mapped in fields:
        for name in mapped.names:
            other = seen.setdefault(name, mapped)
            if other is not mapped:
                raise InvalidRequestError(
                    f"Cannot use the name mapping: the name {name!r} is mapped to the field ids "
                    f"{other.field_id} and {mapped.field_id}"
                )
