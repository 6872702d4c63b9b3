"""Read Parquet data and delete files as batches of their own columns. Specification: "Parquet" (Appendix A).

Row groups are the unit: those outside a split belong to another reader, and those whose statistics prove that no row
can match are skipped (`datafile/row_groups.py`). The others are read one after the other, only the needed stored
columns, and only some of their pages if few rows are needed (`datafile/parquet_pages.py`). Positions count all rows of
the file, including skipped ones.

The number of rows of a batch depends on their width, so that a batch stays small whatever a row holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.codec.arrow_schema import FIELD_ID_KEY
from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.file_schema import FileField, FileSchema, describe_arrow, prune, walk, with_ids
from frazil.datafile.open_file import is_local, open_file, reading
from frazil.datafile.parquet_chunks import MAGIC, Footer, decode_footer, footer_bytes
from frazil.datafile.parquet_pages import ColumnPages, find_pages, read_spans
from frazil.datafile.project import DICTIONARY
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules, RowSelection
from frazil.errors import UnsupportedError
from frazil.storage.base import Storage

HEADING = "Parquet"
_ENCRYPTED_MAGIC = b"PARE"
_MAGIC = (MAGIC, _ENCRYPTED_MAGIC)
_MAX_DICTIONARY_BYTES_PER_VALUE = 4
_MIN_ROWS_FOR_PAGES = 50_000
"""The rows of a row group below which looking up pages costs more than reading them all."""
_MAX_FOOTER_BYTES = 1 << 16
_OPTIONS: dict[str, Any] = {
    "coerce_int96_timestamp_unit": "us",
    "page_checksum_verification": True,
    "arrow_extensions_enabled": False,
}


class ParquetReader(FileReader):
    """An open Parquet file."""

    def __init__(self, storage: Storage, path: str, rules: ReadRules, *, size: int | None = None) -> None:
        self._path = path
        self._file = open_file(storage, path, recorded_size=size, is_end=_MAGIC.__contains__)
        self._is_local = is_local(storage, path)
        self._footer: Footer | None = None
        self._known_leaves: frozenset[int] = frozenset()
        with reading("Parquet file", path, HEADING, self._file):
            self._parquet = self._open()
            self._metadata = self._parquet.metadata
            fields = describe_arrow(self._parquet.schema_arrow, FIELD_ID_KEY)
            self.schema = with_ids(fields, rules.schema, rules.name_mapping, by_position=True, history=rules.history)

    def _open(self, **options: Any) -> Any:
        try:
            return pq.ParquetFile(
                self._file.handle,
                pre_buffer=not self._is_local,
                **_OPTIONS,
                **options,
            )
        except (pa.ArrowException, OSError):
            _refuse_encrypted(self._file.handle, self._path)
            raise

    def prefer_dictionaries(self, leaves: Collection[int]) -> None:
        """Read text columns that are stored as few distinct values as dictionaries."""
        chosen = [field for field in self.schema.fields if field.start in leaves and self._has_few_values(field)]
        if chosen:
            with reading("Parquet file", self._path, HEADING, self._file):
                names = [file_field.name for file_field in chosen]
                self._parquet = self._open(metadata=self._metadata, read_dictionary=names)
            fields = tuple(
                [replace(field, arrow=DICTIONARY) if field in chosen else field for field in self.schema.fields]
            )
            self.schema = replace(self.schema, fields=fields)

    def _has_few_values(self, file_field: FileField) -> bool:
        # The decoder identifies columns by path, in which a dot separates nested names.
        if file_field.arrow != DICTIONARY.value_type or "." in file_field.name or self._metadata.num_row_groups == 0:
            return False
        chunk = self.footer({file_field.start}).groups[0].get(file_field.start)
        if chunk is None or chunk.uncompressed_bytes is None or chunk.num_values is None:
            return False
        return chunk.has_dictionary and chunk.uncompressed_bytes <= _MAX_DICTIONARY_BYTES_PER_VALUE * chunk.num_values

    def footer(self, leaves: Collection[int]) -> Footer:
        """Return the footer's description of some stored columns."""
        if self._footer is None or not frozenset(leaves) <= self._known_leaves:
            with reading("Parquet file", self._path, HEADING, self._file):
                self._known_leaves |= frozenset(leaves)
                self._footer = decode_footer(self._footer_bytes, self._known_leaves)
        return self._footer

    @cached_property
    def _footer_bytes(self) -> bytes:
        return footer_bytes(self._file.handle)

    def pages(self, group: int, leaves: Collection[int]) -> dict[int, ColumnPages] | None:
        """Return the pages of some stored columns of a row group, or None if the whole group is to be read."""
        rows = self.rows_of(group)
        # On other storages every page would be a request.
        if (
            not leaves
            or rows < _MIN_ROWS_FOR_PAGES
            or not self._is_local
            or len(self._footer_bytes) > _MAX_FOOTER_BYTES
        ):
            return None
        with reading("Parquet file", self._path, HEADING, self._file):
            return find_pages(self._footer_bytes, group, leaves, rows, self.read_at)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return bytes of the file."""
        data = bytes(self._file.handle.read_at(length, offset)) if min(offset, length) >= 0 else b""
        if len(data) != length:
            raise BadBytes("its page index points outside the file")
        return data

    @property
    def group_count(self) -> int:
        """The number of row groups."""
        return int(self._metadata.num_row_groups)

    def rows_of(self, group: int) -> int:
        """Return the number of rows of a row group."""
        return int(self._metadata.row_group(group).num_rows)

    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns of `batches` if only some stored columns are read."""
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
        """Yield batches; `may_match` returns whether a row group, by number, can hold a match, or where."""
        chosen = sorted(leaves)
        first = 0
        for group in range(self._metadata.num_row_groups):
            rows = self.rows_of(group)
            is_in_range = within is None or within.holds(self._start_of(group))
            selection: RowSelection = is_in_range and rows > 0
            if selection and may_match is not None:
                selection = may_match(group)
            pages = self.pages(group, chosen) if isinstance(selection, list) and selection else None
            if pages is not None and isinstance(selection, list) and self._has_types(pages):
                size = self._fitting_rows(group, rows, chosen, batch_rows)
                yield from self._spans(pages, selection, first, size)
            elif selection:
                yield from self._group(group, rows, first, chosen, batch_rows, use_threads=use_threads)
            first += rows

    def _spans(
        self, pages: dict[int, ColumnPages], spans: list[tuple[int, int]], first: int, batch_rows: int
    ) -> Iterator[RawBatch]:
        """Yield some rows of a row group, reading as many at once as a batch has."""
        names = [str(leaf) for leaf in sorted(pages)]
        for held in _chunks_of_spans(spans, batch_rows):
            with reading("Parquet file", self._path, HEADING, self._file):
                columns = [self._read_spans(leaf, pages[leaf], held) for leaf in sorted(pages)]
                batches = [pa.RecordBatch.from_arrays(list(arrays), names) for arrays in zip(*columns, strict=True)]
            for (start, _), batch in zip(held, batches, strict=True):
                yield RawBatch(first + start, batch.num_rows, batch)

    def _read_spans(self, leaf: int, pages: ColumnPages, spans: list[tuple[int, int]]) -> list[pa.Array]:
        def decode(data: bytes) -> pa.ChunkedArray:
            return self._open_column(self._flat[leaf], data).read_row_group(0, use_threads=False).column(0)

        return read_spans(pages, spans, self.read_at, decode)

    def _open_column(self, file_field: FileField, data: bytes) -> Any:
        """Open an in-memory file with a single column of this file."""
        names = [file_field.name] if file_field.arrow == DICTIONARY else []
        return pq.ParquetFile(pa.BufferReader(data), read_dictionary=names, **_OPTIONS)

    def _has_types(self, pages: dict[int, ColumnPages]) -> bool:
        """Return whether columns have the same types on their own, since the file's schema may add to them."""
        return all(
            leaf in self._flat
            and self._open_column(
                file_field := self._flat[leaf], column_pages.file_of([], self.read_at)
            ).schema_arrow.types
            == [file_field.arrow]
            for leaf, column_pages in pages.items()
        )

    @property
    def _flat(self) -> dict[int, FileField]:
        return {field.start: field for field in self.schema.fields if not field.parts}

    def _group(
        self, group: int, rows: int, first: int, leaves: list[int], batch_rows: int, *, use_threads: bool
    ) -> Iterator[RawBatch]:
        if not leaves:
            for start in range(0, rows, batch_rows):
                yield RawBatch(first + start, min(batch_rows, rows - start), None)
            return
        size = self._fitting_rows(group, rows, leaves, batch_rows)
        index = first
        with reading("Parquet file", self._path, HEADING, self._file):
            batches = self._parquet.reader.iter_batches(size, [group], leaves, use_threads)
        while True:
            with reading("Parquet file", self._path, HEADING, self._file):
                batch = next(batches, None)
            if batch is None:
                break
            yield RawBatch(index, batch.num_rows, batch)
            index += batch.num_rows
        if index != first + rows:
            with reading("Parquet file", self._path, HEADING, self._file):
                raise BadBytes(f"row group {group} has {index - first} rows, but its footer says {rows}")

    def _fitting_rows(self, group: int, rows: int, leaves: list[int], batch_rows: int) -> int:
        """Return the number of rows for a batch of about the usual size, estimated from the footer."""
        if all(_is_narrow(file_field) for file_field in self._stored if file_field.start in leaves):
            return batch_rows
        total = max(int(self._metadata.row_group(group).total_byte_size), 1)
        return max(1, min(batch_rows, rows * BATCH_BYTES // total))

    @cached_property
    def _stored(self) -> list[FileField]:
        return [file_field for file_field in walk(self.schema.fields) if not file_field.parts]

    def _start_of(self, group: int) -> int:
        """Return the offset of a row group, since some writers set the row group's own offset wrong."""
        groups = self.footer(()).groups
        first = groups[group].get(0) if group < len(groups) else None
        return 0 if first is None else first.start

    def close(self) -> None:
        """Close the file."""
        self._parquet.close()
        self._file.close()


def _chunks_of_spans(spans: list[tuple[int, int]], max_rows: int) -> Iterator[list[tuple[int, int]]]:
    """Yield spans in groups of at most a number of rows, splitting longer ones."""
    held: list[tuple[int, int]] = []
    rows = 0
    for first, last in spans:
        for index in range(first, last, max_rows):
            end = min(index + max_rows, last)
            if held and rows + end - index > max_rows:
                yield held
                held, rows = [], 0
            held.append((index, end))
            rows += end - index
    if held:
        yield held


def _is_narrow(file_field: FileField) -> bool:
    """Return whether values of a stored column have a small, constant size."""
    return bool(
        pa.types.is_primitive(file_field.arrow)
        or pa.types.is_decimal(file_field.arrow)
        or pa.types.is_null(file_field.arrow)
    )


def _refuse_encrypted(file: pa.NativeFile, path: str) -> None:
    """Refuse a file whose last bytes mark it as encrypted, which the decoder would report as corrupt."""
    size = file.size()
    file.seek(max(0, size - len(_ENCRYPTED_MAGIC)))
    if file.read(len(_ENCRYPTED_MAGIC)) == _ENCRYPTED_MAGIC:
        raise UnsupportedError(
            f"Cannot read {path}: it is encrypted", hint="Encrypted tables are not supported yet.", path=path
        )
