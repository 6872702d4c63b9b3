"""A database that fails on purpose, like `storage/failing.py`: the n-th call fails as planned, every call is logged.

It wraps another database. Calls are reads and transactions; the effect of a fault on a transaction:

    IO_ERROR, NO_SPACE   the connection is lost before COMMIT: nothing happened, and the caller knows
    APPLIED_BUT_ERROR    the transaction is committed, but the response is lost
    TORN                 the connection is lost during COMMIT, and the server rolls back
    CRASH_BEFORE, _AFTER the process dies before or after the commit
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from frazil.catalog.database import Database, Run
from frazil.errors import StorageError
from frazil.storage.failing import FaultKind, SimulatedCrash


class _Lost(Exception):
    """Rolls the inner transaction back."""


class FailingDatabase(Database):
    """Another database, with faults: `{3: FaultKind.IO_ERROR}` fails the third call."""

    def __init__(self, inner: Database, faults: dict[int, FaultKind] | None = None) -> None:
        self.inner = inner
        self.faults = dict(faults or {})
        self.label = inner.label
        self.row_lock = inner.row_lock
        self.calls: list[str] = []
        self.has_crashed = False
        self._lock = threading.Lock()

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, or fail as planned."""
        fault = self._next("read")
        if fault in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
            raise self._crash()
        if fault is not None:
            raise self._error(fault)
        return self.inner.read(sql, *values)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Run]:
        """Run statements all or none, or fail as planned."""
        fault = self._next("transaction")
        if fault in (FaultKind.IO_ERROR, FaultKind.NO_SPACE):
            raise self._error(fault)
        try:
            with self.inner.transaction() as run:
                yield run
                if fault in (FaultKind.TORN, FaultKind.CRASH_BEFORE):
                    raise _Lost
        except _Lost:
            if fault is FaultKind.CRASH_BEFORE:
                raise self._crash() from None
            raise self.outcome_unknown("the connection was lost") from None
        if fault is FaultKind.CRASH_AFTER:
            raise self._crash()
        if fault is FaultKind.APPLIED_BUT_ERROR:
            raise self.outcome_unknown("the connection was lost")

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of a table; never fails and is not logged."""
        return self.inner.columns(table)

    def close(self) -> None:
        """Close the wrapped database."""
        self.inner.close()

    def _next(self, verb: str) -> FaultKind | None:
        with self._lock:
            if self.has_crashed:
                raise SimulatedCrash(f"{verb} after the crash")
            self.calls.append(verb)
            return self.faults.get(len(self.calls))

    def _error(self, fault: FaultKind) -> StorageError:
        return StorageError(f"Cannot use {self.label}: {fault.value}")

    def _crash(self) -> SimulatedCrash:
        self.has_crashed = True
        return SimulatedCrash(self.label)
