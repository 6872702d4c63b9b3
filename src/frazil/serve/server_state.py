"""The server's own state in one SQLite file: responses to requests, reports of clients, the key that signs tokens.

It survives a kill of the process; a power loss may lose its last second. The lake does not depend on it: a SQL catalog
has its own records of completed requests (`catalog/idempotency_records.py`).
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.errors import StorageError
from frazil.serve.exchange import Answer

KEY_MS: Final = 3_900_000
"""How long a key is kept: an hour, as announced to clients, and five minutes for clock differences."""
MAX_BODY_BYTES: Final = 64 << 10
"""The largest body that is stored if it can be recreated; larger responses are recreated from the metadata file."""
MAX_REPORTS: Final = 10_000
MAX_REPORT_BYTES: Final = 64 << 10
_CLEAN_EVERY: Final = 500

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS requests (
        key TEXT PRIMARY KEY, print TEXT NOT NULL, code INTEGER NOT NULL, kind TEXT, headers TEXT NOT NULL, body BLOB,
        ends_ms INTEGER NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS requests_end ON requests (ends_ms)",
    """CREATE TABLE IF NOT EXISTS reports (
        number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, received_ms INTEGER NOT NULL,
        report TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS reports_name ON reports (name, number)",
    "CREATE TABLE IF NOT EXISTS signing_keys (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
)

_BEGUN: Final = Answer(0)
"""Stored instead of a response until there is one."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The stored response to a request with a key; its body may have been too large."""

    print: str
    answer: Answer
    has_body: bool

    @property
    def is_begun(self) -> bool:
        """Whether the request was begun but has no response."""
        return self.answer.code == _BEGUN.code


class ServerState:
    """The state file. Thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="frazil-serve-") if path is None else None
        file = Path(self._folder.name) / "serve.db" if self._folder is not None else path
        self._lock = threading.Lock()
        self._writes = 0
        try:
            # Responses may contain vended credentials: only the owner may read the file.
            os.close(os.open(str(file), os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StorageError(f"Cannot open {file}: {error.strerror or error}", path=str(file)) from error
        try:
            self._driver = sqlite3.connect(str(file), timeout=30, isolation_level=None, check_same_thread=False)
            self._driver.execute("PRAGMA journal_mode=WAL")
            self._driver.execute("PRAGMA synchronous=NORMAL")
            for statement in _TABLES:
                self._driver.execute(statement)
            if not self._driver.execute(
                "SELECT 1 FROM pragma_table_info('requests') WHERE name = 'location'"
            ).fetchall():
                self._driver.execute("ALTER TABLE requests ADD COLUMN location TEXT")
        except sqlite3.Error as error:
            raise StorageError(f"Cannot open {file}: {error}", path=str(file)) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._driver.close()
        if self._folder is not None:
            self._folder.cleanup()

    def signing_key(self) -> bytes:
        """Return the random key that signs issued tokens; it is created once and stored."""
        self._run("INSERT OR IGNORE INTO signing_keys (name, value) VALUES ('tokens', ?)", secrets.token_bytes(32))
        ((value,),) = self._run("SELECT value FROM signing_keys WHERE name = 'tokens'")
        return bytes(value)

    # Requests with a key

    def find_answer(self, key: str, now_ms: int) -> StoredAnswer | None:
        """Return the stored response to a key's request, or None."""
        rows = self._run(
            "SELECT print, code, kind, headers, body, location FROM requests WHERE key = ? AND ends_ms > ?", key, now_ms
        )
        if not rows:
            return None
        fingerprint, code, error_type, headers, body, location = rows[0]
        text = b"" if body is None else zlib.decompress(body)
        return StoredAnswer(
            fingerprint, Answer(code, text, json.loads(headers), error_type, location), body is not None
        )

    def begin(self, key: str, fingerprint: str, now_ms: int) -> None:
        """Record that a request is about to be carried out."""
        self.keep_answer(key, fingerprint, _BEGUN, now_ms)

    def forget(self, key: str) -> None:
        """Remove a request that was begun but changed nothing."""
        self._run("DELETE FROM requests WHERE key = ?", key)

    def keep_answer(self, key: str, fingerprint: str, answer: Answer, now_ms: int) -> bool:
        """Store a response, without a large body that can be recreated. Return whether expired ones were deleted."""
        is_whole = answer.location is None or len(answer.body) <= MAX_BODY_BYTES
        body = zlib.compress(answer.body, 1) if is_whole else None
        self._run(
            "INSERT OR REPLACE INTO requests (key, print, code, kind, headers, body, location, ends_ms) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            key,
            fingerprint,
            answer.code,
            answer.error_type,
            json.dumps(dict(answer.headers)),
            body,
            answer.location,
            now_ms + KEY_MS,
        )
        return self._clean("DELETE FROM requests WHERE ends_ms <= ?", now_ms)

    # Reports

    def keep_report(self, identifier: Identifier, report: str, now_ms: int) -> None:
        """Store a client's report on a table."""
        self._run(
            "INSERT INTO reports (name, received_ms, report) VALUES (?, ?, ?)", json.dumps(identifier), now_ms, report
        )
        self._clean("DELETE FROM reports WHERE number <= (SELECT max(number) FROM reports) - ?", MAX_REPORTS)

    def reports(self, identifier: Identifier, limit: int = 100) -> list[Mapping[str, Any]]:
        """Return the newest reports on a table, newest first, with the time of receipt."""
        rows = self._run(
            "SELECT received_ms, report FROM reports WHERE name = ? ORDER BY number DESC LIMIT ?",
            json.dumps(identifier),
            limit,
        )
        return [{"received-ms": received, **json.loads(report)} for received, report in rows]

    def _clean(self, sql: str, value: int) -> bool:
        self._writes += 1
        is_due = self._writes % _CLEAN_EVERY == 1
        if is_due:
            self._run(sql, value)
        return is_due

    def _run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._driver.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"Cannot use the server's state file: {error}") from error
