"""Commits through a catalog service whose answers get lost, or whose requests never arrive: once, or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflictError, CommitStateUnknownError
from frazil.rest.rest_catalog import RestCatalog
from frazil.storage.http import Answer, AnswerLost, RequestNotSent
from tests.support.served_lake import served


class FaultyTransport:
    """Loses what it is told to, by chance: a request before it is sent, or the answer after it was carried out."""

    def __init__(self, inner: Any, seed: int) -> None:
        self._inner = inner
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.share = 0.0
        self.lost = 0

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", **options: Any) -> Answer:
        with self._lock:
            fate = self._chance.random() if method == "POST" else 1.0
            self.lost += fate < self.share
        if fate < self.share / 4:
            raise RequestNotSent("lost on the way")
        if fate < self.share / 2:
            raise AnswerLost("lost on the way, and nobody knows it")
        reply: Answer = self._inner.fetch(method, url, headers, body, **options)
        if fate < self.share * 3 / 4:
            raise AnswerLost("the answer was lost")
        if fate < self.share:
            return Answer(504, {}, b"")
        return reply

    def close(self) -> None:
        self._inner.close()


def faulty(address: str, seed: int, *, has_keys: bool) -> tuple[frazil.Lake, FaultyTransport]:
    lake = frazil.connect(address)
    catalog = lake.catalog
    assert isinstance(catalog, RestCatalog)
    transport = FaultyTransport(catalog.session.transport, seed)
    catalog.session.transport = transport  # type: ignore[assignment]
    catalog.session.honours_keys = has_keys
    catalog.session._sleep = lambda seconds: None
    return lake, transport


@pytest.mark.extended
@pytest.mark.parametrize("has_keys", [True, False], ids=["with-keys", "without-keys"])
def test_appends_with_lost_responses_land_at_most_once_or_report_unknown(tmp_path: Path, has_keys: bool) -> None:
    with served(tmp_path / "wh") as server:
        address = f"http://127.0.0.1:{server.port}"
        waits = {
            "commit.retry.min-wait-ms": "1",
            "commit.retry.num-retries": "50",
            "commit.status-check.min-wait-ms": "1",
        }
        with frazil.connect(address) as lake:
            lake.create_table("db.t", "id bigint", properties=waits)
        lost = []

        def write(writer: int) -> tuple[set[int], set[int]]:
            lake, transport = faulty(address, writer, has_keys=has_keys)
            with lake:
                table = lake.table("db.t")
                transport.share = 0.4
                acknowledged, unknown = set(), set()
                for at in range(12):
                    number = writer * 100 + at
                    try:
                        table.append(pa.table({"id": pa.array([number], pa.int64())}))
                        acknowledged.add(number)
                    except CommitStateUnknownError:
                        unknown.add(number)
                    except CommitConflictError:
                        pass
                lost.append(transport.lost)
                transport.share = 0.0
            return acknowledged, unknown

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(write, range(4)))
        with frazil.connect(address) as lake:
            table = lake.table("db.t")
            rows = table.scan().to_arrow()["id"].to_pylist()
            assert table.check().ok
        acknowledged = set().union(*(one for one, _ in results))
        unknown = set().union(*(one for _, one in results))
        assert len(rows) == len(set(rows)), "a row is there twice"
        assert acknowledged <= set(rows), "an acknowledged commit is lost"
        assert set(rows) <= acknowledged | unknown, "a refused commit is there"
        assert sum(lost) > 20
        assert len(acknowledged) >= 40


def test_multi_table_commit_with_a_lost_response_is_atomic(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        address = f"http://127.0.0.1:{server.port}"
        waits = {
            "commit.retry.min-wait-ms": "1",
            "commit.retry.num-retries": "50",
            "commit.status-check.min-wait-ms": "1",
        }
        lake, transport = faulty(address, 5, has_keys=False)
        with lake:
            for name in ("a", "b"):
                lake.create_table(f"db.{name}", "id bigint", properties=waits)
            transport.share = 0.5
            acknowledged, unknown = set(), set()
            for at in range(12):
                try:
                    with lake.transaction() as both:
                        for name in ("a", "b"):
                            both.table(f"db.{name}").append(pa.table({"id": pa.array([at], pa.int64())}))
                    acknowledged.add(at)
                except CommitStateUnknownError:
                    unknown.add(at)
            transport.share = 0.0
            found = [lake.table(f"db.{name}").scan().to_arrow()["id"].to_pylist() for name in ("a", "b")]
        assert sorted(found[0]) == sorted(found[1])
        assert len(found[0]) == len(set(found[0]))
        assert acknowledged <= set(found[0]) <= acknowledged | unknown
        assert transport.lost > 3
