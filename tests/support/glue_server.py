"""AWS Glue on the loopback, for tests: moto, with what it lacks made up for, and faults between it and the client.

Moto replaces a table whatever version is asked for, returns all in one page, and lets two requests in at once. So this
server lets in one at a time, compares the version first, and cuts lists into pages. A request may meet a fault that a
test has planned, by its action:

    lose      do it, and close the connection without an answer
    drop      close the connection, and do nothing
    throttle  refuse it as one that came too fast
    break     do it, and say that something in the service broke
"""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY_ID = "AKIACANARYKEYID00001"
SECRET = "canary/secret+key/of/the/tests/0000000001"
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList"}


@dataclass
class Fault:
    """What happens to the next requests of an action."""

    kind: str
    action: str
    times: int = 1


@dataclass
class GlueServer:
    """The server as tests see it."""

    moto_port: int
    page: int = 3
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        return {
            "glue.endpoint": self.endpoint,
            "client.region": "eu-central-1",
            "client.access-key-id": KEY_ID,
            "client.secret-access-key": SECRET,
        }

    def forget(self) -> None:
        """Drop every database, and the faults and requests so far."""
        self.faults.clear()
        for one in json.loads(self.ask("GetDatabases", {})[1])["DatabaseList"]:
            self.ask("DeleteDatabase", {"Name": one["Name"]})
        self.requests.clear()

    def ask(self, action: str, arguments: dict[str, Any], headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Ask moto itself."""
        scope = f"{KEY_ID}/20260101/eu-central-1/glue/aws4_request"
        sent = {
            "content-type": "application/x-amz-json-1.1",
            "authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
            **(headers or {}),
            "x-amz-target": f"AWSGlue.{action}",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.moto_port, timeout=30)
        try:
            connection.request("POST", "/", json.dumps(arguments), sent)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def answer(self, action: str, arguments: dict[str, Any]) -> tuple[str, int, bytes]:
        """Carry out a request; return the fault it met, and the answer."""
        with self.lock:
            self.requests.append((action, arguments))
            fault = next((one for one in self.faults if one.action == action and one.times > 0), None)
            kind = "" if fault is None else fault.kind
            if fault is not None:
                fault.times -= 1
            if kind == "drop":
                return kind, 0, b""
            if kind == "throttle":
                return kind, *_refusal("ThrottlingException", "Rate exceeded")
            status, body = self._carry_out(action, arguments)
        if kind == "break":
            return kind, 500, json.dumps({"__type": "InternalServiceException", "Message": "broken"}).encode()
        return kind, status, body

    def _carry_out(self, action: str, arguments: dict[str, Any]) -> tuple[int, bytes]:
        arguments = {name: value for name, value in arguments.items() if name != "CatalogId"}
        if action == "UpdateTable" and "VersionId" in arguments:
            names = {"DatabaseName": arguments["DatabaseName"], "Name": arguments["TableInput"]["Name"]}
            status, body = self.ask("GetTable", names)
            if status == 200 and json.loads(body)["Table"]["VersionId"] != arguments["VersionId"]:
                return _refusal(
                    "ConcurrentModificationException", "Update table failed due to concurrent modifications."
                )
        if action not in _LISTS:
            return self.ask(action, arguments)
        start = int(arguments.pop("NextToken", "0"))
        size = min(self.page, arguments.pop("MaxResults", self.page))
        status, body = self.ask(action, arguments)
        if status != 200:
            return status, body
        entries = json.loads(body)[_LISTS[action]]
        page: dict[str, Any] = {_LISTS[action]: entries[start : start + size]}
        if start + size < len(entries):
            page["NextToken"] = str(start + size)
        return 200, json.dumps(page).encode()


def _refusal(kind: str, message: str) -> tuple[int, bytes]:
    return 400, json.dumps({"__type": kind, "Message": message}).encode()


@contextlib.contextmanager
def running_glue() -> Iterator[GlueServer]:
    """Run moto and the server before it until the block ends."""
    moto_server = pytest.importorskip("moto.server")
    moto = moto_server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    moto.start()
    server = GlueServer(moto.get_host_and_port()[1])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            action = self.headers["x-amz-target"].rpartition(".")[2]
            assert "AWS4-HMAC-SHA256" in self.headers["authorization"]
            kind, status, answer = server.answer(action, json.loads(body))
            if kind in ("lose", "drop"):
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    front = Server(("127.0.0.1", 0), Handler)
    server.port = front.server_address[1]
    thread = threading.Thread(target=front.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        front.shutdown()
        front.server_close()
        moto.stop()


@cache
def _shared(process: int) -> GlueServer:
    stack = contextlib.ExitStack()
    server = stack.enter_context(running_glue())
    atexit.register(stack.close)
    return server


def shared_glue() -> GlueServer:
    """Return the server of this run, started at the first call and stopped when the process ends."""
    return _shared(os.getpid())
