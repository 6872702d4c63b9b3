"""A catalog's database in a SQLite file, for one machine: many processes may use it at once, those of other tools too.

- WAL, so that readers and the writer do not wait for each other. (On a network mount WAL does not work: use
  PostgreSQL there.)
- `BEGIN IMMEDIATE`: a transaction that will write takes the write lock before it reads. One that read first and
  wrote later could not be let in after another writer, and would fail at once, whatever the timeout.
- `busy_timeout`: wait for the lock rather than fail. SQLite looks at it again after sleeps that grow to a tenth of a
  second, and whoever looks first has it; so threads of one process queue for it in front, each in its turn.
- `synchronous=FULL`: a commit that was acknowledged survives a power loss.
- A file that was removed or replaced is noticed: a kept connection would go on writing into the old one.
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
            # The file may be untrusted: what it defines calls no function that reaches out of it.
            self.driver.execute("PRAGMA trusted_schema = OFF")
            # Opening is lazy; this reads the file's header, and makes the file where there is none.
            self.driver.execute("PRAGMA schema_version")
            self.file = _file_of(path)
        except BaseException:
            self.driver.close()
            raise

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.driver.close()


class SqliteDatabase(Database):
    """A SQLite file; it is made, with its folder, where it is missing. `connect` stands for `sqlite3.connect`."""

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
                hint="A database in memory is another one for each connection. Use catalog='memory' instead.",
            )
        self._path = str(Path(text).absolute())
        self._busy_timeout_ms = busy_timeout_ms
        self._connect = connect
        self.may_write = may_write
        self._writers: dict[int, FairLock] = {}
        """Who of this process may write: a child of it has another lock, since nobody gives this one back there."""
        self._pool: ConnectionPool[_Connection] = ConnectionPool(_Connection.close)
        self.label = f"sqlite:///{self._path}"
        try:
            if may_write:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Cannot open {self.label}: {error.strerror or error}", path=self._path) from error
        with self._errors():
            connection = self._new_connection()
            # The mode is the file's, and stays. A file system without WAL keeps the mode it has, which works too.
            with contextlib.suppress(sqlite3.OperationalError):
                if may_write:
                    connection.driver.execute("PRAGMA journal_mode=WAL")
            self._pool.give(connection)

    def __repr__(self) -> str:
        return f"SqliteDatabase({self._path!r})"

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as they are at one moment."""
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
        """Run statements all or none; one who writes at a time."""
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
        """Return the names of a table's columns; none where there is no such table."""
        other = self.read("SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type <> 'table'", table)
        if other:
            # A view would run whatever query the maker of the file wrote into it.
            raise StorageError(f"Cannot use {self.label}: its {table} is no table but a {other[0][0]}", path=self._path)
        return frozenset(name for (name,) in self.read("SELECT name FROM pragma_table_info(?)", table))

    def close(self) -> None:
        """Close the connections that are kept."""
        self._pool.drain()

    def _commit(self, driver: sqlite3.Connection) -> None:
        try:
            driver.execute("COMMIT")
        except sqlite3.Error as error:
            if _code_of(error) & 0xFF in _LOCKED:
                # Without WAL a reader can be in the way; the transaction is still open and is rolled back.
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
        return CommitConflictError(f"Cannot use {self.label}: others have held its lock for {self._busy_timeout_ms} ms")


def _code_of(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code


def _file_of(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
