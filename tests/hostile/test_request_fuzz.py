"""Mutated requests of readers and writers to a server that runs: no failure of it, and it stays alive and small.

A few requests are made in every run. FRAZIL_FUZZ_SECONDS=600 goes on for ten minutes, with another seed each time.
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
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from tests.property.test_serve_fuzz import BODIES, REQUIREMENTS, UPDATES

SECONDS = float(os.environ.get("FRAZIL_FUZZ_SECONDS", "0"))
COUNT = 600
"""How many requests are made without FRAZIL_FUZZ_SECONDS."""
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
TEMPLATES = (
    "config", "oauth/tokens", "namespaces", "namespaces/{}", "namespaces/{}/properties", "namespaces/{}/tables",
    "namespaces/{}/register", "namespaces/{}/tables/{}", "namespaces/{}/tables/{}/unregister", "tables/rename",
    "transactions/commit", "namespaces/{}/tables/{}/credentials", "namespaces/{}/tables/{}/sign",
    "namespaces/{}/tables/{}/metrics", "namespaces/{}/tables/{}/plan", "namespaces/{}/tables/{}/plan/{}",
    "namespaces/{}/tables/{}/tasks", "namespaces/{}/views", "namespaces/{}/views/{}", "namespaces/{}/register-view",
    "views/rename", "namespaces/{}/functions", "namespaces/{}/functions/{}", "lake/namespaces", "odd/{}",
)  # fmt: skip
METHODS = ("GET", "POST", "POST", "POST", "HEAD", "DELETE", "PUT", "PATCH")
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


def mutated(chance: random.Random) -> bytes:
    """Return a body: a real one with a few of its parts changed, or its bytes."""
    value: Any = json.loads(json.dumps(chance.choice(BODIES)))
    if isinstance(value.get("updates"), list):
        value["updates"] = [chance.choice(UPDATES) for _ in range(chance.randrange(4))]
        value["requirements"] = [chance.choice(REQUIREMENTS) for _ in range(chance.randrange(2))]
        value = json.loads(json.dumps(value))
    for _ in range(chance.randrange(4)):
        here: Any = value
        while isinstance(here, dict | list) and here:
            key = chance.choice(list(here) if isinstance(here, dict) else range(len(here)))
            if not isinstance(here[key], dict | list) or chance.random() < 0.4:
                here[key] = deepcopy(chance.choice(VALUES))
                break
            here = here[key]
    data = bytearray(json.dumps(value).encode("utf-8", "surrogatepass"))
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.02:
        data = bytearray(b"[" * chance.randrange(100_000))
    return bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.05 else data)


def mutated_path(chance: random.Random) -> str:
    template = chance.choice(TEMPLATES)
    # Most requests are about what is there.
    path = re.sub(
        r"\{\}", lambda _: quote(chance.choice(NAMES[:4] if chance.random() < 0.7 else NAMES), safe="%"), template
    )
    if chance.random() < 0.3:
        path += "?" + "&".join(
            f"{chance.choice(QUERIES)}={quote(str(chance.choice(VALUES))[:50].encode('utf-8', 'replace'))}"
            for _ in range(chance.randrange(1, 4))
        )
    return f"/v1/{path}"


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """Run `frazil serve`; yield its port and its process."""
    with frazil.connect(folder / "lake") as lake:
        for name in ("db.t", "other.t"):
            lake.create_table(name, "id bigint, kind string").append(pa.table({"id": [1, 2], "kind": ["a", "b"]}))
    (folder / "secrets").write_text(SECRETS)
    given = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")}
    given |= {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    command = [sys.executable, "-m", "frazil.cli", "-w", str(folder / "lake"), "serve", "-q", "--port", "0", "--sign",
               "--secrets", str(folder / "secrets")]  # fmt: skip
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


def memory_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.extended
@pytest.mark.timeout(max(300, SECONDS * 2))
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_mutated_requests_cause_no_failure(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32) if SECONDS else 1
    until = time.monotonic() + SECONDS
    failures: list[str] = []
    sent = [0] * THREADS
    ended = threading.Event()
    checks: list[float] = []

    def attack(number: int) -> None:
        chance = random.Random(seed * THREADS + number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not failures and (time.monotonic() < until if SECONDS else sent[number] < COUNT // THREADS):
            sent[number] += 1
            method, path, body = chance.choice(METHODS), mutated_path(chance), mutated(chance)
            headers = {"Authorization": f"Bearer {chance.choice([*TOKENS.values(), *TOKENS.values(), 'forged'])}"}
            if chance.random() < 0.2:
                headers["X-Iceberg-Access-Delegation"] = chance.choice(
                    ["vended-credentials", "remote-signing", "x" * 100]
                )
            try:
                connection.request(method, path, None if method in ("GET", "HEAD") else body, headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status >= 500:
                    failures.append(f"{answer.status} {method} {path} {body!r} {text[:500]!r}")
            except (http.client.HTTPException, ConnectionError):
                # The server may close a connection that it refuses; that it is alive, health checks tell.
                connection.close()
        connection.close()

    def watch() -> None:
        while not checks or not ended.wait(0.2):
            start = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("GET", "/healthz")
                if connection.getresponse().status != 200:
                    failures.append("the health check fails")
            except OSError as error:
                failures.append(f"the health check fails: {error}")
            finally:
                connection.close()
            checks.append(time.monotonic() - start)
            if memory_bytes(process) > MOST_BYTES:
                failures.append(f"the server takes {memory_bytes(process)} bytes")

    with server(tmp_path) as (port, process):
        threads = [threading.Thread(target=attack, args=(number,)) for number in range(THREADS)]
        watcher = threading.Thread(target=watch)
        for thread in (*threads, watcher):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        watcher.join()
    checks.sort()
    print(f"seed {seed}: {sum(sent)} requests, {len(checks)} health checks, the slowest took {checks[-1]:.3f} s")
    assert not failures, f"seed {seed}: {failures[0][:3000]}"
    # On a machine that does other work too, one check in a hundred may wait for the processor.
    assert checks[len(checks) * 99 // 100] < 1 and checks[-1] < 5
