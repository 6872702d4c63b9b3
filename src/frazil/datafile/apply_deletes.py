"""The deletes of one task, ready to test rows. Specification: "Row-level Deletes".

All position deletes of a data file and its deletion vector are merged into one set of positions; equality deletes are a
set of keys for each set of compared columns. A row is deleted if any of them matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.codec.deletion_vector import DeletionVector
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.equality_deletes import EqualityDeletes, load_equality_deletes
from frazil.datafile.position_deletes import read_file_positions
from frazil.datafile.raw_batch import ReadRules
from frazil.scan.tasks import DeleteTask, FileScanTask
from frazil.spec.data_file import FileContent
from frazil.spec.schema import Schema
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class TaskDeletes:
    """The deletes of one data file: positions, or None, and keys."""

    positions: DeletionVector | None = None
    equality: tuple[EqualityDeletes, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is deleted."""
        return self.positions is None and not self.equality


NO_DELETES = TaskDeletes()


def load_deletes(
    storage: Storage, task: FileScanTask, schemas: Sequence[Schema], rules: ReadRules, cache: DeleteCache
) -> TaskDeletes:
    """Read the deletes that apply to a task's data file."""
    if not task.delete_files:
        return NO_DELETES
    equality = [
        delete_file
        for delete_file in task.delete_files
        if delete_file.data_file.content is FileContent.EQUALITY_DELETES
    ]
    positions = load_positions(storage, task, cache)
    return TaskDeletes(positions, tuple(load_equality_deletes(storage, equality, schemas, rules, cache)))


def position_tasks(task: FileScanTask) -> list[DeleteTask]:
    """Return the position deletes of a task."""
    return [
        delete_file
        for delete_file in task.delete_files
        if delete_file.data_file.content is FileContent.POSITION_DELETES
    ]


def load_positions(storage: Storage, task: FileScanTask, cache: DeleteCache) -> DeletionVector | None:
    """Return the deleted positions of a task's data file, or None if there are none."""
    loaded = [read_file_positions(storage, delete, task.data_file, cache) for delete in position_tasks(task)]
    vectors = [vector for vector in loaded if not vector.is_empty]
    if not vectors:
        return None
    return vectors[0] if len(vectors) == 1 else vectors[0].union(*vectors[1:])
