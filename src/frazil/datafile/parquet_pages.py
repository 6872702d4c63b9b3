"""Read single pages of a row group instead of all. Parquet's page index: OffsetIndex and ColumnIndex.

If few rows of a large row group are needed, most of its pages need not be decoded. Arrow reads only whole column
chunks. So the needed pages and the dictionary before them are assembled in memory into a file of one column, which
Arrow reads. Pages of different columns end at different rows, so each column is read separately and sliced.

    ColumnChunk     3 meta data, 4 and 5 offset and length of the OffsetIndex, 6 and 7 those of the ColumnIndex
    OffsetIndex     1 page locations: 1 offset, 2 bytes with the header, 3 the first row
    ColumnIndex     1 which pages hold only nulls, 2 and 3 the bounds of each page, 5 nulls of each page

This is done only for columns that are not nested, and only if the page index is consistent. Otherwise the whole row
group is read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa

from frazil.codec.varint import encode_varint, encode_zigzag
from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.parquet_chunks import MAGIC, Chunk
from frazil.datafile.thrift_compact import (
    BINARY,
    I32,
    I64,
    LIST,
    STOP,
    STRUCT,
    TRUE,
    CompactReader,
    field_head,
    list_head,
)

Span: TypeAlias = tuple[int, int]
"""A range of rows of a row group, with an exclusive end."""
ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Reads a number of bytes of the file from an offset."""
_MAX_INDEX_BYTES = 16 << 20
_MAX_PAGE_ROWS = 1 << 22
"""Arrow allocates memory for as many values as a file declares."""
_REPEATED = 2


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The pages of one column of one row group: offsets, sizes and first rows; `firsts` ends with the row count."""

    chunk: Chunk
    offsets: list[int]
    sizes: list[int]
    firsts: list[int]
    meta: dict[int, bytes]
    element: bytes
    column_index: Span

    def chosen(self, spans: Iterable[Span]) -> list[int]:
        """Return the numbers of the pages with rows in the spans."""
        pages: dict[int, None] = {}
        for first, last in spans:
            index = bisect_right(self.firsts, first) - 1
            pages.update(dict.fromkeys(range(index, bisect_left(self.firsts, last))))
        return list(pages)

    def file_of(self, pages: Sequence[int], read_at: ReadAt) -> bytes:
        """Assemble a file with only this column and only some of its pages."""
        start = self.chunk.start
        dictionary = read_at(start, self.offsets[0] - start) if pages and start < self.offsets[0] else b""
        parts = [read_at(self.offsets[first], _bytes_of(self, first, last)) for first, last in _runs(pages)]
        rows = sum(self.firsts[page + 1] - self.firsts[page] for page in pages)
        size = len(dictionary) + sum(map(len, parts))
        meta = b"".join(self.meta[number] for number in (1, 2, 3, 4))
        meta += _number(4, 5, I64, rows) + _number(5, 6, I64, size) + _number(6, 7, I64, size)
        meta += _number(7, 9, I64, len(MAGIC) + len(dictionary))
        if dictionary:
            meta += _number(9, 11, I64, len(MAGIC))
        chunk = _number(0, 2, I64, len(MAGIC)) + _struct(2, 3, meta)
        group = _encode_struct_list(0, 1, [chunk]) + _number(1, 2, I64, size) + _number(2, 3, I64, rows)
        root = field_head(0, 4, BINARY) + encode_varint(4) + b"root" + _number(4, 5, I32, 1)
        footer = _number(0, 1, I32, 2) + field_head(1, 2, LIST) + list_head(2, STRUCT)
        footer += root + bytes((STOP,)) + self.element
        footer += _number(2, 3, I64, rows) + _encode_struct_list(3, 4, [group]) + bytes((STOP,))
        return b"".join((MAGIC, dictionary, *parts, footer, len(footer).to_bytes(4, "little"), MAGIC))

    def page_chunks(self, read_at: ReadAt) -> list[Chunk] | None:
        """Return the statistics of each page as those of a column chunk, or None if there are none."""
        offset, length = self.column_index
        if not 0 < length <= _MAX_INDEX_BYTES:
            return None
        count = len(self.offsets)
        is_null: list[bool] = []
        lower: list[bytes] = []
        upper: list[bytes] = []
        nulls: list[int] = []
        reader = CompactReader(read_at(offset, length))

        def booleans() -> None:
            # Booleans in a list are bytes; writers differ in the wire type of the list.
            items, wire = reader.list_head()
            for _ in range(items):
                is_null.append(reader.data[reader.at] == TRUE)
                reader.skip(wire, in_list=True)

        try:
            reader.struct(
                {
                    (1, LIST): booleans,
                    (2, LIST): lambda: reader.items(BINARY, lambda _: lower.append(reader.binary())),
                    (3, LIST): lambda: reader.items(BINARY, lambda _: upper.append(reader.binary())),
                    (5, LIST): lambda: reader.items(I64, lambda _: nulls.append(reader.integer())),
                }
            )
        except (IndexError, BadBytes):
            return None
        if not len(is_null) == len(lower) == len(upper) == count or len(nulls) not in (0, count):
            return None
        chunks = []
        for index in range(count):
            rows = self.firsts[index + 1] - self.firsts[index]
            chunk = Chunk(self.chunk.physical_type, num_values=rows, null_count=nulls[index] if nulls else None)
            if is_null[index]:
                chunk.null_count = rows
            else:
                chunk.min_value, chunk.max_value = lower[index], upper[index]
                if chunk.null_count is not None and chunk.null_count >= rows:
                    return None
            chunks.append(chunk)
        return chunks


def find_pages(
    footer: bytes, group: int, leaves: Iterable[int], rows: int, read_at: ReadAt
) -> dict[int, ColumnPages] | None:
    """Return the pages of some columns of a row group, by column number, or None if they are unknown."""
    try:
        return _find_pages(footer, group, frozenset(leaves), rows, read_at)
    except (IndexError, BadBytes):
        return None


def _find_pages(
    footer: bytes, group: int, leaves: frozenset[int], rows: int, read_at: ReadAt
) -> dict[int, ColumnPages] | None:
    reader = CompactReader(footer)
    elements: dict[int, bytes] = {}
    columns: dict[int, _Column] = {}

    def read_chunk(index: int) -> None:
        if index in leaves:
            columns[index] = _Column(reader)
        else:
            reader.skip_struct()

    def read_group(index: int) -> None:
        if index == group:
            reader.struct({(1, LIST): lambda: reader.items(STRUCT, read_chunk)})
        else:
            reader.skip_struct()

    reader.struct(
        {
            (2, LIST): lambda: elements.update(_flat_elements(reader)),
            (4, LIST): lambda: reader.items(STRUCT, read_group),
        }
    )
    pages_by_leaf: dict[int, ColumnPages] = {}
    for leaf in leaves:
        if leaf not in elements or leaf not in columns:
            return None
        pages = columns[leaf].pages(elements[leaf], rows, read_at)
        if pages is None:
            return None
        pages_by_leaf[leaf] = pages
    return pages_by_leaf


def _flat_elements(reader: CompactReader) -> dict[int, bytes]:
    """Read the schema; return the elements of columns that are not nested, by column number."""
    elements: dict[int, bytes] = {}
    remaining: list[int] = []
    leaf = 0
    count, _ = reader.list_head()
    for _ in range(count):
        start = reader.at
        values = {3: 0, 5: 0}

        def note(number: int, values: dict[int, int] = values) -> Callable[[], None]:
            return lambda: values.__setitem__(number, reader.integer())

        reader.struct({(3, I32): note(3), (5, I32): note(5)})
        depth = len(remaining)
        if values[5]:
            remaining.append(values[5])
            continue
        if depth == 1 and values[3] != _REPEATED:
            elements[leaf] = reader.data[start : reader.at]
        leaf += 1
        while remaining:
            remaining[-1] -= 1
            if remaining[-1]:
                break
            remaining.pop()
    return elements


class _Column:
    """A column chunk and its pages as described in a footer."""

    def __init__(self, reader: CompactReader) -> None:
        self.chunk = Chunk()
        self.meta: dict[int, bytes] = {}
        self.locations = {4: 0, 5: 0, 6: 0, 7: 0}

        def note(number: int) -> Callable[[], None]:
            return lambda: self.locations.__setitem__(number, reader.integer())

        reader.struct(
            {
                (3, STRUCT): lambda: self._read_meta(reader),
                (4, I64): note(4),
                (5, I32): note(5),
                (6, I64): note(6),
                (7, I32): note(7),
            }
        )

    def _read_meta(self, reader: CompactReader) -> None:
        number = before = 0
        while True:
            number, wire = reader.field(before)
            if wire == STOP:
                return
            start = reader.at
            reader.skip(wire)
            value = reader.data[start : reader.at]
            if number in (1, 2, 3, 4):
                self.meta[number] = field_head(number - 1, number, wire) + value
            if number in (1, 9, 11) and wire in (I32, I64):
                self._note(number, CompactReader(value).integer())
            before = number

    def _note(self, number: int, value: int) -> None:
        if number == 1:
            self.chunk.physical_type = value
        elif number == 9:
            self.chunk.data_page_offset = value
        else:
            self.chunk.dictionary_page_offset = value

    def pages(self, element: bytes, rows: int, read_at: ReadAt) -> ColumnPages | None:
        """Read the pages' offsets; return None if they are inconsistent."""
        offset, length = self.locations[4], self.locations[5]
        if not 0 < length <= _MAX_INDEX_BYTES or offset <= 0 or self.meta.keys() != {1, 2, 3, 4}:
            return None
        offsets: list[int] = []
        sizes: list[int] = []
        firsts: list[int] = []
        reader = CompactReader(read_at(offset, length))
        into: dict[tuple[int, int], Callable[[], None]] = {
            (1, I64): lambda: offsets.append(reader.integer()),
            (2, I32): lambda: sizes.append(reader.integer()),
            (3, I64): lambda: firsts.append(reader.integer()),
        }
        reader.struct({(1, LIST): lambda: reader.items(STRUCT, lambda _: reader.struct(into))})
        firsts.append(rows)
        is_consistent = (
            0 < len(offsets) == len(sizes) == len(firsts) - 1
            and firsts[0] == 0
            and all(0 < other - first <= _MAX_PAGE_ROWS for first, other in pairwise(firsts))
            and all(size > 0 for size in sizes)
            and self.chunk.start > 0
            and self.chunk.start <= offsets[0]
            and all(index + size <= after for index, size, after in zip(offsets, sizes, offsets[1:], strict=False))
        )
        if not is_consistent:
            return None
        return ColumnPages(
            self.chunk, offsets, sizes, firsts, self.meta, element, (self.locations[6], self.locations[7])
        )


def read_spans(
    pages: ColumnPages, spans: Sequence[Span], read_at: ReadAt, decode: Callable[[bytes], pa.ChunkedArray]
) -> list[pa.Array]:
    """Return the values of a column in ascending spans that do not touch."""
    chosen = pages.chosen(spans)
    column = decode(pages.file_of(chosen, read_at))
    rows = sum(pages.firsts[page + 1] - pages.firsts[page] for page in chosen)
    if len(column) != rows:
        raise BadBytes(f"pages have {len(column)} rows, but the page index says {rows}")
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    starts: dict[int, int] = {}
    index = 0
    for page in chosen:
        starts[page] = index
        index += pages.firsts[page + 1] - pages.firsts[page]
    slices = []
    for first, last in spans:
        page = bisect_right(pages.firsts, first) - 1
        slices.append(values.slice(starts[page] + first - pages.firsts[page], last - first))
    return slices


def add_span(spans: list[Span], first: int, last: int) -> list[Span]:
    """Return spans with one more at their end, merged if it touches the last."""
    if spans and spans[-1][1] >= first:
        return [*spans[:-1], (spans[-1][0], last)]
    return [*spans, (first, last)]


def rows_of(spans: Iterable[Span]) -> int:
    """Return the number of rows in spans."""
    return sum(last - first for first, last in spans)


def _bytes_of(pages: ColumnPages, first: int, last: int) -> int:
    return pages.offsets[last] + pages.sizes[last] - pages.offsets[first]


def _runs(pages: Sequence[int]) -> list[Span]:
    """Return the first and last of each run of consecutive numbers."""
    runs: list[Span] = []
    for page in pages:
        runs = [*runs[:-1], (runs[-1][0], page)] if runs and runs[-1][1] == page - 1 else [*runs, (page, page)]
    return runs


def _number(before: int, number: int, wire: int, value: int) -> bytes:
    return field_head(before, number, wire) + encode_zigzag(value)


def _struct(before: int, number: int, content: bytes) -> bytes:
    return field_head(before, number, STRUCT) + content + bytes((STOP,))


def _encode_struct_list(before: int, number: int, contents: Sequence[bytes]) -> bytes:
    head = field_head(before, number, LIST) + list_head(len(contents), STRUCT)
    return head + b"".join(content + bytes((STOP,)) for content in contents)
