"""What the readers of all formats have in common: a file's own columns, in batches that know their positions."""

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
"""About how many bytes of stored values a batch holds at most."""


Wanted: TypeAlias = "bool | list[tuple[int, int]]"
"""Of a row group: whether it can hold a match; or which of its rows can, from each first to before each last."""


class RawBatch(NamedTuple):
    """Rows of a file from a position on. `columns` is None where no stored column was asked for."""

    start: int
    length: int
    columns: pa.RecordBatch | None


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a file in bytes. Row groups, stripes and blocks belong to the part that holds their first byte.

    The part at the end of a file takes whatever starts after it, so that nothing is lost where a manifest is
    wrong about a file's size.
    """

    start: int
    length: int
    is_last: bool = False

    def holds(self, offset: int) -> bool:
        """Return whether what starts at an offset is in this part."""
        return (self.start <= offset or self.start == 0) and (self.is_last or offset < self.start + self.length)


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How columns of files without field ids get them: by the table's mapping, else by its schema.

    `history` has the table's schemas where a file is not known to be the table's: ids that are not are refused.
    """

    schema: Schema
    name_mapping: NameMapping | None = None
    history: tuple[Schema, ...] = ()


class FileReader(ABC):
    """An open data or delete file."""

    schema: FileSchema

    def prefer_dictionaries(self, leaves: Collection[int]) -> None:
        """Read these stored columns as dictionaries from now on, where that is faster and the format can."""
        return

    @abstractmethod
    def pruned(self, leaves: Collection[int]) -> FileSchema:
        """Return the columns as `batches` gives them when only some stored columns are read."""

    @abstractmethod
    def batches(
        self,
        leaves: Collection[int],
        *,
        within: Range | None = None,
        batch_rows: int,
        may_match: Callable[[int], Wanted] | None = None,
        use_threads: bool = False,
    ) -> Iterator[RawBatch]:
        """Yield batches of some stored columns, in the order of their rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""
