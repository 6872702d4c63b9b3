"""Loads and commits a second through a REST catalog server: `frazil serve` beside Iceberg Java's own, on SQLite.

    python -m bench.rest_server [--clients 50] [--seconds 10] [--jars FOLDER]

Each server has a SQLite catalog and a folder of its own. Clients are connections that are kept; each sends its next
request when it has the answer to its last one. `loads` all ask for one table, `commits` set a property of a table,
each client of its own; `one table` the same, all of one table. Servers and clients share the machine, and take
turns. Iceberg Java's server (`org.apache.iceberg.rest.RESTCatalogServer`, which its tests use) runs where its jars
are: `tests/interop/rest_servers.py` fetches them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": at, "name": f"c{at}", "required": False, "type": "long"} for at in range(1, 21)],
}
START_SECONDS = 120
JARS = Path(os.environ.get("FRAZIL_JAVA_CACHE", Path.home() / ".cache" / "frazil-java")) / "rest-server-1.11.0"


@dataclass
class Counted:
    """What one kind of request came to."""

    done: int = 0
    refused: int = 0
    latencies: list[float] = field(default_factory=list)


async def send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: object = None
) -> int:
    """Send one request on a connection that is kept; return the answer's code."""
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    code = int((await reader.readline()).split()[1])
    length, is_chunked = 0, False
    while (line := (await reader.readline()).strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
        is_chunked = is_chunked or line == b"transfer-encoding: chunked"
    if is_chunked:
        while size := int((await reader.readline()).strip() or b"0", 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    elif length:
        await reader.readexactly(length)
    return code


async def one_client(
    port: int, request: Callable[[int], tuple[str, str, object]], ends: float, counted: Counted
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    turn = 0
    while time.perf_counter() < ends:
        start = time.perf_counter()
        code = await send(reader, writer, *request(turn))
        counted.latencies.append(time.perf_counter() - start)
        counted.done += code in (200, 204)
        counted.refused += code not in (200, 204)
        turn += 1
    writer.close()


async def measure(
    port: int, requests: list[Callable[[int], tuple[str, str, object]]], seconds: float
) -> tuple[Counted, float]:
    counted = Counted()
    start = time.perf_counter()
    await asyncio.gather(*(one_client(port, one, start + seconds, counted) for one in requests))
    return counted, time.perf_counter() - start


async def prepare(port: int, clients: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    assert await send(reader, writer, "POST", "/v1/namespaces", {"namespace": ["db"]}) == 200
    for at in range(clients):
        made = await send(reader, writer, "POST", "/v1/namespaces/db/tables", {"name": f"t{at}", "schema": SCHEMA})
        assert made == 200
    writer.close()


def load(_: int) -> tuple[str, str, object]:
    return "GET", "/v1/namespaces/db/tables/t0", None


def commit_to(table: str) -> Callable[[int], tuple[str, str, object]]:
    def made(turn: int) -> tuple[str, str, object]:
        update = {"action": "set-properties", "updates": {"turn": str(turn)}}
        return "POST", f"/v1/namespaces/db/tables/{table}", {"requirements": [], "updates": [update]}

    return made


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], port: int, log: Path, **environment: str) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment})
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(log.read_text()) from None
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(60)


def servers(folder: Path, jars: Path | None) -> dict[str, Callable[[], tuple[list[str], int, dict[str, str]]]]:
    def ours() -> tuple[list[str], int, dict[str, str]]:
        port = free_port()
        command = [sys.executable, "-m", "frazil.cli", "-w", str(folder / "frazil"), "serve", "-q", "--port", str(port)]
        return command, port, {}

    def theirs() -> tuple[list[str], int, dict[str, str]]:
        port = free_port()
        assert jars is not None
        (folder / "java").mkdir(exist_ok=True)
        command = ["java", f"-Drest.port={port}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp"]
        environment = {
            "CATALOG_REST_PORT": str(port),
            "CATALOG_WAREHOUSE": f"file://{folder}/java",
            "CATALOG_URI": f"jdbc:sqlite:{folder}/java/catalog.db",
        }
        return [*command, f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"], port, environment

    return {"frazil": ours} if jars is None else {"frazil": ours, "java": theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--jars", type=Path, default=JARS if JARS.is_dir() else None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'server':8} {'requests':12} {'a second':>9} {'median ms':>10} {'p99 ms':>9} {'refused':>8}")
        for name, make in servers(Path(folder), given.jars).items():
            command, port, environment = make()
            with running(command, port, Path(folder) / f"{name}.log", **environment):
                asyncio.run(prepare(port, given.clients))
                kinds: dict[str, list[Callable[[int], tuple[str, str, object]]]] = {
                    "loads": [load] * given.clients,
                    "commits": [commit_to(f"t{at}") for at in range(given.clients)],
                    "one table": [commit_to("t0")] * given.clients,
                }
                asyncio.run(measure(port, kinds["loads"], 2))
                for kind, requests in kinds.items():
                    counted, seconds = asyncio.run(measure(port, requests, given.seconds))
                    times = sorted(counted.latencies)
                    print(
                        f"{name:8} {kind:12} {counted.done / seconds:9.0f} {statistics.median(times) * 1000:10.2f} "
                        f"{times[int(len(times) * 0.99)] * 1000:9.2f} {counted.refused:8}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
