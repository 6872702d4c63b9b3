"""What the first page knows of each table: read from metadata in threads, kept by metadata file, which never changes.

A look waits a moment and returns what is known by then; the rest follows when it is asked again. Figures come from the
current snapshot's summary. Health is looked at table after table, once somebody asks for it; of tables with very many
files it is shown on their own page only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final

from frazil.catalog.base import Catalog
from frazil.catalog.names import Identifier
from frazil.console.jobs import reason_of
from frazil.loaded import LoadedTable
from frazil.maintenance.table_health import table_health
from frazil.spec.snapshot import Snapshot, Summary

THREADS: Final = 4
FRESH_SECONDS: Final = 10.0
"""How long figures count of a catalog that cannot tell cheaply whether a table changed."""
MAX_HEALTH_FILES: Final = 20_000
MAX_KEPT: Final = 50_000


@dataclass(frozen=True, slots=True)
class TableFigures:
    """A line of the first page. What is not known is None; `error` says why nothing is."""

    identifier: Identifier
    rows: int | None = None
    is_most: bool = False
    """Whether the rows are that many at most: equality deletes are not counted."""
    bytes: int | None = None
    files: int | None = None
    changed_ms: int | None = None
    engine: str | None = None
    version: int | None = None
    snapshots: int | None = None
    problems: tuple[str, ...] | None = None
    """What health found, by kind; None where nobody looked yet."""
    is_large: bool = False
    """Whether it has too many files to look at its health from the list."""
    error: str | None = None
    is_pending: bool = False
    stamp: int = 0
    """Grows with each thing that becomes known, so that a page can ask for what is new to it."""


def figures_of(loaded: LoadedTable) -> TableFigures:
    """Return a table's figures, from metadata alone."""
    metadata = loaded.metadata
    snapshot = metadata.current_snapshot
    total = summary_number(snapshot, Summary.TOTAL_RECORDS)
    deleted = summary_number(snapshot, Summary.TOTAL_POSITION_DELETES) or 0
    files = summary_number(snapshot, Summary.TOTAL_DATA_FILES)
    return TableFigures(
        loaded.identifier,
        0 if snapshot is None else None if total is None else max(total - deleted, 0),
        bool(summary_number(snapshot, Summary.TOTAL_EQUALITY_DELETES)),
        0 if snapshot is None else summary_number(snapshot, Summary.TOTAL_FILES_SIZE),
        0 if snapshot is None else files,
        metadata.last_updated_ms if snapshot is None else snapshot.timestamp_ms,
        engine_of(snapshot),
        metadata.format_version,
        len(metadata.snapshots),
        is_large=(files or 0) > MAX_HEALTH_FILES,
    )


def summary_number(snapshot: Snapshot | None, key: str) -> int | None:
    """Return a number of a snapshot's summary; None where there is none, or something else."""
    text = "" if snapshot is None or snapshot.summary is None else snapshot.summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def engine_of(snapshot: Snapshot | None) -> str | None:
    """Return who wrote a snapshot: its engine and version, or what else its summary says."""
    facts = {} if snapshot is None or snapshot.summary is None else snapshot.summary
    name = facts.get(Summary.ENGINE_NAME)
    version = facts.get(Summary.ENGINE_VERSION, "")
    if name is not None:
        return f"{name} {version}".strip()
    if "spark.app.id" in facts:
        return "spark"
    return facts.get("iceberg-version") or None


class LakeFigures:
    """The figures of all tables of a catalog. Several threads may ask."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._known: dict[Identifier, tuple[str | None, float, TableFigures]] = {}
        """By table: its metadata file, when it was looked at, and what was found."""
        self._pending: dict[Identifier, Future[None]] = {}
        self._health: dict[str, tuple[str, ...]] = {}
        """What health found, by metadata file."""
        self._asked: set[str] = set()
        self._stamps: dict[Identifier, int] = {}
        self._stamp = 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="frazil-figures")
        self._health_thread = ThreadPoolExecutor(1, thread_name_prefix="frazil-health")

    def look(
        self, tables: Sequence[Identifier], seconds: float, *, with_health: bool = False
    ) -> dict[Identifier, TableFigures]:
        """Return what is known of tables after a moment at most."""
        futures = [found for one in tables if (found := self._begin(one)) is not None]
        wait(futures, seconds)
        answer = {}
        for one in tables:
            with self._lock:
                known = self._known.get(one)
            if known is None:
                answer[one] = TableFigures(one, is_pending=True)
                continue
            location, _, figures = known
            problems = None if location is None else self._health.get(location)
            if problems is not None:
                figures = replace(figures, problems=problems)
            elif with_health and figures.error is None and not figures.is_large and location is not None:
                self._begin_health(one, location)
                figures = replace(figures, is_pending=True)
            answer[one] = replace(figures, stamp=self._stamps.get(one, 0))
        return answer

    def keep_health(self, table: Identifier, location: str | None, problems: tuple[str, ...]) -> None:
        """Take what a table's own page found."""
        if location is not None:
            with self._lock:
                self._health[location] = problems
                self._note(table)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._health_thread.shutdown(wait=True, cancel_futures=True)

    def _begin(self, table: Identifier) -> Future[None] | None:
        with self._lock:
            running = self._pending.get(table)
            if running is not None:
                return running
            known = self._known.get(table)
            if known is not None and known[0] is None and time.monotonic() - known[1] < FRESH_SECONDS:
                return None
            future = self._pending[table] = self._threads.submit(self._read, table, known)
            return future

    def _read(self, table: Identifier, known: tuple[str | None, float, TableFigures] | None) -> None:
        location = None
        try:
            located = self._catalog.locate_table(table)
            if known is not None and located is not None and known[0] == located:
                return
            loaded = self._catalog.load_table(table)
            figures = figures_of(loaded)
            location = None if located is None else loaded.metadata_location
        except Exception as error:
            # One table that cannot be read leaves the others as they are.
            figures = TableFigures(table, error=reason_of(error)[0])
        finally:
            with self._lock:
                self._pending.pop(table, None)
        with self._lock:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            self._known[table] = (location, time.monotonic(), figures)
            self._note(table)

    def _note(self, table: Identifier) -> None:
        self._stamp += 1
        self._stamps[table] = self._stamp

    def _begin_health(self, table: Identifier, location: str) -> None:
        with self._lock:
            if location in self._asked:
                return
            self._asked.add(location)
        self._health_thread.submit(self._look_at_health, table, location)

    def _look_at_health(self, table: Identifier, location: str) -> None:
        try:
            report = table_health(self._catalog.load_table(table), now_ms=self._catalog.now_ms())
            found = tuple(one.kind for one in report.problems)
        except Exception:
            found = ("unreadable",)
        with self._lock:
            self._health[location] = found
            self._note(table)
