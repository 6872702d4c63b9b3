"""Read ORC data and delete files as batches of their own columns. Specification: "ORC" (Appendix A).

Ids are in the type attribute `iceberg.id`. ORC has fewer types than the format: times are longs, uuids and fixed are
binary, all timestamps are nanoseconds; `datafile/convert_leaf.py` converts them to the table's types. Stripes are the
unit of reading: a whole stripe is in memory, and is yielded in batches. Top-level columns that are not needed are not
read.

Timestamps outside the range of 64-bit nanoseconds since 1970 (before 1677, after 2262) are refused by the decoder.

Failures: the decoder is Arrow's, and ORC has no checksums. Damaged files are refused, but a stripe crafted to
contradict its own streams can crash the process. Read ORC files only from trusted sources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa
from pyarrow import orc

from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.file_schema import FileSchema, describe_arrow, prune, with_ids
from frazil.datafile.open_file import open_file, reading
from frazil.datafile.orc_tail import decode_stripes
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules, RowSelection
from frazil.storage.base import Storage

HEADING = "ORC"
ID_KEY = b"iceberg.id"


class OrcReader(FileReader):
    """An open ORC file."""

    def __init__(self, storage: Storage, path: str, rules: ReadRules, *, size: int | None = None) -> None:
        self._path = path
        self._file = open_file(storage, path, recorded_size=size, is_end=_is_end)
        with reading("ORC file", path, HEADING, self._file):
            self._orc = orc.ORCFile(self._file.handle)
            fields = describe_arrow(self._orc.schema, ID_KEY)
            self.schema = with_ids(fields, rules.schema, rules.name_mapping, by_position=False, history=rules.history)
            self.stripes = decode_stripes(self._orc.reader.serialized_file_tail())
            if len(self.stripes) != self._orc.nstripes:
                raise BadBytes(f"its footer lists {len(self.stripes)} stripes of {self._orc.nstripes}")
        names = [field.name for field in fields]
        self._has_plain_names = len(set(names)) == len(names) and not any("." in name for name in names)

    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns of `batches` if only some stored columns are read."""
        return FileSchema(prune(self.schema.fields, self._whole_columns(leaves)), self.schema.is_mapped)

    def _whole_columns(self, leaves: Collection[int]) -> set[int]:
        """Return stored columns with all others of the same top-level columns."""
        whole: set[int] = set()
        for field in self.schema.fields:
            if any(field.start <= leaf < field.end for leaf in leaves):
                whole |= set(range(field.start, field.end))
        return whole

    def batches(
        self,
        leaves: Collection[int],
        *,
        within: Range | None = None,
        batch_rows: int,
        may_match: Callable[[int], RowSelection] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches; `may_match` returns whether a stripe, by number, can hold a match."""
        whole = self._whole_columns(leaves)
        columns = [field.index for field in self.schema.fields if field.start in whole]
        first = 0
        for number, stripe in enumerate(self.stripes):
            is_in_range = within is None or within.holds(stripe.offset)
            if is_in_range and stripe.rows > 0 and (may_match is None or may_match(number)):
                yield from self._stripe(number, stripe.rows, first, columns, batch_rows)
            first += stripe.rows

    def _stripe(self, number: int, rows: int, first: int, columns: list[int], batch_rows: int) -> Iterator[RawBatch]:
        if not columns:
            for start in range(0, rows, batch_rows):
                yield RawBatch(first + start, min(batch_rows, rows - start), None)
            return
        with reading("ORC file", self._path, HEADING, self._file):
            stripe = self._read(number, columns)
            if stripe.num_rows != rows:
                raise BadBytes(f"stripe {number} has {stripe.num_rows} rows, but its footer says {rows}")
        size = max(1, min(batch_rows, rows * BATCH_BYTES // max(stripe.nbytes, 1)))
        for start in range(0, rows, size):
            sliced = stripe.slice(start, size)
            yield RawBatch(first + start, sliced.num_rows, sliced)

    def _read(self, number: int, columns: list[int]) -> pa.RecordBatch:
        names = [self.schema.fields[index].name for index in columns]
        if self._has_plain_names:
            return self._orc.read_stripe(number, columns=names).select(names)
        # The decoder reads `a.b` as a nested column, and cannot distinguish columns of the same name.
        stripe = self._orc.read_stripe(number)
        return pa.RecordBatch.from_arrays([stripe.column(index) for index in columns], names=names)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _is_end(last: bytes) -> bool:
    """Return whether a file may end like this: its postscript, then the length of that."""
    return last[:3] == b"ORC"
