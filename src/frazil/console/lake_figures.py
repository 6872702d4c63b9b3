"""The figures of each table on the first page: read from metadata by threads, cached by metadata file.

A look-up waits briefly and returns what has been read so far; the rest follows when it is repeated. Figures come from
the current snapshot's summary. Health is checked table by table once it is requested; for tables with very many files
it is shown only on their own page.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from frazil.catalog.base import Catalog
from frazil.catalog.names import Identifier
from frazil.console.jobs import reason_of
from frazil.maintenance.table_health import table_health
from frazil.table.table_figures import TableFigures, figures_of

THREADS: Final = 2
AT_ONCE: Final = 25
"""The number of tables that a thread reads one after the other."""
PAUSE_SECONDS: Final = 1.0
LOCATED_SECONDS: Final = 2.0
"""How long figures are valid if the catalog can tell cheaply whether a table changed."""
FRESH_SECONDS: Final = 10.0
"""How long figures are valid if the catalog cannot tell cheaply whether a table changed."""
MAX_HEALTH_FILES: Final = 20_000
MAX_KEPT: Final = 50_000


@dataclass(frozen=True, slots=True)
class TableLine:
    """A row of the first page: a table's figures, the kinds of its problems, or the error."""

    identifier: Identifier
    figures: TableFigures | None = None
    problems: tuple[str, ...] | None = None
    """The kinds of problems, or None if the health is unknown."""
    error: str | None = None
    is_pending: bool = False
    stamp: int = 0
    """Increases with each update, so that a page can request only what is new."""

    @property
    def is_large(self) -> bool:
        """Whether it has too many files for a health check from the list."""
        return self.figures is not None and (self.figures.files or 0) > MAX_HEALTH_FILES


class LakeFigures:
    """The figures of all tables of a catalog. Thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._known: dict[Identifier, tuple[str | None, float, TableLine]] = {}
        """By table: its metadata file, the time it was read, and its row."""
        self._pending: dict[Identifier, Future[None]] = {}
        self._pauses = 0
        self._may_read = threading.Event()
        self._may_read.set()
        self._health: dict[str, tuple[str, ...]] = {}
        """The kinds of problems by metadata file."""
        self._asked: set[str] = set()
        self._stamps: dict[Identifier, int] = {}
        self._stamp = 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="frazil-figures")
        self._health_thread = ThreadPoolExecutor(1, thread_name_prefix="frazil-health")

    def look(
        self, tables: Sequence[Identifier], seconds: float, *, with_health: bool = False
    ) -> dict[Identifier, TableLine]:
        """Return the rows of tables that are available within a time limit."""
        wait(self._begin(tables), seconds)
        answer = {}
        for table in tables:
            cached = self._known.get(table)
            if cached is None:
                answer[table] = TableLine(table, is_pending=True)
                continue
            location, _, line = cached
            problems = None if location is None else self._health.get(location)
            if problems is not None:
                line = replace(line, problems=problems)
            elif with_health and line.error is None and not line.is_large and location is not None:
                self._begin_health(table, location)
                line = replace(line, is_pending=True)
            answer[table] = replace(line, stamp=self._stamps.get(table, 0))
        return answer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Start reading no further tables within the block, so that a page that is being created is ready first."""
        with self._lock:
            self._pauses += 1
            self._may_read.clear()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if self._pauses == 0:
                    self._may_read.set()

    def keep_health(self, table: Identifier, location: str | None, problems: tuple[str, ...]) -> None:
        """Store the problems that a table's own page determined."""
        if location is not None:
            with self._lock:
                self._health[location] = problems
                self._note(table)

    def close(self) -> None:
        """Start nothing more."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._health_thread.shutdown(wait=True, cancel_futures=True)

    def _begin(self, tables: Sequence[Identifier]) -> set[Future[None]]:
        """Start reading tables without fresh figures, some at a time; return what to wait for."""
        now = time.monotonic()
        running: set[Future[None]] = set()
        to_read = []
        with self._lock:
            for table in tables:
                future, cached = self._pending.get(table), self._known.get(table)
                if future is not None:
                    running.add(future)
                elif cached is None or now - cached[1] > (FRESH_SECONDS if cached[0] is None else LOCATED_SECONDS):
                    to_read.append(table)
            for index in range(0, len(to_read), AT_ONCE):
                group = to_read[index : index + AT_ONCE]
                future = self._threads.submit(self._read_some, group)
                running.add(future)
                self._pending |= dict.fromkeys(group, future)
        return running

    def _read_some(self, tables: Sequence[Identifier]) -> None:
        for table in tables:
            self._may_read.wait(PAUSE_SECONDS)
            self._read(table)

    def _read(self, table: Identifier) -> None:
        cached, location = self._known.get(table), None
        try:
            located = self._catalog.locate_table(table)
            if cached is not None and located is not None and cached[0] == located:
                line, location = cached[2], located
            else:
                loaded = self._catalog.load_table(table)
                line = TableLine(table, figures_of(loaded))
                location = None if located is None else loaded.metadata_location
        except Exception as error:
            # An unreadable table does not affect the others.
            line = TableLine(table, error=reason_of(error)[0])
        with self._lock:
            self._pending.pop(table, None)
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            self._known[table] = (location, time.monotonic(), line)
            if cached is None or cached[2] != line:
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
            self._may_read.wait(PAUSE_SECONDS)
            report = table_health(self._catalog.load_table(table), now_ms=self._catalog.now_ms())
            problem_kinds = tuple(problem.kind for problem in report.problems)
        except Exception:
            problem_kinds = ("unreadable",)
        with self._lock:
            self._health[location] = problem_kinds
            self._note(table)
