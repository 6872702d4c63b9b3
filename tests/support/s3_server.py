"""A loopback S3 server for tests: moto in a process of its own, with faults between it and the client.

Moto looks for an object and then writes it, which two requests can do at once; a real store does it in one step. So
requests are let in one at a time. Each request may meet a fault that a test has planned:

    error       answer with a status and a code, and do nothing
    lose        do it, and close the connection without an answer
    late error  do it, and answer with a status and a code
    twice       do it twice, and answer with the second answer, as a proxy that repeats requests would
    cut         do it, and send half of the answer's body
    unconditional  do it without its condition, as a store that knows no conditions would
    page        list pages of two

A key whose id is `ASIAENDS` and a time in milliseconds is refused from then on, as keys of a session are.

Two more things moto lacks are made up for: it finds no key with a newline, so another character stands for that inside;
and it does not know Google's headers, so those are put into Amazon's words.

Run as a program it serves until its standard input ends, so it never outlives the test run.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

KEY_ID = "AKIACANARYKEYID00001"
SECRET = "canary/secret+key/of/the/tests/0000000001"
BUCKET = "warehouse"
ENDS = "ASIAENDS"
CONTROL = "/_control"
SCOPE = f"{KEY_ID}/20260101/us-east-1/s3/aws4_request"
NEWLINE = "\ue00a"

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Planned:
    """A fault for the next requests that match: how often, of which method, and with what in the path or query."""

    kind: str
    times: int = 1
    method: str = ""
    text: str = ""
    status: int = 500
    code: str = "InternalError"
    body: str = ""
    """The whole answer, in place of one made from the code."""


class S3Server:
    """The server as tests see it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.s3_server"],
            cwd=ROOT,
            env={**os.environ, "S3_UPLOAD_PART_MIN_SIZE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line != "", "the S3 server did not start"
        self.port = int(line)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        return {"s3.endpoint": self.endpoint, "s3.access-key-id": KEY_ID, "s3.secret-access-key": SECRET}

    def plan(self, *faults: Planned) -> None:
        """Replace the faults to come, and forget the requests so far."""
        self._control("POST", json.dumps([asdict(fault) for fault in faults]).encode())

    def requests(self) -> list[dict[str, str]]:
        """Return the requests since the last plan: method, path, query and status."""
        found: list[dict[str, str]] = json.loads(self._control("GET"))
        return found

    def count(self, method: str, text: str = "") -> int:
        return sum(1 for one in self.requests() if one["method"] == method and text in one["path"] + "?" + one["query"])

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait(5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _control(self, method: str, body: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, CONTROL, body)
            return connection.getresponse().read()
        finally:
            connection.close()


Environ = dict[str, Any]
Reply = tuple[str, list[tuple[str, str]], bytes]
"""Status, headers and body."""
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class _Store:
    """Moto, and the faults before it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._planned: list[dict[str, Any]] = []
        self._seen: list[dict[str, str]] = []

    def answer(self, environ: Environ, body: bytes) -> tuple[str, Reply]:
        """Carry out a request; return the fault it met, and the reply."""
        with self._lock:
            if environ["PATH_INFO"] == CONTROL:
                return "", self._control(environ, body)
            fault = self._next(environ)
            kind = "" if fault is None else fault["kind"]
            if kind == "unconditional":
                for name in ("HTTP_IF_NONE_MATCH", "HTTP_X_GOOG_IF_GENERATION_MATCH"):
                    environ.pop(name, None)
            if kind == "page":
                environ["QUERY_STRING"] = environ["QUERY_STRING"].replace("max-keys=1000", "max-keys=2")
            if fault is not None and kind == "error":
                reply = _error(fault)
            elif _has_ended(environ.get("HTTP_AUTHORIZATION", "")):
                reply = _error(asdict(Planned("error", status=400, code="ExpiredToken")))
            else:
                reply = self._run(environ, body)
                if kind == "twice":
                    reply = self._run(environ, body)
                if fault is not None and kind == "late error":
                    reply = _error(fault)
            self._seen.append(
                {
                    "method": environ["REQUEST_METHOD"],
                    "path": environ["PATH_INFO"],
                    "query": environ["QUERY_STRING"],
                    "status": reply[0].split()[0],
                    "authorization": environ.get("HTTP_AUTHORIZATION", ""),
                    "encryption": environ.get("HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION", ""),
                }
            )
            return kind, reply

    def _run(self, environ: Environ, body: bytes) -> Reply:
        body = body.replace(b"&#10;", NEWLINE.encode())
        words = _in_amazons_words(environ)
        fresh = {**words, "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        fresh["PATH_INFO"] = environ["PATH_INFO"].replace("\n", NEWLINE.encode().decode("latin-1"))
        fresh["RAW_URI"] = environ["RAW_URI"].replace("%0A", quote(NEWLINE))
        got: list[Any] = []
        pieces = self._app(fresh, lambda status, headers, exc_info=None: got.extend([status, headers]))
        data = b"".join(pieces).replace(quote(NEWLINE).encode(), b"%0A")
        prefix = "x-amz-" if words is environ else "x-goog-"
        return got[0], [(name.lower().replace("x-amz-", prefix), value) for name, value in got[1]], data

    def _next(self, environ: Environ) -> dict[str, Any] | None:
        place = f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        for fault in self._planned:
            if fault["times"] > 0 and fault["method"] in ("", environ["REQUEST_METHOD"]) and fault["text"] in place:
                fault["times"] -= 1
                return fault
        return None

    def _control(self, environ: Environ, body: bytes) -> Reply:
        if environ["REQUEST_METHOD"] == "POST":
            self._planned = json.loads(body)
            self._seen = []
        return "200 OK", [], json.dumps(self._seen).encode()


def _has_ended(authorization: str) -> bool:
    end = authorization.partition(f"Credential={ENDS}")[2].partition("/")[0]
    return end.isdigit() and time.time() * 1000 >= int(end)


def _in_amazons_words(environ: Environ) -> Environ:
    if not environ.get("HTTP_AUTHORIZATION", "").startswith("Bearer "):
        return environ
    words = {name.replace("HTTP_X_GOOG_META", "HTTP_X_AMZ_META"): value for name, value in environ.items()}
    if words.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None) == "0":
        words["HTTP_IF_NONE_MATCH"] = "*"
    return {**words, "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential={SCOPE}"}


def _error(fault: dict[str, Any]) -> Reply:
    text = (
        fault["body"] or f"<Error><Code>{fault['code']}</Code><Message>Planned for {KEY_ID} {SECRET}.</Message></Error>"
    )
    return f"{fault['status']} Planned", [], text.encode()


class _Handler(BaseHTTPRequestHandler):
    """Keeps connections open, as stores do."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: _Store

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        path, _, query = self.path.partition("?")
        environ: Environ = {
            "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(path, "latin-1"),
            "QUERY_STRING": query,
            "RAW_URI": self.path,
            "SCRIPT_NAME": "",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.connection.getsockname()[1]),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in self.headers.items():
            environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
        kind, (status, headers, data) = self.store.answer(environ, body)
        if kind == "lose":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        number, _, words = status.partition(" ")
        self.send_response_only(int(number), words)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection") or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD" and number not in ("204", "304"):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if kind == "cut" else data)
        self.close_connection = kind == "cut"

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that are gone."""


def serve() -> None:
    """Serve on a free port, and print it; end with the standard input."""
    from moto.server import DomainDispatcherApplication, create_backend_app

    _Handler.store = _Store(DomainDispatcherApplication(create_backend_app))
    server = _Server(("127.0.0.1", 0), _Handler)
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{BUCKET}", headers={"Authorization": f"AWS4-HMAC-SHA256 Credential={SCOPE}"})
    assert connection.getresponse().status == 200
    connection.close()
    print(port, flush=True)
    sys.stdin.read()


@contextlib.contextmanager
def running() -> Iterator[S3Server]:
    """Run a server."""
    server = S3Server()
    try:
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    serve()
