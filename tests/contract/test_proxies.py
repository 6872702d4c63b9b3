"""Object stores through a proxy that a property names."""

from __future__ import annotations

import http.client
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from frazil.errors import InvalidPropertyError
from frazil.storage.choose import choose_storage
from tests.support.s3_server import BUCKET, S3Server


@contextmanager
def passing_on() -> Iterator[tuple[int, list[str]]]:
    """Run a proxy that passes plain requests on; yield its port and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            asked.append(f"{self.command} {self.headers.get('proxy-authorization')}")
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            onward = http.client.HTTPConnection(parts.netloc, timeout=20)
            headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
            onward.request(self.command, self.path.removeprefix(f"http://{parts.netloc}"), body, headers)
            answer = onward.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            length = answer.getheader("content-length") if self.command == "HEAD" else str(len(data))
            self.send_header("content-length", length or "0")
            self.end_headers()
            self.wfile.write(data)
            onward.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("name", ["s3.proxy-uri", "http-client.proxy-endpoint"])
def test_store_is_reached_through_a_proxy(s3_server: S3Server, name: str) -> None:
    path = f"s3://{BUCKET}/{uuid.uuid4().hex}/file"
    with passing_on() as (port, asked):
        storage = choose_storage({**s3_server.properties, name: f"http://ann:canary@127.0.0.1:{port}"})
        storage.create(path, b"bytes")
        assert storage.read(path) == b"bytes"
    assert "PUT Basic YW5uOmNhbmFyeQ==" in asked
    assert "canary" not in repr(storage)
    assert choose_storage(s3_server.properties).read(path) == b"bytes"


@pytest.mark.parametrize("text", ["proxy:8080", "https://proxy", "http://proxy/path", "socks5://proxy"])
def test_invalid_proxy_is_refused(s3_server: S3Server, text: str) -> None:
    with pytest.raises(InvalidPropertyError, match="proxy"):
        choose_storage({**s3_server.properties, "s3.proxy-uri": text}).exists(f"s3://{BUCKET}/x")
