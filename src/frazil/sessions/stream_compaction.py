"""A stream that compacts the table as it goes: after a batch, beside the next ones, and never in their way.

    compact-every-batches   after so many batches that wrote something
    compact-every-bytes     or after so many bytes that they wrote
    compact.<option>        options of rewrite_data_files, such as compact.min-input-files

It runs in a thread of this process, without Spark, one at a time for each query. What it commits are rewrites, which
appends do not conflict with; where it meets another change of the same files it gives way, and where it fails the query
goes on and a warning says why. What a batch of the stream would do it does not wait for.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import CommitError, FrazilError, InvalidRequestError
from frazil.lake.sql_session import FullName
from frazil.lake.table import Table
from frazil.maintenance.rewrite_options import read_data_options
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary

_BATCHES, _BYTES, _OPTION = "compact-every-batches", "compact-every-bytes", "compact."
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a stream compacts its table, and with which options."""

    every_batches: int | None
    every_bytes: int | None
    options: Mapping[str, str]


@dataclass(slots=True)
class _Written:
    """What a query has written since it compacted last."""

    batches: int = 0
    size_bytes: int = 0
    runs: threading.Thread | None = None
    finished: int = 0
    gave_way: int = 0
    problems: list[str] = field(default_factory=list)


_queries: dict[str, _Written] = {}


def compaction_of(full_name: FullName, options: Mapping[str, str]) -> Compaction | None:
    """Return what the options of a stream say about compaction; None where it is not asked for."""
    own = {key.removeprefix(_OPTION): value for key, value in options.items() if key.startswith(_OPTION)}
    batches, size = _whole(full_name, options, _BATCHES), _whole(full_name, options, _BYTES)
    if batches is None and size is None:
        if own:
            raise InvalidRequestError(
                f"Cannot stream to {full_name} with {_OPTION}{min(own)}: no option says when to compact",
                hint=f"Give {_BATCHES} or {_BYTES}.",
            )
        return None
    read_data_options(own, 512 << 20, strategy="binpack")
    return Compaction(batches, size, own)


def _whole(full_name: FullName, options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise InvalidRequestError(f"Cannot stream to {full_name} with {name}={text!r}: it is no whole number above 0")
    return int(text)


def compact_after(query: str, table: Table, branch: str | None, made: Snapshot | None, when: Compaction) -> None:
    """Count a batch, and compact beside the next ones where it is time and no other compaction of the query runs."""
    if made is None:
        return
    added = 0 if made.summary is None else int(made.summary.get(Summary.ADDED_FILES_SIZE, "0"))
    with _lock:
        written = _queries.setdefault(query, _Written())
        written.batches += 1
        written.size_bytes += added
        is_due = (when.every_batches is not None and written.batches >= when.every_batches) or (
            when.every_bytes is not None and written.size_bytes >= when.every_bytes
        )
        if not is_due or (written.runs is not None and written.runs.is_alive()):
            return
        written.batches = written.size_bytes = 0
        own = Table(table._catalog, table.state, table._cache)
        written.runs = threading.Thread(
            target=_compact,
            args=(written, own, branch or MAIN_BRANCH, dict(when.options)),
            name=f"compaction of {table.name}",
            daemon=True,
        )
        written.runs.start()


def _compact(written: _Written, table: Table, branch: str, options: dict[str, Any]) -> None:
    try:
        table.refresh().maintain.rewrite_data_files(branch=branch, on_spark=False, options=options)
        written.finished += 1
    except CommitError:
        # Others changed the same files: the next time will do.
        written.gave_way += 1
    except FrazilError as error:
        written.problems.append(str(error))
        warnings.warn(f"The stream goes on, but its table was not compacted: {error}", RuntimeWarning, stacklevel=1)


def compactions(query: str) -> tuple[int, int, list[str]]:
    """Wait for the compaction of a query that runs; return how many finished and gave way, and what went wrong."""
    written = _queries.get(query, _Written())
    if written.runs is not None:
        written.runs.join()
    return written.finished, written.gave_way, written.problems
