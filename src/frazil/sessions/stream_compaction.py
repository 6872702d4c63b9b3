"""Compaction of the table that a stream writes to, in the background of its batches.

    compact-every-batches   after so many batches that wrote something
    compact-every-bytes     or after so many bytes that they wrote
    compact.<option>        options of rewrite_data_files, such as compact.min-input-files

It runs in a thread of this process, without Spark, one at a time for each query. It commits rewrites, which do not
conflict with appends. If the same files were changed meanwhile it is skipped, and if it fails the query continues and a
warning is logged. Batches do not wait for it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from frazil.errors import CommitError, FrazilError, InvalidRequestError
from frazil.maintenance.rewrite_options import read_data_options
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.table.sql_session import FullName
from frazil.table.table import Table

_BATCHES, _BYTES, _OPTION = "compact-every-batches", "compact-every-bytes", "compact."


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a stream compacts its table, and with which options."""

    every_batches: int | None
    every_bytes: int | None
    options: Mapping[str, str]


def compaction_of(full_name: FullName, options: Mapping[str, str]) -> Compaction | None:
    """Return the compaction configured by a stream's options, or None."""
    compaction_options = {key.removeprefix(_OPTION): value for key, value in options.items() if key.startswith(_OPTION)}
    batches, size = _whole(full_name, options, _BATCHES), _whole(full_name, options, _BYTES)
    if batches is None and size is None:
        if compaction_options:
            raise InvalidRequestError(
                f"Cannot stream to {full_name} with {_OPTION}{min(compaction_options)}: no option says when to compact",
                hint=f"Give {_BATCHES} or {_BYTES}.",
            )
        return None
    read_data_options(compaction_options, 512 << 20, strategy="binpack")
    return Compaction(batches, size, compaction_options)


def _whole(full_name: FullName, options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise InvalidRequestError(f"Cannot stream to {full_name} with {name}={text!r}: it is not a positive integer")
    return int(text)


@dataclass(slots=True)
class Compactions:
    """What a query has written since its last compaction, and how its compactions ended."""

    batches: int = 0
    size_bytes: int = 0
    finished: int = 0
    conflicts: int = 0
    problems: list[str] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, table: Table, branch: str | None, snapshot: Snapshot | None, when: Compaction) -> None:
        """Count a batch; start a compaction if it is due and none is running."""
        if snapshot is None:
            return
        added = 0 if snapshot.summary is None else int(snapshot.summary.get(Summary.ADDED_FILES_SIZE, "0"))
        with self._lock:
            self.batches += 1
            self.size_bytes += added
            is_due = (when.every_batches is not None and self.batches >= when.every_batches) or (
                when.every_bytes is not None and self.size_bytes >= when.every_bytes
            )
            if not is_due or (self._thread is not None and self._thread.is_alive()):
                return
            self.batches = self.size_bytes = 0
            fresh_table = Table(table._catalog, table.state, table._cache)
            self._thread = threading.Thread(
                target=self._compact,
                args=(fresh_table, branch or MAIN_BRANCH, dict(when.options)),
                name=f"compaction of {table.name}",
                daemon=True,
            )
            self._thread.start()

    def _compact(self, table: Table, branch: str, options: dict[str, str]) -> None:
        try:
            table.refresh().maintain.rewrite_data_files(branch=branch, on_spark=False, options=options)
            self.finished += 1
        except CommitError:
            # The same files were changed: the next compaction includes them.
            self.conflicts += 1
        except FrazilError as error:
            self.problems.append(str(error))
            warnings.warn(
                f"The stream continues, but its table was not compacted: {error}", RuntimeWarning, stacklevel=1
            )

    def wait(self) -> tuple[int, int, list[str]]:
        """Wait for the compaction that is running; return how many finished and conflicted, and the errors."""
        if self._thread is not None:
            self._thread.join()
        return self.finished, self.conflicts, self.problems
