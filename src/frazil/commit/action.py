"""What an action is: a function of the current table, called again for each attempt of a commit.

    prepare(loaded, context) -> Changes        updates, requirements, and the files written for them

An action holds only what the caller asked for. It never sees the catalog and keeps nothing from one attempt to
the next; what is worth keeping (manifests of new files, filtered and merged manifests) lies in the
`WrittenManifests` that the transaction hands in, under keys that say what went into them. That makes a retry
cheap, and makes an action whose `prepare` ran three times the same as one whose first attempt won.

`CommitContext` carries what differs between commits and attempts. The snapshot id and the commit's id stay the
same for all attempts, so that a commit whose answer was lost can be recognised in the table.
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
    """What an action wants to happen to a table, and the files it wrote that the result uses.

    `requirements` must hold for the table the updates are applied to. No updates: there is nothing to do. With
    `is_skipped` that is so since another commit did it before (`commit/once.py`): what was written for it is of no use.
    """

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    written_files: tuple[str, ...] = ()
    is_skipped: bool = False


NOTHING = Changes()


class WrittenManifests:
    """The files one action has written during a commit, and results worth keeping for its next attempt.

    Every path is noted before it is written, so that clean-up knows of files whose write failed half way.
    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._paths: list[str] = []
        self._count = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Any:
        """Return what an earlier attempt kept under a key, or None."""
        with self._lock:
            return self._known.get(key)

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a result for later attempts."""
        with self._lock:
            self._known[key] = value

    def next_number(self) -> int:
        """Return the next number for a file name; no number comes twice in a commit."""
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
            # The file is another's, and not to be cleaned up with ours.
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
    """What an action needs beside the table. One for each action of a transaction and each attempt.

    `engine` goes into the summary of snapshots as it is: `engine-name`, `engine-version` and the like. `own_ids` are
    the snapshots of all actions of the transaction, `first` the table's metadata when it began, and `base` that which
    this attempt starts from: an action may have read what an earlier one of the same transaction made, and the two do
    not conflict.
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
        """Return what to change in the table as it is now; called once for each attempt."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is left to do for a change: an action to commit, and the files written for it, to delete if it fails."""

    action: Action
    written: tuple[str, ...] = ()
    rows: int | None = None
    """How many rows of the table go or change, where that is known."""


def snapshot_id_of(unique: str) -> int:
    """Return a snapshot id from a UUID's text: positive, and as unlikely to come twice."""
    number = uuid.UUID(unique).int
    return ((number >> 64) ^ (number & ((1 << 64) - 1))) & _MAX_SNAPSHOT_ID
