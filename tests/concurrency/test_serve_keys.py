"""A server that dies between a change and keeping its answer: the request is sent again, done once, answered as done.

Others change the same names before it is sent again, so that what is done twice shows. In a SQL catalog every request
is told from its mark; in a file-system catalog those that leave a trace in the table, and of others it is said that
nobody knows.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.base import Catalog
from frazil.catalog.failing_database import FailingDatabase
from frazil.catalog.idempotency_records import IdempotencyRecord, recording
from frazil.catalog.sql import SqlCatalog
from frazil.errors import StorageError
from frazil.serve.exchange import Answer
from frazil.storage.failing import FaultKind
from frazil.table.open_catalog import open_catalog
from tests.concurrency.test_serve_killed import ServeProcess
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.served_lake import SCHEMA, Served, served, table_path
from tests.unit.serve.test_idempotency import keyed, new_key

__all__ = ["postgres_server"]

A, B, V = table_path("a"), table_path("b"), "/v1/namespaces/db/views/v"
NAMESPACES, TABLES, VIEWS = "/v1/namespaces", "/v1/namespaces/db/tables", "/v1/namespaces/db/views"


class Died(Exception):
    """The server is gone."""


@dataclass
class Death:
    """When a server died: what it would have answered."""

    answer: Answer | None = None


def properties(**updates: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": updates}]}


def named(name: str) -> dict[str, Any]:
    return {"namespace": ["db"], "name": name}


def renamed(source: str, target: str) -> dict[str, Any]:
    return {"source": named(source), "destination": named(target)}


def both(**updates: str) -> dict[str, Any]:
    return {"table-changes": [{"identifier": named(name), **properties(**updates)} for name in ("a", "b")]}


def new_table(name: str) -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA}


def new_view(name: str) -> dict[str, Any]:
    query = {"type": "sql", "sql": "select 1", "dialect": "spark"}
    version = {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "representations": [query],
        "default-namespace": ["db"],
    }  # fmt: skip
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


def file_of(server: Served, path: str) -> str:
    found: str = server.get(path).json["metadata-location"]
    return found


Step = tuple[str, str, object]
CASES: dict[str, tuple[Step, tuple[Step, ...]]] = {
    "createNamespace": (("POST", NAMESPACES, {"namespace": ["n"]}), (("DELETE", f"{NAMESPACES}/n", None),)),
    "dropNamespace": (("DELETE", f"{NAMESPACES}/empty", None), (("POST", NAMESPACES, {"namespace": ["empty"]}),)),
    "updateProperties": (
        ("POST", f"{NAMESPACES}/db/properties", {"updates": {"x": "1"}, "removals": ["old", "never"]}),
        (("POST", f"{NAMESPACES}/db/properties", {"updates": {"x": "2", "old": "3"}}),),
    ),
    "createTable": (("POST", TABLES, new_table("new")), (("DELETE", table_path("new"), None),)),
    "registerTable": (
        ("POST", f"{NAMESPACES}/db/register", {"name": "new", "metadata-location": "<a>"}),
        (("DELETE", table_path("new"), None),),
    ),
    "registerTable over another": (
        ("POST", f"{NAMESPACES}/db/register", {"name": "b", "metadata-location": "<a>", "overwrite": True}),
        (("POST", B, properties(x="2")),),
    ),
    "updateTable": (("POST", A, properties(x="1")), (("POST", A, properties(x="2")),)),
    "updateTable that creates": (
        ("POST", table_path("new"), {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
            ],
        }),
        (("DELETE", table_path("new"), None),),
    ),
    "dropTable": (("DELETE", A, None), (("POST", TABLES, new_table("a")),)),
    "dropTable and purge": (("DELETE", f"{A}?purgeRequested=true", None), (("POST", TABLES, new_table("a")),)),
    "unregisterTable": (("POST", f"{A}/unregister", None), (("POST", TABLES, new_table("a")),)),
    "renameTable": (
        ("POST", "/v1/tables/rename", renamed("a", "c")),
        (("POST", "/v1/tables/rename", renamed("c", "a")),),
    ),
    "commitTransaction": (
        ("POST", "/v1/transactions/commit", both(x="1")),
        (("POST", B, properties(x="2")),),
    ),
    "createView": (("POST", VIEWS, new_view("new")), (("DELETE", f"{VIEWS}/new", None),)),
    "registerView": (
        ("POST", f"{NAMESPACES}/db/register-view", {"name": "new", "metadata-location": "<v>"}),
        (("DELETE", f"{VIEWS}/new", None),),
    ),
    "replaceView": (("POST", V, properties(x="1")), (("POST", V, properties(x="2")),)),
    "dropView": (("DELETE", V, None), (("POST", VIEWS, new_view("v")),)),
    "renameView": (
        ("POST", "/v1/views/rename", renamed("v", "w")),
        (("POST", "/v1/views/rename", renamed("w", "v")),),
    ),
}  # fmt: skip
"""Each operation: the request, and what others do before it is sent again."""


@contextmanager
def dying(server: Served) -> Iterator[Death]:
    """Let a server die before it keeps an answer."""
    death, keep = Death(), server.service.state.keep_answer

    def die(key: str, fingerprint: str, answer: Answer, now_ms: int, **options: Any) -> bool:
        if answer.code == 0:
            return keep(key, fingerprint, answer, now_ms, **options)
        death.answer = answer
        raise Died

    server.service.state.keep_answer = die  # type: ignore[method-assign]
    yield death


def state_of(catalog: Catalog) -> dict[str, Any]:
    """Return all that a catalog leads to."""
    return {
        ".".join(namespace): (
            catalog.load_namespace_properties(namespace),
            {name: catalog.load_table(name).metadata_location for name in catalog.list_tables(namespace)},
            {name: catalog.locate_view(name) for name in catalog.list_views(namespace)},
        )
        for namespace in catalog.list_namespaces()
    }


def set_up(server: Served) -> None:
    server.post(NAMESPACES, {"namespace": ["db"]})
    server.post(f"{NAMESPACES}/db/properties", {"updates": {"old": "1"}})
    server.post(NAMESPACES, {"namespace": ["empty"]})
    for name in ("a", "b"):
        server.make_table(name)
    server.post(VIEWS, new_view("v"))


def filled(server: Served, step: Step) -> Step:
    """Return a request with the locations of metadata files that it names."""
    method, path, body = step
    text = json.dumps(body)
    for mark, place in (("<a>", A), ("<v>", V)):
        text = text.replace(mark, file_of(server, place)) if mark in text else text
    return method, path, json.loads(text)


Open = Callable[[], Any]


def _opening(kind: str, folder: Path, request: pytest.FixtureRequest) -> Open:
    catalog: str | None = None if kind == "sqlite" else kind
    if kind == "postgresql":
        catalog = request.getfixturevalue("postgres_server").uri
    # Each test has a catalog of its own in the server.
    name = f"keys_{new_key()}"
    return lambda: served(folder / "wh", catalog=catalog, name=name, state=folder / "serve.db")


def send_twice(opening: Open, name: str, *, others: bool) -> None:
    step, between = CASES[name]
    key = new_key()
    with opening() as server:
        set_up(server)
        method, path, body = filled(server, step)
        with dying(server) as death:
            assert keyed(server, method, path, body, key).code == 500
    assert death.answer is not None and death.answer.code < 300, death.answer
    with opening() as server:
        for other in between if others else ():
            reply = server.ask(*other)
            assert reply.code < 300, (other, reply.body)
        before = state_of(server.catalog)
        again = keyed(server, method, path, body, key)
        assert (again.code, again.body) == (death.answer.code, death.answer.body)
        assert state_of(server.catalog) == before
        assert keyed(server, method, path, body, key).body == again.body
        other_request = keyed(server, "POST", NAMESPACES, {"namespace": ["else"]}, key)
        assert (other_request.code, other_request.error) == (400, "BadRequestException")


@pytest.mark.parametrize("others", [True, False], ids=["others came between", "at once"])
@pytest.mark.parametrize("name", CASES)
def test_request_with_a_lost_response_is_applied_once_and_acknowledged(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, others: bool
) -> None:
    send_twice(_opening("sqlite", tmp_path, request), name, others=others)


@pytest.mark.extended
@pytest.mark.parametrize("name", CASES)
def test_request_with_a_lost_response_is_applied_once_in_postgresql(
    tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    send_twice(_opening("postgresql", tmp_path, request), name, others=True)


class Persistent(threading.Thread):
    """A client that sends each request with its key until it is answered. Its names are its own."""

    def __init__(self, server: ServeProcess, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server, self._number, self._stopped = server, number, stop
        self.sent_again = self.rounds = 0
        self.problems: list[str] = []

    def run(self) -> None:
        while not self._stopped.is_set() and not self.problems:
            self.rounds += 1
            space = f"n{self._number}_{self.rounds}"
            tables, views = f"{NAMESPACES}/{space}/tables", f"{NAMESPACES}/{space}/views"
            first, second = ({"namespace": [space], "name": name} for name in ("a", "b"))
            changes = [{"identifier": name, **properties(y="1")} for name in (first, second)]
            for method, path, body in (
                ("POST", NAMESPACES, {"namespace": [space]}),
                ("POST", f"{NAMESPACES}/{space}/properties", {"updates": {"x": "1"}}),
                ("POST", tables, new_table("a")),
                ("POST", f"{tables}/a", properties(x="1")),
                ("POST", tables, new_table("b")),
                ("POST", "/v1/transactions/commit", {"table-changes": changes}),
                ("DELETE", f"{tables}/b", None),
                ("POST", "/v1/tables/rename", {"source": first, "destination": second}),
                ("DELETE", f"{tables}/b?purgeRequested=true", None),
                ("POST", views, new_view("a")),
                ("POST", f"{views}/a", properties(x="1")),
                ("POST", "/v1/views/rename", {"source": first, "destination": second}),
                ("DELETE", f"{views}/b", None),
                ("DELETE", f"{NAMESPACES}/{space}", None),
            ):
                self._send(method, path, body)

    def _send(self, method: str, path: str, body: object) -> None:
        key, deadline = new_key(), time.monotonic() + 120
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
            try:
                connection.request(method, path, json.dumps(body), {"Idempotency-Key": key})
                answer = connection.getresponse()
                text = answer.read()
                if answer.status >= 300:
                    self.problems.append(f"{method} {path}: {answer.status} {text!r}")
                return
            except (OSError, http.client.HTTPException) as error:
                self.sent_again += 1
                if time.monotonic() > deadline:
                    self.problems.append(f"{method} {path}: {error}")
                    return
                time.sleep(0.02)
            finally:
                connection.close()


@pytest.mark.extended
def test_requests_retried_across_server_kills_are_applied_once(tmp_path: Path) -> None:
    chance, kills = random.Random(11), int(os.environ.get("FRAZIL_KILLS", "4"))
    server, stop = ServeProcess(tmp_path), threading.Event()
    server.start()
    clients = [Persistent(server, number, stop) for number in range(4)]
    for client in clients:
        client.start()
    for _ in range(kills):
        before, patience = sum(client.rounds for client in clients), time.monotonic() + 60
        while sum(client.rounds for client in clients) < before + 2 and time.monotonic() < patience:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.2))
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        server.start()
    stop.set()
    for client in clients:
        client.join(240)
    server.end(signal.SIGTERM)
    assert [client.problems for client in clients] == [[]] * len(clients)
    assert sum(client.sent_again for client in clients) > 0
    with open_catalog(tmp_path / "warehouse") as catalog:
        assert catalog.list_namespaces() == ()


def test_servers_sharing_a_database_apply_a_request_once(tmp_path: Path) -> None:
    with (
        served(tmp_path / "wh", state=tmp_path / "1.db") as first,
        served(tmp_path / "wh", state=tmp_path / "2.db") as second,
    ):
        set_up(first)
        for number in range(10):
            key, body = new_key(), renamed("a", "c") if number % 2 == 0 else renamed("c", "a")
            send = partial(keyed, method="POST", path="/v1/tables/rename", body=body, key=key)
            with ThreadPoolExecutor(4) as pool:
                replies = list(pool.map(send, (first, second, first, second)))
            assert [reply.code for reply in replies] == [204] * 4, [reply.body for reply in replies]


@pytest.mark.parametrize("name", ["dropTable", "renameTable", "dropNamespace", "updateTable", "createView"])
def test_lost_database_response_is_resolved_on_retry(tmp_path: Path, name: str) -> None:
    (method, path, body), others = CASES[name]
    with served(tmp_path / "wh", state=tmp_path / "serve.db") as server:
        set_up(server)
        catalog = server.catalog
        assert isinstance(catalog, SqlCatalog) and catalog.idempotency_records is not None
        inner = catalog._sql._database
        lossy = FailingDatabase(inner)
        for holder in (catalog._sql, catalog._sql._namespaces, catalog.idempotency_records):
            holder._database = lossy
        # The step that changes something is the first transaction; reads come before it.
        lossy._next = lambda verb: FaultKind.APPLIED_BUT_ERROR if verb == "transaction" else None  # type: ignore[method-assign]
        key = new_key()
        first = keyed(server, method, path, body, key)
        # A commit is looked up in the table at once.
        assert first.code == 200 or first.error == "CommitStateUnknownException"
        for holder in (catalog._sql, catalog._sql._namespaces, catalog.idempotency_records):
            holder._database = inner
        for other in others:
            assert server.ask(*other).code < 300
        before = state_of(catalog)
        again = keyed(server, method, path, body, key)
        assert again.code in (200, 204)
        assert state_of(catalog) == before


def test_without_idempotency_records_a_retried_request_is_applied_once_or_unknown(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    opening = _opening("filesystem", tmp_path, request)
    with opening() as server:
        server.make_table("a")
        server.make_table("b")
    seen: dict[str, tuple[int, bool]] = {}
    steps: dict[str, Step] = {name: CASES[name][0] for name in ("createNamespace", "updateTable", "dropTable")}
    steps |= {"createTable": CASES["createTable"][0], "append": ("POST", B, _append(tmp_path))}
    for name, (method, path, body) in steps.items():
        key = new_key()
        with opening() as server, dying(server) as death:
            assert keyed(server, method, path, body, key).code == 500
            assert death.answer is not None and death.answer.code < 300, death.answer
        with opening() as server:
            before = state_of(server.catalog)
            again = keyed(server, method, path, body, key)
            assert state_of(server.catalog) == before
            seen[name] = again.code, again.code == 500 and again.error == "CommitStateUnknownException"
    known, unknown = (200, False), (500, True)
    assert seen == {
        "createNamespace": unknown, "updateTable": unknown, "dropTable": unknown, "createTable": known, "append": known,
    }  # fmt: skip


def _append(folder: Path) -> dict[str, Any]:
    """Return a commit of a snapshot that asks for nothing, so that only the snapshot tells that it was made."""
    with frazil.connect(folder / "wh", catalog="filesystem") as lake:
        location = lake.table("db.b").metadata_location
    with frazil.connect(folder / "copy") as lake:
        lake.create_namespace("db")
        copy = lake.register_table("db.b", str(location))
        copy.append(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}))
        text = Path(str(copy.metadata_location).removeprefix("file://")).read_bytes()
    snapshot = json.loads(text)["snapshots"][-1]
    return {
        "requirements": [],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": snapshot["snapshot-id"],
            },
        ],
    }


def test_without_idempotency_records_a_request_that_changed_nothing_can_be_retried(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with _opening("filesystem", tmp_path, request)() as server:
        server.make_table("a")
        key, commit = new_key(), server.catalog.commit_many

        def fail(changes: Any) -> Any:
            raise StorageError("Cannot write: the store is away")

        server.catalog.commit_many = fail
        assert keyed(server, "POST", A, properties(x="1"), key).code == 503
        server.catalog.commit_many = commit
        assert keyed(server, "POST", A, properties(x="1"), key).code == 200


def test_idempotency_records_expire(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        key = new_key()
        assert keyed(server, "POST", NAMESPACES, {"namespace": ["n"]}, key).code == 200
        records = server.service.idempotency_records
        assert records is not None
        found = records.find(key)
        assert found is not None
        records.forget(found.ends_ms - 1)
        assert records.find(key) == found
        records.forget(found.ends_ms)
        assert records.find(key) is None


def test_database_without_create_table_rights_is_served_without_idempotency_records(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        set_up(server)
    opened = open_catalog(tmp_path / "wh")
    with opened, sqlite3.connect(tmp_path / "wh" / "catalog.db") as driver:
        driver.execute("DROP TABLE frazil_requests")
        assert opened.idempotency_records is not None
        full = FailingDatabase(opened.idempotency_records._database, {1: FaultKind.NO_SPACE, 2: FaultKind.NO_SPACE})
        opened.idempotency_records._database = full
        assert not opened.idempotency_records.enable()
        with recording(IdempotencyRecord(new_key(), "print", 1)):
            opened.create_namespace(("n",))
        assert opened.idempotency_records.find("n") is None


@pytest.mark.extended
def test_role_without_write_access_to_idempotency_records_is_served_without_them(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    psycopg = pytest.importorskip("psycopg")
    with served(tmp_path / "wh", catalog=postgres_server.uri, name="roles") as server:
        set_up(server)
        assert server.service.idempotency_records is not None
    role = f"guest_{new_key()[:8]}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as driver:
        driver.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'guest-password'")
        driver.execute(f"GRANT ALL ON iceberg_tables, iceberg_namespace_properties TO {role}")
    uri = f"postgresql://{role}:guest-password@127.0.0.1:{postgres_server.port}/postgres"
    with served(tmp_path / "wh", catalog=uri, name="roles") as server:
        assert server.service.idempotency_records is None
        assert keyed(server, "POST", A, properties(x="1"), new_key()).code == 200
