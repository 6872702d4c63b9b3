"""The columns of a table as Spark's file readers are asked for them. Specification: "Column Projection".

Spark resolves columns by field id and pushes filters into row groups by *name*. A file from before a rename can hold
another field under a column's name, and a filter pushed by that name then drops rows it must not drop. So a column is
read under its own name only where no file can hold another field of that name: where every schema the table ever had
is still known and none of them gives the name to another field. Every other column is read under a name that no file
has, and shown under its own.

A column that a file does not have is null to Spark, or the value of `EXISTS_DEFAULT` in the field's metadata, which
is how `initial-default` is filled. Spark fills no parts of structs; those are `absent_parts`, to be grouped by file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import UnsupportedError
from frazil.spark.types import FIELD_ID, stored_type
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    Type,
    UnknownType,
    UuidType,
)

EXISTS_DEFAULT = "EXISTS_DEFAULT"


@dataclass(frozen=True)
class ReadNames:
    """Under which name each field of a table is read, and names for columns of our own that no table has."""

    token: str
    ambiguous: frozenset[int]
    is_history_complete: bool

    def of(self, part: NestedField) -> str:
        """Return the name under which a field is read."""
        if self.is_history_complete and part.field_id not in self.ambiguous:
            return part.name
        return f"{part.name}__{self.token}_{part.field_id}"

    def own(self, what: str) -> str:
        """Return the name of a column that is not the table's."""
        return f"__{what}_{self.token}"


def read_names(metadata: TableMetadata) -> ReadNames:
    """Return the names under which a table's fields are read."""
    first: dict[tuple[int, str], int] = {}
    ambiguous: set[int] = set()
    for schema in metadata.schemas:
        for field_id, part in schema.fields_by_id.items():
            # A part's name is met within its parent, and Spark may compare names without regard to case.
            place = (schema.parents_by_id.get(field_id, -1), part.name.lower())
            known = first.setdefault(place, field_id)
            if known != field_id:
                ambiguous |= {known, field_id}
    ids = {schema.schema_id for schema in metadata.schemas}
    is_complete = ids == set(range(len(ids)))
    seed = metadata.table_uuid or metadata.location
    return ReadNames(hashlib.sha256(seed.encode()).hexdigest()[:10], frozenset(ambiguous), is_complete)


@dataclass(frozen=True)
class ReadColumn:
    """One top-level field as it is read."""

    field: NestedField
    names: ReadNames

    @property
    def name(self) -> str:
        """The column's name in the relation."""
        return self.names.of(self.field)

    @cached_property
    def is_renamed_within(self) -> bool:
        """Whether a part of the column is read under another name than its own."""
        return any(self.names.of(part) != part.name for part in _struct_parts(self.field.field_type))

    @property
    def has_default(self) -> bool:
        """Whether files without the column have a value for it."""
        return self.field.initial_default is not None

    def struct_field(self) -> st.StructField:
        """Return the column as Spark's reader is asked for it."""
        part = self.field
        metadata: dict[str, Any] = {FIELD_ID: part.field_id}
        if part.initial_default is not None:
            metadata[EXISTS_DEFAULT] = sql_literal(part.initial_default, part.field_type)
        # Spark refuses a file without a required column before it looks for a default.
        is_nullable = part.optional or self.has_default
        return st.StructField(self.name, self._read_type(part.field_type), is_nullable, metadata)

    def _read_type(self, kind: Type) -> st.DataType:
        if isinstance(kind, StructType):
            return st.StructType(
                [
                    st.StructField(
                        self.names.of(part), self._read_type(part.field_type), part.optional, {FIELD_ID: part.field_id}
                    )
                    for part in kind.fields
                ]
            )
        if isinstance(kind, ListType):
            return st.ArrayType(self._read_type(kind.element_type), not kind.element_required)
        if isinstance(kind, MapType):
            return st.MapType(self._read_type(kind.key_type), self._read_type(kind.value_type), not kind.value_required)
        return stored_type(kind)

    def stored(self) -> Column:
        """Return the column in its stored form, its parts under their own names."""
        column = F.col(quoted(self.name))
        if self.is_renamed_within:
            column = column.cast(stored_type(self.field.field_type))
        if self.field.required and self.has_default:
            # Files without the column give the default already; this says that nothing is null.
            column = F.coalesce(column, F.expr(sql_literal(self.field.initial_default, self.field.field_type)))
        return column

    def paths(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the names that lead to the column and its parts, as Spark's filters use them, with their ids."""
        yield (self.name,), self.field.field_id
        yield from self._paths(self.field.field_type, (self.name,))

    def _paths(self, kind: Type, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        if isinstance(kind, StructType):
            for part in kind.fields:
                path = (*above, self.names.of(part))
                yield path, part.field_id
                yield from self._paths(part.field_type, path)


def quoted(name: str) -> str:
    """Return a column's name as Spark's expressions take it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _struct_parts(kind: Type) -> Iterator[NestedField]:
    if isinstance(kind, StructType):
        yield from kind.fields
        for part in kind.fields:
            yield from _struct_parts(part.field_type)
    elif isinstance(kind, ListType):
        yield from _struct_parts(kind.element_type)
    elif isinstance(kind, MapType):
        yield from _struct_parts(kind.key_type)
        yield from _struct_parts(kind.value_type)


def default_parts(schema: Schema) -> frozenset[int]:
    """Return the ids of parts of columns that have a value in files without them."""
    top = {part.field_id for part in schema.fields}
    return frozenset(
        field_id
        for field_id, part in schema.fields_by_id.items()
        if field_id not in top and part.initial_default is not None
    )


def sql_literal(value: Any, kind: Type) -> str:
    """Return a value of a type as a SQL literal of its stored form; it means the same in every session."""
    if isinstance(kind, BooleanType):
        return "true" if value else "false"
    if isinstance(kind, IntType):
        return f"CAST('{value}' AS INT)"
    if isinstance(kind, FloatType | DoubleType):
        return f"CAST('{value!r}' AS {'FLOAT' if isinstance(kind, FloatType) else 'DOUBLE'})"
    if isinstance(kind, DecimalType):
        return f"CAST('{Decimal(value):f}' AS DECIMAL({kind.precision},{kind.scale}))"
    if isinstance(kind, StringType):
        return _text(value)
    if isinstance(kind, UuidType):
        return f"X'{value.hex}'"
    if isinstance(kind, BinaryType | FixedType | GeometryType | GeographyType):
        return f"X'{bytes(value).hex()}'"
    if isinstance(kind, DateType):
        return f"date_from_unix_date(CAST('{value}' AS INT))"
    if isinstance(kind, TimestamptzType):
        return f"timestamp_micros(CAST('{value}' AS BIGINT))"
    if isinstance(kind, TimestampType):
        return f"timestampadd(MICROSECOND, CAST('{value}' AS BIGINT), timestamp_ntz'1970-01-01')"
    if isinstance(kind, UnknownType) or kind.is_nested:
        raise UnsupportedError(f"Cannot fill a column of type {kind} with a default on Spark")
    if isinstance(kind, LongType) or isinstance(value, int):
        return f"CAST('{value}' AS BIGINT)"
    raise UnsupportedError(f"Cannot fill a column of type {kind} with a default on Spark")


def _text(value: str) -> str:
    escaped = "".join(f"\\u{ord(one):04x}" if ord(one) < 32 or one in "'\"\\" else one for one in value)
    return f"'{escaped}'"
