"""Fields of an Avro container by id, as Arrow columns of the types a reader expects.

This lies between `codec/avro_decode.py`, which returns columns as Avro stores them, and the readers of manifests and
manifest lists, which use the ids of the specification. It handles fields that are renamed, reordered, missing,
unexpectedly optional or of a since widened type, and maps stored as arrays of pairs or as Avro maps ("Avro", Column
Projection).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import with_values
from frazil.codec.avro_container import SCHEMA_KEY, AvroHeader, AvroLimits, AvroOrigin
from frazil.codec.avro_decode import decode_leaves
from frazil.codec.avro_schema import AvroField, AvroType, flatten, holds_values, parse_schema
from frazil.codec.partition_arrow import FormRefusal, from_avro_form
from frazil.spec.types import ListType, MapType, StructType, Type


@dataclass(frozen=True, slots=True)
class Source:
    """The location of a field: a leaf, and the positions leading to the field inside an optional record."""

    leaf: int
    inner: tuple[int, ...]
    avro_type: AvroType


class FieldReader:
    """A container whose fields are read by id."""

    def __init__(self, data: bytes, header: AvroHeader, origin: AvroOrigin) -> None:
        self._data = data
        self._header = header
        self._origin = origin
        text = header.metadata.get(SCHEMA_KEY)
        if text is None:
            raise origin.fail("its header has no schema")
        self.root = parse_schema(text, origin)
        self.leaves = flatten(self.root, origin)
        if not any(field.field_id is not None for field in self.root.fields):
            raise origin.fail(
                "the fields of its schema have no ids", hint="Metadata files are read by field id; names do not count."
            )
        self._by_path = {leaf.path: index for index, leaf in enumerate(self.leaves)}

    def find(self, path: tuple[int, ...]) -> Source | None:
        """Return where the field with a path of ids is stored, or None if the file has no bytes of such a field."""
        for length in range(len(path), 0, -1):
            index = self._by_path.get(path[:length])
            if index is None:
                continue
            if length == len(path):
                return (
                    Source(index, (), self.leaves[index].avro_type)
                    if holds_values(self.leaves[index].avro_type)
                    else None
                )
            return _find_inside(index, self.leaves[index].avro_type, path[length:])
        return None

    def record_fields(self, path: tuple[int, ...]) -> tuple[AvroField, ...]:
        """Return the fields of the record at a path, empty if there is no such record."""
        record: AvroType | None = self.root
        for field_id in path:
            assert record is not None
            record = next((field.avro_type for field in record.fields if field.field_id == field_id), None)
            if record is None or record.kind != "record":
                return ()
        return record.fields if record is not None else ()

    def read(self, sources: Iterable[Source], *, limits: AvroLimits, threads: int) -> pa.Table:
        """Return the leaves of some sources for all rows."""
        positions = sorted({source.leaf for source in sources})
        return decode_leaves(
            self._data, self._header, self.leaves, positions, self._origin, limits=limits, threads=threads
        )

    def column(
        self, table: pa.Table, source: Source, name: str, data_type: Type, target: pa.DataType
    ) -> pa.ChunkedArray:
        """Return one field of a table from `read`, in the type a reader expects."""
        convert = _converter(data_type, source.avro_type, target)
        if convert is None:
            raise self._origin.fail(f"field {name!r} is stored as {source.avro_type.kind}, not as {data_type}")
        try:
            chunks = [convert(_extract(chunk, source.inner)) for chunk in table.column(f"c{source.leaf}").chunks]
        except FormRefusal as problem:
            raise self._origin.fail(f"field {name!r} is not {data_type}: {problem}") from problem
        except pa.ArrowException as problem:
            raise self._origin.fail(f"field {name!r} is not {data_type}: {str(problem)[:120]}") from problem
        return pa.chunked_array(chunks, target)


def _find_inside(leaf: int, record: AvroType, path: tuple[int, ...]) -> Source | None:
    inner: list[int] = []
    current = record
    for field_id in path:
        position = next((index for index, field in enumerate(current.fields) if field.field_id == field_id), None)
        if position is None:
            return None
        inner.append(position)
        current = current.fields[position].avro_type
    return Source(leaf, tuple(inner), current) if holds_values(current) else None


def _extract(array: pa.Array, inner: tuple[int, ...]) -> pa.Array:
    for position in inner:
        array = pc.struct_field(array, f"c{position}")
    return array


_Convert = Callable[[pa.Array], pa.Array]


def _converter(data_type: Type, form: AvroType, target: pa.DataType) -> _Convert | None:
    """Return the function that converts a stored array to the expected type, or None if that is impossible."""
    if isinstance(data_type, MapType):
        return _map_converter(data_type, form, target)
    if isinstance(data_type, ListType):
        if form.kind != "array" or form.items is None:
            return None
        items = _converter(data_type.element_type, form.items, target.value_type)
        return None if items is None else lambda array: with_values(array, items(array.values), target)
    if isinstance(data_type, StructType):
        return _struct_converter(data_type, form, target)
    if form.kind in ("array", "map", "record"):
        return None
    return lambda array: from_avro_form(array, form, data_type, target)


def _map_converter(data_type: MapType, form: AvroType, target: pa.DataType) -> _Convert | None:
    items = form.items
    if items is None:
        return None
    pair = target.value_type
    if form.kind == "map":
        values_of_map = _converter(data_type.value_type, items, pair.field(1).type)
        return None if values_of_map is None else _avro_map(values_of_map, target)
    if items.kind != "record" or items.is_optional or len(items.fields) != 2:
        return None
    # The first field is the key, whatever the ids say; swapped ids mean swapped fields.
    order = (1, 0) if items.fields[0].field_id == data_type.value_id else (0, 1)
    forms = [items.fields[index].avro_type for index in order]
    if not all(map(holds_values, forms)):
        return None
    key = _converter(data_type.key_type, forms[0], pair.field(0).type)
    value = _converter(data_type.value_type, forms[1], pair.field(1).type)
    if key is None or value is None:
        return None
    convert_keys, convert_values = key, value

    def convert(array: pa.Array) -> pa.Array:
        pairs = array.values
        keys, values = convert_keys(pairs.field(f"c{order[0]}")), convert_values(pairs.field(f"c{order[1]}"))
        if keys.null_count:
            raise FormRefusal("a key is null")
        return with_values(array, _struct([keys, values], len(pairs), pair), target)

    return convert


def _avro_map(values: _Convert, target: pa.DataType) -> _Convert:
    """Return the converter of Avro maps, whose string keys hold column ids as digits."""
    pair = target.value_type

    def convert(array: pa.Array) -> pa.Array:
        keys = array.keys.cast(pair.field(0).type)
        return with_values(array, _struct([keys, values(array.items)], len(keys), pair), target)

    return convert


def _struct_converter(data_type: StructType, form: AvroType, target: pa.DataType) -> _Convert | None:
    if form.kind != "record":
        return None
    by_id = {field.field_id: index for index, field in enumerate(form.fields)}
    parts: list[tuple[int, _Convert] | None] = []
    for field, arrow in zip(data_type.fields, target, strict=True):
        position = by_id.get(field.field_id)
        if position is None or not holds_values(form.fields[position].avro_type):
            if field.required:
                return None
            parts.append(None)
            continue
        converter = _converter(field.field_type, form.fields[position].avro_type, arrow.type)
        if converter is None:
            return None
        parts.append((position, converter))

    def convert(array: pa.Array) -> pa.Array:
        columns = [
            pa.nulls(len(array), arrow.type)
            if part_convert is None
            else part_convert[1](array.field(f"c{part_convert[0]}"))
            for part_convert, arrow in zip(parts, target, strict=True)
        ]
        for field, column in zip(data_type.fields, columns, strict=True):
            if field.required and column.null_count:
                raise FormRefusal(f"{field.name} is null")
        return _struct(columns, len(array), target)

    return convert


def _struct(columns: list[pa.Array], length: int, target: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(target, length, [None], children=columns)
