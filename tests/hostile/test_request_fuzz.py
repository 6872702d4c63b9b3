"""Mutated requests of readers and writers to a server that runs: no failure of it, and it stays alive and small.

Most requests are of an operation of the protocol, with a body of its kind in which little is changed, and what they
drop is made anew: one in four is carried out. FRAZIL_FUZZ_SECONDS=600 goes on for ten minutes, and
FRAZIL_FUZZ_COUNT=1000000 for a million requests, with another seed each time.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from frazil.serve.operations import OPERATIONS
from tests.property.test_serve_fuzz import BODIES, IDENTIFIER, REQUIREMENTS, SNAPSHOT, UPDATES, VERSION
from tests.support.served_lake import SCHEMA

SECONDS = float(os.environ.get("FRAZIL_FUZZ_SECONDS", "0"))
COUNT = int(os.environ.get("FRAZIL_FUZZ_COUNT", "600"))
"""How many requests are made without FRAZIL_FUZZ_SECONDS."""
IS_LONG = bool(SECONDS) or "FRAZIL_FUZZ_COUNT" in os.environ
SECONDS_BESIDE_OTHERS = 5
"""How long a health check may take in the short run, which shares the disk with other tests."""
NICENESS = -10
"""Where the user may set it, the server and who looks at its health go before other programs of the machine."""
MOST_BYTES = 1 << 30
THREADS = 2
TOKENS = {
    "all": "all-token-000000000001",
    "board": "board-token-00000000001",
    "team": "team-token-000000000001",
}
RIGHTS = {"all": "write", "board": "read", "team": "write@db read@other"}
SECRETS = "".join(f"token {name} {token} {RIGHTS[name]}\n" for name, token in TOKENS.items())
NAMES = ("db", "t", "v", "other", "none", "a%2Fb", "%FF", "..", "%2e%2e", "db%1Fx", "", "x" * 300, "%00", "ä", "tables")
ODD = (("GET", "lake/namespaces"), ("POST", "odd/{table}"), ("PUT", "namespaces"), ("PATCH", "namespaces/{namespace}"))
REQUESTS = [(operation.method, operation.template, operation.name) for operation in OPERATIONS]
RARE = ("drop", "unregister", "rename")
"""What takes away what others are about."""
QUERIES = (
    "pageToken",
    "pageSize",
    "parent",
    "snapshots",
    "purgeRequested",
    "referenced-by",
    "warehouse",
    "planId",
    "x",
)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 10**30, 1.5, 1e308, "", "x", "\0", "\ud800", "a" * 5000, "../..", "file:///etc/passwd",
    "s3://bucket/x", [], {}, [[]], [None] * 50, {"type": "eq", "term": "id", "value": 1}, {"a": {"a": {"a": {}}}},
)  # fmt: skip


class Mutator:
    """Makes requests to a lake in a folder."""

    def __init__(self, chance: random.Random, lake: Path) -> None:
        self._chance = chance
        place = f"file://{lake}/db"
        (self.manifest_list,) = (f"file://{one}" for one in (lake / "db" / "t" / "metadata").glob("snap-*.avro"))
        self.metadata = f"file://{max((lake / 'db' / 't' / 'metadata').glob('*.metadata.json'))}"
        snapshot = {**SNAPSHOT, "manifest-list": self.manifest_list, "sequence-number": 2}
        self._updates = [
            *UPDATES,
            {"action": "set-location", "location": f"{place}/moved"},
            {"action": "set-properties", "updates": {"write.data.path": f"{place}/t/more"}},
            {"action": "add-snapshot", "snapshot": snapshot},
        ]
        create, view = BODIES[2], BODIES[3]
        register = {"name": "r", "metadata-location": self.metadata, "overwrite": True}
        sign = {"region": "us-east-1", "uri": "https://x/y", "method": "GET", "headers": {"a": ["b"]}}
        self._bodies: dict[str, Any] = {
            "createNamespace": BODIES[0], "updateProperties": BODIES[1], "createTable": create, "createView": view,
            "registerTable": register, "registerView": register, "signRequest": sign,
            "planTableScan": {"filter": {"type": "eq", "term": "id", "value": 1}, "select": ["id"]},
            "fetchScanTasks": BODIES[9], "reportMetrics": BODIES[10], "renameTable": BODIES[5],
            "renameView": {**BODIES[5], "source": {"namespace": ["db"], "name": "v"}},
        }  # fmt: skip

    def request(self) -> tuple[str, str, bytes]:
        """Return a method, a path and a body."""
        chance = self._chance
        method, template, name = chance.choice(REQUESTS)
        while name.startswith(RARE) and chance.random() < 0.9:
            method, template, name = chance.choice(REQUESTS)
        if chance.random() < 0.05:
            method, template = chance.choice(ODD)
        if chance.random() < 0.03:
            method = chance.choice(("GET", "POST", "HEAD", "DELETE", "PUT"))
        return method, self._path(template), self._body(name)

    def _path(self, template: str) -> str:
        chance = self._chance
        usual = {"{namespace}": "db", "{table}": "t", "{view}": "v"}

        def name_of(found: re.Match[str]) -> str:
            name = usual.get(found[0], "none") if chance.random() < 0.85 else chance.choice(NAMES)
            return quote(name, safe="%")

        path = re.sub(r"\{[a-z-]+\}", name_of, template)
        if chance.random() < 0.2:
            path += "?" + "&".join(
                f"{chance.choice(QUERIES)}={quote(str(chance.choice(VALUES))[:50].encode('utf-8', 'replace'))}"
                for _ in range(chance.randrange(1, 4))
            )
        return f"/v1/{path}"

    def _body(self, name: str) -> bytes:
        """Return a body of an operation: a real one with a few of its parts changed, or its bytes."""
        chance = self._chance
        changes = {
            "requirements": [chance.choice(REQUIREMENTS)] if chance.random() < 0.2 else [],
            "updates": [chance.choice(self._updates) for _ in range(chance.choice((1, 1, 2, 4)))],
        }
        bodies = {
            **self._bodies, "updateTable": changes, "replaceView": changes,
            "commitTransaction": {"table-changes": [{"identifier": IDENTIFIER, **changes}]},
        }  # fmt: skip
        known = bodies.get(name)
        value: Any = deepcopy(chance.choice(BODIES) if known is None or chance.random() < 0.05 else known)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            here: Any = value
            while isinstance(here, dict | list) and here:
                key = chance.choice(list(here) if isinstance(here, dict) else range(len(here)))
                if not isinstance(here[key], dict | list) or chance.random() < 0.3:
                    here[key] = deepcopy(chance.choice(VALUES))
                    break
                here = here[key]
        data = bytearray(json.dumps(value).encode("utf-8", "surrogatepass"))
        for _ in range(chance.choice((0, 0, 0, 0, 0, 0, 1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.01:
            data = bytearray(b"[" * chance.randrange(100_000))
        return bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.03 else data)

    def headers(self) -> dict[str, str]:
        """Return who asks, and what else a client may send."""
        chance = self._chance
        token = chance.choice([*TOKENS.values()] * 3 + ["forged"])
        headers = {"Authorization": f"Bearer {token}"}
        if chance.random() < 0.2:
            headers["X-Iceberg-Access-Delegation"] = chance.choice(["vended-credentials", "remote-signing", "x" * 100])
        if chance.random() < 0.2:
            made = f"018f3b5e-{chance.randrange(64):04x}-7abc-8def-0123456789ab"
            headers["Idempotency-Key"] = chance.choice([made, made, str(uuid.UUID(int=chance.getrandbits(128))), "x"])
        if chance.random() < 0.1:
            headers["If-None-Match"] = chance.choice(['W/"x-all"', "*", "x" * 500])
        return headers

    def restore(self) -> list[tuple[str, bytes]]:
        """Return what makes anew what was dropped, as paths and bodies."""
        view = {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}}
        table = {"name": "t", "schema": SCHEMA}
        asked = [("namespaces", {"namespace": ["db"]}), ("namespaces/db/tables", table), ("namespaces/db/views", view)]
        return [(f"/v1/{path}", json.dumps(body).encode()) for path, body in asked]


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """Run `frazil serve`; yield its port and its process."""
    with frazil.connect(folder / "lake") as lake:
        for name in ("db.t", "other.t"):
            lake.create_table(name, "id bigint, kind string").append(pa.table({"id": [1, 2], "kind": ["a", "b"]}))
    (folder / "secrets").write_text(SECRETS)
    given = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")}
    given |= {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    serve = ["-m", "frazil.cli", "-w", str(folder / "lake"), "serve", "-q", "--port", "0", "--sign"]
    command = ["nice", "-n", str(NICENESS), sys.executable, *serve, "--secrets", str(folder / "secrets")]
    log = folder / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors, env=given)
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(r"Serving on http://127.0.0.1:(\d+)", log.read_text())) is None:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield int(found[1]), process.pid
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


WATCH = """
import http.client, sys, time
while True:
    start, status = time.monotonic(), 0
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        pass
    connection.close()
    print(start, time.monotonic(), status, flush=True)
    time.sleep(0.2)
"""
"""Looks at the server's health in a process of its own, which does not wait for threads that send requests."""


@contextmanager
def watcher(port: int) -> Iterator[IO[str]]:
    """Look at the health of a server; yield lines with the start, the end and the status of each check."""
    command = ["nice", "-n", str(NICENESS), sys.executable, "-c", WATCH, str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.terminate()
        process.wait(60)


def memory_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


PERIOD = 0.02


class Share:
    """Tells how long a process, or this one, was ready to run while the machine ran other programs."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._samples: list[tuple[float, float, bool]] = []

    def sample(self) -> None:
        """Note the time, the process's own time, and whether one of its threads is running or ready to run."""
        states: list[str] = []
        for stat in Path(f"/proc/{self._process}/task").glob("*/stat"):
            with suppress(OSError):
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        # Linux's number of the clock of another process.
        used = time.clock_gettime(~self._process << 3 | 2)
        self._samples.append((time.monotonic(), used, "R" in states))

    def of_others(self, start: float, end: float) -> float:
        """Return the seconds between two times that others took; forget what was before.

        What the process used itself is never theirs. Of the rest, a process that is ready waits for a processor; one
        that is not, or whose state is not known, counts only as far as a sample comes late, since this process waits.
        """
        self._samples = [sample for sample in self._samples if sample[0] >= start]
        return sum(
            max(0.0, later - earlier - (used_later - used) - (0.0 if was_ready and is_ready else PERIOD))
            for (earlier, used, was_ready), (later, used_later, is_ready) in pairwise(self._samples)
            if later <= end
        )


@pytest.mark.extended
@pytest.mark.timeout(max(300, SECONDS * 2, COUNT / 100))
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_mutated_requests_cause_no_server_errors(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32) if IS_LONG else 1
    until = time.monotonic() + SECONDS
    failures: list[str] = []
    sent = [0] * THREADS
    codes: Counter[int] = Counter()
    ended = threading.Event()
    checks: list[tuple[float, float]] = []
    """Of each health check, how long the server took by itself, and how long it took."""
    sizes: list[int] = []

    def attack(number: int) -> None:
        mutator = Mutator(random.Random(seed * THREADS + number), tmp_path / "lake")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def send(method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
            try:
                connection.request(method, path, None if method in ("GET", "HEAD") else body, headers)
                answer = connection.getresponse()
                text = answer.read()
                codes[answer.status] += 1
                if answer.status >= 500:
                    failures.append(f"{answer.status} {method} {path} {body!r} {text[:500]!r}")
            except (http.client.HTTPException, ConnectionError):
                # The server may close a connection that it refuses; that it is alive, health checks tell.
                connection.close()

        while not failures and (time.monotonic() < until if SECONDS else sent[number] < COUNT // THREADS):
            if sent[number] % 40 == 0:
                for path, body in mutator.restore():
                    send("POST", path, body, {"Authorization": f"Bearer {TOKENS['all']}"})
            sent[number] += 1
            send(*mutator.request(), mutator.headers())
        connection.close()

    def watch(lines: IO[str]) -> None:
        for line in lines:
            start, end, status = map(float, line.split())
            if status != 200:
                failures.append("the health check fails")
            checks.append((end - start - share.of_others(start, end), end - start))
            sizes.append(memory_bytes(process))
            if sizes[-1] > MOST_BYTES:
                failures.append(f"the server takes {sizes[-1]} bytes")

    def measure() -> None:
        while not ended.wait(PERIOD):
            share.sample()

    with server(tmp_path) as (port, process):
        share = Share(process)
        threads = [threading.Thread(target=attack, args=(number,)) for number in range(THREADS)]
        with watcher(port) as lines:
            watchers = [threading.Thread(target=watch, args=(lines,)), threading.Thread(target=measure)]
            for thread in (*threads, *watchers):
                thread.start()
            for thread in threads:
                thread.join()
        ended.set()
        for thread in watchers:
            thread.join()
        lines.close()
    own, whole = max(checks)[0], sorted(whole for _, whole in checks)
    print(f"seed {seed}: {sum(sent)} requests, {len(checks)} health checks, the slowest took {own:.3f} s by itself,")
    print(f"{whole[-1]:.3f} s with the time of other programs, 99 % up to {whole[len(whole) * 99 // 100]:.3f} s")
    print(f"answers by code: {dict(sorted(codes.items()))}; the most memory: {max(sizes) >> 20} MB")
    assert not failures, f"seed {seed}: {failures[0][:3000]}"
    assert own < (1 if IS_LONG else SECONDS_BESIDE_OTHERS)
