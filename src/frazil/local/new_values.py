"""New values of rows: what `SET column = expression` and the inserts of a merge put into the columns of a table.

Each expression is assigned as ANSI SQL has it (`sql_casts.assign`): what does not fit is an error. What is not assigned
stays as it is stored, or is the column's default in a new row. A part of a struct that is assigned makes its struct
anew, of the new value and the old ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_schema, to_arrow_type
from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.value_arrays import repeat_value
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.expr.expressions import Name
from frazil.expr.parse_expression import parse_expression
from frazil.local import sql_types as t
from frazil.local.assigned_names import resolve_assignments, same_names
from frazil.local.compile_expression import SOURCE, TARGET, Compiled, Compiler, Rows
from frazil.local.sql_casts import assign, can_assign
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType, Type, UnknownType, UuidType

Make: TypeAlias = Callable[[Rows], pa.Array]
"""Computes a column of new rows."""


class NewValues:
    """How the columns of new rows are made, in stored form, and which columns of both sides that reads."""

    def __init__(self, columns: Mapping[str, Make], compiler: Compiler) -> None:
        self.columns = columns
        self._compiler = compiler

    def used(self, side: str) -> list[str]:
        """Return the columns of a side that are read."""
        return sorted(name for one, name in self._compiler.used if one == side)

    def arrays(self, rows: Rows) -> dict[str, pa.Array]:
        """Return the columns of new rows."""
        return {name: make(rows) for name, make in self.columns.items()}


def all_values(
    schema: Schema, source: Mapping[str, Any], table: str, *, may_lack_columns: bool = False
) -> dict[str, Name]:
    """Return the assignment of every column from the source's of the same name."""
    stored = [part.name for part in schema.fields if not isinstance(part.field_type, UnknownType)]
    found = same_names(stored, source)
    missing = [name for name, one in found.items() if one is None]
    if missing and not may_lack_columns:
        raise SchemaMismatchError(
            f"Cannot merge all columns into {table}: the source lacks {', '.join(missing)}",
            hint="Name the columns to set, add the missing ones to the source, or merge with schema evolution.",
        )
    return {_quoted(name): Name((SOURCE, one)) for name, one in found.items() if one is not None}


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def updated_values(schema: Schema, values: Mapping[str, Any], compiler: Compiler) -> NewValues:
    """Return how rows that are updated are made: what is assigned is new, the rest as it is stored."""
    columns: dict[str, Make] = {}
    assigned = resolve_assignments(schema, values)
    for part in schema.fields:
        if isinstance(part.field_type, UnknownType):
            continue
        parts = assigned.get(part.field_id)
        if parts is None or () not in parts:
            compiler.used.add((TARGET, part.name))
        columns[part.name] = _assigned(part, _stored(part.name), parts or {}, compiler, part.name)
    return NewValues(columns, compiler)


def inserted_values(schema: Schema, values: Mapping[str, Any], compiler: Compiler, table: str) -> NewValues:
    """Return how rows that are inserted are made: what is not assigned is the default."""
    assigned = resolve_assignments(schema, values)
    columns: dict[str, Make] = {}
    for part in schema.fields:
        if isinstance(part.field_type, UnknownType):
            continue
        parts = assigned.get(part.field_id)
        if parts is not None:
            if () not in parts:
                inner = ".".join((part.name, *next(iter(parts))))
                raise InvalidRequestError(
                    f"Cannot insert a row with a value for {inner!r}: it is a part of a column",
                    hint="Give the whole column.",
                )
            columns[part.name] = _assigned(part, None, parts, compiler, part.name)
            continue
        if part.required and part.write_default is None:
            raise SchemaMismatchError(f"Cannot insert into {table}: the required column {part.name!r} is not assigned")
        columns[part.name] = _default(part)
    return NewValues(columns, compiler)


def _stored(name: str) -> Make:
    return lambda rows: rows.column((TARGET, name))


def _default(part: NestedField) -> Make:
    arrow = to_arrow_type(part.field_type, with_ids=False)
    return lambda rows: repeat_value(part.write_default, part.field_type, arrow, rows.length)


def _assigned(
    part: NestedField, old: Make | None, parts: Mapping[tuple[str, ...], Any], compiler: Compiler, path: str
) -> Make:
    """Return how a column is made of which all is assigned, or some parts, or nothing."""
    if () in parts:
        given = parts[()]
        return converted(compile_value(given, compiler, path), part.field_type, compiler, path)
    assert old is not None
    if not parts:
        return old
    assert isinstance(part.field_type, StructType)
    inner = []
    stored = [one for one in part.field_type.fields if not isinstance(one.field_type, UnknownType)]
    for at, one in enumerate(stored):
        inside = {rest[1:]: value for rest, value in parts.items() if rest[0] == one.name}
        inner.append(_assigned(one, _child(old, at), inside, compiler, f"{path}.{one.name}"))
    arrow = to_arrow_type(part.field_type, with_ids=False)
    fields = [arrow.field(one.name).with_nullable(True) for one in stored]
    return lambda rows: pa.StructArray.from_arrays([make(rows) for make in inner], fields=fields)


def _child(old: Make, at: int) -> Make:
    return lambda rows: pc.struct_field(old(rows), [at])


def compile_value(given: Any, compiler: Compiler, path: str) -> Compiled:
    """Return how a value that is assigned is computed: a text of SQL, or a column."""
    if isinstance(given, Name):
        return compiler.compile(given)
    if not isinstance(given, str):
        raise t.left_to_spark(f"the value of {path} is a {type(given).__name__}, not text")
    return compiler.compile(parse_expression(given, f"the value of {path}").expression)


def converted(value: Compiled, kind: Type, compiler: Compiler, path: str) -> Make:
    """Return how values become those of a column; refuse types of which values could be lost."""
    target = to_arrow_type(kind, with_ids=False)
    have = value.kind
    if have == target:
        return value.array
    if have == t.NULL:
        return lambda rows: pa.nulls(rows.length, target)
    if t.is_computed(have) and t.is_computed(target):
        if not can_assign(have, target):
            raise _unfit(path, have, kind)
        if t.is_zoned(have, target):
            compiler.is_zoned = True
        return lambda rows: assign(value.array(rows), target, path)
    if isinstance(kind, UuidType) and have == t.STRING:
        return lambda rows: _uuids(value.array(rows), path)
    if isinstance(kind, StructType) and _lacks_parts(kind, have):
        raise SchemaMismatchError(f"Cannot write the data: {path}: only whole structs can be written")
    column = NestedField(1, "value", kind)
    matcher = ColumnMatcher(Schema((column,)), pa.schema([pa.field("value", have)]), format_version=3)
    shape = to_arrow_schema(Schema((column,)), with_ids=False).field(0).type

    def make(rows: Rows) -> pa.Array:
        array = value.array(rows)
        made = matcher.match(pa.RecordBatch.from_arrays([array], names=["value"])).column(0)
        return made if made.type == shape else made.cast(shape)

    return make


def _unfit(path: str, have: pa.DataType, kind: Type) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Cannot write the data: it does not fit the table: {path}: {t.shown_name(have)} cannot be written as {kind}"
    )


def _lacks_parts(kind: StructType, have: pa.DataType) -> bool:
    if not pa.types.is_struct(have):
        return False
    names = {have.field(at).name.lower() for at in range(have.num_fields)}
    return any(part.name.lower() not in names for part in kind.fields if not isinstance(part.field_type, UnknownType))


def _uuids(values: pa.Array, path: str) -> pa.Array:
    try:
        found = [None if one is None else uuid.UUID(one).bytes for one in values.to_pylist()]
    except ValueError as error:
        raise SchemaMismatchError(f"Cannot write the column {path!r}: a value is no uuid") from error
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(found, pa.binary(16)))
