"""The little that the SQL catalog asks of a database: a read, and a transaction whose end is certain or said not to be.

Two databases, SQLite and PostgreSQL, and their drivers are all there is, so this is no abstraction of SQL: both
understand the same statements, with `?` for a parameter. No driver's error leaves here:

    DuplicateKey             a row of that key exists; the transaction is over, nothing happened
    CommitConflictError      another transaction stood in the way; nothing happened
    StorageError             the database cannot be reached, or refused; nothing happened
    CommitStateUnknownError  the connection was lost while the transaction was being committed

Connections are kept for reuse, one for each thread that needs one at a time. One that met an error is closed.
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
"""Connections that a forked process got from its parent. They are never used, and never closed: closing would
tell the database, or its files, that the parent is done."""


class DuplicateKey(Exception):
    """A row of that key exists. Does not leave the catalog room."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave back: rows, or how many it changed."""

    rows: list[tuple[Any, ...]]
    count: int


Run = Callable[..., Result]
"""Runs one statement with its parameters."""


class Database(ABC):
    """A database with the two tables of the JDBC catalog in it."""

    label: str
    """The database as text, without user and password, for messages."""
    may_write: bool = True
    """Whether the tables of the catalog may be made and changed."""
    row_lock: str
    """What makes a SELECT in a transaction wait for those who are changing its rows."""

    @abstractmethod
    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as they are at one moment."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Run]:
        """Run statements all or none: commit at the end of the block, roll back if an error leaves it."""

    @abstractmethod
    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where there is no such table."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections that are kept."""

    def outcome_unknown(self, reason: str) -> CommitStateUnknownError:
        """Return the error for a transaction whose end nobody heard."""
        return CommitStateUnknownError(
            f"Cannot tell whether {self.label} committed the change: {reason}",
            hint="Read the table again to find out; files written for the commit must stay.",
        )


class ConnectionPool(Generic[ConnectionT]):
    """Connections that wait to be used again."""

    def __init__(self, close: Callable[[ConnectionT], None]) -> None:
        self._lock = threading.Lock()
        self._idle: list[ConnectionT] = []
        self._close = close
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close_all, self._idle, close, self._process)

    def take(self) -> ConnectionT | None:
        """Return a connection that waits, or None."""
        with self._lock:
            if self._process != os.getpid():
                _of_the_parent.extend(self._idle)
                self._idle.clear()
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None

    def give(self, connection: ConnectionT) -> None:
        """Keep a sound connection, if there are not enough."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        self._close(connection)

    def drain(self) -> None:
        """Close the connections that wait."""
        while (connection := self.take()) is not None:
            self._close(connection)


def _close_all(idle: list[Any], close: Callable[[Any], None], process: int) -> None:
    if process != os.getpid():
        _of_the_parent.extend(idle)
        return
    for connection in idle:
        close(connection)
