"""Requests and answers that are small on the wire and large in memory or time: refused before they cost anything."""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.json_text import parse_json
from frazil.codec.table_metadata_json import decode_table_metadata
from frazil.errors import CorruptTableError, FrazilError, ServiceError
from frazil.rest.open_rest import open_rest
from frazil.rest.pages import read_pages
from frazil.serve.app import Limits
from frazil.serve.auth import Auth, Secret
from frazil.serve.plan_cache import BUDGET_BYTES, CachedPlan, PlanCache
from frazil.storage.http import AnswerLost, AnswerTooLarge, HttpClient
from tests.property.test_serve_fuzz import VERSION
from tests.support.rest_lab import scripted_service
from tests.support.served_lake import Served, served, table_path

TOKEN = "writer-token-0000001"


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Peak:
    """The most memory that the process took while the block ran, above what it had."""

    def __enter__(self) -> Peak:
        self._before = self.bytes = memory_bytes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.005):
            self.bytes = max(self.bytes, memory_bytes())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.bytes -= self._before


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "lake", auth=Auth([Secret("w", TOKEN)])) as made:
        made.headers["Authorization"] = f"Bearer {TOKEN}"
        made.make_table("t")
        yield made


# Requests to a server


def test_plan_response_is_small(server: Served) -> None:
    plan = f"{table_path('t')}/plan"
    with Peak() as peak:
        # The answer comes before the whole body was sent, and may be lost with the connection.
        with contextlib.suppress(ConnectionError):
            wide = server.post(plan, b'{"filter":[' + b"[]," * 10_000_000 + b"[]]}")
            assert (wide.code, wide.error) == (413, "PayloadTooLargeException")
        dense = server.post(plan, b'{"filter":[' + b"[]," * 340_000 + b"[]]}")
        assert dense.code == 400
    assert peak.bytes < 200 << 20


@pytest.mark.parametrize("depth", [150, 200, 201, 400, 499])
def test_deep_filter_is_answered_or_refused(server: Served, depth: int) -> None:
    leaf: Any = {"type": "eq", "term": "id", "value": 1}
    deep = leaf
    for number in range(depth):
        deep = {"type": "or", "left": deep, "right": {**leaf, "value": number}}
    reply = server.post(f"{table_path('t')}/plan", {"filter": deep})
    assert reply.code == (200 if depth <= 200 else 400), reply.body
    deep = {"type": "is-null", "term": "kind"}
    for _ in range(depth):
        deep = {"type": "not", "child": deep}
    assert server.post(f"{table_path('t')}/plan", {"filter": deep}).code in (200, 400)


def test_cached_plans_have_a_memory_budget() -> None:
    plans = PlanCache()
    made = [CachedPlan(("db", "t"), None, frozenset(), [], (), 0, 1 << 20) for _ in range(100)]  # type: ignore[arg-type]
    for plan in made:
        plans.keep(plan)
    kept = [plan for plan in made if plans.find(plan.plan_id, ("db", "t"), 0) is not None]
    assert kept == made[-len(kept) :] and len(kept) >= 1
    assert sum(plan.size_bytes for plan in kept) <= BUDGET_BYTES
    for plan in kept:
        plans.forget(plan.plan_id)
    plans.keep(made[0])
    assert plans.find(made[0].plan_id, ("db", "t"), 0) is made[0]


def test_unauthenticated_caller_may_send_little(server: Served) -> None:
    reply = server.ask("POST", "/v1/oauth/tokens", b"a" * 100_000, headers={"Authorization": ""})
    assert (reply.code, reply.error) == (413, "PayloadTooLargeException")
    small = server.ask("POST", "/v1/oauth/tokens", b"grant_type=x", headers={"Authorization": ""})
    assert small.code == 400


def test_request_bodies_share_a_memory_budget(tmp_path: Path) -> None:
    limits = Limits(bodies_bytes=1 << 20)
    with served(tmp_path / "lake", limits=limits) as made:
        made.make_table("t")
        refused = made.post("/v1/namespaces", b" " * (2 << 20))
        assert (refused.code, refused.error) == (503, "SlowDownException")
        assert made.post("/v1/namespaces", {"namespace": ["a"]}).code == 200, "what was refused is given back"


def test_number_of_updates_in_a_commit_is_bounded(server: Served) -> None:
    def order(number: int) -> dict[str, Any]:
        field = {"source-id": 1, "transform": f"bucket[{number}]", "direction": "asc", "null-order": "nulls-first"}
        return {"action": "add-sort-order", "sort-order": {"order-id": number, "fields": [field]}}

    def version(number: int) -> dict[str, Any]:
        return {"action": "add-view-version", "view-version": {**VERSION, "version-id": number}}

    many = [{"action": "set-properties", "updates": {f"k{number}": "v"}} for number in range(10_001)]
    half = [{"identifier": {"namespace": ["db"], "name": "t"}, "requirements": [], "updates": many[:5_001]}] * 2
    view = "/v1/namespaces/db/views/v"
    started = time.process_time()
    for path, body in (
        (table_path("t"), {"requirements": [], "updates": many}),
        (table_path("t"), {"requirements": [{"type": "assert-create"}] * 10_001, "updates": []}),
        (table_path("t"), {"requirements": [], "updates": [order(number) for number in range(1, 102)]}),
        ("/v1/transactions/commit", {"table-changes": half}),
        (view, {"updates": [version(number) for number in range(101)]}),
    ):
        reply = server.post(path, body)
        assert reply.code == 400 and b"in one request" in reply.body, reply.body
    assert server.post(table_path("t"), {"requirements": [], "updates": many[:10_000]}).code == 200
    assert server.post(table_path("t"), {"requirements": [], "updates": list(map(order, range(1, 101)))}).code == 200
    assert time.process_time() - started < 10


# Answers of a service


def big_gzip(text: bytes, times: int) -> bytes:
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    return b"".join([*(packer.compress(text) for _ in range(times)), packer.flush()])


def test_compressed_body_is_bounded_by_its_ratio() -> None:
    bomb = big_gzip(b"[]," * 400_000, 100)
    assert len(bomb) < 400_000
    with scripted_service() as service:
        service.on("GET /bomb", (200, bomb, {"content-encoding": "gzip"}))
        service.on("GET /good", (200, gzip.compress(b"{}" + b" " * 1_000_000), {"content-encoding": "gzip"}))
        service.on("GET /odd", (200, b"x", {"content-encoding": "br"}))
        service.on("GET /cut", (200, gzip.compress(b"{}" * 1000)[:-9], {"content-encoding": "gzip"}))
        transport = HttpClient()
        with Peak() as peak, pytest.raises(AnswerTooLarge):
            transport.fetch("GET", f"{service.address}/bomb", {})
        assert peak.bytes < 300 << 20
        assert len(transport.fetch("GET", f"{service.address}/good", {}).body) == 1_000_002
        for path in ("odd", "cut"):
            with pytest.raises(AnswerLost):
                transport.fetch("GET", f"{service.address}/{path}", {})
        transport.close()


def test_body_of_many_empty_lists_is_refused_before_parsing() -> None:
    wide = big_gzip(b"[]," * 100_000, 50)
    with scripted_service() as service:
        service.on("GET /v1/config", (200, wide, {"content-encoding": "gzip"}))
        with Peak() as peak, pytest.raises(FrazilError):
            open_rest("lake", service.address, {})
    assert peak.bytes < 400 << 20


@pytest.mark.parametrize("piece", [b"[],", b"{},", b"1,", b"[[]],"])
def test_json_bomb_of_values_is_refused(piece: bytes) -> None:
    text = b'{"format-version":2,"x":[' + piece * (30_000_000 // len(piece)) + b"0]}"
    with Peak() as peak:
        for read in (lambda: parse_json(text, heading="x"), lambda: decode_table_metadata(text, path="x")):
            with pytest.raises(CorruptTableError, match=r"too many to be read"):
                read()
    assert peak.bytes < 200 << 20


def test_ordinary_metadata_is_accepted() -> None:
    snapshot = b'{"snapshot-id":1,"timestamp-ms":2,"summary":{"operation":"append"},"manifest-list":"s3://b/m.avro"},'
    parse_json(b"[" + snapshot * 100_000 + b"0]", heading="x")
    parse_json(b"[" + b"1000," * 2_000_000 + b"0]", heading="x")


def test_endless_pagination_is_stopped() -> None:
    class Pages:
        def __init__(self, names: int) -> None:
            self.number = 0
            self.names = names

        def __call__(self, _: object) -> Any:
            self.number += 1
            return self

        def raw(self, name: str, _: object) -> object:
            return ["n"] * self.names if name == "identifiers" else str(self.number)

    for names, most in ((0, 20_000), (5_000, 1_000)):
        pages = Pages(names)
        with pytest.raises(ServiceError, match="do not end"):
            read_pages(pages, "identifiers", {}, "list tables")
        assert pages.number < most


# The end of a server


@pytest.mark.extended
@pytest.mark.timeout(120)
def test_sigterm_ends_a_server_whatever_runs(tmp_path: Path) -> None:
    given = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")}
    given |= {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    log = tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "frazil.cli",
        "-w",
        str(tmp_path / "lake"),
        "serve",
        "--ui",
        "--open",
        "--port",
        "0",
    ]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors, env=given)
    try:
        deadline = time.monotonic() + 60
        while "Serving on" not in log.read_text():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        uri = log.read_text().partition("Serving on ")[2].split()[0]
        endless = "select sum(value) from generate_series(1, 1000000000000)"
        query = f"{uri}/sql?q={endless.replace(' ', '+')}"
        try:
            urllib.request.urlopen(query, timeout=30).close()
        except urllib.error.HTTPError as error:
            error.close()
        process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        assert process.wait(60) == 0
        assert time.monotonic() - start < 30
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
