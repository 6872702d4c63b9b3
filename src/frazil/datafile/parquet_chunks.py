"""Offsets and statistics of the column chunks in a Parquet footer.

pyarrow exposes the same, but crashes the process on some footers that contradict themselves. So the few fields that
pruning and splits need are decoded here from the footer's bytes, a structure in Thrift's compact protocol:

    FileMetaData    4 row groups, 7 column orders
    RowGroup        1 columns
    ColumnChunk     3 meta data
    ColumnMetaData  1 type, 2 encodings, 5 values, 6 bytes uncompressed, 9 data page, 11 dictionary page, 12 statistics
    Statistics      1 max, 2 min (both deprecated), 3 nulls, 5 max_value, 6 min_value

Fields are read by number and type; everything else is skipped. A field of an unexpected type counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.thrift_compact import BINARY, I32, I64, LIST, STRUCT, CompactReader

MAGIC = b"PAR1"
_TAIL_BYTES = 8
_DICTIONARY_ENCODINGS = frozenset({2, 8})
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_TYPE_ORDER = 1
INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, BOOLEAN = 1, 2, 4, 5, 6, 7, 0
"""The physical types with meaningful bounds, by number."""


@dataclass(slots=True)
class Chunk:
    """One column of one row group. Bounds are bytes; deprecated ones are separate, since their order is uncertain."""

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
        """The offset of the chunk in the file, or 0 if unknown."""
        offsets = [
            offset
            for offset in (self.data_page_offset, self.dictionary_page_offset)
            if offset is not None and offset > 0
        ]
        return min(offsets, default=0)


@dataclass(frozen=True, slots=True)
class Footer:
    """The chunks of some columns, by row group and column number.

    `ordered` are the numbers of columns whose `min_value` and `max_value` follow the order of their type.
    """

    groups: list[dict[int, Chunk]]
    ordered: frozenset[int]


def read_footer(file: pa.NativeFile, leaves: Collection[int]) -> Footer:
    """Read the chunks of some columns from a file's footer; the first column is always included."""
    return decode_footer(footer_bytes(file), leaves)


def footer_bytes(file: pa.NativeFile) -> bytes:
    """Return the stored bytes of a file's footer."""
    size = file.size()
    file.seek(size - _TAIL_BYTES)
    tail = bytes(file.read(_TAIL_BYTES))
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length + _TAIL_BYTES > size:
        raise BadBytes("it does not end with a footer")
    file.seek(size - _TAIL_BYTES - length)
    data = bytes(file.read(length))
    file.seek(0)
    return data


def decode_footer(data: bytes, leaves: Collection[int]) -> Footer:
    """Decode the chunks of some columns from a footer; the first column is always included."""
    numbers = frozenset(leaves) | {0}
    groups: list[dict[int, Chunk]] = []
    orders: list[int] = []
    reader = _ChunkReader(data)

    def group() -> None:
        chunks: dict[int, Chunk] = {}
        groups.append(chunks)
        reader.struct({(1, LIST): lambda: reader.items(STRUCT, lambda offset: reader.chunk(offset, chunks, numbers))})

    def order(_: int) -> None:
        order_numbers: list[int] = []
        reader.struct({}, order_numbers)
        orders.append(order_numbers[0] if order_numbers else 0)

    try:
        reader.struct(
            {
                (4, LIST): lambda: reader.items(STRUCT, lambda _: group()),
                (7, LIST): lambda: reader.items(STRUCT, order),
            }
        )
    except IndexError:
        raise BadBytes("its footer is truncated") from None
    return Footer(groups, frozenset(index for index, order in enumerate(orders) if order == _TYPE_ORDER))


class _ChunkReader(CompactReader):
    """Reads the column chunks of a footer."""

    __slots__ = ()

    def chunk(self, offset: int, chunks: dict[int, Chunk], numbers: frozenset[int]) -> None:
        """Read a column chunk if it is among the requested columns."""
        if offset not in numbers:
            self.skip_struct()
            return
        chunk = chunks[offset] = Chunk()
        self.struct({(3, STRUCT): lambda: self._meta_data(chunk)})

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
                (1, I32): physical_type,
                (2, LIST): lambda: self.items(I32, encoding),
                (5, I64): values,
                (6, I64): uncompressed,
                (9, I64): data_page,
                (11, I64): dictionary_page,
                (12, STRUCT): lambda: self._statistics(chunk),
            }
        )

    def _statistics(self, chunk: Chunk) -> None:
        def nulls() -> None:
            chunk.null_count = self.integer()

        def into(name: str) -> Callable[[], None]:
            return lambda: setattr(chunk, name, self.binary())

        self.struct(
            {
                (1, BINARY): into("old_max"),
                (2, BINARY): into("old_min"),
                (3, I64): nulls,
                (5, BINARY): into("max_value"),
                (6, BINARY): into("min_value"),
            }
        )
