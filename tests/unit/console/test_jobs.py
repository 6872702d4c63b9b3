"""Long work: begun once, told of while it goes on, kept, and tried again where it failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import progress
from frazil.console import jobs as module
from frazil.console.app import console_routes
from frazil.console.jobs import Jobs
from frazil.errors import InvalidRequestError
from frazil.spec.retention import GUARD_PREFIX
from tests.support.console_lake import whole_page, words_of
from tests.support.served_lake import Served, served


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(threads=2, max_jobs=3)
    yield made
    made.close()


def test_jobs_with_the_same_key_run_once(jobs: Jobs) -> None:
    calls: list[int] = []

    def make() -> str:
        calls.append(1)
        return "made"

    found = [jobs.job("key", "work", make) for _ in range(5)]
    assert all(one.wait(60) for one in found)
    assert {one.result for one in found} == {"made"}
    assert len(calls) == 1


def test_job_progress_is_reported(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.01)
    go_on = threading.Event()

    def make() -> None:
        progress.count("manifests read", 3, of=10)
        go_on.wait(60)

    job = jobs.job("key", "files of db.t", make)
    end = time.monotonic() + 60
    while "3 of 10 manifests read" not in job.text and time.monotonic() < end:
        time.sleep(0.01)
    assert "files of db.t: 3 of 10 manifests read" in job.text
    assert not job.is_done
    go_on.set()
    assert job.wait(60)


def test_failure_is_cached_briefly_and_then_retried(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise InvalidRequestError("Cannot do this")

    job = jobs.job("key", "work", fail)
    assert job.wait(60)
    assert isinstance(job.error, InvalidRequestError)
    assert jobs.job("key", "work", fail) is job
    monkeypatch.setattr(module, "FAILED_SECONDS", -1.0)
    assert jobs.job("key", "work", fail) is not job


def test_job_cache_is_bounded(jobs: Jobs) -> None:
    for at in range(20):
        assert jobs.job(at, "work", lambda: None).wait(60)
    assert len(jobs._jobs) <= 4
    assert jobs.find(19) is not None


def test_client_reports_are_shown_with_retries(console: Served, lake_folder: Path) -> None:
    report = {
        "report-type": "commit-report",
        "table-name": "shop.orders",
        "snapshot-id": 1,
        "sequence-number": 1,
        "operation": "append<b>",
        "metrics": {
            "attempts": {"unit": "count", "value": 3},
            "total-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 4_000_000},
            "added-data-files": {"unit": "count", "value": 2},
        },
    }
    assert console.post("/v1/namespaces/shop/tables/orders/metrics", report).code == 204
    page = console.get("/tables/shop.orders/activity").body.decode()
    assert "Conflicts retried</dt><dd>2<" in page
    assert "append&lt;b&gt;" in page
    assert "4 ms" in page


def test_streams_and_idempotent_writes_are_labelled(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(pa.table({"id": [1]}), once=("job-7", "2026-11-16"))
        first = table.snapshots[0].snapshot_id
        table.set_properties({f"{GUARD_PREFIX}dash<b>board": str(first)})
        table.append(pa.table({"id": [2]}))
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=False)) as server:
        said = words_of(whole_page(server, "/tables/db.t/activity"))
        assert "job-7" in said
        assert f"dash&lt;b&gt;board {first} 1" in said
