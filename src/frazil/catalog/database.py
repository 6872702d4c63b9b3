"""The database interface of the SQL catalog: reads, and transactions whose outcome is certain or reported as unknown.

Only two databases are supported, SQLite and PostgreSQL, so this is not an abstraction of SQL: both understand the same
statements, with `?` for a parameter. Errors of drivers are translated:

    DuplicateKey             a row of that key exists; the transaction has ended, nothing happened
    CommitConflictError      another transaction conflicts; nothing happened
    StorageError             the database is unreachable or rejected the statement; nothing happened
    CommitStateUnknownError  the connection was lost during the commit

Connections are pooled, one for each thread that needs one at a time. A connection is closed after an error.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from frazil.errors import CommitStateUnknownError

ConnectionT = TypeVar("ConnectionT")

_MAX_IDLE: Final = 8
_of_the_parent: list[object] = []
"""Connections that a forked process inherited from its parent. They are never used, and never closed: closing one would
tell the database, or its files, that the parent is done."""


class DuplicateKey(Exception):
    """A row of that key exists. Internal to the catalog room."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a statement: its rows, or the number of rows it changed."""

    rows: list[tuple[Any, ...]]
    count: int


Run = Callable[..., Result]
"""Runs one statement with its parameters."""


class Database(ABC):
    """A database that holds the two tables of the JDBC catalog."""

    label: str
    """The database for messages, without user and password."""
    may_write: bool = True
    """Whether the tables of the catalog may be created and changed."""
    row_lock: str
    """The suffix that makes a SELECT in a transaction wait for transactions that change its rows."""

    @abstractmethod
    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from one moment."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Run]:
        """Run statements in a transaction: commit at the end of the block, roll back on an error."""

    @abstractmethod
    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of a table; empty if it does not exist."""

    @abstractmethod
    def close(self) -> None:
        """Close the pooled connections."""

    def outcome_unknown(self, reason: str) -> CommitStateUnknownError:
        """Return the error for a transaction of unknown outcome."""
        return CommitStateUnknownError(
            f"Cannot tell whether {self.label} committed the change: {reason}",
            hint="Read the table again to find out; files written for the commit must stay.",
        )


class ConnectionPool(Generic[ConnectionT]):
    """Idle connections, for reuse."""

    def __init__(self, close: Callable[[ConnectionT], None]) -> None:
        self._lock = threading.Lock()
        self._idle: list[ConnectionT] = []
        self._close = close
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close_all, self._idle, close, self._process)

    def take(self) -> ConnectionT | None:
        """Return an idle connection, or None."""
        with self._lock:
            if self._process != os.getpid():
                _of_the_parent.extend(self._idle)
                self._idle.clear()
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None

    def give(self, connection: ConnectionT) -> None:
        """Return a working connection to the pool, or close it if the pool is full."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        self._close(connection)

    def drain(self) -> None:
        """Close the idle connections."""
        while (connection := self.take()) is not None:
            self._close(connection)


def _close_all(idle: list[Any], close: Callable[[Any], None], process: int) -> None:
    if process != os.getpid():
        _of_the_parent.extend(idle)
        return
    for connection in idle:
        close(connection)
