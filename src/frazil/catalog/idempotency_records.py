"""Idempotency records in a SQL catalog: written in the transaction of a change, as proof that it was made.

A server records the idempotency key of each request that changes something. If it is killed before it responds, it
finds the record when the request is retried, and so does another server on the same database. Keys are unique: of two
transactions with one key the second waits for the first, and is rolled back if the first was committed.

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
_INSERT: Final = (
    "INSERT INTO frazil_requests (catalog_name, request_key, request_print, result, ends_ms) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (catalog_name, request_key) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """A request that changes something: its key, its fingerprint, its expiry, and its result."""

    key: str
    print: str
    ends_ms: int
    result: str | None = None
    """For a table or view, its metadata file; for namespace properties, the removed names as JSON."""


_current: ContextVar[IdempotencyRecord | None] = ContextVar("record", default=None)


@contextmanager
def recording(record: IdempotencyRecord) -> Iterator[None]:
    """Record changes within the block under a key; a key that is already recorded raises an AlreadyExistsError."""
    before = _current.set(record)
    try:
        yield
    finally:
        _current.reset(before)


class SqlIdempotencyRecords:
    """The idempotency records under a catalog's name. None are written before `enable`."""

    def __init__(self, database: Database, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._is_enabled = False

    def enable(self) -> bool:
        """Create the table if missing; return whether records can be written, which needs privileges."""
        for _ in range(2 if self._database.may_write and not self._is_enabled else 0):
            # Another server may be creating it at the same time; the second attempt finds it.
            with suppress(DuplicateKey, StorageError, CommitConflictError):
                statements = () if self._database.columns("frazil_requests") else _CREATE
                with self._database.transaction() as run:
                    for statement in statements:
                        run(statement)
                    run(_INSERT, self._catalog, "", "", None, 0)
                    run("DELETE FROM frazil_requests WHERE catalog_name = ? AND request_key = ?", self._catalog, "")
                self._is_enabled = True
                break
        return self._is_enabled

    def write(self, run: Run, result: str | None = None) -> None:
        """Write the record of the current request, if any, in the transaction of its change."""
        record = _current.get()
        if record is None or not self._is_enabled:
            return
        if run(_INSERT, self._catalog, record.key, record.print, result, record.ends_ms).count == 0:
            raise AlreadyExistsError("Cannot carry out the request: it was already carried out")

    def find(self, key: str) -> IdempotencyRecord | None:
        """Return the record of a completed request, or None."""
        if not self._is_enabled:
            return None
        rows = self._database.read(
            "SELECT request_print, ends_ms, result FROM frazil_requests WHERE catalog_name = ? AND request_key = ?",
            self._catalog,
            key,
        )
        return IdempotencyRecord(key, *rows[0]) if rows else None

    def forget(self, now_ms: int) -> None:
        """Delete the expired records."""
        if self._is_enabled:
            with self._database.transaction() as run:
                run("DELETE FROM frazil_requests WHERE catalog_name = ? AND ends_ms <= ?", self._catalog, now_ms)
