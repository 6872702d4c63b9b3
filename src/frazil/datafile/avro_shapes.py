"""The columns of an Avro file as Arrow: their types, their parts, and the conversion of decoded arrays.

`codec/avro_decode.py` returns columns in the plain types of Avro: dates are integers, decimals are bytes, maps with
non-string keys are lists of pairs, and a record that cannot be null has no column of its own, but only its fields. They
are converted here to the types of the file's schema; the table's types follow later (`datafile/project.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import with_values
from frazil.codec.avro_schema import AvroField, AvroType
from frazil.codec.avro_types import type_of
from frazil.codec.partition_arrow import FormRefusal, arrow_type_of, from_avro_form
from frazil.datafile.file_schema import FileField

Make = Callable[[Any], pa.Array]


@dataclass(frozen=True, slots=True)
class Shape:
    """An Avro type as Arrow: its type, its named parts, and the conversion of decoded arrays."""

    arrow: pa.DataType
    parts: tuple[tuple[str, int | None, Shape], ...]
    make: Make


def shape_of(avro_type: AvroType) -> Shape:
    """Return the Arrow shape of a type. Schemas bound the depth of the recursion."""
    if avro_type.kind == "record":
        return _record(avro_type)
    if avro_type.kind == "map":
        assert avro_type.items is not None
        values = shape_of(avro_type.items)
        return _map_shape(_TEXT, values, lambda array: (array.keys, array.items), None, None)
    if avro_type.kind == "array":
        assert avro_type.items is not None
        if avro_type.logical == "map" and avro_type.items.kind == "record" and len(avro_type.items.fields) == 2:
            return _pairs(avro_type.items)
        return _array(avro_type.items)
    data_type = type_of(avro_type)
    if data_type is None:
        return Shape(pa.binary(), (), _refuse(avro_type))
    if avro_type.kind == "null":
        return Shape(pa.null(), (), lambda array: pa.nulls(len(array)))
    return Shape(arrow_type_of(data_type), (), lambda array: from_avro_form(array, avro_type, data_type))


def _refuse(avro_type: AvroType) -> Make:
    def raise_refusal(_: pa.Array) -> pa.Array:
        raise FormRefusal(f"it is stored as {avro_type.kind} of the unsupported logical type {avro_type.logical}")

    return raise_refusal


def _record(avro_type: AvroType) -> Shape:
    shapes = [(field, shape_of(field.avro_type)) for field in avro_type.fields]
    target = pa.struct([pa.field(avro_field.name, shape.arrow) for avro_field, shape in shapes])
    stored = [
        (f"c{index}" if avro_field.avro_type.min_size > 0 else None, shape)
        for index, (avro_field, shape) in enumerate(shapes)
    ]
    null_branch = avro_type.null_branch

    def make(array: pa.Array) -> pa.Array:
        if pa.types.is_integer(array.type):
            # An optional record whose fields take no bytes is stored only as the number of its branch.
            valid = pc.not_equal(array, null_branch)
            children = [pa.nulls(len(array), shape.arrow) for _, shape in stored]
            return pa.Array.from_buffers(target, len(array), [valid.buffers()[1]], children=children)
        children = [
            pa.nulls(len(array), shape.arrow) if name is None else shape.make(array.field(name))
            for name, shape in stored
        ]
        validity = None if array.null_count == 0 else array.is_valid().buffers()[1]
        return pa.Array.from_buffers(target, len(array), [validity], children=children)

    return Shape(target, tuple((field.name, field.field_id, shape) for field, shape in shapes), make)


def _array(items: AvroType) -> Shape:
    element = shape_of(items)
    target = pa.list_(pa.field("element", element.arrow))

    def make(array: pa.Array) -> pa.Array:
        return with_values(array, element.make(array.values), target)

    return Shape(target, (("element", None, element),), make)


_TEXT = Shape(pa.string(), (), lambda array: array)


def _pairs(pair: AvroType) -> Shape:
    """Return the shape of a map stored as an array of key and value records."""
    first, second = pair.fields
    key, value = (second, first) if first.name == "value" and second.name == "key" else (first, second)
    numbers = {id(field): number for number, field in enumerate(pair.fields)}

    def split(array: pa.Array) -> tuple[pa.Array, pa.Array]:
        pairs = array.values
        return _pair_part(pairs, key, numbers[id(key)]), _pair_part(pairs, value, numbers[id(value)])

    return _map_shape(shape_of(key.avro_type), shape_of(value.avro_type), split, key.field_id, value.field_id)


def _pair_part(pairs: pa.Array, avro_field: AvroField, index: int) -> pa.Array:
    return pa.nulls(len(pairs)) if avro_field.avro_type.min_size == 0 else pairs.field(f"c{index}")


def _map_shape(
    key: Shape,
    value: Shape,
    split: Callable[[Any], tuple[pa.Array, pa.Array]],
    key_id: int | None,
    value_id: int | None,
) -> Shape:
    target = pa.map_(pa.field("key", key.arrow, nullable=False), pa.field("value", value.arrow))
    entries = pa.struct([target.key_field, target.item_field])

    def make(array: pa.Array) -> pa.Array:
        keys, items = split(array)
        converted_keys = key.make(keys)
        if converted_keys.null_count:
            raise FormRefusal("a key of a map is null")
        pairs = pa.Array.from_buffers(
            entries, len(converted_keys), [None], children=[converted_keys, value.make(items)]
        )
        return with_values(array, pairs, target)

    return Shape(target, (("key", key_id, key), ("value", value_id, value)), make)


def file_field(name: str, field_id: int | None, shape: Shape, index: int, leaf: int) -> FileField:
    """Describe a column like those of other formats; it is a single stored column, number `leaf`."""
    parts = tuple(
        [
            file_field(name_of_part, part_id, inner, position, leaf)
            for position, (name_of_part, part_id, inner) in enumerate(shape.parts)
        ]
    )
    return FileField(name, field_id, shape.arrow, index, parts, leaf, leaf + 1)


class Column:
    """One column of a file: its shape, and the decoded leaves that it consists of."""

    def __init__(self, field: AvroField, first_leaf: int) -> None:
        self.shape = shape_of(field.avro_type)
        self._avro_type = field.avro_type
        self.leaves = range(first_leaf, first_leaf + _leaf_count(field.avro_type))

    def array(self, leaves: dict[int, pa.Array], length: int) -> pa.Array:
        """Assemble the column from its decoded leaves."""
        array, _ = _assemble(self._avro_type, self.shape, leaves, self.leaves.start, length)
        return array


def is_flattened(avro_type: AvroType) -> bool:
    """Return whether a record has no column of its own since it cannot be null; see `codec/avro_schema.flatten`."""
    return avro_type.kind == "record" and not avro_type.is_optional and len(avro_type.fields) > 0


def _leaf_count(avro_type: AvroType) -> int:
    return sum(_leaf_count(field.avro_type) for field in avro_type.fields) if is_flattened(avro_type) else 1


def _assemble(
    avro_type: AvroType, shape: Shape, leaves: dict[int, pa.Array], index: int, length: int
) -> tuple[pa.Array, int]:
    """Return a field's array and the number of the leaf after its last."""
    if not is_flattened(avro_type):
        decoded = leaves.get(index)
        return pa.nulls(length, shape.arrow) if decoded is None else shape.make(decoded), index + 1
    children = []
    for field, (_, _, inner) in zip(avro_type.fields, shape.parts, strict=True):
        child, index = _assemble(field.avro_type, inner, leaves, index, length)
        children.append(child)
    return pa.Array.from_buffers(shape.arrow, length, [None], children=children), index
