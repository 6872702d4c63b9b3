"""The source of each requested column's values in one file. Specification: "Column Projection", "Default values".

Readers resolve columns once per data file, from the ids of the file's columns and the file's identity partition
values. The result states for each requested field, including nested ones, whether to read it from the file or which
constant to use. Metadata columns (`_file`, `_pos`, `_row_id`, ...) are handled by the reader and not passed in.

If the file has no column with the field's id, these rules apply in order:

1. the value of an identity partition field, if the file's partition has one;
2. the file's column that the name mapping gives the id, if the file carries no ids;
3. the field's `initial-default`;
4. null, which a required field does not allow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from frazil.errors import SchemaMismatchError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, NestedType, StructType, UnknownType


class ValueSource(Enum):
    """The source of a column's values."""

    FILE = "file"
    PARTITION = "partition"
    DEFAULT = "default"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class ResolvedColumn:
    """A requested field and its source.

    A nested field that is read from the file lists its parts in the requested order (struct fields, a list's element,
    a map's key and value). Otherwise, `value` is the constant for all rows; a struct's is a dict.
    """

    field: NestedField
    source: ValueSource
    value: Any = None
    parts: tuple[ResolvedColumn, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same value, so that the file need not be read for it."""
        return self.source is not ValueSource.FILE


def resolve_columns(
    wanted: Schema,
    file_ids: Collection[int],
    *,
    partition_values: Mapping[int, Any] = FrozenMap(),
    name_mapped_ids: Collection[int] = (),
    within: Schema | None = None,
) -> tuple[ResolvedColumn, ...]:
    """Return the source of each requested column, in order.

    `file_ids` are the ids in the file itself, `partition_values` the values of its identity partition
    fields by source id (a null counts as present), `name_mapped_ids` the ids that a name mapping assigned to
    columns of a file without ids. `within` is the schema that `wanted` was projected from, if any: the file may have
    a struct only through a field that is not requested. A required field without any value is refused.
    """
    resolver = _Resolver(wanted, frozenset(file_ids), partition_values, frozenset(name_mapped_ids), within)
    return tuple([resolver.resolve(field) for field in wanted.fields])


class _Resolver:
    def __init__(
        self,
        wanted: Schema,
        file_ids: frozenset[int],
        partition_values: Mapping[int, Any],
        name_mapped_ids: frozenset[int],
        within: Schema | None,
    ) -> None:
        self.wanted = wanted
        self.parents = {**({} if within is None else within.parents_by_id), **wanted.parents_by_id}
        self.partition_values = partition_values
        self.file_ids = self.with_ancestors(file_ids)
        self.name_mapped_ids = self.with_ancestors(name_mapped_ids)
        # A struct with a field that has a partition value is not null, even if the file lacks the struct.
        self.partitioned_ids = self.with_ancestors(
            frozenset(field_id for field_id, value in partition_values.items() if value is not None)
        )

    def with_ancestors(self, ids: frozenset[int]) -> frozenset[int]:
        """Return ids together with those of the enclosing fields, since some writers number leaves only."""
        parents = self.parents
        closure = set(ids)
        for field_id in ids:
            parent = parents.get(field_id)
            while parent is not None and parent not in closure:
                closure.add(parent)
                parent = parents.get(parent)
        return frozenset(closure)

    def resolve(self, field: NestedField) -> ResolvedColumn:
        """Return the source of one field. Schemas bound the depth of the recursion."""
        if isinstance(field.field_type, UnknownType):
            return ResolvedColumn(field, ValueSource.NULL)
        if field.field_id in self.file_ids:
            return self.read(field)
        if field.field_id in self.partition_values:
            return self.constant(field, ValueSource.PARTITION, self.partition_values[field.field_id])
        if field.field_id in self.name_mapped_ids:
            return self.read(field)
        if isinstance(field.field_type, StructType):
            if field.field_id in self.partitioned_ids:
                return self.constant(field, ValueSource.PARTITION, self.assemble(field.field_type))
            if field.initial_default is not None:
                return self.constant(field, ValueSource.DEFAULT, self.assemble(field.field_type))
        if field.initial_default is not None:
            return self.constant(field, ValueSource.DEFAULT, field.initial_default)
        return self.constant(field, ValueSource.NULL, None)

    def read(self, nested_field: NestedField) -> ResolvedColumn:
        inner = nested_field.field_type
        if isinstance(inner, UnknownType):
            return ResolvedColumn(nested_field, ValueSource.NULL)
        if not isinstance(inner, NestedType):
            return ResolvedColumn(nested_field, ValueSource.FILE)
        if isinstance(inner, StructType):
            parts = [self.resolve(field) for field in inner.fields]
        else:
            # A file that has a list or map has its parts, whose ids cannot change separately.
            parts = [self.read(field) for field in inner.fields]
        return ResolvedColumn(nested_field, ValueSource.FILE, parts=tuple(parts))

    def assemble(self, data_type: StructType) -> dict[str, Any]:
        """Return the value of a struct that the file lacks, from the constants of its fields."""
        return {field.name: self.resolve(field).value for field in data_type.fields}

    def constant(self, field: NestedField, source: ValueSource, value: Any) -> ResolvedColumn:
        if value is None and field.required:
            name = self.wanted.name_of(field.field_id)
            if source is ValueSource.PARTITION:
                reason = "it is required, but the file's partition value is null"
            else:
                reason = "it is required, but the file has no such column and the schema has no default for it"
            raise SchemaMismatchError(
                f"Cannot read column {name!r} (field id {field.field_id}): {reason}",
                hint="Make the column optional, or leave it out of the columns to read.",
            )
        return ResolvedColumn(field, source, value)
