"""A schema with recorded but not yet applied changes. Specification: "Schema Evolution".

`schema_evolution.SchemaUpdate` decides which changes are allowed; this module finds columns, records changes and
finally builds the resulting struct. Within one update, a column is identified by its name in the original schema, or
by the name it was added under: later steps do not use the new name of a renamed column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.schema import Schema, walk_fields
from frazil.spec.types import ListType, MapType, NestedField, NestedType, StructType, Type

ColumnPath: TypeAlias = str | tuple[str, ...]
"""A column, given by its full name, or by a tuple of the names leading to it, which may contain dots."""


@dataclass(frozen=True, slots=True)
class Move:
    """A field's new position among its siblings."""

    field_id: int
    position: Literal["first", "before", "after"]
    reference_id: int | None = None


def show_path(path: ColumnPath) -> str:
    """Return a path as shown in errors."""
    return f"column {(path if isinstance(path, str) else '.'.join(path))!r}"


class PendingSchema:
    """A base schema and the changes recorded so far."""

    def __init__(self, base: Schema, *, case_sensitive: bool = True) -> None:
        self.base = base
        self.case_sensitive = case_sensitive
        self._parents: dict[int, int | None] = {}
        self._base_names: dict[tuple[int | None, str], list[int]] = {}
        for field, _, parent in walk_fields(base.struct):
            self._parents[field.field_id] = parent
            self._base_names.setdefault((parent, self._key(field.name)), []).append(field.field_id)
        self._changed: dict[int, NestedField] = {}
        self._added: dict[int | None, list[int]] = {}
        self._added_names: dict[tuple[int | None, str], int] = {}
        self._moves: dict[int | None, list[Move]] = {}
        self._dropped: set[int] = set()
        self._above_dropped: set[int] = set()
        self._edited: set[int] = set()
        """Fields that were changed, moved or added, and their ancestors."""

    def _key(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    # Finding columns

    def find(self, path: ColumnPath) -> NestedField | None:
        """Return a column with its pending changes, or None; dropped columns are found unless their name is reused."""
        field_id = self._find_name(path) if isinstance(path, str) else self._find_path(path)
        return None if field_id is None else self.current(field_id)

    def _find_name(self, name: str) -> int | None:
        base_field = self.base.find_field(name, case_sensitive=self.case_sensitive)
        if base_field is not None and not self.is_gone(base_field.field_id):
            return base_field.field_id
        added = self._added_names.get((None, self._key(name)))
        dot = name.find(".")
        while added is None and dot >= 0:
            parent = self.base.find_field(name[:dot], case_sensitive=self.case_sensitive)
            if parent is not None:
                added = self._added_names.get((self.struct_id(parent), self._key(name[dot + 1 :])))
            dot = name.find(".", dot + 1)
        return added if added is not None or base_field is None else base_field.field_id

    def _find_path(self, path: tuple[str, ...]) -> int | None:
        field_id: int | None = None
        for name in path:
            parent_id = field_id
            field_id = self.find_child(parent_id, name)
            if field_id is None and parent_id is not None:
                # The step into a list's element or a map's value may be omitted, as in names.
                struct_id = self.struct_id(self.current(parent_id))
                field_id = None if struct_id is None or struct_id == parent_id else self.find_child(struct_id, name)
            if field_id is None:
                return None
        return field_id

    def find_child(self, parent_id: int | None, name: str) -> int | None:
        """Return the id of a field's part by its own name, preferring parts that are not dropped."""
        key = (parent_id, self._key(name))
        base_ids = self._base_names.get(key, [])
        remaining = [field_id for field_id in base_ids if not self.is_gone(field_id)]
        if len(remaining) > 1:
            names = ", ".join(self.base.name_of(field_id) for field_id in remaining)
            raise InvalidRequestError(
                f"Cannot resolve column {name!r}: it matches {names}",
                hint="Names that differ only in case need a case-sensitive lookup.",
            )
        if remaining:
            return remaining[0]
        added = self._added_names.get(key)
        return added if added is not None or not base_ids else base_ids[0]

    def struct_id(self, field: NestedField) -> int | None:
        """Return the id of the field whose struct takes new columns: itself, its list's element or its map's value."""
        inner: NestedField = field
        if isinstance(field.field_type, ListType):
            inner = field.field_type.element_field
        elif isinstance(field.field_type, MapType):
            inner = field.field_type.value_field
        return inner.field_id if isinstance(inner.field_type, StructType) else None

    def current(self, field_id: int) -> NestedField:
        """Return a field with its own changes so far, without those to its parts."""
        changed = self._changed.get(field_id)
        return self.base.field(field_id) if changed is None else changed

    def parent_of(self, field_id: int) -> int | None:
        """Return the id of a field's parent, or None for a column."""
        return self._parents[field_id]

    def is_struct_field(self, field_id: int) -> bool:
        """Return whether a field is a column or part of a struct, not an element, key or value."""
        parent = self._parents[field_id]
        return parent is None or isinstance(self.current(parent).field_type, StructType)

    def is_in_map_key(self, field_id: int) -> bool:
        """Return whether a field is a map's key or inside one."""
        parent = self._parents[field_id]
        while parent is not None:
            holder = self.current(parent).field_type
            if isinstance(holder, MapType) and holder.key_id == field_id:
                return True
            field_id, parent = parent, self._parents[parent]
        return False

    def is_added(self, field_id: int) -> bool:
        """Return whether a field was added in this update."""
        return field_id in self._changed and field_id not in self.base.fields_by_id

    def dropped_at(self, field_id: int) -> int | None:
        """Return the id of the nearest dropped field among a field and its ancestors, or None."""
        ancestor_id: int | None = field_id
        while ancestor_id is not None and ancestor_id not in self._dropped:
            ancestor_id = self._parents[ancestor_id]
        return ancestor_id

    def is_gone(self, field_id: int) -> bool:
        """Return whether a field or one of its ancestors is dropped."""
        return self.dropped_at(field_id) is not None

    def is_edited(self, field_id: int) -> bool:
        """Return whether a field or one inside it is changed, moved or added."""
        return field_id in self._edited

    @property
    def has_changes(self) -> bool:
        """Whether any change was recorded."""
        return bool(self._edited or self._dropped)

    @property
    def renamed(self) -> dict[str, str]:
        """The new names of renamed fields, by their old full name."""
        return {
            self.base.name_of(field_id): field.name
            for field_id, field in self._changed.items()
            if field_id in self.base.fields_by_id and self.base.field(field_id).name != field.name
        }

    # Recording changes

    def note_change(self, field: NestedField) -> None:
        """Replace a field."""
        self._changed[field.field_id] = field
        self._mark(self._edited, field.field_id)

    def note_added(self, parent_id: int | None, field: NestedField) -> None:
        """Add a field at the end of the struct of `parent_id`."""
        self._parents[field.field_id] = parent_id
        self._added.setdefault(parent_id, []).append(field.field_id)
        self._added_names[parent_id, self._key(field.name)] = field.field_id
        self.note_change(field)

    def note_dropped(self, field_id: int) -> None:
        """Drop a field."""
        self._dropped.add(field_id)
        self._mark(self._above_dropped, field_id)

    def note_move(self, move: Move) -> None:
        """Move a field among its siblings, after all previously recorded moves."""
        self._moves.setdefault(self._parents[move.field_id], []).append(move)
        self._mark(self._edited, move.field_id)
        if move.reference_id is not None:
            self._mark(self._edited, move.reference_id)

    def _mark(self, marks: set[int], field_id: int) -> None:
        ancestor_id: int | None = field_id
        while ancestor_id is not None and ancestor_id not in marks:
            marks.add(ancestor_id)
            ancestor_id = self._parents[ancestor_id]

    # Building the result

    def build(self) -> StructType:
        """Return the resulting struct."""
        built = self._build(self.base.struct, None)
        assert isinstance(built, StructType)
        return built

    def _build(self, data_type: Type, owner_id: int | None) -> Type:
        """Return a type with its changes applied; there is only one call per level, to limit the stack depth."""
        if not isinstance(data_type, NestedType):
            return data_type
        parts = []
        for field in data_type.fields:
            field_id = field.field_id
            if field_id in self._dropped:
                continue
            current = self._changed.get(field_id, field)
            if field_id in self._edited or field_id in self._above_dropped:
                current = replace(current, field_type=self._build(current.field_type, field_id))
            parts.append(current)
        if isinstance(data_type, ListType):
            return ListType(parts[0].field_id, parts[0].field_type, parts[0].required)
        if isinstance(data_type, MapType):
            value = parts[1]
            return MapType(data_type.key_id, data_type.key_type, value.field_id, value.field_type, value.required)
        parts += [self._changed[added_id] for added_id in self._added.get(owner_id, ())]
        for move in self._moves.get(owner_id, ()):
            _move(parts, move)
        return StructType(tuple(parts))


def _move(parts: list[NestedField], move: Move) -> None:
    field = parts.pop(_index_of(parts, move.field_id))
    if move.reference_id is None:
        parts.insert(0, field)
        return
    index = _index_of(parts, move.reference_id)
    parts.insert(index if move.position == "before" else index + 1, field)


def _index_of(parts: list[NestedField], field_id: int) -> int:
    return next(index for index, field in enumerate(parts) if field.field_id == field_id)
