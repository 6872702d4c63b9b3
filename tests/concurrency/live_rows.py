"""The rows of a snapshot, file by file, by the specification's rules for deletes and nothing else of this package.

Written for tests, apart from the planner and the readers, so that the two can disagree. Specification: "Scan Planning".
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import pyarrow.parquet as pq

from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.snapshot import Snapshot
from frazil.storage.base import Storage
from tests.concurrency.check_files import entries_of, positions_of


class Row(NamedTuple):
    """A row; no two rows that were ever written have the same `v`, but for copies of one."""

    id: int
    v: int


@dataclass
class LiveFile:
    """A data file, its rows that are live by position, and what deleted the others."""

    data_file: DataFile
    live: dict[int, Row]
    by_position: set[int] = field(default_factory=set)
    vectors: tuple[DataFile, ...] = ()

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.data_file.file_path


@lru_cache(maxsize=100_000)
def _rows(storage: Storage, path: str) -> tuple[Row, ...]:
    table = pq.read_table(io.BytesIO(storage.read(path)))
    return tuple(map(Row, table.column("id").to_pylist(), table.column("v").to_pylist()))


@lru_cache(maxsize=100_000)
def _column(storage: Storage, path: str, name: str) -> tuple[int, ...]:
    return tuple(pq.read_table(io.BytesIO(storage.read(path))).column(name).to_pylist())


@lru_cache(maxsize=100_000)
def _positions(storage: Storage, vector: DataFile) -> tuple[int, ...]:
    return tuple(positions_of(storage, vector))


def live_files(loaded: LoadedTable, snapshot: Snapshot) -> list[LiveFile]:
    """Return the data files of a snapshot with the rows that are left of each."""
    storage = loaded.storage
    entries = entries_of(loaded, snapshot)
    found: list[LiveFile] = []
    deletes = [one for one in entries if one.data_file.content is not FileContent.DATA]
    for entry in entries:
        file, number = entry.data_file, entry.sequence_number or 0
        if file.content is not FileContent.DATA:
            continue
        gone: set[int] = set()
        rows = _rows(storage, file.file_path)
        vectors: list[DataFile] = []
        for one in deletes:
            delete, since = one.data_file, one.sequence_number or 0
            if delete.content is FileContent.EQUALITY_DELETES:
                continue
            if delete.referenced_data_file == file.file_path and since >= number:
                if delete.is_deletion_vector:
                    vectors.append(delete)
                    gone |= set(_positions(storage, delete))
                else:
                    gone |= set(_column(storage, delete.file_path, "pos"))
        ids = {
            row_id
            for one in deletes
            if one.data_file.content is FileContent.EQUALITY_DELETES and (one.sequence_number or 0) > number
            for row_id in _column(storage, one.data_file.file_path, "id")
        }
        live = {at: row for at, row in enumerate(rows) if at not in gone and row.id not in ids}
        found.append(LiveFile(file, live, gone, tuple(vectors)))
    return found
