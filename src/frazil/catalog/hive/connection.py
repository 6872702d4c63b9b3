"""Connections to a Hive Metastore: Thrift over TCP, to the first of several servers that can be reached.

Who calls must know whether a call may have been carried out, so there are two failures: `CallNotSent`, if no
connection came about, and `CallLost`, if the call, or part of it, was sent and no whole answer came. An answer may be
a `CallRefused`, by the name of the exception that the metastore declares. Nothing is sent twice here.

Connections are kept between calls. Any number of threads may share a client; a forked process leaves its parent's
connections alone and opens its own.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frazil.catalog.database import ConnectionPool
from frazil.catalog.hive.thrift_binary import (
    EXCEPTION,
    REPLY,
    STRING,
    MessageReader,
    ThriftError,
    ThriftStruct,
    encode_message,
    list_value,
    text_value,
)

DEFAULT_PORT: Final = 9083
UNKNOWN_METHOD: Final = "UnknownMethod"
"""What a refusal is called whose method the server does not have."""
SERVER_FAILURE: Final = "ServerFailure"
"""What a refusal is called that the metastore does not declare: something in the server broke."""
_UNKNOWN_METHOD_TYPE: Final = 1
_READ_BYTES: Final = 1 << 16


class CallNotSent(Exception):
    """No connection: nothing of the call can have been carried out."""


class CallLost(Exception):
    """The call may have been carried out; no whole answer came."""


class CallRefused(Exception):
    """The metastore answered with an exception."""

    def __init__(self, exception: str, message: str) -> None:
        super().__init__(message)
        self.exception = exception
        self.message = message


@dataclass(frozen=True, slots=True)
class Host:
    """A server of the metastore."""

    name: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"thrift://{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Transport:
    """How a server is spoken to. Timeouts are in seconds."""

    is_framed: bool = False
    is_tls: bool = False
    connect_timeout: float = 10.0
    timeout: float = 60.0
    ca_file: str | None = None


class _Connection:
    """One open connection; calls on it go one after the other."""

    __slots__ = ("_buffer", "_is_framed", "_sequence", "_socket", "host")

    def __init__(self, host: Host, transport: Transport) -> None:
        self.host = host
        self._sequence = 0
        self._buffer = b""
        self._is_framed = transport.is_framed
        plain = socket.create_connection((host.name, host.port), transport.connect_timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if transport.is_tls:
                context = ssl.create_default_context(cafile=transport.ca_file)
                plain = context.wrap_socket(plain, server_hostname=host.name)
            plain.settimeout(transport.timeout)
        except BaseException:
            plain.close()
            raise
        self._socket = plain

    def call(self, name: str, arguments: ThriftStruct) -> tuple[int, ThriftStruct]:
        """Send a call and return the type of its answer, and the answer."""
        self._sequence += 1
        message = encode_message(name, arguments, self._sequence)
        self._socket.sendall(len(message).to_bytes(4, "big") + message if self._is_framed else message)
        self._buffer = b""
        if self._is_framed:
            self._read(4)
        return MessageReader(self._read).read_message(name, self._sequence)

    def is_quiet(self) -> bool:
        """Return whether the connection is still open: anything that can be read from it now is its end."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLPRI)
        return not poll.poll(0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _read(self, count: int) -> bytes:
        if len(self._buffer) < count:
            pieces, missing = [self._buffer], count - len(self._buffer)
            while missing > 0:
                piece = self._socket.recv(max(_READ_BYTES, min(missing, 1 << 20)))
                if piece == b"":
                    raise ConnectionError("the server closed the connection")
                pieces.append(piece)
                missing -= len(piece)
            self._buffer = b"".join(pieces)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken


class MetastoreClient:
    """Calls to a metastore that runs on one or several servers over one database."""

    def __init__(
        self,
        hosts: Sequence[Host],
        transport: Transport | None = None,
        user: Sequence[str] = (),
    ) -> None:
        self._hosts = list(hosts)
        self._transport = Transport() if transport is None else transport
        self._user = tuple(user)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[_Connection] = ConnectionPool(_Connection.close)

    @property
    def label(self) -> str:
        """The servers as text, for messages."""
        return ",".join(map(str, self._hosts))

    def call(
        self, name: str, arguments: Mapping[int, tuple[int, object]], refusals: Sequence[str] = ()
    ) -> ThriftStruct:
        """Call a method and return its result; `refusals` names its exceptions by the number of their field, from 1."""
        connection = self._take()
        try:
            message_type, result = connection.call(name, ThriftStruct(dict(arguments)))
        except (OSError, ThriftError, ValueError) as error:
            connection.close()
            raise CallLost(f"{connection.host}: {_reason(error)}") from error
        except BaseException:
            connection.close()
            raise
        if message_type not in (REPLY, EXCEPTION):
            connection.close()
            raise CallLost(f"{connection.host}: its answer is neither a reply nor an exception")
        self._pool.give(connection)
        if message_type == EXCEPTION:
            exception_name = UNKNOWN_METHOD if result.get(2) == _UNKNOWN_METHOD_TYPE else SERVER_FAILURE
            raise CallRefused(exception_name, result.text(1) or "")
        for number, refusal in enumerate(refusals, 1):
            refused = result.get(number)
            if isinstance(refused, ThriftStruct):
                raise CallRefused(refusal, refused.text(1) or "")
        return result

    def close(self) -> None:
        """Close the connections that wait."""
        self._pool.drain()

    def _take(self) -> _Connection:
        while (connection := self._pool.take()) is not None:
            if connection.is_quiet():
                return connection
            connection.close()
        problems: list[str] = []
        for host in list(self._hosts):
            try:
                connection = self._open(host)
            except (OSError, ThriftError, ValueError) as error:
                problems.append(f"{host}: {_reason(error)}")
                continue
            with self._lock:
                # The next connection begins with the server that could be reached.
                self._hosts.remove(host)
                self._hosts.insert(0, host)
            return connection
        raise CallNotSent("; ".join(problems))

    def _open(self, host: Host) -> _Connection:
        connection = _Connection(host, self._transport)
        try:
            if self._user:
                groups = [text_value(group)[1] for group in self._user[1:]]
                # A server that does not want to know who calls refuses this, and takes other calls.
                connection.call("set_ugi", ThriftStruct({1: text_value(self._user[0]), 2: list_value(STRING, groups)}))
        except BaseException:
            connection.close()
            raise
        return connection


def parse_hosts(uri: str, refuse: Callable[[str], Exception]) -> tuple[Host, ...]:
    """Return the servers of an address: `thrift://host:9083`, or several with commas between them."""
    hosts: list[Host] = []
    for address in uri.split(","):
        text = address.strip()
        if text.lower().startswith("thrift://"):
            text = text[len("thrift://") :]
        name, _, port = text.rstrip("/").rpartition(":") if _has_port(text) else (text.rstrip("/"), "", "")
        name = name.removeprefix("[").removesuffix("]")
        if name == "" or any(character in name for character in "/@?# ") or not name.isprintable():
            raise refuse("an address is thrift://host:port, or several with commas between them")
        if port != "" and not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise refuse(f"{port[:20]!r} is not a port")
        hosts.append(Host(name, int(port) if port != "" else DEFAULT_PORT))
    return tuple(hosts)


def _has_port(text: str) -> bool:
    return ":" in text.rpartition("]")[2]


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "the server took too long"
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    text = str(error).strip()
    return text if text != "" else type(error).__name__
