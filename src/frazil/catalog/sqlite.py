"""A catalog database in a SQLite file, for one machine: many processes may use it at once, including other tools.

- WAL, so that readers and the writer do not block each other. (WAL does not work on a network mount: use PostgreSQL
  there.)
- `BEGIN IMMEDIATE`: a transaction that will write takes the write lock before it reads. One that reads first and writes
  later would fail at once if another writer came between, whatever the timeout.
- `busy_timeout`: wait for the lock rather than fail. SQLite polls it with sleeps that grow to a tenth of a second, and
  whoever polls first gets it; so threads of one process queue for it beforehand, in order.
- `synchronous=FULL`: an acknowledged commit survives a power loss.
- A removed or replaced file is detected: a pooled connection would continue to write into the old one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from frazil.catalog.database import ConnectionPool, Database, DuplicateKey, Result, Run
from frazil.errors import CommitConflictError, FrazilError, InvalidRequestError, StorageError
from frazil.threads import FairLock

BUSY_TIMEOUT_MS: Final = 30_000
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
Connect = Callable[..., sqlite3.Connection]
_KEY_TAKEN = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)


class _Connection:
    """A connection, and the file it was opened on."""

    __slots__ = ("driver", "file")

    def __init__(self, path: str, busy_timeout_ms: int, connect: Connect, *, may_write: bool) -> None:
        database = path if may_write else f"{Path(path).as_uri()}?mode=ro"
        options = {"timeout": busy_timeout_ms / 1000, "isolation_level": None, "check_same_thread": False}
        self.driver = connect(database, **options, **({} if may_write else {"uri": True}))
        try:
            self.driver.execute("PRAGMA synchronous=FULL")
            # The file may be untrusted: its schema must not call functions with side effects.
            self.driver.execute("PRAGMA trusted_schema = OFF")
            # Opening is lazy; this reads the file's header, and creates the file if it does not exist.
            self.driver.execute("PRAGMA schema_version")
            self.file = _file_of(path)
        except BaseException:
            self.driver.close()
            raise

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.driver.close()


class SqliteDatabase(Database):
    """A SQLite file, created with its folder if missing. `connect` replaces `sqlite3.connect`."""

    row_lock = ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        connect: Connect = sqlite3.connect,
        may_write: bool = True,
    ) -> None:
        text = os.fspath(path)
        if text in ("", ":memory:") or text.startswith("file:"):
            raise InvalidRequestError(
                f"Cannot open the SQLite database {text!r}: it is not the path of a file",
                hint="Each connection would get its own database in memory. Use catalog='memory' instead.",
            )
        self._path = str(Path(text).absolute())
        self._busy_timeout_ms = busy_timeout_ms
        self._connect = connect
        self.may_write = may_write
        self._writers: dict[int, FairLock] = {}
        """Write locks by process ID: a forked child needs its own, since nobody would release the parent's there."""
        self._pool: ConnectionPool[_Connection] = ConnectionPool(_Connection.close)
        self.label = f"sqlite:///{self._path}"
        try:
            if may_write:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Cannot open {self.label}: {error.strerror or error}", path=self._path) from error
        with self._errors():
            connection = self._new_connection()
            # The mode is stored in the file. A file system without WAL keeps its present mode, which works too.
            with contextlib.suppress(sqlite3.OperationalError):
                if may_write:
                    connection.driver.execute("PRAGMA journal_mode=WAL")
            self._pool.give(connection)

    def __repr__(self) -> str:
        return f"SqliteDatabase({self._path!r})"

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from one moment."""
        connection = self._take()
        try:
            with self._errors():
                rows = connection.driver.execute(sql, values).fetchall()
        except BaseException:
            connection.close()
            raise
        self._pool.give(connection)
        return rows

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Run]:
        """Run statements in a transaction; one writer at a time."""
        writers = self._writers.setdefault(os.getpid(), FairLock())
        if not writers.acquire(self._busy_timeout_ms / 1000):
            raise self._locked()
        try:
            with self._transaction() as run:
                yield run
        finally:
            writers.release()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Run]:
        connection = self._take()
        driver = connection.driver
        is_sound = False
        try:
            with self._errors():
                driver.execute("BEGIN IMMEDIATE")

            def run(sql: str, *values: object) -> Result:
                with self._errors():
                    cursor = driver.execute(sql, values)
                    return Result(cursor.fetchall(), cursor.rowcount)

            try:
                yield run
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    driver.rollback()
                    is_sound = True
                raise
            self._commit(driver)
            is_sound = True
        finally:
            if is_sound:
                self._pool.give(connection)
            else:
                connection.close()

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of a table; empty if it does not exist."""
        other = self.read("SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type <> 'table'", table)
        if other:
            # A view would run any query that the file's author wrote into it.
            raise StorageError(
                f"Cannot use {self.label}: its {table} is not a table but a {other[0][0]}", path=self._path
            )
        return frozenset(name for (name,) in self.read("SELECT name FROM pragma_table_info(?)", table))

    def close(self) -> None:
        """Close the pooled connections."""
        self._pool.drain()

    def _commit(self, driver: sqlite3.Connection) -> None:
        try:
            driver.execute("COMMIT")
        except sqlite3.Error as error:
            if _code_of(error) & 0xFF in _LOCKED:
                # Without WAL a reader can block; the transaction is still open and is rolled back.
                with contextlib.suppress(sqlite3.Error):
                    driver.rollback()
                raise self._locked() from error
            raise self.outcome_unknown(str(error)) from error

    def _take(self) -> _Connection:
        while (connection := self._pool.take()) is not None:
            if connection.file == _file_of(self._path):
                return connection
            connection.close()
        with self._errors():
            return self._new_connection()

    def _new_connection(self) -> _Connection:
        return _Connection(self._path, self._busy_timeout_ms, self._connect, may_write=self.may_write)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FrazilError:
            raise
        except sqlite3.IntegrityError as error:
            if _code_of(error) in _KEY_TAKEN:
                raise DuplicateKey(str(error)) from error
            raise StorageError(f"Cannot use {self.label}: {error}", path=self._path) from error
        except sqlite3.Error as error:
            if _code_of(error) & 0xFF in _LOCKED:
                raise self._locked() from error
            raise StorageError(f"Cannot use {self.label}: {error}", path=self._path) from error
        except (UnicodeError, OverflowError) as error:
            raise InvalidRequestError(f"Cannot use {self.label}: {error}") from error

    def _locked(self) -> CommitConflictError:
        return CommitConflictError(
            f"Cannot use {self.label}: other clients have held its lock for {self._busy_timeout_ms} ms"
        )


def _code_of(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code


def _file_of(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
