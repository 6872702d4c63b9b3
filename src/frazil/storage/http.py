"""HTTP requests with precise failures. Object stores and catalog services use it.

A writer must know whether a request may have been carried out, so two failures are distinguished: `RequestNotSent`, if
no connection was established, and `AnswerLost`, if the request was sent at least in part and no complete response
arrived. A response of any status is an answer. There are no retries here, redirects are not followed, and neither
proxies nor credentials are taken from the environment. A configured proxy is used as a tunnel, or, for plain HTTP, with
absolute URLs.

Connections are reused. Any number of threads may share a client; a forked process leaves its parent's connections alone
and opens its own.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import select
import socket
import ssl
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from frazil.errors import InvalidRequestError
from frazil.storage.origin import Origin, split_url

MAX_BODY_BYTES: Final = 1 << 29
"""The size limit for documents; the metadata of one table may be large."""
MAX_ERROR_BYTES: Final = 1 << 16
"""The size limit for error bodies."""
_PIECE_BYTES: Final = 1 << 18
_SLOWEST_BYTES_PER_SECOND: Final = 50_000
"""A body that arrives more slowly than this for longer than the timeout is abandoned."""
_MAX_IDLE: Final = 32
_MAX_RATIO: Final = 100
_RATIO_FREE_BYTES: Final = 16 << 20
"""A compressed document may expand to a hundred times its transfer size, or to this size."""


class RequestNotSent(Exception):
    """No connection was established, so nothing was carried out."""


class AnswerLost(Exception):
    """The request may have been carried out, but no complete response arrived."""


class AnswerTooLarge(AnswerLost):
    """The response is larger than allowed and was not read; the request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    is_read: bool = True
    """False if the body was not read because its length is out of the caller's bounds."""

    @property
    def is_success(self) -> bool:
        """Whether the status means success."""
        return 200 <= self.status < 300

    @property
    def body_length(self) -> int | None:
        """The length of the body as declared by the server."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy; its credentials are not shown and cannot be pickled."""

    origin: Origin
    authorization: str | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate the client to the proxy."""
        return {} if self.authorization is None else {"proxy-authorization": self.authorization}

    def __reduce__(self) -> tuple[object, ...]:
        return Proxy, (self.origin,)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The CA file that replaces the machine's authorities, and the client's certificate."""

    ca_file: str | None = None
    certificate: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """Create the TLS context for connections."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.certificate is not None:
            # Without a password argument OpenSSL would prompt on the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        return context


class HttpClient:
    """A pool of connections to servers. Timeouts, in seconds, apply to connecting and to each wait for the server."""

    __slots__ = ("_clock", "_context", "_idle", "_pid", "_tls", "connect_timeout", "proxy", "timeout")

    def __init__(
        self,
        *,
        connect_timeout: float = 5.0,
        timeout: float = 30.0,
        proxy: Proxy | None = None,
        tls: TlsFiles = TlsFiles(),  # noqa: B008 - a frozen value
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < connect_timeout <= 3600 or not 0 < timeout <= 3600:
            raise InvalidRequestError(
                f"Cannot use timeouts of {connect_timeout} and {timeout} seconds: they must be from 0 to 3600"
            )
        self.connect_timeout = connect_timeout
        self.timeout = timeout
        self.proxy = proxy
        self._clock = clock
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._idle: dict[Origin, deque[http.client.HTTPConnection]] = {}
        self._pid = os.getpid()

    def send(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | memoryview = b"",
        *,
        min_bytes: int = 0,
        max_bytes: int = MAX_ERROR_BYTES,
    ) -> Answer:
        """Send one request, without retries, and return the response.

        The body of a success is read only if its length is from `min_bytes` to `max_bytes`; of an error body the
        beginning is read.
        """
        return self._send(
            origin, method, target, headers, body, lambda response: self._read_answer(response, min_bytes, max_bytes)
        )

    def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, max_bytes: int = MAX_BODY_BYTES
    ) -> Answer:
        """Send one request to a URL, without retries, and return the response with its decompressed body."""
        origin, target = split_url(url)
        sent = {"host": origin.authority, "accept-encoding": "identity", **headers}
        return self._send(origin, method, target, sent, body, lambda response: self._read_document(response, max_bytes))

    def close(self) -> None:
        """Close the idle connections."""
        idle, self._idle = self._idle, {}
        for waiting in idle.values():
            while waiting:
                waiting.pop().close()

    def _send(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | memoryview,
        read: Callable[[http.client.HTTPResponse], Answer],
    ) -> Answer:
        connection = self._idle_connection(origin)
        is_kept = connection is not None
        if connection is None:
            connection = self._connect(origin)
        if self.proxy is not None and not origin.is_tls:
            target, headers = f"{origin}{target}", {**headers, **self.proxy.headers()}
        try:
            response = self._exchange(connection, method, target, headers, body)
            answer = read(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            if is_kept:
                # The server may have closed all idle connections; the next attempt should not meet another.
                self._idle.pop(origin, None)
            raise AnswerLost(_reason(error)) from error
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and not response.will_close:
            self._keep(origin, connection)
        else:
            connection.close()
        return answer

    def __del__(self) -> None:
        # Only partly initialized if the constructor refused its arguments.
        if hasattr(self, "_idle"):
            self.close()

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | memoryview,
    ) -> http.client.HTTPResponse:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if len(body) > 0 or method in ("PUT", "POST"):
            connection.putheader("content-length", str(len(body)))
        connection.endheaders()
        is_cut = False
        try:
            # In pieces, because the timeout applies to each call.
            for start in range(0, len(body), _PIECE_BYTES):
                connection.send(body[start : start + _PIECE_BYTES])
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses early closes before it has read everything; its response may have arrived.
            is_cut = True
        response = connection.getresponse()
        if is_cut and response.status < 300:
            raise http.client.HTTPException("the server responded before it had received the whole request")
        if is_cut:
            response.will_close = True
        return response

    def _read_answer(self, response: http.client.HTTPResponse, min_bytes: int, max_bytes: int) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        head = Answer(response.status, headers)
        if not head.is_success:
            # A long explanation is truncated, and the rest of it makes the connection unusable.
            return Answer(response.status, headers, self._read(response, MAX_ERROR_BYTES))
        length = response.length
        if length is None:
            if not response.chunked:
                # Its end could not be distinguished from a broken connection.
                raise http.client.HTTPException("the response does not declare its length")
            body = self._read(response, max_bytes + 1)
            length = len(body)
        elif min_bytes <= length <= max_bytes:
            body = self._read(response, length)
            if len(body) < length:
                raise http.client.IncompleteRead(body, length - len(body))
            response.read()
        else:
            body = b""
        if not min_bytes <= length <= max_bytes:
            return Answer(response.status, headers, b"", is_read=False)
        return Answer(response.status, headers, body)

    def _read_document(self, response: http.client.HTTPResponse, max_bytes: int) -> Answer:
        """Read a response with its whole body; an oversized one is refused before it is in memory."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise AnswerLost(f"its encoding is {encoding[:40]!r}")
        unpacker = None if encoding in ("", "identity") else zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
        length = response.length
        body = bytearray()
        received = 0
        for piece in self._pieces(response, max_bytes + 1):
            received += len(piece)
            limit = max_bytes if unpacker is None else min(max_bytes, max(_RATIO_FREE_BYTES, _MAX_RATIO * received))
            for chunk in (piece,) if unpacker is None else _unpacked(unpacker, piece):
                body += chunk
                if len(body) > limit:
                    raise AnswerTooLarge(f"it is larger than {limit} bytes")
        if length is not None and received < length:
            raise http.client.IncompleteRead(b"", length - received)
        if unpacker is not None and received and not unpacker.eof:
            raise AnswerLost("it is incomplete")
        response.read()
        return Answer(response.status, headers, bytes(body))

    def _read(self, response: http.client.HTTPResponse, max_bytes: int) -> bytes:
        pieces = list(self._pieces(response, max_bytes))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pieces(self, response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
        """Yield a body up to a length, in pieces as they arrive, so that a slow server is detected."""
        deadline = self._clock() + self.timeout
        received = 0
        while received < max_bytes:
            piece = response.read1(min(max_bytes - received, _PIECE_BYTES))
            if piece == b"":
                return
            yield piece
            received += len(piece)
            if self._clock() > deadline + received / _SLOWEST_BYTES_PER_SECOND:
                raise TimeoutError("the response arrives too slowly")

    def _connect(self, origin: Origin) -> http.client.HTTPConnection:
        nearest = origin if self.proxy is None else self.proxy.origin
        try:
            if origin.is_tls:
                if self._context is None:
                    self._context = self._tls.context()
                connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                    nearest.host, nearest.port or 443, timeout=self.connect_timeout, context=self._context
                )
                if self.proxy is not None:
                    connection.set_tunnel(origin.host, origin.port or 443, self.proxy.headers())
            else:
                connection = http.client.HTTPConnection(nearest.host, nearest.port or 80, timeout=self.connect_timeout)
            connection.connect()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RequestNotSent(f"no connection to {origin}: {_reason(error)}") from error
        connection.sock.settimeout(self.timeout)
        connection.response_class = _Response
        # Prevents the library from silently reopening a closed connection.
        connection.auto_open = 0
        return connection

    def _idle_connection(self, origin: Origin) -> http.client.HTTPConnection | None:
        if self._pid != os.getpid():
            self._idle = {}
            self._pid = os.getpid()
        waiting = self._idle.get(origin)
        while waiting:
            # Another thread may take the last one first.
            with contextlib.suppress(IndexError):
                connection = waiting.pop()
                if _is_quiet(connection.sock):
                    return connection
                connection.close()
        return None

    def _keep(self, origin: Origin, connection: http.client.HTTPConnection) -> None:
        waiting = self._idle.setdefault(origin, deque())
        if self._pid == os.getpid() and len(waiting) < _MAX_IDLE:
            waiting.append(connection)
        else:
            connection.close()


class _Response(http.client.HTTPResponse):
    """A response whose header must be complete; the library accepts truncated headers."""

    def begin(self) -> None:
        """Read the status and the headers."""
        reader = self.fp
        self.fp = cast(io.BufferedReader, _WholeLines(reader))
        try:
            super().begin()
        finally:
            if not self.isclosed():
                self.fp = reader


class _WholeLines:
    __slots__ = ("_reader",)

    def __init__(self, reader: io.BufferedReader) -> None:
        self._reader = reader

    def readline(self, limit: int = -1) -> bytes:
        line = self._reader.readline(limit)
        if not line.endswith(b"\n") and not 0 <= limit <= len(line):
            raise http.client.HTTPException("the response is incomplete")
        return line

    def close(self) -> None:
        self._reader.close()


def _is_quiet(sock: socket.socket | None) -> bool:
    """Return whether an idle connection is still open: anything readable on it means that it ended."""
    if sock is None:
        return False
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLPRI)
    return not poll.poll(0)


def _unpacked(unpacker: Any, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed data of a piece, in parts."""
    try:
        while data:
            yield unpacker.decompress(data, _PIECE_BYTES)
            data = unpacker.unconsumed_tail
        if unpacker.unused_data:
            raise AnswerLost("data follows its compressed content")
    except zlib.error as error:
        raise AnswerLost(f"it cannot be decompressed ({error})") from None


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "the server timed out"
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    text = str(error).strip()
    return text if text != "" else type(error).__name__
