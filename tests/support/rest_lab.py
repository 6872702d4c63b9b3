"""A catalog service that answers as a test says, on the loopback, and what it was asked. No protocol of its own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.rest.open_rest import open_rest
from frazil.rest.rest_catalog import RestCatalog
from frazil.spec.new_table import new_table_metadata
from frazil.spec.table_metadata import TableMetadata
from tests.support import builders

LOST = object()
"""Stands for an answer that never comes: the connection is closed after the request was read."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class ScriptedService:
    """Answers, by method and path, in order; the last one stays. An answer is a status, a body, and headers."""

    address: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[Any]] = field(default_factory=dict)

    def on(self, line: str, *answers: Any) -> None:
        self.answers[line] = list(answers)

    def lines(self) -> list[str]:
        return [one.line for one in self.asked]

    def of(self, line: str) -> list[Asked]:
        return [one for one in self.asked if one.line == line]

    def answer(self, asked: Asked) -> Any:
        self.asked.append(asked)
        waiting = self.answers.get(asked.line)
        if not waiting:
            return 404, {"error": {"message": f"nothing at {asked.line}", "type": "NoSuchTableException", "code": 404}}
        found = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return found(asked) if callable(found) else found


@contextmanager
def scripted_service(config: Any = None) -> Iterator[ScriptedService]:
    """Run a service until the block ends; `config` is what it says about itself."""
    service = ScriptedService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(size)
            parts = urlsplit(self.path)
            body: Any = raw.decode()
            if (self.headers.get("content-type") or "").startswith("application/json") and raw:
                body = json.loads(raw)
            asked = Asked(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query, keep_blank_values=True)),
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
            found = service.answer(asked)
            if found is LOST:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, answer, *more = found
            data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in (more[0] if more else {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_HEAD = _serve

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    service.address = f"http://127.0.0.1:{server.server_port}"
    service.on("GET /v1/config", (200, config if config is not None else {"defaults": {}, "overrides": {}}))
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def opened(service: ScriptedService, properties: dict[str, str] | None = None, **options: Any) -> RestCatalog:
    """Open the service as a catalog that waits for nothing."""
    given = {"rest-metrics-reporting-enabled": "false", **(properties or {})}
    catalog = open_rest("lake", service.address, given, **options)
    assert isinstance(catalog, RestCatalog)
    catalog.session._sleep = lambda seconds: None
    return catalog


def metadata_of(**changes: Any) -> TableMetadata:
    """Return the metadata of a small table."""
    given: dict[str, Any] = {
        "location": "memory://w/db/t",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "now_ms": 1_700_000_000_000,
    }
    return new_table_metadata(builders.schema(), **(given | changes))


def table_json(
    metadata: TableMetadata | None = None, location: str = "memory://w/db/t/metadata/0.json", **more: Any
) -> Any:
    """Return a table as services answer it."""
    found = json.loads(encode_table_metadata(metadata_of() if metadata is None else metadata))
    return {"metadata-location": location, "metadata": found, **more}


def error_json(status: int, kind: str, message: str = "no") -> tuple[int, Any]:
    """Return a refusal as services answer it."""
    return status, {"error": {"message": message, "type": kind, "code": status}}


Clock = Callable[[], int]
