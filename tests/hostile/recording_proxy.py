"""An HTTP proxy on the loopback that forwards nothing and records every requested host, with what is sent there.

A client that uses the proxy resolves no names itself, so every host it wants to contact is recorded here, whether or
not it exists. Import as `tests.hostile.recording_proxy`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class RecordingProxy:
    """What was asked of the proxy: by host, the heads and bodies of requests; a TLS tunnel is recorded as its host."""

    port: int = 0
    sent: list[tuple[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def hosts(self) -> set[str]:
        return {host for host, _ in self.sent}

    def text_to(self, host: str) -> str:
        return "\n".join(text for found, text in self.sent if found == host)


@contextmanager
def recording_proxy() -> Iterator[RecordingProxy]:
    """Run a proxy until the block ends."""
    proxy = RecordingProxy()

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            proxy.sent.append((self.path.partition(":")[0], f"{self.headers}"))
            self.send_error(403)

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            text = f"{self.command} {self.path}\n{self.headers}\n{body!r}"
            proxy.sent.append((urlsplit(self.path).hostname or "", text))
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_port
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
