"""Loads, commits and plans through a REST catalog server: `frazil serve` beside Iceberg Java's own, on SQLite.

    python -m bench.rest_server [--clients 50] [--seconds 10] [--files 1000000] [--without-java]

Each server has a SQLite catalog and a folder of its own. Clients are connections that are kept; each sends its next
request when it has the answer to its last one. `loads` all ask for one table, `commits` set a property of a table,
each client of its own; `one table` the same, all of one table. Servers and clients share the machine, and take
turns. Iceberg Java's server (`org.apache.iceberg.rest.RESTCatalogServer`, which its tests use) comes from Maven
(`tests/interop/rest_servers.py`); where it cannot be had, nothing is measured, unless it is left out on purpose.

A plan is of a table of many files (`bench/planning_table.py`): the answer to `plan`, and all of its tasks, fetched over
one connection or over eight. `first` is the first such plan, `again` the median of those after it. Before the first
plan of all files the server has read no manifest. Clients count the files of answers and do nothing else with them.
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

from bench.measure import scaled
from bench.planning_table import FILES_PER_DAY, FIRST_DAY, ROWS, make_planning_table

from tests.interop.rest_servers import CannotStart, java_jars

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": at, "name": f"c{at}", "required": False, "type": "long"} for at in range(1, 21)],
}
START_SECONDS = 120
MICROS_PER_DAY = 86_400_000_000
FILES_IN_MANIFEST = 8_000
PLANS = 4
"""How often each plan is asked for."""
FETCHERS = (1, 8)


@dataclass
class Counted:
    """What one kind of request came to."""

    done: int = 0
    refused: int = 0
    latencies: list[float] = field(default_factory=list)


async def send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: object = None
) -> tuple[int, bytes]:
    """Send one request on a connection that is kept; return the answer's code and body."""
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    code = int((await reader.readline()).split()[1])
    length, is_chunked = 0, False
    while (line := (await reader.readline()).strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
        is_chunked = is_chunked or line == b"transfer-encoding: chunked"
    parts = []
    if is_chunked:
        while size := int((await reader.readline()).strip() or b"0", 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readline()
    elif length:
        parts.append(await reader.readexactly(length))
    return code, b"".join(parts)


async def one_client(
    port: int, request: Callable[[int], tuple[str, str, object]], ends: float, counted: Counted
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    turn = 0
    while time.perf_counter() < ends:
        start = time.perf_counter()
        code, _ = await send(reader, writer, *request(turn))
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
    bodies: list[tuple[str, object]] = [("/v1/namespaces", {"namespace": ["db"]})]
    bodies += [("/v1/namespaces/db/tables", {"name": f"t{at}", "schema": SCHEMA}) for at in range(clients)]
    for path, body in bodies:
        code, said = await send(reader, writer, "POST", path, body)
        assert code == 200, said
    writer.close()


@dataclass
class Planned:
    """What one plan came to: seconds to the answer, to the last of its tasks; files and bytes that were sent."""

    answered: float
    fetched: float
    files: int
    size: int


async def plan(port: int, filter_: object, fetchers: int) -> Planned:
    """Plan a scan of the table of many files, and fetch all of its tasks."""
    table = "/v1/namespaces/db/tables/files"
    connections = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 22) for _ in range(fetchers)]
    start = time.perf_counter()
    body = {} if filter_ is None else {"filter": filter_}
    code, said = await send(*connections[0], "POST", f"{table}/plan", body)
    assert code == 200, said
    assert json.loads(said)["status"] == "completed", said
    found = Planned(time.perf_counter() - start, 0, said.count(b'"data-file"'), len(said))
    waiting: list[str] = json.loads(said).get("plan-tasks", [])

    async def fetch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while waiting:
            code, part = await send(reader, writer, "POST", f"{table}/tasks", {"plan-task": waiting.pop(0)})
            assert code == 200, part
            found.files += part.count(b'"data-file"')
            found.size += len(part)
            if b'"plan-tasks"' in part:
                waiting.extend(json.loads(part).get("plan-tasks", []))

    await asyncio.gather(*(fetch(*one) for one in connections))
    found.fetched = time.perf_counter() - start
    for _, writer in connections:
        writer.close()
    return found


def filters(files: int) -> dict[str, object]:
    """Return what is planned: all files, those of a range of a column that is no partition's, those of one day."""

    def between(term: str, start: object, end: object) -> object:
        left = {"type": "gt-eq", "term": term, "value": start}
        return {"type": "and", "left": left, "right": {"type": "lt", "term": term, "value": end}}

    first = files // 2 * ROWS
    day = (FIRST_DAY + files // FILES_PER_DAY // 2) * MICROS_PER_DAY
    start, end = (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 1_000_000)) for at in (day, day + MICROS_PER_DAY)
    )
    return {
        "all files": None,
        "one column": between("c3", first, first + 5 * ROWS),
        "one day": between("ts", start, end),
    }


def measure_plans(name: str, port: int, metadata: str, files: int) -> None:
    """Print what plans of a table take."""

    async def register() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        body = {"name": "files", "metadata-location": metadata}
        code, said = await send(reader, writer, "POST", "/v1/namespaces/db/register", body)
        assert code == 200, said
        writer.close()

    asyncio.run(register())
    for kind, filter_ in filters(files).items():
        for fetchers in FETCHERS:
            first, *later = (asyncio.run(plan(port, filter_, fetchers)) for _ in range(PLANS))
            assert {one.files for one in later} == {first.files}
            # Whoever asks over eight connections comes after the one who asked first.
            is_first = fetchers == FETCHERS[0]
            print(
                f"{name:8} {kind:12} {first.files:9,} {fetchers:11} {first.size / 1e6:7.1f} "
                f"{f'{first.answered * 1000:.0f}' if is_first else '':>9} "
                f"{statistics.median(one.answered for one in later) * 1000:9.0f} "
                f"{f'{first.fetched:.2f}' if is_first else '':>8} "
                f"{statistics.median(one.fetched for one in later):8.2f}",
                flush=True,
            )


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
        command = [
            sys.executable,
            "-m",
            "frazil.cli",
            "-w",
            str(folder / "frazil"),
            "serve",
            "-q",
            "--open",
            "--port",
            str(port),
        ]
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


def measure_requests(name: str, port: int, clients: int, seconds: float) -> None:
    """Print how many loads and commits a second there are."""
    kinds: dict[str, list[Callable[[int], tuple[str, str, object]]]] = {
        "loads": [load] * clients,
        "commits": [commit_to(f"t{at}") for at in range(clients)],
        "one table": [commit_to("t0")] * clients,
    }
    asyncio.run(measure(port, kinds["loads"], 2))
    for kind, requests in kinds.items():
        counted, taken = asyncio.run(measure(port, requests, seconds))
        times = sorted(counted.latencies)
        print(
            f"{name:8} {kind:12} {counted.done / taken:9.0f} {statistics.median(times) * 1000:10.2f} "
            f"{times[int(len(times) * 0.99)] * 1000:9.2f} {counted.refused:8}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--files", type=int, default=scaled(1_000_000), help="of the table that is planned")
    parser.add_argument("--without-java", action="store_true", help="measure frazil's server alone")
    given = parser.parse_args()
    try:
        jars = None if given.without_java else java_jars()
    except CannotStart as error:
        sys.exit(f"{error}; --without-java leaves it out")
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'server':8} {'requests':12} {'a second':>9} {'median ms':>10} {'p99 ms':>9} {'refused':>8}")
        for name, make in servers(Path(folder), jars).items():
            command, port, environment = make()
            with running(command, port, Path(folder) / f"{name}.log", **environment):
                asyncio.run(prepare(port, given.clients))
                measure_requests(name, port, given.clients, given.seconds)
        made = make_planning_table(Path(folder) / "files", given.files, -(-given.files // FILES_IN_MANIFEST))
        print(f"\n{'':66} answer, ms   all tasks, s")
        print(
            f"{'server':8} {'plan':12} {'files':>9} {'connections':>11} {'MB':>7} "
            f"{'first':>9} {'again':>9} {'first':>8} {'again':>8}"
        )
        for name, make in servers(Path(folder), jars).items():
            command, port, environment = make()
            with running(command, port, Path(folder) / f"{name}.log", **environment):
                measure_plans(name, port, str(made.metadata_location), given.files)


if __name__ == "__main__":
    main()
