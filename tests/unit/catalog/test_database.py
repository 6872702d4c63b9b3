"""The database below the SQL catalog: how transactions end, how connections are kept, and faults on purpose."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.catalog.database import DuplicateKey
from frazil.catalog.failing_database import FailingDatabase
from frazil.catalog.sqlite import SqliteDatabase
from frazil.errors import CommitConflictError, CommitStateUnknownError, InvalidRequestError, StorageError
from frazil.storage.failing import FaultKind, SimulatedCrash


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    made = SqliteDatabase(tmp_path / "catalog.db", busy_timeout_ms=100)
    with made.transaction() as run:
        run("CREATE TABLE t (a VARCHAR(10) PRIMARY KEY, b NOT NULL DEFAULT 1)")
    try:
        yield made
    finally:
        made.close()


def values(database: SqliteDatabase) -> list[str]:
    return [one for (one,) in database.read("SELECT a FROM t ORDER BY a")]


def test_existing_key_aborts_the_transaction(database: SqliteDatabase) -> None:
    with pytest.raises(DuplicateKey), database.transaction() as run:
        assert run("INSERT INTO t (a) VALUES (?)", "x").count == 1
        run("INSERT INTO t (a) VALUES (?)", "x")
    assert values(database) == []
    with pytest.raises(StorageError, match="NOT NULL"), database.transaction() as run:
        run("INSERT INTO t VALUES (?, NULL)", "y")


def test_text_that_is_not_unicode_is_an_invalid_request(database: SqliteDatabase) -> None:
    with pytest.raises(InvalidRequestError):
        database.read("SELECT * FROM t WHERE a = ?", "\ud800")


def test_threads_write_in_order_of_arrival(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "c.db")
    order: list[int] = []

    def write(number: int) -> None:
        with database.transaction():
            order.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    with database.transaction():
        (writers,) = database._writers.values()
        for number, thread in enumerate(threads):
            thread.start()
            while len(writers._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(12))
    impatient = SqliteDatabase(tmp_path / "c.db", busy_timeout_ms=20)
    with impatient.transaction(), pytest.raises(CommitConflictError, match="held its lock"), impatient.transaction():
        pass
    with impatient.transaction():
        pass


def test_commit_blocked_by_a_reader_did_not_happen(tmp_path: Path, database: SqliteDatabase) -> None:
    # Without WAL a reader can be in the way of a commit.
    assert database.read("PRAGMA journal_mode=DELETE") == [("delete",)]
    reader = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        with pytest.raises(CommitConflictError, match="held its lock"), database.transaction() as run:
            run("INSERT INTO t (a) VALUES (?)", "x")
        reader.execute("COMMIT")
    finally:
        reader.close()
    assert values(database) == []
    with database.transaction() as run:
        run("INSERT INTO t (a) VALUES (?)", "x")
    assert values(database) == ["x"]


def test_commit_that_fails_for_another_reason_has_an_unknown_outcome(database: SqliteDatabase) -> None:
    with database.transaction() as run:
        run("CREATE TABLE child (a REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED)")
    database.read("PRAGMA foreign_keys=ON")
    with pytest.raises(CommitStateUnknownError, match="Cannot tell whether") as caught, database.transaction() as run:
        run("INSERT INTO child VALUES (?)", "nobody")
    assert not caught.value.may_clean_up
    assert database.read("SELECT * FROM child") == []


def test_connection_pool_is_bounded(database: SqliteDatabase) -> None:
    count = 12
    barrier = threading.Barrier(count)

    def hold() -> None:
        with contextlib.suppress(CommitConflictError):
            barrier.wait()
            database.read("SELECT 1")

    threads = [threading.Thread(target=hold) for _ in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    taken = [database._take() for _ in range(count)]
    for connection in taken:
        database._pool.give(connection)
    assert len(database._pool._idle) == 8


def test_released_database_closes_its_connections(tmp_path: Path) -> None:
    made = SqliteDatabase(tmp_path / "other.db")
    assert "other.db" in repr(made)
    idle = made._pool._idle
    (connection,) = idle
    del made
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.driver.execute("SELECT 1")


class TestFaults:
    @pytest.mark.parametrize(
        ("kind", "error", "is_applied"),
        [
            (FaultKind.IO_ERROR, StorageError, False),
            (FaultKind.NO_SPACE, StorageError, False),
            (FaultKind.TORN, CommitStateUnknownError, False),
            (FaultKind.APPLIED_BUT_ERROR, CommitStateUnknownError, True),
            (FaultKind.CRASH_BEFORE, SimulatedCrash, False),
            (FaultKind.CRASH_AFTER, SimulatedCrash, True),
        ],
    )
    def test_transaction_faults_map_to_outcomes(
        self, database: SqliteDatabase, kind: FaultKind, error: type[BaseException], is_applied: bool
    ) -> None:
        failing = FailingDatabase(database, {2: kind})
        assert failing.columns("t") == {"a", "b"}
        assert failing.read("SELECT 1") == [(1,)]
        with pytest.raises(error), failing.transaction() as run:
            run("INSERT INTO t (a) VALUES (?)", "x")
        assert values(database) == (["x"] if is_applied else [])
        assert failing.calls == ["read", "transaction"]
        if failing.has_crashed:
            with pytest.raises(SimulatedCrash):
                failing.read("SELECT 1")

    def test_read_faults_map_to_errors(self, database: SqliteDatabase) -> None:
        failing = FailingDatabase(database, {1: FaultKind.IO_ERROR, 2: FaultKind.CRASH_AFTER})
        with pytest.raises(StorageError):
            failing.read("SELECT 1")
        with pytest.raises(SimulatedCrash):
            failing.read("SELECT 1")
