"""Rows of a small Avro container as Arrow columns, decoded value by value in Python.

`codec/avro_decode.py` uses DataFusion for large containers. Loading it takes a quarter of a second, and each call more
than a millisecond; the manifest list of a table with a dozen manifests is decoded faster here. Both decoders return
the same columns for the same bytes and refuse the same bytes, with one exception: DataFusion reads the branch of a
union that is neither 0 nor 1 as the branch that is not null.

Each leaf is a `_Column`: a function that reads one value and appends it, and the lists it appends to. Lists store
their items in separate columns, so that no object is created for a list, a pair or a struct.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.codec.avro_schema import AvroType, Leaf

_INT_LIMIT = 1 << 32
_LONG_LIMIT = 1 << 64
_MAX_ITEMS = 2**31 - 1

Read = Callable[[bytes, int], int]
"""Reader of the value at an offset, which stores it and returns the offset after it."""


class RowsRefusal(Exception):
    """Bytes that do not follow the schema; the container adds the file."""


def decode_rows(blocks: Iterable[tuple[int, bytes]], leaves: Sequence[Leaf], wanted: Sequence[int]) -> list[pa.Array]:
    """Return the wanted leaves of blocks, given as row counts and bytes that the rows must use up."""
    columns = [_column(leaf.avro_type) for leaf in leaves]
    readers = [column.read for column in columns]
    try:
        for count, content in blocks:
            offset = 0
            for _ in range(count):
                for read in readers:
                    offset = read(content, offset)
            if offset != len(content):
                raise RowsRefusal(f"{len(content) - offset} bytes follow the last row")
        return [columns[offset].array() for offset in wanted]
    except (IndexError, struct.error):
        raise RowsRefusal("unexpected end of data") from None
    except UnicodeDecodeError:
        raise RowsRefusal("text is not UTF-8") from None


def find_spans(
    samples: Iterable[tuple[int, bytes]], leaves: Sequence[Leaf]
) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Yield each of the first rows of some blocks: the block, and the start and end of each leaf."""
    readers = [_column(leaf.avro_type).read for leaf in leaves]
    try:
        for count, content in samples:
            offset = 0
            for _ in range(count):
                spans: list[tuple[int, int]] = []
                for read in readers:
                    start, offset = offset, read(content, offset)
                    spans.append((start, offset))
                yield content, spans
    except (IndexError, struct.error):
        raise RowsRefusal("unexpected end of data") from None
    except UnicodeDecodeError:
        raise RowsRefusal("text is not UTF-8") from None


class _Column:
    """The values of one type that were read so far."""

    __slots__ = ("array", "null", "read")

    def __init__(self, read: Read, null: Callable[[], None], array: Callable[[], pa.Array]) -> None:
        self.read = read
        self.null = null
        self.array = array


def _column(avro_type: AvroType) -> _Column:
    column = _MAKERS[avro_type.kind](avro_type)
    if not avro_type.is_optional:
        return column
    read_value, keep_null = column.read, column.null
    null_byte, value_byte = 2 * avro_type.null_branch, 2 - 2 * avro_type.null_branch

    def read(data: bytes, offset: int) -> int:
        branch = data[offset]
        if branch == value_byte:
            return read_value(data, offset + 1)
        if branch == null_byte:
            keep_null()
            return offset + 1
        number, _ = read_number(data, offset, _INT_LIMIT)
        raise RowsRefusal(f"a union has no branch {number}")

    return _Column(read, keep_null, column.array)


def read_number(data: bytes, offset: int, limit: int) -> tuple[int, int]:
    """Return the zigzag varint at an offset, and the offset after it."""
    byte = data[offset]
    offset += 1
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise RowsRefusal("a number has more than 64 bits")
    if value >= limit:
        raise RowsRefusal("a number is too large for its type")
    return (value >> 1) ^ -(value & 1), offset


def _scalars(read: Callable[[Callable[[Any], None]], Read], arrow_type: pa.DataType) -> _Column:
    """Return a column of values that a reader appends to one list."""
    values: list[Any] = []

    def array() -> pa.Array:
        # Most columns of a small manifest hold only nulls, which are cheaper to create than to convert.
        return pa.nulls(len(values), arrow_type) if values.count(None) == len(values) else pa.array(values, arrow_type)

    return _Column(read(values.append), lambda: values.append(None), array)


def _integers(avro_type: AvroType) -> _Column:
    limit = _INT_LIMIT if avro_type.kind == "int" else _LONG_LIMIT

    def make(keep: Callable[[Any], None]) -> Read:
        def read(data: bytes, offset: int) -> int:
            byte = data[offset]
            if byte < 0x80:
                keep((byte >> 1) ^ -(byte & 1))
                return offset + 1
            value, offset = read_number(data, offset, limit)
            keep(value)
            return offset

        return read

    return _scalars(make, pa.int32() if avro_type.kind == "int" else pa.int64())


def _booleans(avro_type: AvroType) -> _Column:
    def make(keep: Callable[[Any], None]) -> Read:
        def read(data: bytes, offset: int) -> int:
            keep(data[offset] != 0)
            return offset + 1

        return read

    return _scalars(make, pa.bool_())


def _floats(avro_type: AvroType) -> _Column:
    form = struct.Struct("<f" if avro_type.kind == "float" else "<d")

    def make(keep: Callable[[Any], None]) -> Read:
        def read(data: bytes, offset: int) -> int:
            keep(form.unpack_from(data, offset)[0])
            return offset + form.size

        return read

    return _scalars(make, pa.float32() if avro_type.kind == "float" else pa.float64())


def _bytes(avro_type: AvroType) -> _Column:
    is_text = avro_type.kind == "string"

    def make(keep: Callable[[Any], None]) -> Read:
        def read(data: bytes, offset: int) -> int:
            length = data[offset]
            if length < 0x80 and not length & 1:
                length >>= 1
                offset += 1
            else:
                length, offset = read_number(data, offset, _LONG_LIMIT)
                if length < 0:
                    raise RowsRefusal(f"a length is {length}")
            end = offset + length
            if end > len(data):
                raise IndexError
            keep(data[offset:end].decode() if is_text else data[offset:end])
            return end

        return read

    return _scalars(make, pa.string() if is_text else pa.binary())


def _fixed(avro_type: AvroType) -> _Column:
    size = avro_type.size

    def make(keep: Callable[[Any], None]) -> Read:
        def read(data: bytes, offset: int) -> int:
            if offset + size > len(data):
                raise IndexError
            keep(data[offset : offset + size])
            return offset + size

        return read

    return _scalars(make, pa.binary(size))


def _nothing(avro_type: AvroType) -> _Column:
    """Return the column of the null type, which has no bytes and is never requested."""
    return _Column(lambda data, offset: offset, lambda: None, lambda: pa.nulls(0))


def _lists(avro_type: AvroType) -> _Column:
    """Return the column of an array or a map: the number of items of each, and the items in separate columns."""
    assert avro_type.items is not None
    is_map = avro_type.kind == "map"
    items = _column(avro_type.items)
    keys = _bytes(AvroType("string")) if is_map else None
    read_key, read_item = keys.read if keys is not None else None, items.read
    lengths: list[int | None] = []

    def read(data: bytes, offset: int) -> int:
        total = 0
        while True:
            count, offset = read_number(data, offset, _LONG_LIMIT)
            if count == 0:
                lengths.append(total)
                return offset
            if count < 0:
                # A negative count is followed by the size of the items, for readers that skip them.
                count = -count
                size, offset = read_number(data, offset, _LONG_LIMIT)
                if size < 0:
                    raise RowsRefusal(f"a size is {size}")
            total += count
            if total > _MAX_ITEMS:
                raise RowsRefusal(f"a list has {total} items")
            for _ in range(count):
                if read_key is not None:
                    offset = read_key(data, offset)
                offset = read_item(data, offset)

    def array() -> pa.Array:
        offsets = accumulate((length or 0 for length in lengths), initial=0)
        places = pa.array(np.fromiter(offsets, np.int32, len(lengths) + 1))
        mask = pa.array([length is None for length in lengths], pa.bool_()) if None in lengths else None
        if keys is not None:
            return pa.MapArray.from_arrays(places, keys.array(), items.array(), mask=mask)
        return pa.ListArray.from_arrays(places, items.array(), mask=mask)

    return _Column(read, lambda: lengths.append(None), array)


def _records(avro_type: AvroType) -> _Column:
    """Return the column of a record: its fields in separate columns, and which records are not null."""
    columns = [
        (f"c{index}", _column(field.avro_type))
        for index, field in enumerate(avro_type.fields)
        if field.avro_type.min_size > 0
    ]
    readers = [column.read for _, column in columns]
    valid: list[bool] = []

    def read(data: bytes, offset: int) -> int:
        for read_field in readers:
            offset = read_field(data, offset)
        valid.append(True)
        return offset

    def null() -> None:
        for _, column in columns:
            column.null()
        valid.append(False)

    def array() -> pa.Array:
        arrays = [column.array() for _, column in columns]
        struct_type = pa.struct([(name, child.type) for (name, _), child in zip(columns, arrays, strict=True)])
        validity = None if all(valid) else pa.array(valid, pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(struct_type, len(valid), [validity], children=arrays)

    return _Column(read, null, array)


_MAKERS: dict[str, Callable[[AvroType], _Column]] = {
    "null": _nothing,
    "boolean": _booleans,
    "int": _integers,
    "long": _integers,
    "float": _floats,
    "double": _floats,
    "bytes": _bytes,
    "string": _bytes,
    "fixed": _fixed,
    "array": _lists,
    "map": _lists,
    "record": _records,
}
