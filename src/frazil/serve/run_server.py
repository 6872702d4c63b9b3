"""From settings to a server that runs: what may listen where, TLS, slow clients, a stop that leaves nothing half done.

On SIGTERM or ctrl-C no connection is accepted any more, requests in flight are carried out, and then the catalog is
closed. What has not ended after half a minute, such as a query without end, is cut off with the process. That and a
kill leave what the catalog promises: a commit happened, or it did not.
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
"""After a signal, the process has ended by then, whatever still runs."""
HEAD_SECONDS: Final = 15
MAX_HEAD_BYTES: Final = 64 << 10
KEEP_ALIVE_SECONDS: Final = 60
MAX_CONNECTIONS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a server listens, and by which certificate."""

    host: str = "127.0.0.1"
    port: int = 8181
    certificate: str | None = None
    key: str | None = None

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.certificate is not None


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 for clients that may be slow or hostile: a head that does not come or end, or an answer, is given up."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        # Its lines have queries; ours are in `telemetry.py`.
        self.access_log = False
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Count the bytes of another head."""
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
        """Wait no more: the head is there."""
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
        """Close a connection that nothing was asked of; one that has not taken its answer waits for nobody."""
        if self.transport is not None and self.transport.get_write_buffer_size() > 0:
            self._abandon()
        super().timeout_keep_alive_handler()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._give_up()


def check_listen(listen: Listen, service: Service) -> None:
    """Refuse to listen where others could reach a lake that asks for no secret."""
    if (listen.certificate is None) != (listen.key is None):
        raise InvalidRequestError("Cannot serve with TLS: it takes a certificate and its key, and one is missing")
    if not is_loopback(listen.host) and service.auth.is_open:
        raise InvalidRequestError(
            f"Cannot serve on {listen.host}: others can reach it, and no token is asked for",
            hint="Give a token or a file of secrets, or serve on 127.0.0.1.",
        )


def bind(listen: Listen) -> socket.socket:
    """Return a socket that listens; its port is known even where any was asked for."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # By the protocol's number asyncio knows that it may send small pieces at once: without it answers wait 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((listen.host, listen.port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        raise StorageError(f"Cannot listen on {listen.host} port {listen.port}: {error}") from error
    return found


class Server(uvicorn.Server):
    """A server that tells when it is ready and when it is about to stop."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and ctrl-C; once stopped, go on to the end of the program."""
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
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and wait for what is in flight."""
        self._service.is_stopping.set()
        await super().shutdown(sockets)


def _end_process() -> None:
    LOG.warning("what was still running after %d seconds is cut off", EXIT_SECONDS)
    logging.shutdown()
    os._exit(0)


def make_server(app: Any, service: Service, listen: Listen, on_ready: Callable[[], None]) -> Server:
    """Return a server for an application; run it with a socket of `bind`."""
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
    """Serve until a signal says to stop; `on_ready` is given the URI that is served."""
    check_listen(listen, service)
    found = bind(listen)
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    uri = f"{'https' if listen.has_tls else 'http'}://{host}:{found.getsockname()[1]}"
    try:
        make_server(app, service, listen, lambda: on_ready(uri)).run(sockets=[found])
    finally:
        found.close()
