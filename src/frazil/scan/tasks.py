"""Tasks of a plan for readers: files with their deletes and residual filters.

A task is self-contained: with it and a storage, a reader needs only the schema of the table. It has no metrics unless
requested, so that a million tasks can be sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from frazil.expr.predicates import TRUE, Predicate
from frazil.spec.data_file import DataFile, FileContent
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """A delete file or deletion vector that applies to a data file, with its data sequence number."""

    data_file: DataFile
    data_sequence_number: int

    @property
    def content_bytes(self) -> int:
        """The bytes to read: the blob of a deletion vector, or else the whole file."""
        size = self.data_file.content_size_in_bytes
        return self.data_file.file_size_in_bytes if size is None else size


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """One data file to read, or the part of it from `start` over `length` bytes.

    `residual` is the filter that rows must still be tested for. `length` None is the whole file.
    """

    data_file: DataFile
    data_sequence_number: int
    delete_files: tuple[DeleteTask, ...] = ()
    residual: Predicate = TRUE
    start: int = 0
    length: int | None = None
    storage: Storage | None = field(default=None, compare=False, repr=False, kw_only=True)
    """The storage of its files if it differs from the table's: a service vended credentials with the plan."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the data file that this task covers."""
        return self.data_file.file_size_in_bytes if self.length is None else self.length

    @property
    def has_equality_deletes(self) -> bool:
        """Whether an equality delete file applies."""
        return any(delete_file.data_file.content is FileContent.EQUALITY_DELETES for delete_file in self.delete_files)

    def part(self, start: int, length: int) -> FileScanTask:
        """Return the task for a part of the file."""
        return replace(self, start=start, length=length)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Tasks for one reader."""

    tasks: tuple[FileScanTask, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of data files in the group."""
        return sum(task.size_bytes for task in self.tasks)
