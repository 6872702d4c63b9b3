"""The columns of a table as they are requested from Spark's file readers. Specification: "Column Projection".

Spark resolves columns by field id, but pushes filters into row groups by *name*. A file from before a rename can hold
another field under a column's name, and a filter pushed by that name would drop matching rows. So a column is read
under its own name only if no file can hold another field of that name: the table's metadata has every schema it ever
had, none of them gives the name to another field, and the column contains no floating point. Every other column is read
under a name that no file has, and renamed afterwards.

If a file lacks a column, Spark fills in null, or the value of `EXISTS_DEFAULT` in the field's metadata, which provides
`initial-default`. Missing nested fields are filled by rebuilding the struct, for files that are known to lack them, and
files without ids are read by their own column names (`file_shapes.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column

from frazil.errors import SchemaMismatchError
from frazil.spark.jvm.exact_sql import expression
from frazil.spark.own_columns import F
from frazil.spark.read.file_shapes import BY_ID, FileShape, is_filled_by_spark
from frazil.spark.types import FIELD_ID, stored_type, without_metadata
from frazil.spec import types as ft
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.table_metadata import TableMetadata
from frazil.sql.quote_names import quote
from frazil.sql.sql_literals import stored_literal

EXISTS_DEFAULT = "EXISTS_DEFAULT"
_RESERVED_NAMES = ("_metadata", "_tmp_metadata_row_index")
"""Names of Spark's own columns of positions, which a table's column of the same name would hide."""
_DAY_NANOS = 86_400_000_000_000
_NO_FIELD = 2_000_000_000
"""A field id that no file has: tables number fields from 1 up, and reserved columns from the maximum down."""


@dataclass(frozen=True)
class ReadNames:
    """The name under which each field of a table is read, and unique names for internal columns."""

    token: str
    ambiguous: frozenset[int]
    is_history_complete: bool

    def of(self, field: ft.NestedField) -> str:
        """Return the name under which a field is read."""
        if self.is_history_complete and field.field_id not in self.ambiguous:
            return field.name
        return f"{field.name}__{self.token}_{field.field_id}"

    def own(self, what: str) -> str:
        """Return the unique name of an internal column."""
        return f"__{what}_{self.token}"


def read_names(metadata: TableMetadata) -> ReadNames:
    """Return the names under which a table's fields are read."""
    first: dict[tuple[int, str], int] = {}
    names: dict[int, set[str]] = {}
    ambiguous: set[int] = set()
    for schema in metadata.schemas:
        for field_id, nested_field in schema.fields_by_id.items():
            # Names are unique within their parent, and Spark may compare them case-insensitively.
            key = (schema.parents_by_id.get(field_id, -1), nested_field.name.lower())
            first_id = first.setdefault(key, field_id)
            if first_id != field_id:
                ambiguous |= {first_id, field_id}
            names.setdefault(field_id, set()).add(nested_field.name)
        # Unlike Spark's comparisons, bounds of row groups ignore NaN and distinguish the zeros: a filter on floating
        # point that is pushed into row groups would drop matching rows. The planner prunes files by such columns.
        ambiguous |= {field.field_id for field in schema.fields if contains_float(field.field_type)}
        ambiguous |= {field.field_id for field in schema.fields if field.name.lower() in _RESERVED_NAMES}
    for schema in metadata.schemas:
        for column in schema.fields:
            parts = list(_struct_parts(column.field_type))
            if any(field.field_id in ambiguous or len(names[field.field_id]) > 1 for field in (column, *parts)):
                # If a query uses some fields of a struct, Spark drops their ids and finds them by name. Renamed
                # fields are therefore read together, and renamed by a cast that Spark does not optimise away.
                ambiguous |= {field.field_id for field in parts}
    ids = {schema.schema_id for schema in metadata.schemas}
    is_complete = ids == set(range(len(ids)))
    seed = metadata.table_uuid or metadata.location
    return ReadNames(hashlib.sha256(seed.encode()).hexdigest()[:10], frozenset(ambiguous), is_complete)


def contains_float(data_type: ft.Type) -> bool:
    """Return whether a type is floating point, or a struct that contains floating point."""
    if isinstance(data_type, ft.StructType):
        return any(contains_float(field.field_type) for field in data_type.fields)
    return isinstance(data_type, ft.FloatType | ft.DoubleType)


@dataclass(frozen=True)
class ReadColumn:
    """One top-level field as it is read from files of one shape.

    `from_partition` maps the ids of fields to the columns of the relation with their partition values; `within` maps
    the id of a struct to all such columns of its nested fields, including fields that are not read.
    """

    field: ft.NestedField
    names: ReadNames
    shape: FileShape = BY_ID
    from_partition: Mapping[int, str] = FrozenMap()
    within: Mapping[int, tuple[str, ...]] = FrozenMap()
    keeps_ids: bool = True
    """Whether the column's type keeps the ids of nested fields, which rewrites need."""

    @property
    def name(self) -> str:
        """The column's name in the relation."""
        return self._name_of(self.field)

    @property
    def is_read(self) -> bool:
        """Whether the column is read from files."""
        return self._is_read(self.field)

    def _is_read(self, field: ft.NestedField) -> bool:
        if isinstance(field.field_type, ft.UnknownType) or field.field_id in self.from_partition:
            return False
        return self.shape.holds(field.field_id)

    def _name_of(self, field: ft.NestedField) -> str:
        return self.names.of(field) if self.shape.has_ids else self.shape.name_of(field.field_id)

    def struct_field(self) -> st.StructField:
        """Return the field to request from Spark's reader."""
        field = self.field
        metadata: dict[str, Any] = {FIELD_ID: field.field_id} if self.shape.has_ids else {}
        has_default = field.initial_default is not None and is_filled_by_spark(field.field_type) and self.shape.has_ids
        if has_default:
            metadata[EXISTS_DEFAULT] = stored_literal(field.initial_default, field.field_type)
        # Spark rejects a file without a required column before it looks for a default.
        is_nullable = field.optional or has_default
        return st.StructField(self.name, self._read_type(field), is_nullable, metadata)

    def _read_type(self, field: ft.NestedField, *, with_own_names: bool = False) -> st.DataType:
        """Return the type to read, with nested fields under the names in files or under their own."""
        data_type = field.field_type
        if field.field_id in self.shape.dates:
            return st.DateType()
        if isinstance(data_type, ft.StructType):
            return self._read_struct(data_type, with_own_names=with_own_names)
        if isinstance(data_type, ft.ListType):
            element = self._read_type(data_type.element_field, with_own_names=with_own_names)
            return st.ArrayType(element, not data_type.element_required)
        if isinstance(data_type, ft.MapType):
            key = self._read_type(data_type.key_field, with_own_names=with_own_names)
            value = self._read_type(data_type.value_field, with_own_names=with_own_names)
            return st.MapType(key, value, not data_type.value_required)
        return stored_type(data_type)

    def _read_struct(self, data_type: ft.StructType, *, with_own_names: bool) -> st.StructType:
        fields = []
        for field in data_type.fields:
            if self._is_read(field):
                metadata = {FIELD_ID: field.field_id} if self.shape.has_ids else {}
                read = self._read_type(field, with_own_names=with_own_names)
                name = field.name if with_own_names else self._name_of(field)
                fields.append(st.StructField(name, read, field.optional, metadata))
        if not fields:
            # The file has only the struct's nullness, which Spark derives from any requested field, even a missing one.
            none = {FIELD_ID: _NO_FIELD} if self.shape.has_ids else {}
            fields.append(st.StructField(self.names.own("none"), st.IntegerType(), True, none))
        return st.StructType(fields)

    def stored(self) -> Column:
        """Return the column in stored form, with nested fields under their own names."""
        field = self.field
        if not self.is_read:
            return self._filled(field)
        column = F.col(quote(self.name))
        if self._is_renamed(field.field_type):
            own = self._read_type(field, with_own_names=True)
            column = column.cast(own if self.keeps_ids else without_metadata(own))
        column = self._rebuilt(column, field, is_required=field.required)
        if field.required and field.initial_default is not None and is_filled_by_spark(field.field_type):
            # Files without the column have the default already; this makes the column non-nullable.
            column = F.coalesce(column, expression(stored_literal(field.initial_default, field.field_type)))
        return column

    @cached_property
    def is_plain(self) -> bool:
        """Whether the stored form is the unchanged column of the relation."""
        field = self.field
        has_default = field.required and field.initial_default is not None
        is_changed = self._is_rebuilt(field.field_type) or self._is_renamed(field.field_type)
        is_changed = is_changed or field.field_id in self.shape.dates
        return self.is_read and not has_default and not is_changed

    def _is_rebuilt(self, data_type: ft.Type) -> bool:
        if _contains_empty_struct(data_type):
            return True
        if any(not self._is_read(field) for field in _struct_parts(data_type)):
            return True
        return bool(self.shape.dates) and any(field.field_id in self.shape.dates for field in _all_parts(data_type))

    def _is_renamed(self, data_type: ft.Type) -> bool:
        return any(self._is_read(field) and self._name_of(field) != field.name for field in _struct_parts(data_type))

    def _rebuilt(self, column: Column, field: ft.NestedField, *, is_required: bool = False) -> Column:
        """Return a column whose nested fields have their own names, with those that are not read filled in."""
        if field.field_id in self.shape.dates:
            return F.unix_date(column).cast("bigint") * F.lit(_DAY_NANOS).cast("bigint")
        data_type = field.field_type
        if not self._is_rebuilt(data_type):
            return column
        if isinstance(data_type, ft.ListType):
            element = data_type.element_field
            return F.transform(column, lambda one: self._rebuilt(one, element, is_required=element.required))
        if isinstance(data_type, ft.MapType):
            key, value = data_type.key_field, data_type.value_field
            if self._is_rebuilt(key.field_type):
                column = F.transform_keys(column, lambda one, _: self._rebuilt(one, key, is_required=True))
            if self._is_rebuilt(value.field_type) or value.field_id in self.shape.dates:
                column = F.transform_values(
                    column, lambda _, one: self._rebuilt(one, value, is_required=value.required)
                )
            return column
        assert isinstance(data_type, ft.StructType)
        parts = []
        for nested_field in data_type.fields:
            if self._is_read(nested_field):
                made = self._rebuilt(column[nested_field.name], nested_field, is_required=nested_field.required)
            else:
                made = self._filled(nested_field)
                # Declared nullable, since it is null in a null struct.
                made = made if nested_field.required else F.when(column.isNotNull(), made)
            parts.append(made.alias(nested_field.name))
        made = F.struct(*parts)
        return made if is_required else F.when(column.isNotNull(), made)

    def _filled(self, nested_field: ft.NestedField) -> Column:
        """Return the value of a field that is not read: its partition value, else its default, else null."""
        data_type = nested_field.field_type
        if nested_field.field_id in self.from_partition:
            return F.col(quote(self.from_partition[nested_field.field_id]))
        if isinstance(data_type, ft.UnknownType):
            return F.lit(None)
        if isinstance(data_type, ft.StructType):
            struct = F.struct(*(self._filled(field).alias(field.name) for field in data_type.fields))
            if nested_field.initial_default is not None:
                return struct
            columns = [F.col(quote(name)) for name in self.within.get(nested_field.field_id, ())]
            if columns:
                # A struct with a partition value in one of its fields is not null, even if files lack it.
                return F.when(reduce(Column.__or__, (column.isNotNull() for column in columns)), struct)
        if nested_field.initial_default is not None:
            return expression(stored_literal(nested_field.initial_default, data_type)).cast(
                stored_type(data_type, with_ids=self.keeps_ids)
            )
        if nested_field.required:
            raise SchemaMismatchError(
                f"Cannot read column {nested_field.name!r} (field id {nested_field.field_id}): it is required, "
                "but some files lack it and the schema has no default for it",
                hint="Make the column optional, or leave it out of the columns to read.",
            )
        return F.lit(None).cast(stored_type(data_type, with_ids=self.keeps_ids))

    def paths(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the paths of the column and its nested fields, as in Spark's filters, with their ids."""
        if self.field.field_id in self.from_partition:
            yield (self.from_partition[self.field.field_id],), self.field.field_id
        if self.is_read:
            yield (self.name,), self.field.field_id
            yield from self._paths(self.field.field_type, (self.name,))

    def _paths(self, data_type: ft.Type, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        if isinstance(data_type, ft.StructType):
            for field in data_type.fields:
                if self._is_read(field):
                    path = (*above, self._name_of(field))
                    yield path, field.field_id
                    yield from self._paths(field.field_type, path)


def join_fields(
    requested: Mapping[int, ft.NestedField], compared: Iterable[ft.NestedField], names: ReadNames
) -> dict[int, ft.NestedField]:
    """Return the top-level fields to read: the requested ones and those that deletes compare, including dropped ones.

    A field whose name now belongs to another field gets a unique name.
    """
    fields = dict(requested)
    for field in compared:
        existing = fields.get(field.field_id)
        fields[field.field_id] = field if existing is None else _joined(existing, field, names)
    return {field.field_id: field for field in _with_unique_names(tuple(fields.values()), names)}


def _joined(first: ft.NestedField, second: ft.NestedField, names: ReadNames) -> ft.NestedField:
    """Return a field with the nested fields of both; the first takes precedence."""
    mine, theirs = first.field_type, second.field_type
    if not isinstance(mine, ft.StructType) or not isinstance(theirs, ft.StructType):
        return first
    parts = {field.field_id: field for field in mine.fields}
    for field in theirs.fields:
        existing = parts.get(field.field_id)
        parts[field.field_id] = field if existing is None else _joined(existing, field, names)
    return replace(first, field_type=ft.StructType(_with_unique_names(tuple(parts.values()), names)))


def _with_unique_names(fields: tuple[ft.NestedField, ...], names: ReadNames) -> tuple[ft.NestedField, ...]:
    """Return the fields with duplicate names replaced; the first of a name keeps it."""
    taken: set[str] = set()
    renamed = []
    for field in fields:
        name = field.name if field.name.lower() not in taken else f"{field.name}__{names.token}_{field.field_id}"
        taken.add(name.lower())
        renamed.append(field if name == field.name else replace(field, name=name))
    return tuple(renamed)


def narrow_column(column: Column, have: ft.Type, want: ft.Type) -> Column:
    """Return a stored column without the nested fields that `want` lacks."""
    if have == want:
        return column
    if isinstance(have, ft.StructType) and isinstance(want, ft.StructType):
        by_id = {field.field_id: field for field in have.fields}
        parts = [
            narrow_column(column[by_id[field.field_id].name], by_id[field.field_id].field_type, field.field_type).alias(
                field.name
            )
            for field in want.fields
        ]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(have, ft.ListType) and isinstance(want, ft.ListType):
        return F.transform(column, lambda element: narrow_column(element, have.element_type, want.element_type))
    if isinstance(have, ft.MapType) and isinstance(want, ft.MapType):
        return F.transform_values(column, lambda _, element: narrow_column(element, have.value_type, want.value_type))
    return column


def _contains_empty_struct(data_type: ft.Type) -> bool:
    """Return whether a type is, or contains, a struct without fields, which is read with a field for its nullness."""
    if isinstance(data_type, ft.StructType) and not data_type.fields:
        return True
    return isinstance(data_type, ft.NestedType) and any(
        _contains_empty_struct(field.field_type) for field in data_type.fields
    )


def _all_parts(data_type: ft.Type) -> Iterator[ft.NestedField]:
    if isinstance(data_type, ft.NestedType):
        yield from data_type.fields
        for field in data_type.fields:
            yield from _all_parts(field.field_type)


def _struct_parts(data_type: ft.Type) -> Iterator[ft.NestedField]:
    if isinstance(data_type, ft.StructType):
        yield from data_type.fields
        for field in data_type.fields:
            yield from _struct_parts(field.field_type)
    elif isinstance(data_type, ft.ListType):
        yield from _struct_parts(data_type.element_type)
    elif isinstance(data_type, ft.MapType):
        yield from _struct_parts(data_type.key_type)
        yield from _struct_parts(data_type.value_type)
