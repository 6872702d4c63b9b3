"""A server between a client and a metastore, which loses calls or their answers: by the name of the call, so often."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Loss:
    """What is lost: of `count` calls of a name the answer, or the call; a call may also arrive late, after a time."""

    call: str
    count: int = 1
    is_carried_out: bool = True
    delay_seconds: float = 0.0


@dataclass
class ThriftProxy:
    """Passes bytes on to a port, and loses what it was asked to."""

    target: int
    port: int = 0
    losses: list[Loss] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """The names of calls that were lost."""

    def loss_of(self, data: bytes) -> Loss | None:
        for loss in self.losses:
            name = loss.call.encode()
            if loss.count > 0 and data[4:8] == len(name).to_bytes(4, "big") and data[8:].startswith(name):
                loss.count -= 1
                self.calls.append(loss.call)
                return loss
        return None

    def handle(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            is_copying = False
            while data := client.recv(1 << 20):
                loss = self.loss_of(data)
                if loss is None:
                    if not is_copying:
                        back.start()
                        is_copying = True
                    server.sendall(data)
                    continue
                # The client hears nothing more on this connection.
                _close(client)
                if loss.is_carried_out:
                    time.sleep(loss.delay_seconds)
                    server.sendall(data)
                    server.settimeout(10)
                    server.recv(1 << 16)
                return


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    _close(target)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def thrift_proxy(target: int, *losses: Loss) -> Iterator[ThriftProxy]:
    """Run a proxy in front of a port until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = ThriftProxy(target, listener.getsockname()[1], list(losses))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=proxy.handle, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield proxy
    finally:
        _close(listener)
        listener.close()
