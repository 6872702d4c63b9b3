"""Rows of a small Avro container, value by value in Python.

`codec/avro_decode.py` has DataFusion decode large containers. Loading that takes a quarter of a second, and each
call some two milliseconds; the manifest list of a table with a dozen manifests decodes faster than that right
here. Both give the same columns for the same bytes. Both refuse the same bytes, but for the number of a union's
branch: where it is neither 0 nor 1, DataFusion takes it for the branch that is not null.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from frazil.codec.avro_schema import AvroType, Leaf

_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_INT_LIMIT = 1 << 32
_LONG_LIMIT = 1 << 64

Reader = Callable[[bytes, int], tuple[Any, int]]


class RowsRefusal(Exception):
    """Bytes that do not follow the schema; the container names the file."""


def decode_rows(content: bytes, count: int, leaves: Sequence[Leaf], wanted: Iterable[int]) -> dict[int, list[Any]]:
    """Return the values of some leaves of rows, which must take all of the bytes."""
    columns: dict[int, list[Any]] = {at: [] for at in wanted}
    readers = [(_reader(leaf.avro_type), columns.get(at)) for at, leaf in enumerate(leaves)]
    at = 0
    try:
        for _ in range(count):
            for read, column in readers:
                value, at = read(content, at)
                if column is not None:
                    column.append(value)
    except (IndexError, struct.error):
        raise RowsRefusal("unexpected end of data") from None
    except UnicodeDecodeError:
        raise RowsRefusal("text is not UTF-8") from None
    if at != len(content):
        raise RowsRefusal(f"{len(content) - at} bytes follow the last row")
    return columns


def _reader(one: AvroType) -> Reader:
    read = _MAKERS[one.kind](one)
    if not one.is_optional:
        return read
    null_branch = one.null_branch

    def read_optional(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = _read_number(data, at, _INT_LIMIT)
        if branch == null_branch:
            return None, at
        if branch != 1 - null_branch:
            raise RowsRefusal(f"a union has no branch {branch}")
        return read(data, at)

    return read_optional


def _read_number(data: bytes, at: int, limit: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise RowsRefusal("a number has more than 64 bits")
    if value >= limit:
        raise RowsRefusal("a number is too large for its type")
    return (value >> 1) ^ -(value & 1), at


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    return _read_number(data, at, _INT_LIMIT)


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    return _read_number(data, at, _LONG_LIMIT)


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    return data[at] != 0, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _read_number(data, at, _LONG_LIMIT)
    end = at + length
    if length < 0:
        raise RowsRefusal(f"a length is {length}")
    if end > len(data):
        raise IndexError
    return data[at:end], end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    value, at = _read_bytes(data, at)
    return value.decode(), at


def _fixed_reader(one: AvroType) -> Reader:
    size = one.size

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(data):
            raise IndexError
        return data[at : at + size], at + size

    return read


def _array_reader(one: AvroType) -> Reader:
    assert one.items is not None
    read_item = _reader(one.items)

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, at = _read_block_count(data, at)
            if count == 0:
                return items, at
            for _ in range(count):
                item, at = read_item(data, at)
                items.append(item)

    return read


def _map_reader(one: AvroType) -> Reader:
    assert one.items is not None
    read_value = _reader(one.items)

    def read(data: bytes, at: int) -> tuple[list[tuple[str, Any]], int]:
        items: list[tuple[str, Any]] = []
        while True:
            count, at = _read_block_count(data, at)
            if count == 0:
                return items, at
            for _ in range(count):
                key, at = _read_string(data, at)
                value, at = read_value(data, at)
                items.append((key, value))

    return read


def _read_block_count(data: bytes, at: int) -> tuple[int, int]:
    count, at = _read_number(data, at, _LONG_LIMIT)
    if count < 0:
        size, at = _read_number(data, at, _LONG_LIMIT)
        if size < 0:
            raise RowsRefusal(f"a size is {size}")
        count = -count
    return count, at


def _record_reader(one: AvroType) -> Reader:
    parts = [(f"c{at}", _reader(part.avro_type)) for at, part in enumerate(one.fields) if part.avro_type.min_size > 0]

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        row = {}
        for name, read_part in parts:
            row[name], at = read_part(data, at)
        return row, at

    return read


_MAKERS: dict[str, Callable[[AvroType], Reader]] = {
    "null": lambda one: _read_null,
    "boolean": lambda one: _read_boolean,
    "int": lambda one: _read_int,
    "long": lambda one: _read_long,
    "float": lambda one: _read_float,
    "double": lambda one: _read_double,
    "bytes": lambda one: _read_bytes,
    "string": lambda one: _read_string,
    "fixed": _fixed_reader,
    "array": _array_reader,
    "map": _map_reader,
    "record": _record_reader,
}
