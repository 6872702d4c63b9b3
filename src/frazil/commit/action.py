"""What an action is: a function of the current table, called again for each attempt of a commit.

    prepare(loaded, context) -> Changes        updates, requirements, and the files written for them

An action holds only the request of the caller. It never sees the catalog and keeps nothing from one attempt to the
next. Results worth keeping (manifests of new files, filtered and merged manifests) are in the `WrittenManifests` that
the transaction passes in, under keys that identify their inputs. So a retry is cheap, and an action prepared three
times gives the same result as one whose first attempt won.

`CommitContext` holds what differs between commits and attempts. The snapshot id and the commit id are the same for all
attempts, so that a commit whose response was lost can be recognised in the table.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from frazil.changes.requirements import TableRequirement
from frazil.changes.updates import TableUpdate
from frazil.errors import FileAlreadyExistsError
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from frazil.threads import default_threads

_MAX_SNAPSHOT_ID = (1 << 63) - 1
NO_ENGINE: FrozenMap[str, str] = FrozenMap()


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that an action requests of a table, and the files it wrote for them.

    `requirements` must hold for the table that the updates are applied to. Without updates there is nothing to do.
    `is_skipped` means that another commit has made the same change already (`commit/once.py`): the files written for it
    are not used.
    """

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    written_files: tuple[str, ...] = ()
    is_skipped: bool = False


NOTHING = Changes()


class WrittenManifests:
    """The files that an action has written during a commit, and results cached for its next attempt.

    Every path is recorded before the file is written, so that clean-up includes files whose write failed half-way.
    Thread-safe.
    """

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._paths: list[str] = []
        self._count = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Any:
        """Return the result that an earlier attempt kept under a key, or None."""
        with self._lock:
            return self._results.get(key)

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a result for later attempts."""
        with self._lock:
            self._results[key] = value

    def next_number(self) -> int:
        """Return the next number for a file name; numbers are unique within a commit."""
        with self._lock:
            number = self._count
            self._count += 1
            return number

    def write(self, storage: Storage, path: str, data: bytes) -> None:
        """Write a new file of this commit."""
        with self._lock:
            self._paths.append(path)
        try:
            storage.create(path, data)
        except FileAlreadyExistsError:
            # The file belongs to another writer, and clean-up must not delete it.
            with self._lock:
                self._paths.remove(path)
            raise

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that was written, or may have been, in order."""
        with self._lock:
            return tuple(self._paths)


@dataclass(frozen=True, slots=True)
class CommitContext:
    """The inputs of an action besides the table; one for each action of a transaction and each attempt.

    `engine` is added to the summaries of snapshots unchanged: `engine-name`, `engine-version` and the like. `own_ids`
    are the snapshots of all actions of the transaction, `first` is the table's metadata when it began, and `base` the
    metadata that this attempt starts from. An action may have read the result of an earlier action of the same
    transaction; that is not a conflict.
    """

    snapshot_id: int
    commit_id: str
    now_ms: Callable[[], int]
    written: WrittenManifests
    attempt: int = 1
    engine: Mapping[str, str] = field(default=NO_ENGINE)
    cache: ManifestCache | None = None
    threads: int = field(default_factory=default_threads)
    own_ids: frozenset[int] = frozenset()
    first: TableMetadata | None = None
    base: TableMetadata | None = None


class Action(Protocol):
    """A change of one table. Implementations are frozen values."""

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the changes to the present state of the table; called once per attempt."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The rest of a planned change: an action to commit, and the files written for it, to delete on failure."""

    action: Action
    written: tuple[str, ...] = ()
    rows: int | None = None
    """The number of rows of the table that are deleted or changed, if known."""


def snapshot_id_of(unique: str) -> int:
    """Return a snapshot id derived from a UUID's text: positive, and as unlikely to repeat."""
    number = uuid.UUID(unique).int
    return ((number >> 64) ^ (number & ((1 << 64) - 1))) & _MAX_SNAPSHOT_ID
