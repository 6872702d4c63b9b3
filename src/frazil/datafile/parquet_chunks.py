"""What a Parquet footer says of the column chunks of its row groups: where they start, and their statistics.

Pyarrow shows the same, but ends the process on some footers that contradict themselves; decoding itself is safe.
So the few fields that pruning and splits need are read here, from the footer's own bytes, which are a structure
in Thrift's compact protocol:

    FileMetaData    4 row groups, 7 column orders
    RowGroup        1 columns
    ColumnChunk     3 meta data
    ColumnMetaData  1 type, 2 encodings, 5 values, 6 bytes uncompressed, 9 data page, 11 dictionary page, 12 statistics
    Statistics      1 max, 2 min (both deprecated), 3 nulls, 5 max_value, 6 min_value

Fields are looked at by number and type; everything else is skipped. A field of another type than it must have
counts as not there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from frazil.datafile.bad_bytes import BadBytes

MAGIC = b"PAR1"
_TAIL_BYTES = 8
_MAX_DEPTH = 32
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_DICTIONARY_ENCODINGS = frozenset({2, 8})
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_TYPE_ORDER = 1
INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, BOOLEAN = 1, 2, 4, 5, 6, 7, 0
"""The physical types whose bounds mean something, by their numbers."""


@dataclass(slots=True)
class Chunk:
    """One column of one row group. Bounds are bytes; the deprecated ones are apart, since their order is doubtful."""

    physical_type: int | None = None
    data_page_offset: int | None = None
    dictionary_page_offset: int | None = None
    num_values: int | None = None
    uncompressed_bytes: int | None = None
    has_dictionary: bool = False
    null_count: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None
    old_min: bytes | None = None
    old_max: bytes | None = None

    @property
    def start(self) -> int:
        """Where the chunk starts in the file, 0 where that is not said."""
        known = [one for one in (self.data_page_offset, self.dictionary_page_offset) if one is not None and one > 0]
        return min(known, default=0)


@dataclass(frozen=True, slots=True)
class Footer:
    """The chunks of some columns, by row group and number of the column.

    `ordered` are the numbers of the columns whose `min_value` and `max_value` are in the order of their type.
    """

    groups: list[dict[int, Chunk]]
    ordered: frozenset[int]


def read_footer(file: pa.NativeFile, leaves: Collection[int]) -> Footer:
    """Read what a file's footer says of some columns; the first is always among them."""
    size = file.size()
    file.seek(size - _TAIL_BYTES)
    tail = bytes(file.read(_TAIL_BYTES))
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length + _TAIL_BYTES > size:
        raise BadBytes("it does not end with a footer")
    file.seek(size - _TAIL_BYTES - length)
    data = bytes(file.read(length))
    file.seek(0)
    return decode_footer(data, leaves)


def decode_footer(data: bytes, leaves: Collection[int]) -> Footer:
    """Decode what a footer says of some columns; the first is always among them."""
    wanted = frozenset(leaves) | {0}
    groups: list[dict[int, Chunk]] = []
    orders: list[int] = []
    reader = _Reader(data)

    def group() -> None:
        chunks: dict[int, Chunk] = {}
        groups.append(chunks)
        reader.struct({(1, _LIST): lambda: reader.items(_STRUCT, lambda at: reader.chunk(at, chunks, wanted))})

    def order(_: int) -> None:
        found: list[int] = []
        reader.struct({}, found)
        orders.append(found[0] if found else 0)

    try:
        reader.struct(
            {
                (4, _LIST): lambda: reader.items(_STRUCT, lambda _: group()),
                (7, _LIST): lambda: reader.items(_STRUCT, order),
            }
        )
    except IndexError:
        raise BadBytes("its footer is cut short") from None
    return Footer(groups, frozenset(at for at, one in enumerate(orders) if one == _TYPE_ORDER))


_Fields = Mapping[tuple[int, int], Callable[[], None]]


class _Reader:
    """A position in a footer. Reading past the end raises IndexError."""

    __slots__ = ("at", "data", "depth")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0

    def varint(self) -> int:
        data, at = self.data, self.at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise BadBytes("a number in its footer has more than 64 bits")
        self.at = at
        return value

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        length = self.varint()
        end = self.at + length
        if end > len(self.data):
            raise IndexError
        found = self.data[self.at : end]
        self.at = end
        return found

    def struct(self, fields: _Fields, seen: list[int] | None = None) -> None:
        """Read a structure, handing known fields on and skipping the others; `seen` collects their numbers."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise BadBytes("its footer is nested too deeply")
        number = 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head == 0:
                break
            wire = head & 0x0F
            number = number + (head >> 4) if head >> 4 else self.integer()
            if seen is not None:
                seen.append(number)
            handle = fields.get((number, wire))
            if handle is not None:
                handle()
            else:
                self.skip(wire)
        self.depth -= 1

    def skip_struct(self) -> None:
        """Pass over a structure: most of a footer, so what it is mostly made of is passed over without a call."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise BadBytes("its footer is nested too deeply")
        data, at = self.data, self.at
        while True:
            head = data[at]
            at += 1
            if head == 0:
                break
            if head < 0x10:
                # The field's number follows.
                while data[at] > 0x7F:
                    at += 1
                at += 1
            wire = head & 0x0F
            if wire in _INTEGERS:
                while data[at] > 0x7F:
                    at += 1
                at += 1
            elif wire == _BINARY and data[at] <= 0x7F:
                at += 1 + data[at]
            elif wire == _LIST and data[at] & 0x0F in _INTEGERS and data[at] < 0xF0:
                count = data[at] >> 4
                at += 1
                for _ in range(count):
                    while data[at] > 0x7F:
                        at += 1
                    at += 1
            else:
                self.at = at
                self.skip(wire)
                at = self.at
        self.at = at
        self.depth -= 1

    def items(self, expected: int, handle: Callable[[int], None]) -> None:
        """Read a list, handing each item's number on; one of other items is skipped."""
        head = self.data[self.at]
        self.at += 1
        count, wire = head >> 4, head & 0x0F
        if count == 15:
            count = self.varint()
        if count > len(self.data):
            raise IndexError
        for at in range(count):
            if wire == expected:
                handle(at)
            else:
                self.skip(wire, in_list=True)

    def skip(self, wire: int, *, in_list: bool = False) -> None:
        """Pass over a value."""
        if wire in (_TRUE, _FALSE):
            # A field's truth is in its head; an item of a list has a byte of its own.
            self.at += 1 if in_list else 0
        elif wire == _BYTE:
            self.at += 1
        elif wire in _INTEGERS:
            data, at = self.data, self.at
            while data[at] > 0x7F:
                at += 1
            self.at = at + 1
        elif wire == _DOUBLE:
            self.at += 8
        elif wire == _BINARY:
            length = self.varint()
            if self.at + length > len(self.data):
                raise IndexError
            self.at += length
        elif wire in (_LIST, _SET):
            self.items(0, lambda _: None)
        elif wire == _MAP:
            self._skip_map()
        elif wire == _STRUCT:
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

    def chunk(self, at: int, chunks: dict[int, Chunk], wanted: frozenset[int]) -> None:
        """Read a column chunk, if it is wanted."""
        if at not in wanted:
            self.skip_struct()
            return
        chunk = chunks[at] = Chunk()
        self.struct({(3, _STRUCT): lambda: self._meta_data(chunk)})

    def _meta_data(self, chunk: Chunk) -> None:
        def encoding(_: int) -> None:
            if self.integer() in _DICTIONARY_ENCODINGS:
                chunk.has_dictionary = True

        def physical_type() -> None:
            chunk.physical_type = self.integer()

        def values() -> None:
            chunk.num_values = self.integer()

        def uncompressed() -> None:
            chunk.uncompressed_bytes = self.integer()

        def data_page() -> None:
            chunk.data_page_offset = self.integer()

        def dictionary_page() -> None:
            chunk.dictionary_page_offset = self.integer()

        self.struct(
            {
                (1, _I32): physical_type,
                (2, _LIST): lambda: self.items(_I32, encoding),
                (5, _I64): values,
                (6, _I64): uncompressed,
                (9, _I64): data_page,
                (11, _I64): dictionary_page,
                (12, _STRUCT): lambda: self._statistics(chunk),
            }
        )

    def _statistics(self, chunk: Chunk) -> None:
        def nulls() -> None:
            chunk.null_count = self.integer()

        def into(name: str) -> Callable[[], None]:
            return lambda: setattr(chunk, name, self.binary())

        self.struct(
            {
                (1, _BINARY): into("old_max"),
                (2, _BINARY): into("old_min"),
                (3, _I64): nulls,
                (5, _BINARY): into("max_value"),
                (6, _BINARY): into("min_value"),
            }
        )
