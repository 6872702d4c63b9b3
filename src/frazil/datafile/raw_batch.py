"""The common interface of the readers: a file's own columns, in batches with their positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from frazil.datafile.file_schema import FileSchema
from frazil.spec.name_mapping import NameMapping
from frazil.spec.schema import Schema

BATCH_BYTES = 64 << 20
"""The approximate maximum size of a batch's stored values."""


RowSelection: TypeAlias = "bool | list[tuple[int, int]]"
"""For a row group: whether it can hold a match, or the ranges of rows that can, with exclusive ends."""


class RawBatch(NamedTuple):
    """Consecutive rows of a file; `columns` is None if no stored column was requested."""

    start: int
    length: int
    columns: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class Range:
    """A byte range of a file. Row groups, stripes and blocks belong to the range with their first byte.

    The last range of a file includes everything that starts after it, so that nothing is lost if a manifest has the
    wrong size.
    """

    start: int
    length: int
    is_last: bool = False

    def holds(self, offset: int) -> bool:
        """Return whether something that starts at an offset belongs to this range."""
        return (self.start <= offset or self.start == 0) and (self.is_last or offset < self.start + self.length)


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How columns of files without field ids get them: from the table's mapping, or else from its schema.

    `history` are the table's schemas if the file may belong to another table: other ids are refused.
    """

    schema: Schema
    name_mapping: NameMapping | None = None
    history: tuple[Schema, ...] = ()


class FileReader(ABC):
    """An open data or delete file."""

    schema: FileSchema

    def prefer_dictionaries(self, leaves: Collection[int]) -> None:
        """Read these stored columns as dictionaries from now on, if that is faster and the format supports it."""
        return

    @abstractmethod
    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns of `batches` if only some stored columns are read."""

    @abstractmethod
    def batches(
        self,
        leaves: Collection[int],
        *,
        within: Range | None = None,
        batch_rows: int,
        may_match: Callable[[int], RowSelection] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches of some stored columns, in the order of their rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""
