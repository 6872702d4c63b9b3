"""Convert values as in `spec/types.py` to Arrow arrays and back, including nested types.

Readers use it for constant columns: defaults, partition values, metadata columns. The Arrow types are those of
`codec/arrow_schema.py`; other layouts of the same type (large, fixed-size) are accepted when reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.codec import partition_arrow
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import SchemaMismatchError
from frazil.spec import types as ft

_MAX_REPEATED_BYTES = 1 << 30


def array_of(values: Sequence[Any], data_type: ft.Type, arrow: pa.DataType | None = None) -> pa.Array:
    """Return values of a type as an array; `arrow` is the Arrow type if its field names or metadata matter."""
    target = to_arrow_type(data_type) if arrow is None else arrow
    if isinstance(data_type, ft.StructType):
        return _structs(values, data_type, target)
    if isinstance(data_type, ft.ListType):
        parts = [[] if value is None else list(value) for value in values]
        flat = array_of([item for items in parts for item in items], data_type.element_type, target.value_type)
        return _lists(values, parts, flat, target)
    if isinstance(data_type, ft.MapType):
        pairs = [[] if value is None else list(value.items()) for value in values]
        keys = array_of([key for pair in pairs for key, _ in pair], data_type.key_type, target.key_type)
        items = array_of([item for pair in pairs for _, item in pair], data_type.value_type, target.item_type)
        entries = pa.Array.from_buffers(
            pa.struct([target.key_field, target.item_field]), len(keys), [None], children=[keys, items]
        )
        return _lists(values, pairs, entries, target)
    if isinstance(data_type, ft.VariantType):
        return pa.array(values, target)
    plain = ft.BINARY if isinstance(data_type, ft.GeometryType | ft.GeographyType) else data_type
    array = partition_arrow.array_of(values, plain)
    if isinstance(data_type, ft.UuidType) and isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array)
    return array


def _structs(values: Sequence[Any], data_type: ft.StructType, target: pa.DataType) -> pa.Array:
    children = [
        array_of(
            [None if value is None else value.get(field.name) for value in values],
            field.field_type,
            target.field(index).type,
        )
        for index, field in enumerate(data_type.fields)
    ]
    return pa.Array.from_buffers(target, len(values), [_validity(values)], children=children)


def _lists(values: Sequence[Any], parts: list[list[Any]], flat: pa.Array, target: pa.DataType) -> pa.Array:
    ends = 0
    offsets = [0]
    for items in parts:
        ends += len(items)
        offsets.append(ends)
    if ends > 2**31 - 1:
        raise SchemaMismatchError(f"Cannot make an array of {target}: its lists have {ends} items in total")
    buffers = [_validity(values), pa.array(offsets, pa.int32()).buffers()[1]]
    return pa.Array.from_buffers(target, len(values), buffers, children=[flat])


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    if all(value is not None for value in values):
        return None
    return pa.array([value is not None for value in values], pa.bool_()).buffers()[1]


def repeated_bytes(value: Any, data_type: ft.Type, arrow: pa.DataType) -> int:
    """Return the approximate size per row of a column with one value in all rows."""
    return _null_bytes(arrow) if value is None else int(array_of([value], data_type, arrow).nbytes)


def _null_bytes(arrow: pa.DataType) -> int:
    """Return the size of a null if it is not small: for a type of fixed size, that of a value."""
    if isinstance(arrow, pa.BaseExtensionType):
        return _null_bytes(arrow.storage_type)
    if pa.types.is_struct(arrow):
        return sum(_null_bytes(field.type) for field in arrow)
    return int(arrow.byte_width) if pa.types.is_fixed_size_binary(arrow) else 0


def repeat_value(value: Any, data_type: ft.Type, arrow: pa.DataType, length: int) -> pa.Array:
    """Return a column with one value in all rows."""
    if length == 0:
        return array_of([], data_type, arrow)
    # Metadata may contain a default of megabytes, or a fixed type of gigabytes.
    total = length * repeated_bytes(value, data_type, arrow)
    if total > _MAX_REPEATED_BYTES:
        raise SchemaMismatchError(
            f"Cannot make a column of {data_type}: one value in {length} rows takes {total} bytes"
        )
    if value is None:
        return pa.nulls(length, arrow)
    single = array_of([value], data_type, arrow)
    if isinstance(data_type, ft.StructType | ft.ListType | ft.MapType | ft.VariantType):
        return single.take(pa.array(np.zeros(length, np.int32)))
    storage = single.storage if isinstance(single.type, pa.BaseExtensionType) else single
    repeated = pa.repeat(storage[0], length)
    return pa.ExtensionArray.from_storage(arrow, repeated) if isinstance(arrow, pa.BaseExtensionType) else repeated


def values_of(array: pa.Array | pa.ChunkedArray, data_type: ft.Type) -> list[Any]:
    """Return an array as values of a type; a struct becomes a dict with the type's own names."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values_of(chunk, data_type)]
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if isinstance(data_type, ft.StructType):
        columns = [values_of(array.field(index), field.field_type) for index, field in enumerate(data_type.fields)]
        names = [field.name for field in data_type.fields]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{} for _ in array]
        return [row if is_valid else None for row, is_valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if isinstance(data_type, ft.ListType):
        return _list_values(array, values_of(array.values, data_type.element_type))
    if isinstance(data_type, ft.MapType):
        keys, items = values_of(array.keys, data_type.key_type), values_of(array.items, data_type.value_type)
        maps = _list_values(array, list(zip(keys, items, strict=True)))
        return [None if pairs is None else dict(pairs) for pairs in maps]
    if isinstance(data_type, ft.VariantType):
        return list(array.to_pylist())
    plain = ft.BINARY if isinstance(data_type, ft.GeometryType | ft.GeographyType) else data_type
    return partition_arrow.values_of(array, plain)


def _list_values(array: pa.Array, flat: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [flat[offsets[index] : offsets[index + 1]] if is_valid else None for index, is_valid in enumerate(valid)]
