"""Catalogs in which the n-th call to the database, or to the pointers in memory, goes wrong.

Databases fail where a driver would: at a statement, at COMMIT, at the connection. What a fault means there:

    CRASH_BEFORE, CRASH_AFTER   the process dies before or after the statement; the server rolls back what was open
    IO_ERROR                    the connection is lost before the statement is carried out
    NO_SPACE                    the server, or SQLite, answers that its disk is full
    TORN                        the connection is lost while the statement is under way. SQLite rolls back;
                                PostgreSQL has been sent it, and nobody waits for what becomes of it
    APPLIED_BUT_ERROR           the statement is carried out, and the connection is lost before the answer comes

Connecting is a call too, and so is rolling back.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg

from frazil.catalog.memory import MemoryPointers
from frazil.catalog.names import Identifier
from frazil.catalog.pointers import Pointer, PointerChange, Stale
from frazil.errors import CommitStateUnknownError, StorageError
from frazil.storage.failing import FaultKind, SimulatedCrash

T = TypeVar("T")
CRASHES = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)


class CatalogFaults:
    """The plan of one run: which call fails and how. Nothing is counted before `arm`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.has_fired = False
        self.has_crashed = False
        self._at: int | None = None
        self._kind: FaultKind | None = None
        self._open: list[Callable[[], object]] = []

    def reset(self) -> None:
        """Begin another run, without faults until it is armed."""
        self.calls.clear()
        self.has_fired = self.has_crashed = False
        self._at = self._kind = None

    def arm(self, at: int, kind: FaultKind) -> None:
        """Count from here on, and let a call go wrong."""
        self.calls.clear()
        self._at, self._kind = at, kind

    def opened(self, close: Callable[[], object]) -> None:
        """Remember a connection, which the end of the process will close."""
        self._open.append(close)

    def end_process(self) -> None:
        """Close every connection, as the end of a process does."""
        for close in self._open:
            with contextlib.suppress(Exception):
                close()
        self._open.clear()

    def next(self, call: str) -> FaultKind | None:
        """Count a call, and return what goes wrong with it."""
        if self.has_crashed:
            raise SimulatedCrash(f"{call} after the crash")
        if self._at is None:
            return None
        self.calls.append(call)
        if len(self.calls) != self._at:
            return None
        self.has_fired = True
        return self._kind

    def crash(self, call: str) -> SimulatedCrash:
        """Let the process die."""
        self.has_crashed = True
        self.end_process()
        return SimulatedCrash(call)


# In memory


class FailingPointers(MemoryPointers):
    """Pointers in memory, shared with those of another handle, of which some calls fail."""

    def __init__(self, shared: MemoryPointers, faults: CatalogFaults) -> None:
        super().__init__()
        self._lock, self._pointers, self._namespaces = shared._lock, shared._pointers, shared._namespaces
        self._faults = faults

    def find(self, identifier: Identifier) -> Pointer | None:
        return self._run("find", lambda: MemoryPointers.find(self, identifier), is_write=False)

    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        return self._run("find_settled", lambda: MemoryPointers.find_settled(self, change), is_write=False)

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        return self._run("swap", lambda: MemoryPointers.swap(self, changes), is_write=True)

    def _run(self, call: str, act: Callable[[], T], *, is_write: bool) -> T:
        kind = self._faults.next(call)
        if kind is None:
            return act()
        if kind is FaultKind.CRASH_BEFORE:
            raise self._faults.crash(call)
        if kind in (FaultKind.IO_ERROR, FaultKind.NO_SPACE):
            raise StorageError(f"Cannot {call}: {kind.value}")
        if kind in (FaultKind.CRASH_AFTER, FaultKind.APPLIED_BUT_ERROR):
            act()
        if kind is FaultKind.CRASH_AFTER:
            raise self._faults.crash(call)
        if is_write:
            raise CommitStateUnknownError(f"Cannot tell what became of {call}: {kind.value}")
        raise StorageError(f"Cannot {call}: {kind.value}")


# SQLite


def failing_sqlite(faults: CatalogFaults) -> Callable[..., sqlite3.Connection]:
    """Return what opens connections of which some statements fail."""

    class FailingConnection(sqlite3.Connection):
        def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
            run = super().execute
            return _run_sqlite(faults, self, sql, lambda: run(sql, values))

        def rollback(self) -> None:
            run = super().rollback
            _run_sqlite(faults, self, "ROLLBACK", run)

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        kind = faults.next("connect")
        if kind in CRASHES:
            raise faults.crash("connect")
        if kind is not None:
            raise _sqlite_error(sqlite3.SQLITE_CANTOPEN, "unable to open database file")
        connection: sqlite3.Connection = sqlite3.connect(*arguments, factory=FailingConnection, **options)
        faults.opened(connection.close)
        return connection

    return connect


def _run_sqlite(faults: CatalogFaults, connection: sqlite3.Connection, sql: str, act: Callable[[], T]) -> T:
    kind = faults.next(sql)
    if kind is None:
        return act()
    if kind is FaultKind.CRASH_BEFORE:
        raise faults.crash(sql)
    if kind is FaultKind.NO_SPACE:
        raise _sqlite_error(sqlite3.SQLITE_FULL, "database or disk is full")
    if kind in (FaultKind.CRASH_AFTER, FaultKind.APPLIED_BUT_ERROR):
        act()
    if kind is FaultKind.CRASH_AFTER:
        raise faults.crash(sql)
    if kind is FaultKind.TORN:
        with contextlib.suppress(sqlite3.Error):
            sqlite3.Connection.rollback(connection)
    raise _sqlite_error(sqlite3.SQLITE_IOERR, "disk I/O error")


def _sqlite_error(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


# PostgreSQL


def failing_postgres(faults: CatalogFaults) -> Callable[..., psycopg.Connection[Any]]:
    """Return what opens connections of which some statements fail."""

    class FailingConnection(psycopg.Connection[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            run = super().execute
            return _run_postgres(faults, self, query, params, lambda: run(query, params, **options))

    def connect(uri: str, **options: Any) -> psycopg.Connection[Any]:
        kind = faults.next("connect")
        if kind in CRASHES:
            raise faults.crash("connect")
        if kind is not None:
            raise psycopg.OperationalError("connection refused")
        connection = FailingConnection.connect(uri, **options)
        faults.opened(connection.close)
        return connection

    return connect


def _run_postgres(
    faults: CatalogFaults, connection: psycopg.Connection[Any], query: str, params: Any, act: Callable[[], T]
) -> T:
    kind = faults.next(query)
    if kind is None:
        return act()
    if kind is FaultKind.CRASH_BEFORE:
        raise faults.crash(query)
    if kind is FaultKind.NO_SPACE:
        if query == "COMMIT":
            # A server that cannot write its log rolls back, and says so.
            psycopg.Connection.execute(connection, "ROLLBACK")
        raise psycopg.errors.DiskFull("could not write to file: No space left on device")
    if kind in (FaultKind.CRASH_AFTER, FaultKind.APPLIED_BUT_ERROR):
        act()
    if kind is FaultKind.CRASH_AFTER:
        raise faults.crash(query)
    if kind is FaultKind.TORN and not params:
        connection.pgconn.send_query(query.encode())
        connection.pgconn.flush()
    connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")


def rows_of(run: Callable[..., Any], catalog: str) -> Mapping[str, list[tuple[Any, ...]]]:
    """Return what a SQL catalog has in its two tables."""
    return {
        name: run(f"SELECT * FROM {name} WHERE catalog_name = ?", catalog).rows
        for name in ("iceberg_tables", "iceberg_namespace_properties")
    }


def put_rows(run: Callable[..., Any], catalog: str, rows: Mapping[str, list[tuple[Any, ...]]]) -> None:
    """Put the two tables of a SQL catalog back as they were."""
    for name, kept in rows.items():
        run(f"DELETE FROM {name} WHERE catalog_name = ?", catalog)
        for row in kept:
            run(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", *row)
