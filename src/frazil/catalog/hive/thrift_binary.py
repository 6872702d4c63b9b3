"""Thrift's binary protocol: values of any struct to bytes and back, whether or not this version knows their fields.

A struct stays what it was on the wire: fields by their number, with their type. So what a newer server adds to a table
goes back to it unchanged when the table is altered. Text is decoded on request.

    message   version and type (4 bytes), name, sequence number, then a struct: the arguments, or the result
    struct    type (1 byte), field number (2 bytes), value; repeated, and a zero byte at the end
    list      element type (1 byte), count (4 bytes), values. A map: key type, value type, count, pairs
    string    length (4 bytes), bytes

Bytes from a server are untrusted: lengths are compared with what may come before anything is made of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

BOOL: Final = 2
BYTE: Final = 3
DOUBLE: Final = 4
I16: Final = 6
I32: Final = 8
I64: Final = 10
STRING: Final = 11
STRUCT: Final = 12
MAP: Final = 13
SET: Final = 14
LIST: Final = 15

CALL: Final = 1
REPLY: Final = 2
EXCEPTION: Final = 3

MAX_MESSAGE_BYTES: Final = 1 << 28
_MAX_DEPTH: Final = 32
_VERSION: Final = 0x80010000
_NUMBERS: Final = {
    BOOL: struct.Struct(">?"),
    BYTE: struct.Struct(">b"),
    DOUBLE: struct.Struct(">d"),
    I16: struct.Struct(">h"),
    I32: struct.Struct(">i"),
    I64: struct.Struct(">q"),
}
_LEAST_BYTES: Final = {
    BOOL: 1,
    BYTE: 1,
    DOUBLE: 8,
    I16: 2,
    I32: 4,
    I64: 8,
    STRING: 4,
    STRUCT: 1,
    MAP: 6,
    SET: 5,
    LIST: 5,
}


class ThriftError(Exception):
    """Bytes that are not a message of the protocol. Does not leave the catalog room."""


@dataclass(frozen=True, slots=True)
class ThriftList:
    """A list or a set, with the type of its elements."""

    element_type: int
    items: tuple[Any, ...]
    type: int = LIST


@dataclass(frozen=True, slots=True)
class ThriftMap:
    """A map, with the types of its keys and values."""

    key_type: int
    value_type: int
    items: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class ThriftStruct:
    """A struct: types and values by the number of the field."""

    fields: Mapping[int, tuple[int, Any]] = field(default_factory=dict)

    def get(self, number: int) -> Any:
        """Return a field's value, or None."""
        entry = self.fields.get(number)
        return None if entry is None else entry[1]

    def text(self, number: int) -> str | None:
        """Return a field's text, or None if it is absent or not text."""
        value = self.get(number)
        return decode_text(value) if isinstance(value, bytes) else None

    def texts(self, number: int) -> dict[str, str]:
        """Return a field that maps text to text; empty if it is absent."""
        value = self.get(number)
        if not isinstance(value, ThriftMap):
            return {}
        pairs = ((key, item) for key, item in value.items if isinstance(key, bytes) and isinstance(item, bytes))
        return {decode_text(key): decode_text(item) for key, item in pairs}

    def structs(self, number: int) -> tuple[ThriftStruct, ...]:
        """Return a field that is a list of structs; empty if it is absent."""
        value = self.get(number)
        items = value.items if isinstance(value, ThriftList) else ()
        return tuple(item for item in items if isinstance(item, ThriftStruct))

    def changed(self, fields: Mapping[int, tuple[int, Any]]) -> ThriftStruct:
        """Return the struct with other values for some fields; a value of None removes a field."""
        merged = {**self.fields, **fields}
        return replace(self, fields={number: pair for number, pair in merged.items() if pair[1] is not None})


def decode_text(value: bytes) -> str:
    """Return bytes as text; invalid UTF-8 round-trips."""
    return value.decode("utf-8", errors="surrogateescape")


def text_value(text: str | None) -> tuple[int, Any]:
    """Return a text as a field."""
    return STRING, None if text is None else text.encode("utf-8", errors="surrogateescape")


def texts_value(texts: Mapping[str, str]) -> tuple[int, ThriftMap]:
    """Return a map of text to text as a field."""
    pairs = tuple((text_value(key)[1], text_value(value)[1]) for key, value in texts.items())
    return MAP, ThriftMap(STRING, STRING, pairs)


def list_value(element_type: int, items: Iterable[Any]) -> tuple[int, ThriftList]:
    """Return a list as a field."""
    return LIST, ThriftList(element_type, tuple(items))


# Encoding


def encode_message(name: str, arguments: ThriftStruct, sequence: int) -> bytes:
    """Return a call as bytes."""
    out = bytearray(struct.pack(">I", _VERSION | CALL))
    _encode(out, STRING, name.encode())
    out += struct.pack(">i", sequence)
    _encode(out, STRUCT, arguments)
    return bytes(out)


def _encode(out: bytearray, type_id: int, value: Any) -> None:
    number = _NUMBERS.get(type_id)
    if number is not None:
        out += number.pack(value)
    elif type_id == STRING:
        out += struct.pack(">i", len(value))
        out += value
    elif type_id == STRUCT:
        for field_number, (field_type, inner) in value.fields.items():
            out += struct.pack(">bh", field_type, field_number)
            _encode(out, field_type, inner)
        out.append(0)
    elif type_id == MAP:
        out += struct.pack(">bbi", value.key_type, value.value_type, len(value.items))
        for key, inner in value.items:
            _encode(out, value.key_type, key)
            _encode(out, value.value_type, inner)
    else:
        out += struct.pack(">bi", value.element_type, len(value.items))
        for inner in value.items:
            _encode(out, value.element_type, inner)


# Decoding


class MessageReader:
    """Reads one message from a source of bytes that returns exactly as many as asked for."""

    __slots__ = ("_left", "_read")

    def __init__(self, read: Callable[[int], bytes], *, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._read = read
        self._left = max_bytes

    def read_message(self, name: str, sequence: int) -> tuple[int, ThriftStruct]:
        """Return the type and the struct of the answer to a call."""
        head = int.from_bytes(self._take(4), "big")
        if head & 0xFFFF0000 != _VERSION:
            raise ThriftError("it is not a Thrift message")
        answered = decode_text(self._value(STRING, 0))
        entry = self._value(I32, 0)
        if answered != name or entry != sequence:
            raise ThriftError(f"it answers {answered[:60]!r} and not {name!r}")
        value: ThriftStruct = self._value(STRUCT, 0)
        return head & 0xFF, value

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise ThriftError(f"it is larger than {MAX_MESSAGE_BYTES} bytes")
        self._left -= count
        return self._read(count)

    def _value(self, type_id: int, depth: int) -> Any:
        number = _NUMBERS.get(type_id)
        if number is not None:
            return number.unpack(self._take(number.size))[0]
        if type_id == STRING:
            return self._take(int.from_bytes(self._take(4), "big", signed=True))
        if depth >= _MAX_DEPTH:
            raise ThriftError(f"it is nested more than {_MAX_DEPTH} deep")
        if type_id == STRUCT:
            return self._struct(depth)
        if type_id == MAP:
            key_type, value_type, count = struct.unpack(">bbi", self._take(6))
            self._check_count(count, key_type, value_type)
            pairs = [(self._value(key_type, depth + 1), self._value(value_type, depth + 1)) for _ in range(count)]
            return ThriftMap(key_type, value_type, tuple(pairs))
        if type_id in (LIST, SET):
            element_type, count = struct.unpack(">bi", self._take(5))
            self._check_count(count, element_type)
            return ThriftList(element_type, tuple(self._value(element_type, depth + 1) for _ in range(count)), type_id)
        raise ThriftError(f"it has a value of the unknown type {type_id}")

    def _struct(self, depth: int) -> ThriftStruct:
        fields: dict[int, tuple[int, Any]] = {}
        while True:
            type_id = self._take(1)[0]
            if type_id == 0:
                return ThriftStruct(fields)
            field_number = int.from_bytes(self._take(2), "big", signed=True)
            fields[field_number] = (type_id, self._value(type_id, depth + 1))

    def _check_count(self, count: int, *types: int) -> None:
        # An empty map may name no types.
        least = sum(_LEAST_BYTES.get(type_id, 1) for type_id in types)
        if count < 0 or count * least > self._left:
            raise ThriftError(f"it declares {count} elements, more than fit")
