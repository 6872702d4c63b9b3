"""Thrift's compact protocol, used by Parquet footers: structures are read by fields, and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from frazil.codec.varint import encode_zigzag
from frazil.datafile.bad_bytes import BadBytes

_MAX_DEPTH = 32
STOP = 0
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""The wire types."""
_INTEGERS = (I16, I32, I64)

FieldHandlers = Mapping[tuple[int, int], Callable[[], None]]
"""The handlers of fields, by number and wire type."""


class CompactReader:
    """A reader with a position in a structure. Reading past the end raises IndexError."""

    __slots__ = ("at", "data", "depth")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0

    def varint(self) -> int:
        """Read an unsigned number."""
        data, offset = self.data, self.at
        value = shift = 0
        while True:
            byte = data[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise BadBytes("a number in its footer has more than 64 bits")
        self.at = offset
        return value

    def integer(self) -> int:
        """Read a signed number."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Read bytes."""
        length = self.varint()
        end = self.at + length
        if end > len(self.data):
            raise IndexError
        data = self.data[self.at : end]
        self.at = end
        return data

    def field(self, before: int) -> tuple[int, int]:
        """Read the header of the next field: its number, given that of the previous field, and its wire type."""
        head = self.data[self.at]
        self.at += 1
        if head == STOP:
            return 0, STOP
        return (before + (head >> 4) if head >> 4 else self.integer()), head & 0x0F

    def list_head(self) -> tuple[int, int]:
        """Read the header of a list: its length, and the wire type of its items."""
        head = self.data[self.at]
        self.at += 1
        count = self.varint() if head >> 4 == 15 else head >> 4
        if count > len(self.data):
            raise IndexError
        return count, head & 0x0F

    def struct(self, fields: FieldHandlers, seen: list[int] | None = None) -> None:
        """Read a structure, calling the handlers of known fields and skipping others; `seen` collects field numbers."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise BadBytes("its footer is nested too deeply")
        number = 0
        while True:
            number, wire = self.field(number)
            if wire == STOP:
                break
            if seen is not None:
                seen.append(number)
            handle = fields.get((number, wire))
            if handle is not None:
                handle()
            else:
                self.skip(wire)
        self.depth -= 1

    def skip_struct(self) -> None:
        """Skip a structure; this is most of a footer, so common values are skipped without a call."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise BadBytes("its footer is nested too deeply")
        data, offset = self.data, self.at
        while True:
            head = data[offset]
            offset += 1
            if head == 0:
                break
            if head < 0x10:
                # The field's number follows.
                while data[offset] > 0x7F:
                    offset += 1
                offset += 1
            wire = head & 0x0F
            if wire in _INTEGERS:
                while data[offset] > 0x7F:
                    offset += 1
                offset += 1
            elif wire == BINARY and data[offset] <= 0x7F:
                offset += 1 + data[offset]
            elif wire == LIST and data[offset] & 0x0F in _INTEGERS and data[offset] < 0xF0:
                count = data[offset] >> 4
                offset += 1
                for _ in range(count):
                    while data[offset] > 0x7F:
                        offset += 1
                    offset += 1
            else:
                self.at = offset
                self.skip(wire)
                offset = self.at
        self.at = offset
        self.depth -= 1

    def items(self, expected: int, handle: Callable[[int], None]) -> None:
        """Read a list, calling the handler with each item's index; lists of other items are skipped."""
        count, wire = self.list_head()
        for index in range(count):
            if wire == expected:
                handle(index)
            else:
                self.skip(wire, in_list=True)

    def skip(self, wire: int, *, in_list: bool = False) -> None:
        """Skip a value."""
        if wire in (TRUE, FALSE):
            # A field's boolean is in its header; an item of a list has a byte of its own.
            self.at += 1 if in_list else 0
        elif wire == BYTE:
            self.at += 1
        elif wire in _INTEGERS:
            data, offset = self.data, self.at
            while data[offset] > 0x7F:
                offset += 1
            self.at = offset + 1
        elif wire == DOUBLE:
            self.at += 8
        elif wire == BINARY:
            length = self.varint()
            if self.at + length > len(self.data):
                raise IndexError
            self.at += length
        elif wire in (LIST, SET):
            self.items(0, lambda _: None)
        elif wire == MAP:
            self._skip_map()
        elif wire == STRUCT:
            self.skip_struct()
        else:
            raise BadBytes(f"its footer has a field of type {wire}")

    def _skip_map(self) -> None:
        count = self.varint()
        if count == 0:
            return
        if count > len(self.data):
            raise IndexError
        kinds = self.data[self.at]
        self.at += 1
        for _ in range(count):
            self.skip(kinds >> 4, in_list=True)
            self.skip(kinds & 0x0F, in_list=True)


def field_head(before: int, number: int, wire: int) -> bytes:
    """Return the header of a field, given the number of the previous field."""
    distance = number - before
    return bytes((distance << 4 | wire,)) if distance <= 15 else bytes((wire,)) + encode_zigzag(number)


def list_head(count: int, wire: int) -> bytes:
    """Return the header of a list of fewer than 15 items."""
    return bytes((count << 4 | wire,))
