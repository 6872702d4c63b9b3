"""Read Avro data and delete files as batches of their own columns. Specification: "Avro" (Appendix A).

The file is read in groups of a few blocks, each decoded to columns by `codec/avro_decode.py`. Only one group's bytes
and columns are in memory. A split contains the blocks that start in it; the headers of earlier blocks are read too, to
count the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from frazil.codec.avro_container import (
    SCHEMA_KEY,
    SYNC_SIZE,
    AvroHeader,
    AvroLimits,
    AvroOrigin,
    read_header,
)
from frazil.codec.avro_decode import decode_leaves
from frazil.codec.avro_schema import flatten, has_bytes, parse_schema
from frazil.codec.partition_arrow import FormRefusal
from frazil.codec.varint import read_zigzag
from frazil.datafile.avro_shapes import Column, file_field
from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.file_schema import FileSchema, prune, with_ids
from frazil.datafile.open_file import open_file, reading
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules, RowSelection
from frazil.errors import CorruptTableError, InvalidDataFileError
from frazil.storage.base import Storage

HEADING = "Avro"
_FIRST_READ_BYTES = 64 << 10
_WINDOW_BYTES = 1 << 20
_GROUP_BYTES = 1 << 20
_MAX_BLOCK_BYTES = 1 << 30
_NEVER_SMALL, _ALWAYS_SMALL = None, 1 << 62
_TOKEN_KINDS = ("int", "long", "bytes", "string")


class AvroReader(FileReader):
    """An open Avro file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        rules: ReadRules,
        *,
        limits: AvroLimits | None = None,
    ) -> None:
        self._path = path
        self._limits = limits or AvroLimits()
        self._origin = AvroOrigin("Avro file", HEADING, path, InvalidDataFileError)
        # The end of the file is not marked, so a recorded size that is too small would hide blocks: ask the storage.
        self._file = open_file(storage, path)
        self._window = b""
        self._window_start = 0
        with reading("Avro file", path, HEADING, self._file):
            self._size = self._file.handle.size()
            self._header = self._read_header()
            text = self._header.metadata.get(SCHEMA_KEY)
            if text is None:
                raise self._origin.fail("its header has no schema")
            root = parse_schema(text, self._origin)
            self._leaves = flatten(root, self._origin)
            self._columns: list[Column] = []
            fields = []
            leaf = 0
            for index, field in enumerate(root.fields):
                column = Column(field, leaf)
                leaf += len(column.leaves)
                self._columns.append(column)
                fields.append(file_field(field.name, field.field_id, column.shape, index, index))
            self.schema = with_ids(
                tuple(fields), rules.schema, rules.name_mapping, by_position=False, history=rules.history
            )
        self._row_bytes = sum(leaf.avro_type.min_size for leaf in self._leaves)
        # The fast decoder marks the end of its input with a value that some schemas cannot represent.
        can_mark = any(
            leaf.avro_type.kind in _TOKEN_KINDS or (leaf.avro_type.kind == "fixed" and leaf.avro_type.size >= 4)
            for leaf in self._leaves
        )
        self._small_bytes = _NEVER_SMALL if can_mark else _ALWAYS_SMALL

    def _read_header(self) -> AvroHeader:
        read_bytes = _FIRST_READ_BYTES
        while True:
            data = self._bytes(0, min(read_bytes, self._size))
            try:
                return read_header(data, self._origin, self._limits)
            except CorruptTableError:
                if len(data) == self._size or len(data) >= self._limits.header_bytes:
                    raise
            read_bytes *= 8

    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns of `batches` if only some are read."""
        return FileSchema(prune(self.schema.fields, leaves), self.schema.is_mapped)

    def batches(
        self,
        leaves: Collection[int],
        *,
        within: Range | None = None,
        batch_rows: int,
        may_match: Callable[[int], RowSelection] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches; Avro has no statistics, so `may_match` is not called."""
        chosen = [self._columns[leaf] for leaf in sorted(leaves)]
        names = [self.schema.fields[leaf].name for leaf in sorted(leaves)]
        for first, rows, start, end in self._groups(within, batch_rows):
            if not chosen:
                for position in range(0, rows, batch_rows):
                    yield RawBatch(first + position, min(batch_rows, rows - position), None)
                continue
            position = first
            for batch in self._decode(start, end, rows, chosen, names):
                size = max(1, min(batch_rows, batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1)))
                for offset in range(0, batch.num_rows, size):
                    rows_read = batch.slice(offset, size)
                    yield RawBatch(position + offset, rows_read.num_rows, rows_read)
                position += batch.num_rows

    def _groups(self, within: Range | None, batch_rows: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield groups of blocks: the position of their first row, their rows, and their byte range."""
        first = position = rows = start = end = 0
        for offset, count, after in self._blocks():
            if within is None or within.holds(offset):
                if rows and (after - start > _GROUP_BYTES or rows + count > batch_rows or offset != end):
                    yield first, rows, start, end
                    rows = 0
                if rows == 0:
                    first, start = position, offset
                rows += count
                end = after
            position += count
        if rows:
            yield first, rows, start, end

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield each block: its offset, its number of rows, and the offset of the next."""
        offset, remaining = self._header.body_at, self._limits.inflated_bytes(self._size) // max(1, self._row_bytes)
        while offset < self._size:
            with reading("Avro file", self._path, HEADING, self._file):
                head = self._bytes(offset, min(20, self._size - offset))
                count, used = read_zigzag(head, 0, len(head))
                length, used = read_zigzag(head, used, len(head))
                after = offset + used + length + SYNC_SIZE
                remaining -= count
                if count < 0 or remaining < 0 or not 0 <= length <= _MAX_BLOCK_BYTES or after > self._size:
                    raise BadBytes(f"the block at byte {offset} declares {count} rows in {length} bytes")
            yield offset, count, after
            offset = after

    def _decode(
        self, start: int, end: int, rows: int, columns: list[Column], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        with reading("Avro file", self._path, HEADING, self._file):
            data = self._bytes(start, end - start)
            leaves = sorted(leaf for column in columns for leaf in column.leaves if has_bytes(self._leaves[leaf]))
            if not leaves:
                arrays = [column.array({}, rows) for column in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
                return
            table = decode_leaves(
                data,
                replace(self._header, body_at=0),
                self._leaves,
                leaves,
                self._origin,
                limits=self._limits,
                small_bytes=self._small_bytes,
            )
            if table.num_rows != rows:
                raise BadBytes(f"blocks declare {rows} rows but contain {table.num_rows}")
            batches = table.to_batches()
        for batch in batches:
            yield self._assemble(batch, leaves, columns, names)

    def _assemble(
        self, batch: pa.RecordBatch, leaves: list[int], columns: list[Column], names: list[str]
    ) -> pa.RecordBatch:
        decoded = {leaf: batch.column(f"c{leaf}") for leaf in leaves}
        arrays = []
        for column, name in zip(columns, names, strict=True):
            with reading("Avro file", self._path, HEADING, self._file):
                try:
                    arrays.append(column.array(decoded, batch.num_rows))
                except FormRefusal as problem:
                    raise self._origin.fail(f"column {name!r} cannot be read: {problem}") from problem
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _bytes(self, offset: int, length: int) -> bytes:
        """Return bytes of the file; small ranges come from a buffer that moves forward."""
        start = offset - self._window_start
        if start >= 0 and start + length <= len(self._window):
            return self._window[start : start + length]
        self._file.handle.seek(offset)
        if length > _WINDOW_BYTES:
            return bytes(self._file.handle.read(length))
        self._window, self._window_start = (
            bytes(self._file.handle.read(min(_WINDOW_BYTES, self._size - offset))),
            offset,
        )
        return self._window[:length]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
