"""Parquet data and delete files as batches of their own columns. Specification: "Parquet" (Appendix A).

Row groups are the unit: those outside a split are another reader's, those whose statistics prove that no row
can match are skipped (`datafile/row_groups.py`), the others are read one after the other, only the stored columns
that are wanted, and only some of their pages where few rows are (`datafile/parquet_pages.py`). Positions count all
rows of the file, skipped ones too.

How many rows a batch has follows from how wide they are, so that a batch stays small whatever a row holds.
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
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules, Wanted
from frazil.errors import UnsupportedError
from frazil.storage.base import Storage

HEADING = "Parquet"
_ENCRYPTED_MAGIC = b"PARE"
_MAGIC = (MAGIC, _ENCRYPTED_MAGIC)
_FEW_BYTES_PER_VALUE = 4
_MANY_ROWS = 50_000
"""Of fewer rows in a row group, looking for pages costs more than reading them all."""
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
        self._known: frozenset[int] = frozenset()
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
        """Read columns of text that are stored as few distinct values as dictionaries."""
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
        # The decoder knows columns by their path, in which a dot leads to a part.
        if file_field.arrow != DICTIONARY.value_type or "." in file_field.name or self._metadata.num_row_groups == 0:
            return False
        chunk = self.footer({file_field.start}).groups[0].get(file_field.start)
        if chunk is None or chunk.uncompressed_bytes is None or chunk.num_values is None:
            return False
        return chunk.has_dictionary and chunk.uncompressed_bytes <= _FEW_BYTES_PER_VALUE * chunk.num_values

    def footer(self, leaves: Collection[int]) -> Footer:
        """Return what the footer says of some stored columns."""
        if self._footer is None or not frozenset(leaves) <= self._known:
            with reading("Parquet file", self._path, HEADING, self._file):
                self._known |= frozenset(leaves)
                self._footer = decode_footer(self._footer_bytes, self._known)
        return self._footer

    @cached_property
    def _footer_bytes(self) -> bytes:
        return footer_bytes(self._file.handle)

    def pages(self, group: int, leaves: Collection[int]) -> dict[int, ColumnPages] | None:
        """Return the pages of some stored columns of a row group; None where it is to be read whole."""
        rows = self.rows_of(group)
        # Elsewhere every page would be a request.
        if not leaves or rows < _MANY_ROWS or not self._is_local or len(self._footer_bytes) > _MAX_FOOTER_BYTES:
            return None
        with reading("Parquet file", self._path, HEADING, self._file):
            return find_pages(self._footer_bytes, group, leaves, rows, self.read_at)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return bytes of the file."""
        found = bytes(self._file.handle.read_at(length, offset)) if min(offset, length) >= 0 else b""
        if len(found) != length:
            raise BadBytes("its page index leads out of it")
        return found

    @property
    def group_count(self) -> int:
        """How many row groups there are."""
        return int(self._metadata.num_row_groups)

    def rows_of(self, group: int) -> int:
        """Return how many rows a row group has."""
        return int(self._metadata.row_group(group).num_rows)

    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns as `batches` gives them when only some stored columns are read."""
        return FileSchema(prune(self.schema.fields, leaves), self.schema.is_mapped)

    def batches(
        self,
        leaves: Collection[int],
        *,
        within: Range | None = None,
        batch_rows: int,
        may_match: Callable[[int], Wanted] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches; `may_match` says of a row group's number whether it can hold a match, or where."""
        chosen = sorted(leaves)
        first = 0
        for group in range(self._metadata.num_row_groups):
            rows = self.rows_of(group)
            is_wanted = within is None or within.holds(self._start_of(group))
            wanted: Wanted = is_wanted and rows > 0
            if wanted and may_match is not None:
                wanted = may_match(group)
            pages = self.pages(group, chosen) if isinstance(wanted, list) and wanted else None
            if pages is not None and isinstance(wanted, list) and self._has_types(pages):
                size = self._fitting_rows(group, rows, chosen, batch_rows)
                yield from self._spans(pages, wanted, first, size)
            elif wanted:
                yield from self._group(group, rows, first, chosen, batch_rows, use_threads=use_threads)
            first += rows

    def _spans(
        self, pages: dict[int, ColumnPages], spans: list[tuple[int, int]], first: int, batch_rows: int
    ) -> Iterator[RawBatch]:
        """Yield some rows of a row group; as many as a batch has are read at once."""
        names = [str(leaf) for leaf in sorted(pages)]
        for held in _parts(spans, batch_rows):
            with reading("Parquet file", self._path, HEADING, self._file):
                columns = [self._read_spans(leaf, pages[leaf], held) for leaf in sorted(pages)]
                made = [pa.RecordBatch.from_arrays(list(arrays), names) for arrays in zip(*columns, strict=True)]
            for (start, _), batch in zip(held, made, strict=True):
                yield RawBatch(first + start, batch.num_rows, batch)

    def _read_spans(self, leaf: int, pages: ColumnPages, spans: list[tuple[int, int]]) -> list[pa.Array]:
        def decode(data: bytes) -> pa.ChunkedArray:
            return self._open_column(self._flat[leaf], data).read_row_group(0, use_threads=False).column(0)

        return read_spans(pages, spans, self.read_at, decode)

    def _open_column(self, file_field: FileField, data: bytes) -> Any:
        """Open a file that has one column of this file only."""
        names = [file_field.name] if file_field.arrow == DICTIONARY else []
        return pq.ParquetFile(pa.BufferReader(data), read_dictionary=names, **_OPTIONS)

    def _has_types(self, pages: dict[int, ColumnPages]) -> bool:
        """Return whether columns have the same types by themselves: a file may say more of them than their columns."""
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
                raise BadBytes(f"row group {group} has {index - first} rows where its footer says {rows}")

    def _fitting_rows(self, group: int, rows: int, leaves: list[int], batch_rows: int) -> int:
        """Return how many rows make a batch of about the usual bytes, as far as the footer tells."""
        if all(_is_narrow(file_field) for file_field in self._stored if file_field.start in leaves):
            return batch_rows
        total = max(int(self._metadata.row_group(group).total_byte_size), 1)
        return max(1, min(batch_rows, rows * BATCH_BYTES // total))

    @cached_property
    def _stored(self) -> list[FileField]:
        return [file_field for file_field in walk(self.schema.fields) if not file_field.parts]

    def _start_of(self, group: int) -> int:
        """Return where a row group starts. Some writers leave the row group's own offset wrong."""
        groups = self.footer(()).groups
        first = groups[group].get(0) if group < len(groups) else None
        return 0 if first is None else first.start

    def close(self) -> None:
        """Close the file."""
        self._parquet.close()
        self._file.close()


def _parts(spans: list[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    """Yield spans in groups of about so many rows at most, those that are longer cut."""
    held: list[tuple[int, int]] = []
    rows = 0
    for first, last in spans:
        for index in range(first, last, most):
            end = min(index + most, last)
            if held and rows + end - index > most:
                yield held
                held, rows = [], 0
            held.append((index, end))
            rows += end - index
    if held:
        yield held


def _is_narrow(file_field: FileField) -> bool:
    """Return whether values of a stored column have one small size."""
    return bool(
        pa.types.is_primitive(file_field.arrow)
        or pa.types.is_decimal(file_field.arrow)
        or pa.types.is_null(file_field.arrow)
    )


def _refuse_encrypted(file: pa.NativeFile, path: str) -> None:
    """Refuse a file that its last bytes call encrypted, which the decoder only calls broken."""
    size = file.size()
    file.seek(max(0, size - len(_ENCRYPTED_MAGIC)))
    if file.read(len(_ENCRYPTED_MAGIC)) == _ENCRYPTED_MAGIC:
        raise UnsupportedError(
            f"Cannot read {path}: it is encrypted", hint="Encrypted tables are not supported yet.", path=path
        )
