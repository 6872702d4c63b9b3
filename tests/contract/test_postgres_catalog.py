"""The SQL catalog on a real PostgreSQL server: lost connections, restarts, waiting for a commit in flight, secrets."""

from __future__ import annotations

import contextlib
import itertools
import logging
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.outcomes import Committed, Outcome, Unknown
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sql import SqlCatalog
from frazil.errors import CommitConflictError, InvalidRequestError, StorageError
from frazil.loaded import LoadedTable
from frazil.storage.local import LocalStorage
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    committed,
    made_table,
    rejected,
    set_property,
    set_property_until_it_works,
)
from tests.support.postgres_server import PASSWORD, QUOTED_PASSWORD, PostgresServer, postgres_server

psycopg = pytest.importorskip("psycopg")
_counter = itertools.count(1)
__all__ = ["postgres_server"]


class Proxy:
    """Stands between a client and the server, and loses what it is told to lose."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lose: str | None = None
        """`answer`: the next COMMIT arrives and its answer does not; `request`: it does not arrive."""
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, act: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=act, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._start(self._pump_requests, client, server)
                self._start(self._pump_answers, server, client)

    def _pump_requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := client.recv(65536):
                lose = self.lose if b"COMMIT\0" in data else None
                if lose is not None:
                    self.lose = None
                    _shut(client)
                    if lose == "answer":
                        server.sendall(data)
                        time.sleep(0.3)
                    _shut(server)
                    return
                server.sendall(data)

    def _pump_answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := server.recv(65536):
                client.sendall(data)

    def close(self) -> None:
        self._listener.close()


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


class Lab:
    """Catalogs of one name on one server, straight and through a proxy."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server = server
        self.proxy = Proxy(server.port)
        self.name = f"faults{next(_counter)}"
        self.storage = LocalStorage(durable=False)
        self.warehouse = f"file://{folder}/warehouse"
        self.opened: list[SqlCatalog] = []

    def open(self, uri: str | None = None) -> SqlCatalog:
        database = PostgresDatabase(self.server.uri if uri is None else uri)
        made = SqlCatalog(self.name, self.warehouse, database, self.storage)
        self.opened.append(made)
        return made

    def open_through_proxy(self) -> SqlCatalog:
        return self.open(self.server.uri_at(self.proxy.port))

    def raw(self) -> Any:
        return psycopg.connect(self.server.uri)


@pytest.fixture
def lab(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(postgres_server, tmp_path)
    try:
        yield made
    finally:
        for one in made.opened:
            one.close()
        made.proxy.close()


def commit_and_lose(lab: Lab, what: str) -> tuple[SqlCatalog, Unknown[LoadedTable]]:
    catalog = lab.open_through_proxy()
    loaded = made_table(catalog)
    lab.proxy.lose = what
    outcome = set_property(catalog, loaded, mine="yes")
    assert isinstance(outcome, Unknown), outcome
    assert lab.proxy.lose is None
    return catalog, outcome


def test_commit_with_a_lost_response_is_found(lab: Lab) -> None:
    catalog, outcome = commit_and_lose(lab, "answer")
    assert "Cannot tell whether" in str(outcome.error)
    found = committed(catalog.resolve_unknown(outcome))
    assert lab.open().load_table(EVENTS).metadata == found.metadata
    committed(set_property(catalog, found, more="yes"))


def test_commit_that_never_arrived_is_rejected(lab: Lab) -> None:
    catalog, outcome = commit_and_lose(lab, "request")
    assert isinstance(rejected(catalog.resolve_unknown(outcome)).reason, CommitConflictError)
    current = catalog.load_table(EVENTS)
    assert "mine" not in current.metadata.properties
    committed(set_property(catalog, current, mine="again"))


def test_creation_with_a_lost_response_is_found(lab: Lab) -> None:
    catalog = lab.open_through_proxy()
    catalog.create_namespace(("db",))
    lab.proxy.lose = "answer"
    loaded = made_table(catalog)
    assert lab.open().load_table(EVENTS).metadata == loaded.metadata


def test_verification_waits_for_a_commit_in_flight(lab: Lab) -> None:
    for ends_with in ("COMMIT", "ROLLBACK"):
        catalog, outcome = commit_and_lose(lab, "request")
        (attempt,) = outcome.attempts
        # The server has done the update and not yet the commit, as when a COMMIT is still on its way.
        with lab.raw() as slow:
            slow.execute(
                "UPDATE iceberg_tables SET metadata_location = %s, previous_metadata_location = metadata_location "
                "WHERE catalog_name = %s",
                (attempt.loaded.metadata_location, lab.name),
            )
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(catalog.resolve_unknown, outcome)
                time.sleep(0.3)
                assert not asked.done()
                slow.execute(ends_with)
                verdict: Outcome[LoadedTable] = asked.result(timeout=30)
        assert isinstance(verdict, Committed) == (ends_with == "COMMIT")
        catalog.drop_table(EVENTS)


@pytest.mark.parametrize("ends_with", ["COMMIT", "ROLLBACK"])
def test_verification_waits_for_a_creation_in_flight(lab: Lab, ends_with: str) -> None:
    catalog = lab.open_through_proxy()
    catalog.create_namespace(("db",))
    staged = catalog.stage_table(EVENTS, builders.schema())
    lab.proxy.lose = "request"
    outcome = catalog.commit(staged, ())
    assert isinstance(outcome, Unknown)
    (attempt,) = outcome.attempts
    with lab.raw() as slow:
        slow.execute(
            "INSERT INTO iceberg_tables VALUES (%s, 'db', 'events', %s, NULL, 'TABLE')",
            (lab.name, attempt.loaded.metadata_location),
        )
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(catalog.resolve_unknown, outcome)
            time.sleep(0.3)
            assert not asked.done()
            slow.execute(ends_with)
            verdict = asked.result(timeout=30)
    assert isinstance(verdict, Committed) == (ends_with == "COMMIT")
    assert catalog.table_exists(EVENTS) == (ends_with == "COMMIT")


def test_dead_pooled_connections_are_replaced(lab: Lab) -> None:
    catalog = lab.open()
    loaded = made_table(catalog)
    for act in (
        lambda: catalog.list_tables(("db",)),
        lambda: committed(set_property(catalog, loaded, a="b")),
        lambda: catalog.create_namespace(("other",)),
    ):
        with lab.raw() as killer:
            killer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'frazil' "
                "AND pid <> pg_backend_pid()"
            )
        act()


def test_catalog_reconnects_after_a_server_restart(lab: Lab) -> None:
    catalog = lab.open()
    loaded = made_table(catalog)
    lab.server.stop("fast")
    try:
        with pytest.raises(StorageError, match="Cannot use postgresql://"):
            catalog.load_table(EVENTS)
        with pytest.raises(StorageError, match="Cannot use postgresql://"):
            set_property(catalog, loaded, a="b")
    finally:
        lab.server.start()
    committed(set_property(catalog, loaded, a="b"))


def test_aborted_transaction_leaves_no_changes(lab: Lab) -> None:
    database = PostgresDatabase(lab.server.uri)
    try:
        with pytest.raises(StorageError), database.transaction() as run:
            run("CREATE TABLE halfway (a int)")
            pid = run("SELECT pg_backend_pid()").rows[0][0]
            with lab.raw() as killer:
                killer.execute("SELECT pg_terminate_backend(%s)", (pid,))
            time.sleep(0.2)
            run("SELECT 1")
        assert database.columns("halfway") == frozenset()
    finally:
        database.close()


def test_no_commit_is_lost_at_any_default_isolation_level(lab: Lab) -> None:
    made_table(lab.open())
    strict = f"{lab.server.uri}?options=-c%20default_transaction_isolation%3Dserializable"
    writers = [lab.open(strict) for _ in range(4)]

    def write(at: int) -> None:
        for turn in range(10):
            set_property_until_it_works(writers[at], EVENTS, **{f"w{at}-{turn}": "done"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = writers[0].load_table(EVENTS).metadata.properties
    assert {f"w{at}-{turn}" for at in range(4) for turn in range(10)} <= found.keys()


def test_concurrent_first_connections_to_a_new_database_succeed(lab: Lab) -> None:
    with lab.raw() as admin:
        admin.execute("DROP SCHEMA IF EXISTS fresh CASCADE")
        admin.execute("CREATE SCHEMA fresh")
    uri = f"{lab.server.uri}?options=-c%20search_path%3Dfresh"
    barrier = threading.Barrier(6)

    def open_it(_: int) -> list[Any]:
        barrier.wait()
        with lab.open(uri) as one:
            return list(one.list_namespaces())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(open_it, range(6))) == [[]] * 6


def test_invalid_value_is_an_invalid_request(lab: Lab) -> None:
    database = PostgresDatabase(lab.server.uri)
    try:
        with pytest.raises(InvalidRequestError, match="too long"), database.transaction() as run:
            run("CREATE TEMP TABLE narrow (a VARCHAR(3))")
            run("INSERT INTO narrow VALUES (?)", "abcd")
        assert database.columns("narrow") == frozenset()
    finally:
        database.close()


def test_password_is_never_shown(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    catalog = lab.open_through_proxy()
    shown: list[str] = [repr(catalog), str(catalog), repr(catalog._pointers), repr(vars(catalog))]
    database = PostgresDatabase(lab.server.uri)
    shown += [repr(database), str(database), database.label]
    with pytest.raises(TypeError):
        pickle.dumps(database)
    database.close()
    loaded = made_table(catalog)
    shown += [repr(loaded), pickle.dumps(loaded).decode("latin-1")]
    lab.proxy.lose = "answer"
    outcome = set_property(catalog, loaded, a="b")
    assert isinstance(outcome, Unknown)
    errors: list[BaseException] = [outcome.error]
    for wrong in (
        lab.server.uri.replace("frazil:", "nobody:"),
        lab.server.uri.replace("/postgres", "/absent"),
        lab.server.uri.replace(str(lab.server.port), "1"),
    ):
        with pytest.raises(StorageError) as caught:
            PostgresDatabase(wrong)
        errors.append(caught.value)
    for error in errors:
        shown += [str(error), repr(error), "".join(traceback.format_exception(error))]
        shown.append(pickle.dumps(error).decode("latin-1"))
        assert error.__cause__ is None
    shown.append(caplog.text)
    for secret in (PASSWORD, QUOTED_PASSWORD, "s3cret"):
        assert [text for text in shown if secret in text] == []


# Neighbours in the database

_THEIRS = """
    CREATE FUNCTION {schema}.seen(what text) RETURNS boolean LANGUAGE plpgsql SECURITY INVOKER AS $$
        BEGIN INSERT INTO {schema}.notes VALUES (what, current_user); RETURN true; END $$;
    CREATE FUNCTION {schema}.substr(varchar, integer, smallint) RETURNS text LANGUAGE sql AS $$
        SELECT CASE WHEN {schema}.seen('substr') THEN pg_catalog.substr($1::text, $2, $3::integer) END $$;
    CREATE FUNCTION {schema}.same(varchar, varchar) RETURNS boolean LANGUAGE sql AS $$
        SELECT {schema}.seen('operator') AND $1::text OPERATOR(pg_catalog.=) $2::text $$;
    CREATE OPERATOR {schema}.= (FUNCTION = {schema}.same, LEFTARG = varchar, RIGHTARG = varchar);
    CREATE FUNCTION {schema}.same(varchar, unknown) RETURNS boolean LANGUAGE sql AS $$
        SELECT {schema}.seen('unknown') $$;
    CREATE FUNCTION {schema}.to_regclass(unknown) RETURNS regclass LANGUAGE sql AS $$
        SELECT CASE WHEN {schema}.seen('regclass') THEN NULL END $$;
    CREATE FUNCTION {schema}.current_schemas(boolean) RETURNS name[] LANGUAGE sql AS $$
        SELECT CASE WHEN {schema}.seen('schemas') THEN ARRAY[]::name[] END $$;
"""


@pytest.fixture
def neighbours(postgres_server: PostgresServer) -> Iterator[tuple[str, Any]]:
    """A schema that comes first for everybody and that others create in, and a connection to look into it."""
    schema = f"shared{next(_counter)}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.notes (what text, who text)")
        for statement in (
            _THEIRS.format(schema=schema).replace("$$;", "$$;\0").replace("varchar);", "varchar);\0").split("\0")
        ):
            if statement.strip():
                # Not every server lets functions of the type `unknown` be made.
                with contextlib.suppress(psycopg.errors.InvalidFunctionDefinition, psycopg.errors.UndefinedObject):
                    connection.execute(statement)
        yield schema, connection
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def _do_everything(catalog: SqlCatalog) -> None:
    catalog.create_namespace(("a",))
    catalog.create_namespace(("a", "b"))
    assert catalog.namespace_exists(("a",))
    assert catalog.list_namespaces(()) == (("a",),)
    assert catalog.list_namespaces(("a",)) == (("a", "b"),)
    made = catalog.create_table(("a", "t"), builders.schema(builders.field(1, "id")))
    assert catalog.list_tables(("a",)) == (("a", "t"),)
    assert catalog.load_table(("a", "t")).metadata_location == made.metadata_location
    catalog.update_namespace_properties(("a",), updates={"k": "v"})
    catalog.rename_table(("a", "t"), ("a", "u"))
    catalog.drop_table(("a", "u"))
    catalog.drop_namespace(("a", "b"))
    catalog.drop_namespace(("a",))


def test_functions_of_other_schemas_are_not_called(lab: Lab, neighbours: tuple[str, Any]) -> None:
    schema, connection = neighbours
    path = f"{lab.server.uri}?options=-csearch_path%3D{schema}"
    _do_everything(lab.open(path))
    tables = connection.execute(
        "SELECT table_schema FROM information_schema.tables WHERE table_name = 'iceberg_tables' AND table_schema = %s",
        [schema],
    ).fetchall()
    assert tables == [(schema,)], "the tables are made where the session's path leads"
    assert connection.execute(f"SELECT DISTINCT what FROM {schema}.notes").fetchall() == []


def test_later_connections_use_the_same_schema(lab: Lab, neighbours: tuple[str, Any]) -> None:
    schema, connection = neighbours
    catalog = lab.open(f"{lab.server.uri}?options=-csearch_path%3D{schema}")
    catalog.create_namespace(("a",))
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'frazil' AND pid <> pg_backend_pid()"
    )
    assert catalog.namespace_exists(("a",))
    catalog.drop_namespace(("a",))
    assert connection.execute(f"SELECT DISTINCT what FROM {schema}.notes").fetchall() == []


def test_schema_with_any_name_is_found(lab: Lab) -> None:
    name = 'Odd "%s" näme?'
    with psycopg.connect(lab.server.uri, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(name)))
        quoted = psycopg.sql.Identifier(name)
        connection.execute(psycopg.sql.SQL("CREATE ROLE odd LOGIN PASSWORD 'odd-password'"))
        connection.execute(psycopg.sql.SQL("ALTER ROLE odd SET search_path = {}").format(quoted))
        connection.execute(psycopg.sql.SQL("GRANT ALL ON SCHEMA {} TO odd").format(quoted))
        try:
            _do_everything(lab.open(f"postgresql://odd:odd-password@127.0.0.1:{lab.server.port}/postgres"))
        finally:
            connection.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(quoted))
            connection.execute("DROP OWNED BY odd")
            connection.execute("DROP ROLE odd")
