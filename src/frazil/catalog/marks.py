"""Marks of requests in a SQL catalog: left in the transaction of the change, so that a mark there says it was made.

A server marks what it changes by the request's key. Killed before it could answer, it finds the mark when the request
comes again, and so does another server on the same database. A key leaves one mark: of two transactions that leave the
same the second waits for the first, and is rolled back where that one was committed.

    frazil_requests   catalog_name, request_key (the key), request_print, result, ends_ms
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from frazil.catalog.database import Database, DuplicateKey, Run
from frazil.errors import AlreadyExistsError, CommitConflictError, StorageError

_CREATE: Final = (
    """CREATE TABLE IF NOT EXISTS frazil_requests (
        catalog_name VARCHAR(255) NOT NULL,
        request_key VARCHAR(36) NOT NULL,
        request_print VARCHAR(64) NOT NULL,
        result TEXT,
        ends_ms BIGINT NOT NULL,
        PRIMARY KEY (catalog_name, request_key)
    )""",
    "CREATE INDEX IF NOT EXISTS frazil_requests_end ON frazil_requests (ends_ms)",
)
_LEAVE: Final = (
    "INSERT INTO frazil_requests (catalog_name, request_key, request_print, result, ends_ms) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (catalog_name, request_key) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A request that changes something: its key, what tells it from others, until when to remember it, its result."""

    key: str
    print: str
    ends_ms: int
    result: str | None = None
    """Of one table or view, its metadata file; of a namespace's properties, the names removed, as JSON."""


_mark: ContextVar[Mark | None] = ContextVar("mark", default=None)


@contextmanager
def marking(mark: Mark) -> Iterator[None]:
    """Leave a mark with what is changed within; what has it already is an AlreadyExistsError, and not changed."""
    before = _mark.set(mark)
    try:
        yield
    finally:
        _mark.reset(before)


class SqlMarks:
    """The marks under a catalog's name. None are left before `enable`."""

    def __init__(self, database: Database, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._is_enabled = False

    def enable(self) -> bool:
        """Make the table where it is missing; return whether marks can be left: not everybody may make or change it."""
        for _ in range(2 if self._database.may_write and not self._is_enabled else 0):
            # Another server may be making it at this moment: then the second try finds it.
            with suppress(DuplicateKey, StorageError, CommitConflictError):
                statements = () if self._database.columns("frazil_requests") else _CREATE
                with self._database.transaction() as run:
                    for statement in statements:
                        run(statement)
                    run(_LEAVE, self._catalog, "", "", None, 0)
                    run("DELETE FROM frazil_requests WHERE catalog_name = ? AND request_key = ?", self._catalog, "")
                self._is_enabled = True
                break
        return self._is_enabled

    def leave(self, run: Run, result: str | None = None) -> None:
        """Leave the mark of the request that is being carried out, if any, in the transaction of its change."""
        mark = _mark.get()
        if mark is None or not self._is_enabled:
            return
        if run(_LEAVE, self._catalog, mark.key, mark.print, result, mark.ends_ms).count == 0:
            raise AlreadyExistsError("Cannot carry out the request: it was carried out before")

    def find(self, key: str) -> Mark | None:
        """Return the mark of a request that was carried out, or None."""
        if not self._is_enabled:
            return None
        rows = self._database.read(
            "SELECT request_print, ends_ms, result FROM frazil_requests WHERE catalog_name = ? AND request_key = ?",
            self._catalog,
            key,
        )
        return Mark(key, *rows[0]) if rows else None

    def forget(self, now_ms: int) -> None:
        """Delete the marks whose time is over."""
        if self._is_enabled:
            with self._database.transaction() as run:
                run("DELETE FROM frazil_requests WHERE catalog_name = ? AND ends_ms <= ?", self._catalog, now_ms)
