"""Parquet data and delete files as batches of their own columns. Specification: "Parquet" (Appendix A).

Row groups are the unit: those outside a split are another reader's, those whose statistics prove that no row
can match are skipped (`datafile/row_groups.py`), the others are read one after the other, only the stored columns
that are wanted. Positions count all rows of the file, skipped ones too.

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
from frazil.datafile.parquet_chunks import MAGIC, Footer, read_footer
from frazil.datafile.project import DICTIONARY
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules
from frazil.errors import UnsupportedError
from frazil.storage.base import Storage

HEADING = "Parquet"
_ENCRYPTED_MAGIC = b"PARE"
_MAGIC = (MAGIC, _ENCRYPTED_MAGIC)
_FEW_BYTES_PER_VALUE = 4


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
                coerce_int96_timestamp_unit="us",
                pre_buffer=not self._is_local,
                page_checksum_verification=True,
                arrow_extensions_enabled=False,
                **options,
            )
        except (pa.ArrowException, OSError):
            _refuse_encrypted(self._file.handle, self._path)
            raise

    def prefer_dictionaries(self, leaves: Collection[int]) -> None:
        """Read columns of text that are stored as few distinct values as dictionaries."""
        chosen = [part for part in self.schema.fields if part.start in leaves and self._has_few_values(part)]
        if chosen:
            with reading("Parquet file", self._path, HEADING, self._file):
                names = [part.name for part in chosen]
                self._parquet = self._open(metadata=self._metadata, read_dictionary=names)
            fields = tuple([replace(part, arrow=DICTIONARY) if part in chosen else part for part in self.schema.fields])
            self.schema = replace(self.schema, fields=fields)

    def _has_few_values(self, part: FileField) -> bool:
        # The decoder knows columns by their path, in which a dot leads to a part.
        if part.arrow != DICTIONARY.value_type or "." in part.name or self._metadata.num_row_groups == 0:
            return False
        chunk = self.footer({part.start}).groups[0].get(part.start)
        if chunk is None or chunk.uncompressed_bytes is None or chunk.num_values is None:
            return False
        return chunk.has_dictionary and chunk.uncompressed_bytes <= _FEW_BYTES_PER_VALUE * chunk.num_values

    def footer(self, leaves: Collection[int]) -> Footer:
        """Return what the footer says of some stored columns."""
        if self._footer is None or not frozenset(leaves) <= self._known:
            with reading("Parquet file", self._path, HEADING, self._file):
                self._known |= frozenset(leaves)
                self._footer = read_footer(self._file.handle, self._known)
        return self._footer

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
        may_match: Callable[[int], bool] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches; `may_match` says of a row group's number whether it can hold a match."""
        chosen = sorted(leaves)
        first = 0
        for group in range(self._metadata.num_row_groups):
            rows = self.rows_of(group)
            is_wanted = within is None or within.holds(self._start_of(group))
            if is_wanted and rows > 0 and (may_match is None or may_match(group)):
                yield from self._group(group, rows, first, chosen, batch_rows, use_threads=use_threads)
            first += rows

    def _group(
        self, group: int, rows: int, first: int, leaves: list[int], batch_rows: int, *, use_threads: bool
    ) -> Iterator[RawBatch]:
        if not leaves:
            for start in range(0, rows, batch_rows):
                yield RawBatch(first + start, min(batch_rows, rows - start), None)
            return
        size = self._fitting_rows(group, rows, leaves, batch_rows)
        at = first
        with reading("Parquet file", self._path, HEADING, self._file):
            batches = self._parquet.reader.iter_batches(size, [group], leaves, use_threads)
        while True:
            with reading("Parquet file", self._path, HEADING, self._file):
                batch = next(batches, None)
            if batch is None:
                break
            yield RawBatch(at, batch.num_rows, batch)
            at += batch.num_rows
        if at != first + rows:
            with reading("Parquet file", self._path, HEADING, self._file):
                raise BadBytes(f"row group {group} has {at - first} rows where its footer says {rows}")

    def _fitting_rows(self, group: int, rows: int, leaves: list[int], batch_rows: int) -> int:
        """Return how many rows make a batch of about the usual bytes, as far as the footer tells."""
        if all(_is_narrow(part) for part in self._stored if part.start in leaves):
            return batch_rows
        total = max(int(self._metadata.row_group(group).total_byte_size), 1)
        return max(1, min(batch_rows, rows * BATCH_BYTES // total))

    @cached_property
    def _stored(self) -> list[FileField]:
        return [part for part in walk(self.schema.fields) if not part.parts]

    def _start_of(self, group: int) -> int:
        """Return where a row group starts. Some writers leave the row group's own offset wrong."""
        groups = self.footer(()).groups
        first = groups[group].get(0) if group < len(groups) else None
        return 0 if first is None else first.start

    def close(self) -> None:
        """Close the file."""
        self._parquet.close()
        self._file.close()


def _is_narrow(part: FileField) -> bool:
    """Return whether values of a stored column have one small size."""
    return bool(pa.types.is_primitive(part.arrow) or pa.types.is_decimal(part.arrow) or pa.types.is_null(part.arrow))


def _refuse_encrypted(file: pa.NativeFile, path: str) -> None:
    """Refuse a file that its last bytes call encrypted, which the decoder only calls broken."""
    size = file.size()
    file.seek(max(0, size - len(_ENCRYPTED_MAGIC)))
    if file.read(len(_ENCRYPTED_MAGIC)) == _ENCRYPTED_MAGIC:
        raise UnsupportedError(
            f"Cannot read {path}: it is encrypted", hint="Encrypted tables are not supported yet.", path=path
        )
