"""A lake that is served on the loopback, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from frazil.catalog.base import Catalog
from frazil.serve.app import Limits, make_app
from frazil.serve.auth import Auth
from frazil.serve.name_locks import Turns
from frazil.serve.run_server import Listen, bind, make_server
from frazil.serve.server_state import ServerState
from frazil.serve.service import Service
from frazil.serve.store_access import NO_ACCESS, StoreAccess
from frazil.table.open_catalog import open_catalog

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "kind", "required": False, "type": "string"},
    ],
}


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    code: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The type of an error."""
        found: str = self.json["error"]["type"]
        return found


@dataclass
class Served:
    """A server that runs."""

    port: int
    service: Service
    turns: Turns
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def catalog(self) -> Catalog:
        return self.service.catalog

    def ask(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request; a body that is no bytes is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, data, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        return self.ask("POST", path, body, headers=headers)

    def make_table(self, name: str = "events", namespace: str = "db", **fields: Any) -> Reply:
        """Create a table, and its namespace where that is missing."""
        self.post("/v1/namespaces", {"namespace": [namespace]})
        made = self.post(f"/v1/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **fields})
        assert made.code == 200, made.body
        return made


def table_path(name: str = "events", namespace: str = "db") -> str:
    return f"/v1/namespaces/{quote(namespace, safe='')}/tables/{quote(name, safe='')}"


@contextmanager
def served(
    warehouse: Path | str,
    *,
    catalog: str | None = None,
    name: str = "lake",
    auth: Auth | None = None,
    limits: Limits | None = None,
    access: StoreAccess = NO_ACCESS,
    state: Path | None = None,
    properties: Mapping[str, str] | None = None,
    more_roots: Sequence[str] | None = None,
    more_routes: Sequence[Any] = (),
    beside: Callable[[Service], AbstractContextManager[Sequence[Any]]] | None = None,
) -> Iterator[Served]:
    """Serve a lake on a free port until the block ends."""
    opened = open_catalog(warehouse, catalog=catalog, name=name, properties=properties, more_roots=more_roots)
    kept = ServerState(state)
    service = Service(opened, kept, Auth() if auth is None else auth, access)
    ready = threading.Event()
    listen = Listen(port=0)
    opens = nullcontext(more_routes) if beside is None else beside(service)
    app = make_app(service, limits=limits, more_routes=opens.__enter__())
    server = make_server(app, service, listen, ready.set)
    found = bind(listen)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[found])), daemon=True)
    thread.start()
    try:
        assert ready.wait(30)
        yield Served(found.getsockname()[1], service, app.protocol.turns)
    finally:
        server.should_exit = True
        thread.join(60)
        app.close()
        opens.__exit__(None, None, None)
        kept.close()
        opened.close()
        assert not thread.is_alive()
