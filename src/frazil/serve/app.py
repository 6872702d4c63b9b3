"""The server as an ASGI application: the protocol below `/v1/`, `/healthz`, `/metrics`, and further routes.

The stages of a request:

    auth      on a server without secrets, which listens on loopback only, requests that a web page in a browser could
              send are refused: those with an `Origin`, or with another host name. Otherwise a token is required
    route     the operation, by method and path; a token for reading does not allow writes
    body      read to the end, within limits of time and size
    run       in a thread, since catalogs and storages block. The number of threads is limited; further requests wait,
              and are refused (503) if too many do
    response  with the request ID, compressed with gzip if worthwhile; a client that does not read it is dropped

An operation that has begun is always completed, even if the client disconnects.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import math
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from frazil.errors import InvalidRequestError
from frazil.serve.auth import ANYONE, Caller, Denied, Right
from frazil.serve.error_answers import (
    FORBIDDEN,
    NOT_AUTHORIZED,
    RETRY_SECONDS,
    SLOW_DOWN,
    TIMED_OUT,
    error_answer,
    make_error,
)
from frazil.serve.exchange import Answer, Refusal, Request, split_views
from frazil.serve.idempotency import answered_once
from frazil.serve.name_locks import Turns
from frazil.serve.operations import OPERATIONS, Found, Operation, Router
from frazil.serve.service import Service
from frazil.serve.telemetry import LOG, Telemetry, log_request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

REQUEST_ID: Final = "x-request-id"
ABORT: Final = "frazil.abort"
"""The ASGI extension that closes a connection at once."""
_PIECE_BYTES: Final = 256 << 10
_CLOSE_SECONDS: Final = 1
_MIN_GZIP_BYTES: Final = 8 << 10
_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})
_MAX_FIELDS: Final = 50
_ANY_TIME: Final[AbstractAsyncContextManager[None]] = nullcontext()


@dataclass(frozen=True, slots=True)
class Limits:
    """The resource limits for clients."""

    body_bytes: int = 32 << 20
    bodies_bytes: int = 256 << 20
    """The limit for the total size of all bodies that are being read or processed."""
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    threads: int = 16
    waiting: int = 1_000
    """The maximum number of requests that may wait for a thread."""


def make_app(
    service: Service,
    *,
    limits: Limits | None = None,
    telemetry: Telemetry | None = None,
    more_routes: Sequence[BaseRoute] = (),
) -> ServeApp:
    """Return the application; `more_routes` are served beside the protocol."""
    counts = Telemetry() if telemetry is None else telemetry
    service.endpoints = tuple(operation.endpoint for operation in OPERATIONS if not operation.is_public)
    protocol = ProtocolApp(service, Limits() if limits is None else limits, counts)
    pages = Starlette(
        routes=[
            Route("/healthz", Health(protocol), methods=["GET"]),
            Route("/metrics", Counts(protocol), methods=["GET"]),
            *more_routes,
        ]
    )
    return ServeApp(protocol, pages)


@dataclass(frozen=True, slots=True)
class ServeApp:
    """The protocol, and pages beside it."""

    protocol: ProtocolApp
    pages: Starlette

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a request; protocol paths may contain any character, so no URL pattern is used for them."""
        is_protocol = scope["type"] == "http" and scope["path"].startswith("/v1/")
        await (self.protocol if is_protocol else self.pages)(scope, receive, send)

    def close(self) -> None:
        """Wait for running operations."""
        self.protocol.close()


class ProtocolApp:
    """The operations of the protocol."""

    def __init__(self, service: Service, limits: Limits, telemetry: Telemetry) -> None:
        self.service = service
        self.limits = limits
        self.telemetry = telemetry
        self._router = Router(OPERATIONS, service.catalog.name)
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="frazil-serve")
        self._running = 0
        self._bodies_bytes = 0
        self.turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request."""
        exchange = Exchange(scope, receive, send)
        self.telemetry.started()
        try:
            answer = await self._answer(exchange)
        except Exception as error:
            answer = error_answer(error)
            if answer.code >= 500 and not isinstance(error, Refusal):
                LOG.error("request %s failed", exchange.request_id, exc_info=error)
        finally_code = answer.code
        try:
            await exchange.send_answer(answer, self.limits.answer_seconds)
        except TimeoutError:
            finally_code = 0
        seconds = time.perf_counter() - exchange.start
        self.telemetry.ended(exchange.operation, finally_code, answer.error_type, seconds)
        log_request({**exchange.log_fields(answer, seconds), "code": finally_code})

    async def _answer(self, exchange: Exchange) -> Answer:
        route = self._router.find(exchange.method, exchange.protocol_path)
        exchange.operation = route.operation.name
        if route.operation.is_public:
            check_origin(self.service, exchange.headers)
        else:
            exchange.caller = caller_of(self.service, exchange.headers, route.operation.right)
        try:
            return await self._carry_out(exchange, route)
        finally:
            self._bodies_bytes -= exchange.body_bytes

    async def _carry_out(self, exchange: Exchange, route: Found) -> Answer:
        body = await exchange.read_body(self.limits, most=route.operation.body_bytes, count=self._count_body)
        request = Request(
            exchange.method,
            exchange.raw_path,
            route.names,
            exchange.query,
            exchange.headers,
            body,
            exchange.caller,
            exchange.request_id,
        )
        route.operation.check_rights(request)
        run = partial(_run, self.service, route.operation, request)
        if route.operation.at_once is None:
            return await self.in_thread(run)
        name = (route.operation.name, *route.names.values())
        return await self.in_thread(run, self.turns.taken(name, route.operation.at_once))

    def _count_body(self, size: int) -> None:
        """Count the bytes of bodies; refuse further ones if too many are in memory."""
        self._bodies_bytes += size
        if self._bodies_bytes > self.limits.bodies_bytes:
            raise Refusal(
                503,
                SLOW_DOWN,
                "Cannot read the request: the server is receiving too much data",
                {"retry-after": RETRY_SECONDS},
            )

    async def in_thread(self, run: Callable[[], Answer], turn: AbstractAsyncContextManager[None] = _ANY_TIME) -> Answer:
        """Run a blocking function in its turn; refuse it if too many are waiting."""
        if self._running >= self.limits.threads + self.limits.waiting:
            raise Refusal(
                503,
                SLOW_DOWN,
                "Cannot carry out the request: too many requests are waiting",
                {"retry-after": RETRY_SECONDS},
            )
        self._running += 1
        future: asyncio.Future[Answer] | None = None
        try:
            async with turn:
                future = asyncio.get_running_loop().run_in_executor(self._threads, run)
                # Counted when it ends, even if nobody waits for it any more.
                future.add_done_callback(self._ended)
                return await asyncio.shield(future)
        finally:
            if future is None:
                self._running -= 1

    def _ended(self, _: asyncio.Future[Answer]) -> None:
        self._running -= 1

    def close(self) -> None:
        """Wait for running operations."""
        self._threads.shutdown()


def _run(service: Service, operation: Operation, request: Request) -> Answer:
    if operation.takes_key:
        return answered_once(service, request, operation)
    return operation.carry_out(service, request)


def caller_of(service: Service, headers: MutableMapping[str, str], right: Right) -> Caller:
    """Authenticate a request; refuse it without a valid token or without the right."""
    check_origin(service, headers)
    try:
        caller = service.auth.caller_of(headers.get("authorization"), service.now_seconds)
    except Denied as problem:
        code, error_type = (419, TIMED_OUT) if problem.is_expired else (401, NOT_AUTHORIZED)
        raise Refusal(code, error_type, problem.message, {"www-authenticate": "Bearer"}) from None
    if right is not Right.READ and caller.right is Right.READ:
        raise Refusal(403, FORBIDDEN, f"Cannot carry out the request: the token of {caller.name!r} is for reading")
    return caller


def check_origin(service: Service, headers: MutableMapping[str, str]) -> None:
    """On a server without secrets, refuse requests that a web page in a browser may have sent."""
    if not service.auth.is_open:
        return
    host = headers.get("host", "").lower()
    origin = headers.get("origin")
    if not is_loopback(_host_name(host)) or (origin is not None and origin.lower().partition("://")[2] != host):
        raise Refusal(403, FORBIDDEN, "Cannot carry out the request: this server accepts only local programs")


def is_loopback(host: str) -> bool:
    """Return whether a name or address refers to this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


class Exchange:
    """One HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.start = time.perf_counter()
        self.request_id = str(uuid.uuid4())
        self.operation = "none"
        self.caller = ANYONE
        self.body_bytes = 0
        """The number of body bytes read so far."""
        self._scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.raw_path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

    @property
    def is_encrypted(self) -> bool:
        """Whether the request came over TLS."""
        return bool(self._scope.get("scheme") == "https")

    @property
    def protocol_path(self) -> str:
        """The path below `/v1/`, still escaped."""
        path: str = self.raw_path.partition("/v1/")[2]
        return path.rstrip("/")

    @property
    def query(self) -> dict[str, str]:
        """The query parameters; the last one wins if a name is repeated."""
        text = self._scope["query_string"]
        if not text:
            return {}
        try:
            pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except (UnicodeDecodeError, ValueError):
            raise InvalidRequestError("Cannot read the query: it is not escaped UTF-8 text") from None
        return dict(pairs)

    async def read_body(
        self, limits: Limits, *, most: int | None = None, count: Callable[[int], None] = lambda _: None
    ) -> bytes:
        """Read the body within limits of size and time; `count` is called with the size of each piece."""
        most = limits.body_bytes if most is None else min(most, limits.body_bytes)
        declared = self.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise _too_large(most)
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(limits.body_seconds):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "BadRequestException", "Cannot read the request: the client disconnected")
                    chunk: bytes = message.get("body", b"")
                    self.body_bytes += len(chunk)
                    count(len(chunk))
                    if self.body_bytes > most:
                        raise _too_large(most)
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refusal(
                408,
                "RequestTimeoutException",
                f"Cannot read the request: its body did not arrive within {limits.body_seconds:g} s",
                {"connection": "close"},
            ) from None

    async def send_answer(self, answer: Answer, seconds: float) -> None:
        """Send a response to a client that reads it within a time limit."""
        headers = {REQUEST_ID: self.request_id, **answer.headers}
        body = b"" if self.method == "HEAD" else answer.body
        if body:
            headers.setdefault("content-type", "application/json")
        if len(body) >= _MIN_GZIP_BYTES and self._wants_gzip():
            body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
            headers["content-encoding"] = "gzip"
            headers["vary"] = "accept-encoding"
        if answer.code not in (204, 304):
            headers["content-length"] = str(len(body))
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        try:
            async with asyncio.timeout(seconds):
                await self._send({"type": "http.response.start", "status": answer.code, "headers": encoded})
                # Whether the client reads is only visible between pieces.
                start = 0
                while len(body) - start > _PIECE_BYTES:
                    piece = body[start : start + _PIECE_BYTES]
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                    start += _PIECE_BYTES
                await self._send({"type": "http.response.body", "body": body[start:]})
        except TimeoutError:
            await self._abort()
            raise

    async def _abort(self) -> None:
        """Close the connection and drop the unread data."""
        abort = self._scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    while (await self._receive())["type"] != "http.disconnect":
                        pass

    def _wants_gzip(self) -> bool:
        """Return whether compression is worthwhile: not for a client on this machine."""
        client = self._scope.get("client")
        is_near = client is None or is_loopback(str(client[0]))
        return not is_near and "gzip" in self.headers.get("accept-encoding", "")

    def log_fields(self, answer: Answer, seconds: float) -> dict[str, object]:
        """Return the fields of the request for the log."""
        client = self._scope.get("client")
        # The views through which a table was loaded; the names were validated by the operation.
        views = self.query.get("referenced-by") if answer.code < 400 else None
        return {
            "id": self.request_id,
            "client": None if client is None else client[0],
            "caller": self.caller.name,
            "method": self.method,
            "path": self.raw_path,
            "operation": self.operation,
            "code": answer.code,
            "type": answer.error_type,
            "ms": round(seconds * 1000, 3),
            "bytes": len(answer.body),
            **({} if views is None else {"views": [".".join(name) for name in split_views(views)]}),
        }


def _too_large(most: int) -> Refusal:
    return Refusal(
        413,
        "PayloadTooLargeException",
        f"Cannot take the request: its body is larger than {most} bytes",
        {"connection": "close"},
    )


_HEALTHY: Final = Answer(200, b'{"status":"ok"}')
_HEALTH_SECONDS: Final = 0.3
"""How long a health check waits for a catalog that answered recently."""
_REACHABLE_SECONDS: Final = 30


@dataclass
class Health:
    """`/healthz`: whether the catalog answers.

    It has a thread of its own, so it does not wait for requests. Concurrent checks share one answer. A catalog that is
    busy with commits counts as reachable for half a minute after it last answered.
    """

    protocol: ProtocolApp
    _thread: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "frazil-health"))
    _check: asyncio.Future[Answer] | None = None
    _reached: float = -math.inf
    """When the catalog answered last, on the monotonic clock."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 200, or 503 if the catalog is unreachable or the server is about to stop."""
        exchange = Exchange(scope, receive, send)
        try:
            if self._check is None or self._check.done():
                self._check = asyncio.get_running_loop().run_in_executor(self._thread, self._look)
                self._check.add_done_callback(self._note)
            check = self._check
            is_recent = time.monotonic() - self._reached < _REACHABLE_SECONDS
            await asyncio.wait({check}, timeout=_HEALTH_SECONDS if is_recent else None)
            answer = check.result() if check.done() else _HEALTHY
            if self.protocol.service.is_stopping.is_set():
                answer = make_error(503, "ServiceUnavailableException", "the server is about to stop")
        except Exception as error:
            answer = replace(error_answer(error), code=503)
        await exchange.send_answer(answer, self.protocol.limits.answer_seconds)

    def _look(self) -> Answer:
        self.protocol.service.catalog.list_namespaces()
        return _HEALTHY

    def _note(self, check: asyncio.Future[Answer]) -> None:
        is_reached = not check.cancelled() and check.exception() is None
        self._reached = time.monotonic() if is_reached else -math.inf


@dataclass
class Counts:
    """`/metrics`: counts for Prometheus. Requires a token if the server does."""

    protocol: ProtocolApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the counts."""
        exchange = Exchange(scope, receive, send)
        try:
            caller_of(self.protocol.service, exchange.headers, Right.READ)
            text = self.protocol.telemetry.text()
            answer = Answer(200, text.encode(), {"content-type": "text/plain; version=0.0.4"})
        except Refusal as error:
            answer = error_answer(error)
        await exchange.send_answer(answer, self.protocol.limits.answer_seconds)
