"""Runs the server: rules for listening, TLS, slow clients, and a clean shutdown.

On SIGTERM or Ctrl-C no further connections are accepted, requests in flight are completed, and then the catalog is
closed. Whatever has not ended after half a minute, such as an endless query, is ended with the process. After that, as
after a kill, the guarantees of the catalog hold: a commit happened, or it did not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frazil.errors import InvalidRequestError, StorageError
from frazil.serve.app import ABORT, is_loopback
from frazil.serve.service import Service
from frazil.serve.telemetry import LOG

STOP_SECONDS: Final = 20
EXIT_SECONDS: Final = 27
"""The time after a signal at which the process ends, whatever is still running."""
HEAD_SECONDS: Final = 15
MAX_HEAD_BYTES: Final = 64 << 10
KEEP_ALIVE_SECONDS: Final = 60
MAX_CONNECTIONS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Listen:
    """The address of a server, and its certificate."""

    host: str = "127.0.0.1"
    port: int = 8181
    certificate: str | None = None
    key: str | None = None

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.certificate is not None


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 for slow or hostile clients: connections with incomplete heads or unread responses are dropped."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Start the timer for a request head."""
        super().connection_made(transport)
        # The library's log lines contain queries; our own are in `telemetry.py`.
        self.access_log = False
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start counting the bytes of another head."""
        self._head_bytes = 0
        if self._head_timer is None:
            self._await_head()
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self._abandon}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the path."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer: the head is complete."""
        self._stop_waiting()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def _abandon(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, and one whose client does not read its response."""
        if self.transport is not None and self.transport.get_write_buffer_size() > 0:
            self._abandon()
        super().timeout_keep_alive_handler()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._give_up()


def check_listen(listen: Listen, service: Service) -> None:
    """Refuse to expose a server without secrets to other machines."""
    if (listen.certificate is None) != (listen.key is None):
        raise InvalidRequestError("Cannot serve with TLS: it requires both a certificate and its key")
    if not is_loopback(listen.host) and service.auth.is_open:
        raise InvalidRequestError(
            f"Cannot serve on {listen.host}: other machines can reach it, and no token is required",
            hint="Configure a token or a file of secrets, or serve on 127.0.0.1.",
        )


def bind(listen: Listen) -> socket.socket:
    """Return a listening socket, with its actual port if any port was requested."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # With this protocol number asyncio disables Nagle's algorithm; otherwise responses would be delayed by 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((listen.host, listen.port))
        sock.listen(1024)
    except (OSError, OverflowError) as error:
        sock.close()
        raise StorageError(f"Cannot listen on {listen.host} port {listen.port}: {error}") from error
    return sock


class Server(uvicorn.Server):
    """A server that reports when it is ready and when it is about to stop."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and Ctrl-C; afterwards, continue to the end of the program."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            signal_number: signal.signal(signal_number, self.handle_exit)
            for signal_number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, and end the process in any case after a time."""
        if not self.should_exit:
            last = threading.Timer(EXIT_SECONDS, _end_process)
            last.daemon = True
            last.start()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no further connections, and wait for requests in flight."""
        self._service.is_stopping.set()
        await super().shutdown(sockets)


def _end_process() -> None:
    LOG.warning("operations still running after %d seconds are aborted", EXIT_SECONDS)
    logging.shutdown()
    os._exit(0)


def make_server(app: Any, service: Service, listen: Listen, on_ready: Callable[[], None]) -> Server:
    """Return a server for an application, to be run with a socket of `bind`."""
    check_listen(listen, service)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=1024,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
    )
    return Server(config, service, on_ready)


def run_server(app: Any, service: Service, listen: Listen, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal; `on_ready` is called with the served URI."""
    check_listen(listen, service)
    sock = bind(listen)
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    uri = f"{'https' if listen.has_tls else 'http'}://{host}:{sock.getsockname()[1]}"
    try:
        make_server(app, service, listen, lambda: on_ready(uri)).run(sockets=[sock])
    finally:
        sock.close()
