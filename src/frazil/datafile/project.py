"""Project a file's columns to the table's. Specification: "Column Projection", "Schema Evolution", "Default values".

`spec/column_projection.py` decides the source of each requested field. This module selects the stored columns, and
converts the file's arrays to the table's: it selects and orders fields by id, promotes types, and fills in constants,
at every level. A projection is created once per file and used for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import with_values
from frazil.codec.arrow_schema import to_arrow_schema, to_arrow_type
from frazil.datafile.convert_leaf import Convert, keep, leaf_converter
from frazil.datafile.file_schema import FileField, is_list, walk
from frazil.datafile.value_arrays import repeat_value, repeated_bytes
from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spec.column_projection import ResolvedColumn
from frazil.spec.schema import Schema
from frazil.spec.types import BINARY, ListType, MapType, NestedField, StructType, VariantType

HEADING = "Column Projection"
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
"""The type of text columns that are read as dictionaries."""


def find_field(column: ResolvedColumn, fields: Sequence[FileField]) -> FileField:
    """Return the file's field for a column, which may be identified only by the ids of its parts."""
    field_id = column.field.field_id
    for field in fields:
        if field.field_id == field_id:
            return field
    nested_ids = _ids_below(column)
    for file_field in fields:
        if any(field.field_id in nested_ids for field in walk(file_field.parts)):
            return file_field
    raise _refused(column.field, "the file has no such column")


def _ids_below(column: ResolvedColumn) -> set[int]:
    ids: set[int] = set()
    stack = list(column.parts)
    while stack:
        inner = stack.pop()
        ids.add(inner.field.field_id)
        stack += inner.parts
    return ids


def needed_leaves(columns: Iterable[ResolvedColumn], fields: Sequence[FileField]) -> set[int]:
    """Return the numbers of the stored columns needed for the columns."""
    leaves: set[int] = set()
    for column in columns:
        if not column.is_constant:
            leaves |= _leaves_of(column, find_field(column, fields))
    return leaves


def _leaves_of(column: ResolvedColumn, file_field: FileField) -> set[int]:
    data_type = column.field.field_type
    if isinstance(data_type, StructType) and file_field.parts:
        leaves = needed_leaves(column.parts, file_field.parts)
        # Some column of a struct must be read to know which of its values are null.
        return leaves or {_first_plain_leaf(file_field)}
    if isinstance(data_type, ListType | MapType) and len(file_field.parts) == len(column.parts):
        leaves = set()
        for inner, inner_part in zip(column.parts, file_field.parts, strict=True):
            leaves |= {inner_part.start} if inner.is_constant else _leaves_of(inner, inner_part)
        if isinstance(data_type, MapType):
            # A map without its whole key is read as a list.
            leaves |= set(range(file_field.parts[0].start, file_field.parts[0].end))
        return leaves
    return set(range(file_field.start, file_field.end))


def _first_plain_leaf(file_field: FileField) -> int:
    """Return a stored column of a struct that is not inside a list, if there is one."""
    for child in file_field.parts:
        if not child.parts:
            return child.start
        if pa.types.is_struct(child.arrow):
            return _first_plain_leaf(child)
    return file_field.start


class Projection:
    """Converts batches of one file to the columns of a schema; `fields` are the file's, as read.

    With `keeps_dictionaries`, text columns read as dictionaries stay dictionaries, for comparisons.
    """

    def __init__(
        self, columns: Sequence[ResolvedColumn], fields: Sequence[FileField], *, keeps_dictionaries: bool = False
    ) -> None:
        self.columns = tuple(column.field for column in columns)
        self.schema = to_arrow_schema(Schema(self.columns), with_ids=False)
        self.constant_bytes = sum(map(_constant_bytes, columns))
        """The approximate size per row of values that the file does not store."""
        self._steps: list[tuple[NestedField, int | None, Any]] = []
        for column, target in zip(columns, self.schema, strict=True):
            if column.is_constant:
                self._steps.append((column.field, None, (column, target.type)))
                continue
            file_field = find_field(column, fields)
            is_kept = keeps_dictionaries and file_field.arrow == DICTIONARY and target.type == DICTIONARY.value_type
            self._steps.append(
                (column.field, file_field.index, keep if is_kept else _converter(column, file_field, target.type))
            )

    def arrays(self, batch: Any, length: int) -> list[pa.Array]:
        """Return the projected columns of a batch of the file; `length` is its number of rows."""
        arrays = []
        for field, index, step in self._steps:
            if index is None:
                column, target = step
                arrays.append(repeat_value(column.value, field.field_type, target, length))
                continue
            try:
                array = step(batch.column(index))
            except pa.ArrowException as error:
                raise _refused(field, f"a value does not fit {field.field_type} ({str(error)[:160]})") from error
            if field.required and array.null_count:
                raise _refused(field, f"it is required, but {array.null_count} values are null")
            arrays.append(array)
        return arrays

    def batch(self, batch: Any, length: int) -> pa.RecordBatch:
        """Return the projected columns, at least one, as a record batch."""
        return pa.RecordBatch.from_arrays(self.arrays(batch, length), names=self.schema.names)


def _constant_bytes(column: ResolvedColumn) -> int:
    if not column.is_constant:
        return sum(map(_constant_bytes, column.parts))
    data_type = column.field.field_type
    return repeated_bytes(column.value, data_type, to_arrow_type(data_type))


def _refused(field: NestedField, reason: str) -> InvalidDataFileError:
    return InvalidDataFileError(
        f"Cannot read column {field.name!r} (field id {field.field_id}): {reason}", heading=HEADING
    )


def _converter(column: ResolvedColumn, file_field: FileField, target: pa.DataType) -> Convert:
    field = column.field
    if isinstance(file_field.arrow, pa.BaseExtensionType) and pa.types.is_nested(file_field.arrow.storage_type):
        inner = _converter(column, replace(file_field, arrow=file_field.arrow.storage_type), target)
        return lambda array: inner(array.storage)
    data_type = field.field_type
    if _is_unchanged(column, file_field, target):
        return keep
    if isinstance(data_type, VariantType):
        return _variant(field, file_field, target)
    if isinstance(data_type, StructType) and pa.types.is_struct(file_field.arrow):
        return _struct(column, file_field, target)
    if isinstance(data_type, ListType) and is_list(file_field.arrow):
        return _list(column, file_field, target)
    if isinstance(data_type, MapType) and pa.types.is_map(file_field.arrow):
        return _map(column, file_field, target)
    converter = None if file_field.parts else leaf_converter(file_field.arrow, data_type, target)
    if converter is None:
        raise _refused(field, f"the file stores it as {file_field.arrow}, which cannot be read as {data_type}")
    return converter


def _is_unchanged(column: ResolvedColumn, file_field: FileField, target: pa.DataType) -> bool:
    """Return whether a nested column needs no conversion: the same fields in the same order, without constants."""
    if not column.parts or not file_field.arrow.equals(target):
        return False
    stack = [(column, file_field)]
    while stack:
        resolved, stored = stack.pop()
        if resolved.is_constant or len(resolved.parts) != len(stored.parts):
            return False
        is_struct = isinstance(resolved.field.field_type, StructType)
        for inner, inner_part in zip(resolved.parts, stored.parts, strict=True):
            if is_struct and inner.field.field_id != inner_part.field_id:
                return False
            stack.append((inner, inner_part))
    return True


_Part = Callable[[pa.Array], pa.Array]


def _struct(column: ResolvedColumn, file_field: FileField, target: pa.DataType) -> Convert:
    steps: list[tuple[NestedField, _Part]] = []
    for index, inner in enumerate(column.parts):
        steps.append((inner.field, _struct_part(inner, file_field, target.field(index).type)))

    def convert(array: pa.Array) -> pa.Array:
        children = []
        for field, step in steps:
            child = step(array)
            if field.required and child.null_count:
                _check_required(field, child, array)
            children.append(child)
        return pa.Array.from_buffers(target, len(array), [_validity(array)], children=children)

    return convert


def _struct_part(inner: ResolvedColumn, file_field: FileField, target: pa.DataType) -> _Part:
    if inner.is_constant:
        value, field_type = inner.value, inner.field.field_type
        return lambda array: repeat_value(value, field_type, target, len(array))
    stored = find_field(inner, file_field.parts)
    convert, index = _converter(inner, stored, target), stored.index
    return lambda array: convert(array.field(index))


def _check_required(field: NestedField, child: pa.Array, parent: pa.Array) -> None:
    """Refuse nulls of a required field, except below a null struct."""
    missing = child.is_null() if parent.null_count == 0 else pc.and_(child.is_null(), parent.is_valid())
    if pc.any(missing).as_py():
        raise _refused(field, f"it is required, but {pc.sum(missing).as_py()} values are null")


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of an array, starting at its first value."""
    if array.null_count == 0:
        return None
    return array.buffers()[0] if array.offset == 0 else array.is_valid().buffers()[1]


def _list(column: ResolvedColumn, file_field: FileField, target: pa.DataType) -> Convert:
    (inner,) = column.parts
    (stored,) = file_field.parts
    convert = _element(inner, stored, target.value_type)
    is_plain = pa.types.is_list(file_field.arrow)
    field = inner.field

    def apply(array: pa.Array) -> pa.Array:
        if not is_plain:
            array = _plain_list(array)
        values = convert(array.values)
        lists = with_values(array, values, target)
        if field.required and values.null_count and lists.flatten().null_count:
            raise _refused(field, "it is required, but some values are null")
        return lists

    return apply


def _plain_list(array: pa.Array) -> pa.Array:
    """Convert a list of any layout to 32-bit offsets, since casts between layouts are unreliable."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    values = array.flatten()
    buffers = [_validity(array), pa.array(offsets, pa.int32()).buffers()[1]]
    return pa.Array.from_buffers(pa.list_(array.type.value_field), len(array), buffers, children=[values])


def _element(inner: ResolvedColumn, stored: FileField, target: pa.DataType) -> Convert:
    if inner.is_constant:
        value, field_type = inner.value, inner.field.field_type
        return lambda array: repeat_value(value, field_type, target, len(array))
    return _converter(inner, stored, target)


def _map(column: ResolvedColumn, file_field: FileField, target: pa.DataType) -> Convert:
    key, value = column.parts
    convert_keys = _element(key, file_field.parts[0], target.key_type)
    convert_values = _element(value, file_field.parts[1], target.item_type)
    entries = pa.struct([target.key_field, target.item_field])

    def apply(array: pa.Array) -> pa.Array:
        keys, items = convert_keys(array.keys), convert_values(array.items)
        if keys.null_count:
            raise _refused(key.field, "a key of a map is null")
        pairs = pa.Array.from_buffers(entries, len(keys), [None], children=[keys, items])
        maps = with_values(array, pairs, target)
        if value.field.required and items.null_count and pc.any(pc.is_null(_used_items(maps))).as_py():
            raise _refused(value.field, "it is required, but some values are null")
        return maps

    return apply


def _used_items(array: pa.Array) -> pa.Array:
    """Return the items that are part of a map."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.items.slice(first, last - first)


def _variant(field: NestedField, file_field: FileField, target: pa.DataType) -> Convert:
    """Return the conversion of a variant from its two parts, found by name. Specification: "Variant" of Parquet."""
    by_name = {child.name: child for child in file_field.parts}
    if "typed_value" in by_name:
        raise UnsupportedError(
            f"Cannot read column {field.name!r}: its variants are shredded",
            hint="Files of this column must be written without shredding.",
        )
    if set(by_name) != {"metadata", "value"}:
        raise _refused(field, f"the file stores it as {file_field.arrow}, which cannot be read as variant")
    steps = [
        (by_name[arrow_field.name], leaf_converter(by_name[arrow_field.name].arrow, BINARY, arrow_field.type))
        for arrow_field in target
    ]

    def convert(array: pa.Array) -> pa.Array:
        children = []
        for stored, step in steps:
            if step is None:
                raise _refused(field, f"its {stored.name} is stored as {stored.arrow}")
            child = step(array.field(stored.index))
            if child.null_count:
                _check_required(field, child, array)
                child = pc.fill_null(child, b"")
            children.append(child)
        return pa.Array.from_buffers(target, len(array), [_validity(array)], children=children)

    return convert
