"""New values of rows: the column values from `SET column = expression` and from the inserts of a merge.

Expressions are assigned by the rules of ANSI SQL (`sql_casts.assign`): a value that does not fit is an error.
Unassigned
columns keep their stored value, or get the default in a new row. Assigning a part of a struct rebuilds the struct from
the new value and the old ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from frazil.change_rows.assigned_names import resolve_assignments, same_names
from frazil.codec.arrow_schema import to_arrow_schema, to_arrow_type
from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.value_arrays import repeat_value
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import SOURCE, TARGET, Compiled, Compiler, Rows
from frazil.evaluate.sql_casts import assign, can_assign
from frazil.expr.expressions import Name
from frazil.expr.parse import parse_expression
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType, TimeType, Type, UnknownType, UuidType
from frazil.spec.values import to_internal

Make: TypeAlias = Callable[[Rows], pa.Array]
"""Computes a column of new rows."""


class NewValues:
    """Computes the columns of new rows in stored form, and tells which columns of both sides it reads."""

    def __init__(self, columns: Mapping[str, Make], compiler: Compiler) -> None:
        self.columns = columns
        self._compiler = compiler

    def used(self, side: str) -> list[str]:
        """Return the columns used from one side."""
        return sorted(name for used_side, name in self._compiler.used if used_side == side)

    def arrays(self, rows: Rows) -> dict[str, pa.Array]:
        """Return the columns of new rows."""
        return {name: make(rows) for name, make in self.columns.items()}


def all_values(
    schema: Schema, source: Mapping[str, Any], table: str, *, may_lack_columns: bool = False
) -> dict[str, Name]:
    """Return the assignment of every column from the source column of the same name."""
    stored = [field.name for field in schema.fields if not isinstance(field.field_type, UnknownType)]
    sources = same_names(stored, source)
    missing = [name for name, value in sources.items() if value is None]
    if missing and not may_lack_columns:
        raise SchemaMismatchError(
            f"Cannot set all columns of {table}: the source lacks {', '.join(missing)}",
            hint="Add the missing columns to the source, or name the columns to set in the clauses of a merge.",
        )
    return {_quoted(name): Name((SOURCE, value)) for name, value in sources.items() if value is not None}


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def updated_values(schema: Schema, values: Mapping[str, Any], compiler: Compiler) -> NewValues:
    """Compile the values of updated rows: assigned columns are new, the others are kept."""
    columns: dict[str, Make] = {}
    assigned = resolve_assignments(schema, values)
    for field in schema.fields:
        if isinstance(field.field_type, UnknownType):
            continue
        parts = assigned.get(field.field_id)
        if parts is None or () not in parts:
            compiler.used.add((TARGET, field.name))
        columns[field.name] = _assigned(field, _stored(field.name), parts or {}, compiler, field.name)
    return NewValues(columns, compiler)


def inserted_values(schema: Schema, values: Mapping[str, Any], compiler: Compiler, table: str) -> NewValues:
    """Compile the values of inserted rows: unassigned columns get their defaults."""
    assigned = resolve_assignments(schema, values)
    columns: dict[str, Make] = {}
    for field in schema.fields:
        if isinstance(field.field_type, UnknownType):
            continue
        parts = assigned.get(field.field_id)
        if parts is not None:
            if () not in parts:
                inner = ".".join((field.name, *next(iter(parts))))
                raise InvalidRequestError(
                    f"Cannot insert a row with a value for {inner!r}: it is a part of a column",
                    hint="Assign the whole column.",
                )
            columns[field.name] = _assigned(field, None, parts, compiler, field.name)
            continue
        if field.required and field.write_default is None:
            raise SchemaMismatchError(f"Cannot insert into {table}: the required column {field.name!r} is not assigned")
        columns[field.name] = _default(field)
    return NewValues(columns, compiler)


def _stored(name: str) -> Make:
    return lambda rows: rows.column((TARGET, name))


def _default(field: NestedField) -> Make:
    arrow = to_arrow_type(field.field_type, with_ids=False)
    return lambda rows: repeat_value(field.write_default, field.field_type, arrow, rows.length)


def _assigned(
    target: NestedField, old: Make | None, parts: Mapping[tuple[str, ...], Any], compiler: Compiler, path: str
) -> Make:
    """Compile a column of which all, some parts or nothing is assigned."""
    if () in parts:
        value = parts[()]
        return converted(compile_value(value, compiler, path), target.field_type, compiler, path)
    assert old is not None
    if not parts:
        return old
    assert isinstance(target.field_type, StructType)
    inner = []
    stored = [child for child in target.field_type.fields if not isinstance(child.field_type, UnknownType)]
    for index, field in enumerate(stored):
        inside = {rest[1:]: value for rest, value in parts.items() if rest[0] == field.name}
        inner.append(_assigned(field, _child(old, index), inside, compiler, f"{path}.{field.name}"))
    arrow = to_arrow_type(target.field_type, with_ids=False)
    fields = [arrow.field(child.name).with_nullable(True) for child in stored]
    return lambda rows: pa.StructArray.from_arrays([make(rows) for make in inner], fields=fields)


def _child(old: Make, index: int) -> Make:
    return lambda rows: pc.struct_field(old(rows), [index])


def compile_value(value: Any, compiler: Compiler, path: str) -> Compiled:
    """Compile an assigned value: SQL text, or a column."""
    if isinstance(value, Name):
        return compiler.compile(value)
    if not isinstance(value, str):
        raise t.left_to_spark(f"the value of {path} is a {type(value).__name__}, not text")
    return compiler.compile(parse_expression(value, f"the value of {path}"))


def converted(value: Compiled, data_type: Type, compiler: Compiler, path: str) -> Make:
    """Convert values to the type of a column; refuse types for which values could be lost."""
    target = to_arrow_type(data_type, with_ids=False)
    have = value.data_type
    if have == target:
        return value.array
    if have == t.NULL:
        return lambda rows: pa.nulls(rows.length, target)
    if t.is_computed(have) and t.is_computed(target):
        if not can_assign(have, target):
            raise _unfit(path, have, data_type)
        if t.is_zoned(have, target):
            compiler.is_zoned = True
        return lambda rows: assign(value.array(rows), target, path)
    if isinstance(data_type, UuidType) and have == t.STRING:
        return lambda rows: _uuids(value.array(rows), path)
    if isinstance(data_type, TimeType) and have == t.STRING:
        return lambda rows: _times(value.array(rows), path)
    if isinstance(data_type, StructType) and _lacks_parts(data_type, have):
        raise SchemaMismatchError(f"Cannot write the data: {path}: only whole structs can be written")
    column = NestedField(1, "value", data_type)
    matcher = ColumnMatcher(Schema((column,)), pa.schema([pa.field("value", have)]), format_version=3)
    shape = to_arrow_schema(Schema((column,)), with_ids=False).field(0).type

    def make(rows: Rows) -> pa.Array:
        array = value.array(rows)
        converted_array = matcher.match(pa.RecordBatch.from_arrays([array], names=["value"])).column(0)
        return converted_array if converted_array.type == shape else converted_array.cast(shape)

    return make


def _unfit(path: str, have: pa.DataType, data_type: Type) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Cannot write the data: it does not fit the table: {path}: "
        f"{t.shown_name(have)} cannot be written as {data_type}"
    )


def _lacks_parts(struct: StructType, have: pa.DataType) -> bool:
    if not pa.types.is_struct(have):
        return False
    names = {have.field(index).name.lower() for index in range(have.num_fields)}
    return any(
        field.name.lower() not in names for field in struct.fields if not isinstance(field.field_type, UnknownType)
    )


def _uuids(values: pa.Array, path: str) -> pa.Array:
    try:
        uuids = [None if value is None else uuid.UUID(value).bytes for value in values.to_pylist()]
    except ValueError as error:
        raise SchemaMismatchError(f"Cannot write the column {path!r}: a value is not a uuid") from error
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(uuids, pa.binary(16)))


def _times(values: pa.Array, path: str) -> pa.Array:
    try:
        times = [None if value is None else to_internal(value, TimeType()) for value in values.to_pylist()]
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"Cannot write the column {path!r}: a value is not a time of day") from error
    return pa.array(times, t.TIME)
