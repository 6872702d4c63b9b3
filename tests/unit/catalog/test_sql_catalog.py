"""The SQL catalog on SQLite: layout, older layouts, names, locks, files that vanish, and what is never shown."""

from __future__ import annotations

import contextlib
import os
import pickle
import sqlite3
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.database import Database
from frazil.catalog.open_database import open_database
from frazil.catalog.owned_folders import OwnedFolders
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.purge import NOTHING_PURGED, PurgeReport
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.errors import (
    CommitConflictError,
    FrazilError,
    InvalidMetadataError,
    InvalidRequestError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    StorageError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.loaded import LoadedTable
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.catalog_cases import EVENTS, committed, made_table, rejected, set_property

WAREHOUSE = "memory://bucket/warehouse"
VERSION = ViewVersion(1, 0, 5, (SqlRepresentation("select 1", "spark"),), ("db",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[SqlCatalog]:
    with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(path), MemoryStorage()) as made:
        yield made


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with raw(path) as connection:
        return connection.execute(sql).fetchall()


class TestLayout:
    def test_rows_match_the_jdbc_catalog(self, catalog: SqlCatalog, path: Path) -> None:
        loaded = made_table(catalog, ("a", "b", "t"))
        changed = committed(set_property(catalog, loaded, x="y"))
        catalog.create_view(("a", "b", "v"), builders.schema(), VERSION)
        assert rows(path, "SELECT * FROM iceberg_tables ORDER BY table_name") == [
            ("lake", "a.b", "t", changed.metadata_location, loaded.metadata_location, "TABLE"),
            ("lake", "a.b", "v", catalog.load_view(("a", "b", "v")).metadata_location, None, "VIEW"),
        ]
        assert rows(path, "SELECT * FROM iceberg_namespace_properties") == [("lake", "a.b", "exists", "true")]

    def test_catalogs_with_other_names_are_separate(self, catalog: SqlCatalog, path: Path) -> None:
        made_table(catalog)
        with SqlCatalog("other", WAREHOUSE, SqliteDatabase(path), MemoryStorage()) as other:
            assert other.list_namespaces() == ()
            assert not other.namespace_exists(("db",))
            made_table(other)
            other.drop_table(EVENTS)
            other.drop_namespace(("db",))
        assert catalog.table_exists(EVENTS)

    def test_rows_without_a_type_are_tables(self, catalog: SqlCatalog, path: Path) -> None:
        loaded = made_table(catalog)
        with raw(path) as connection:
            connection.execute("UPDATE iceberg_tables SET iceberg_type = NULL")
        assert catalog.list_tables(("db",)) == (EVENTS,)
        committed(set_property(catalog, loaded, a="b"))
        catalog.rename_table(EVENTS, ("db", "x"))
        catalog.drop_table(("db", "x"))

    def test_rows_of_unknown_type_are_left_unchanged(self, catalog: SqlCatalog, path: Path) -> None:
        loaded = made_table(catalog)
        with raw(path) as connection:
            connection.execute("UPDATE iceberg_tables SET iceberg_type = 'INDEX'")
        assert catalog.list_tables(("db",)) == ()
        for act in (catalog.load_table, catalog.drop_table, catalog.load_view):
            with pytest.raises(UnsupportedError, match="INDEX"):
                act(EVENTS)
        with pytest.raises(UnsupportedError, match="INDEX"):
            set_property(catalog, loaded, a="b")
        assert len(rows(path, "SELECT * FROM iceberg_tables")) == 1

    def test_row_without_a_location_can_only_be_dropped(self, catalog: SqlCatalog, path: Path) -> None:
        made_table(catalog)
        with raw(path) as connection:
            connection.execute("UPDATE iceberg_tables SET metadata_location = NULL")
        with pytest.raises(InvalidMetadataError, match="no metadata location"):
            catalog.load_table(EVENTS)
        catalog.drop_table(EVENTS)
        assert not catalog.table_exists(EVENTS)

    def test_namespaces_implied_by_tables_exist(self, catalog: SqlCatalog, path: Path) -> None:
        made_table(catalog)
        with raw(path) as connection:
            connection.execute("DELETE FROM iceberg_namespace_properties")
            connection.execute("INSERT INTO iceberg_namespace_properties VALUES ('lake', 'p.q', 'owner', 'me')")
            connection.execute("INSERT INTO iceberg_tables VALUES ('lake', '', 'rootless', 'x', NULL, 'TABLE')")
        assert catalog.list_namespaces() == (("db",), ("p",))
        assert catalog.namespace_exists(("db",))
        assert catalog.list_namespaces(("p",)) == (("p", "q"),)
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(("db",))
        catalog.update_namespace_properties(("db",), {"a": "b"})
        catalog.drop_table(EVENTS)
        assert catalog.namespace_exists(("db",))


class TestOlderLayout:
    @pytest.fixture
    def old(self, path: Path) -> Iterator[SqlCatalog]:
        with raw(path) as connection:
            connection.execute(
                "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,"
                " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
                " previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))"
            )
        with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(path), MemoryStorage()) as made:
            yield made

    def test_tables_work_without_the_type_column(self, old: SqlCatalog) -> None:
        loaded = made_table(old)
        committed(set_property(old, loaded, a="b"))
        rejected(set_property(old, loaded, a="c"))
        old.rename_table(EVENTS, ("db", "x"))
        assert old.list_tables(("db",)) == (("db", "x"),)
        old.drop_table(("db", "x"))
        assert old.list_tables(("db",)) == ()

    def test_views_require_the_type_column(self, old: SqlCatalog, path: Path) -> None:
        made_table(old)
        assert old.list_views(("db",)) == ()
        with pytest.raises(UnsupportedError, match="older layout without views") as caught:
            old.create_view(("db", "v"), builders.schema(), VERSION)
        assert "enable_views" in str(caught.value)
        with pytest.raises(ViewNotFoundError):
            old.load_view(("db", "v"))
        old.enable_views()
        old.enable_views()
        old.create_view(("db", "v"), builders.schema(), VERSION)
        assert old.list_views(("db",)) == (("db", "v"),)
        assert old.list_tables(("db",)) == (EVENTS,)
        assert [row[-1] for row in rows(path, "SELECT * FROM iceberg_tables ORDER BY table_name")] == [None, "VIEW"]


class TestNames:
    @pytest.mark.parametrize("namespace", [("a.b",), (".",), ("a", "b."), ("a..b",)])
    def test_dot_in_a_namespace_is_refused(self, catalog: SqlCatalog, namespace: tuple[str, ...]) -> None:
        for act in (catalog.create_namespace, catalog.namespace_exists, catalog.drop_namespace, catalog.list_tables):
            with pytest.raises(InvalidRequestError, match="with its dot"):
                act(namespace)
        with pytest.raises(InvalidRequestError, match="with its dot"):
            catalog.load_table((*namespace, "t"))

    def test_dot_in_a_table_name_is_allowed(self, catalog: SqlCatalog) -> None:
        catalog.create_namespace(("a",))
        catalog.create_namespace(("a", "b"))
        made_table(catalog, ("a", "b.c"))
        made_table(catalog, ("a", "b", "c"))
        assert catalog.list_tables(("a",)) == (("a", "b.c"),)
        assert catalog.list_tables(("a", "b")) == (("a", "b", "c"),)

    def test_values_exceeding_a_column_width_are_refused(self, catalog: SqlCatalog) -> None:
        with pytest.raises(InvalidRequestError, match="255 characters in all"):
            catalog.create_namespace(("x" * 200, "y" * 200))
        catalog.create_namespace(("db",))
        with pytest.raises(InvalidRequestError, match="more than 1000"):
            catalog.create_table(EVENTS, builders.schema(), location=f"memory://{'x' * 1000}")
        assert list(catalog.storage.list("memory://" + "x" * 1000)) == []
        with pytest.raises(InvalidRequestError, match="at most 255"):
            catalog.update_namespace_properties(("db",), {"k" * 256: "v"})
        with pytest.raises(InvalidRequestError, match="values 1000"):
            catalog.create_namespace(("db2",), {"k": "v" * 1001})
        assert not catalog.namespace_exists(("db2",))

    def test_marker_property_of_a_namespace_is_hidden(self, catalog: SqlCatalog) -> None:
        catalog.create_namespace(("db",))
        with pytest.raises(InvalidRequestError, match="exists"):
            catalog.update_namespace_properties(("db",), {"exists": "no"})
        with pytest.raises(InvalidRequestError, match="exists"):
            catalog.update_namespace_properties(("db",), {}, ["exists"])
        with pytest.raises(InvalidRequestError, match="exists"):
            catalog.create_namespace(("other",), {"exists": "yes"})
        for bad in ({"": "x"}, {"a\0": "x"}, {"a": "\0"}, {"a": 1}):
            with pytest.raises(InvalidRequestError, match="Cannot set the property"):
                catalog.update_namespace_properties(("db",), bad)  # type: ignore[arg-type]

    def test_namespace_may_set_the_location_of_its_tables(self, catalog: SqlCatalog) -> None:
        catalog.create_namespace(("db",), {"location": "memory://elsewhere/db/"})
        assert made_table(catalog).metadata.location == "memory://elsewhere/db/events"


class TestSqlite:
    def test_sqlite_file_uses_wal_mode_and_its_folder_is_created(self, tmp_path: Path) -> None:
        deep = tmp_path / "a" / "b" / "catalog.db"
        with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(deep), MemoryStorage()):
            assert rows(deep, "PRAGMA journal_mode") == [("wal",)]

    def test_long_held_lock_is_a_conflict_without_changes(self, path: Path) -> None:
        database = SqliteDatabase(path, busy_timeout_ms=50)
        with SqlCatalog("lake", WAREHOUSE, database, MemoryStorage()) as catalog:
            loaded = made_table(catalog)
            with raw(path) as other:
                other.execute("BEGIN IMMEDIATE")
                reason = rejected(set_property(catalog, loaded, a="b")).reason
                assert isinstance(reason, CommitConflictError)
                assert "held its lock for 50 ms" in str(reason)
                with pytest.raises(CommitConflictError, match="held its lock for 50 ms"):
                    catalog.create_namespace(("other",))
                # Readers do not wait.
                assert catalog.load_table(EVENTS).metadata == loaded.metadata
                assert catalog.list_tables(("db",)) == (EVENTS,)
                other.rollback()
            files = {one.path for one in catalog.storage.list(WAREHOUSE)}
            assert files == {loaded.metadata_location}
            committed(set_property(catalog, loaded, a="b"))

    def test_held_lock_is_waited_for(self, path: Path, catalog: SqlCatalog) -> None:
        loaded = made_table(catalog)
        other = sqlite3.connect(path, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, other.rollback)
        release.start()
        try:
            committed(set_property(catalog, loaded, a="b"))
        finally:
            release.join()
            other.close()

    def test_replaced_database_file_is_reopened(self, path: Path, catalog: SqlCatalog) -> None:
        made_table(catalog)
        for one in path.parent.glob("catalog.db*"):
            one.unlink()
        with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(path), MemoryStorage()) as fresh:
            fresh.create_namespace(("new",))
        assert catalog.list_namespaces() == (("new",),)

    def test_file_that_is_not_a_database_is_refused(self, path: Path) -> None:
        path.write_bytes(b"this is no database, but long enough to be read as one" * 50)
        with pytest.raises(StorageError, match="not a database"):
            SqliteDatabase(path)

    def test_error_names_the_folder_that_cannot_be_created(self, path: Path) -> None:
        path.write_bytes(b"")
        with pytest.raises(StorageError, match="Cannot open"):
            SqliteDatabase(path / "below" / "catalog.db")

    def test_in_memory_database_is_refused(self) -> None:
        for text in (":memory:", "", "file::memory:?cache=shared"):
            with pytest.raises(InvalidRequestError, match="not the path of a file"):
                SqliteDatabase(text)

    def test_forked_process_opens_its_own_connection(self, catalog: SqlCatalog) -> None:
        made_table(catalog)
        with warnings.catch_warnings():
            # From Python 3.12 on, a process with threads is warned of forking; the child here starts none.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = 0 if catalog.list_tables(("db",)) == (EVENTS,) else 1
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert catalog.list_tables(("db",)) == (EVENTS,)

    def test_concurrent_first_handles_of_a_new_database_work(self, path: Path) -> None:
        barrier = threading.Barrier(6)
        errors: list[BaseException] = []

        def open_it() -> None:
            barrier.wait()
            try:
                with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(path), MemoryStorage()) as one:
                    one.list_namespaces()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert errors == []


class TestUris:
    def test_sqlite_paths_are_absolute_or_relative(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for uri, wanted in (
            (f"sqlite:///{tmp_path}/a b%20.db", tmp_path / "a b%20.db"),
            ("sqlite:///below/c.db", tmp_path / "below" / "c.db"),
        ):
            database = open_database(uri)
            database.close()
            assert wanted.exists()
            assert str(wanted) in database.label

    @pytest.mark.parametrize("uri", ["sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:////a?x=1"])
    def test_other_uri_forms_are_refused(self, uri: str) -> None:
        with pytest.raises(InvalidRequestError):
            open_database(uri)

    @pytest.mark.parametrize("uri", ["mysql://me:hunter2@host/db", "hunter2", "", "jdbc:postgresql://me:hunter2@h/d"])
    def test_other_databases_are_refused_without_showing_credentials(self, uri: str) -> None:
        with pytest.raises(InvalidRequestError, match="not supported") as caught:
            open_database(uri)
        assert "hunter2" not in str(caught.value)


SECRET_URIS = [
    "postgresql://me:hunter2@127.0.0.1:1/db?connect_timeout=1",
    "postgresql://me:hunt%65r2@127.0.0.1:1/db?connect_timeout=1",
    "postgresql://127.0.0.1:1/db?user=me&password=hunter2&connect_timeout=1",
    "postgresql://me:x/hunter2@127.0.0.1:1/db?connect_timeout=1",
    "postgresql://me:5/hunter2@127.0.0.1:1/db?connect_timeout=1",
    "postgresql://me:hunter2@127.0.0.1:port/db",
    "postgresql://me:hunter2@127.0.0.1:1/db?bad_option=hunter2",
    "postgres://me:hunter2@[::1/db",
    "postgresql+psycopg://me:hunter2@127.0.0.1:1/db?connect_timeout=1",
]


@pytest.mark.parametrize("uri", SECRET_URIS)
def test_password_is_never_shown(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(FrazilError) as caught:
        open_database(uri)
    error = caught.value
    shown = [
        str(error),
        repr(error),
        repr(error.context),
        pickle.dumps(error).decode("latin-1"),
        "".join(traceback.format_exception(error)),
        caplog.text,
    ]
    assert [text for text in shown if "hunter2" in text] == []


def test_error_names_the_missing_database() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StorageError, match=r"Cannot use postgresql://127\.0\.0\.1:1/db"):
        PostgresDatabase("postgresql://me:hunter2@127.0.0.1:1/db?connect_timeout=1")


def test_database_errors_are_wrapped(path: Path) -> None:
    database: Database = SqliteDatabase(path)
    try:
        with pytest.raises(StorageError, match="no such table"):
            database.read("SELECT * FROM absent")
        with pytest.raises(StorageError, match="no such table"), database.transaction() as run:
            run("DELETE FROM absent")
        with database.transaction() as run:
            run("CREATE TABLE t (a)")
        with pytest.raises(KeyError), database.transaction() as run:
            run("INSERT INTO t VALUES (1)")
            raise KeyError
        assert database.read("SELECT * FROM t") == []
        assert database.columns("t") == {"a"}
        assert database.columns("absent") == frozenset()
    finally:
        database.close()


class TestPurge:
    def test_purge_deletes_files_of_the_dropped_state(
        self, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded = made_table(catalog)
        look, rivals = catalog._pointers.locations, [lambda: committed(set_property(catalog, loaded, by="rival"))]

        def commit_and_look(*args: Any, **kwargs: Any) -> Any:
            if rivals:
                rivals.pop()()
            return look(*args, **kwargs)

        monkeypatch.setattr(catalog._pointers, "locations", commit_and_look)
        purged: list[LoadedTable] = []

        def purge(state: LoadedTable, _: OwnedFolders) -> PurgeReport:
            purged.append(state)
            return NOTHING_PURGED

        catalog.drop_table(EVENTS, purge=purge)
        assert [one.metadata.properties["by"] for one in purged] == ["rival"]
        assert not catalog.table_exists(EVENTS)


class Purged(MemoryStorage):
    """Files whose folder is taken away while they are made."""

    is_gone = False

    def create(self, path: str, data: bytes) -> None:
        if self.is_gone:
            raise MissingFileError(f"Cannot write {path}: there is no such file", path=path)
        super().create(path, data)


def test_commit_racing_a_purge_is_a_write_failure(path: Path) -> None:
    storage = Purged()
    with SqlCatalog("lake", WAREHOUSE, SqliteDatabase(path), storage) as catalog:
        base = made_table(catalog)
        storage.is_gone = True
        with pytest.raises(StorageError, match="Cannot write") as failed:
            set_property(catalog, base, a="b")
        assert not isinstance(failed.value, MissingFileError)
