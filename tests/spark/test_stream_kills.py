"""Streams that are killed at random moments: no row is lost, and none is there twice.

A pipeline is a table, rows of it counted by key in Spark's state, and two tables that the streams write to. While it
runs, is killed and starts again, others append to the source, compact it, expire snapshots everywhere, and write
rows of their own to the tables that the streams write to.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitError

WORKER = Path(__file__).parent / "stream_kill_worker.py"
PIPELINES = 2
QUERIES = 2 * PIPELINES
KILLS = int(os.environ.get("FRAZIL_STREAM_KILLS", "100"))
"""How many running queries are killed; one process has several."""
SECONDS = float(os.environ.get("FRAZIL_STREAM_KILL_SECONDS", "inf"))
"""After so many seconds nothing more is killed."""
KEYS = 7


class Others:
    """Everybody else: who feeds the source, and who works on the tables meanwhile."""

    def __init__(self, warehouse: Path, chance: random.Random) -> None:
        self.lake = frazil.connect(warehouse)
        self.chance = chance
        self.written: list[int] = []
        self.own: Counter[int] = Counter()
        self.problems: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._feed, self._meddle)]

    def __enter__(self) -> Others:
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join()

    def close(self) -> None:
        self.lake.close()

    def _feed(self) -> None:
        source = self.lake.table("db.source")
        while not self._over.wait(0.3):
            first = len(self.written)
            ids = list(range(first, first + self.chance.randrange(1, 20)))
            source.append(pa.table({"id": ids, "k": [f"k{one % KEYS}" for one in ids]}), once=("feed", first))
            self.written += ids

    def _meddle(self) -> None:
        foreign = 0
        while not self._over.wait(0.4):
            number = self.chance.randrange(PIPELINES)
            rows, counts = (self.lake.table(f"db.{name}_{number}") for name in ("rows", "counts"))
            with contextlib.suppress(CommitError):
                match self.chance.randrange(6):
                    case 0:
                        foreign -= 1
                        rows.append(pa.table({"id": [foreign], "k": ["own"]}))
                        self.own[number] += 1
                    case 1:
                        self.lake.table("db.source").maintain.rewrite_data_files(min_input_files=5)
                    case 2:
                        self.lake.table("db.source").expire_snapshots(older_than=self._now(), retain_last=1)
                    case 3:
                        rows.expire_snapshots(older_than=self._now(), retain_last=1)
                    case 4:
                        counts.expire_snapshots(older_than=self._now(), retain_last=1)
                    case _:
                        rows.maintain.rewrite_data_files(min_input_files=3)

    def _now(self) -> int:
        return self.lake.catalog.now_ms() + 1000


def start(warehouse: Path, checkpoints: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(warehouse), str(checkpoints), str(PIPELINES), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def await_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    assert process.stderr is not None
    raise AssertionError(f"the worker ended: {process.stderr.read()[-3000:]}")


def kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_streams_that_are_killed_at_any_moment_lose_no_row_and_write_none_twice(tmp_path: Path) -> None:
    warehouse, checkpoints = tmp_path / "lake", tmp_path / "checkpoints"
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    print(f"seed {seed}")
    with frazil.connect(warehouse) as lake:
        lake.create_namespace("db")
        lake.create_table("db.source", "id bigint, k string")
        for number in range(PIPELINES):
            lake.create_table(f"db.rows_{number}", "id bigint, k string")
            lake.create_table(f"db.counts_{number}", "k string, n bigint, total bigint")
    others = Others(warehouse, chance)
    killed, restarts = 0, 0
    began = time.monotonic()
    with others:
        while killed < KILLS and time.monotonic() - began < SECONDS:
            process = start(warehouse, checkpoints, "run")
            try:
                # Some die while their queries start, most while they run.
                await_line(process, "starting" if chance.random() < 0.2 else "running")
                time.sleep(chance.uniform(0, 5))
                assert process.poll() is None, "".join(process.communicate())[-3000:]
            finally:
                kill(process)
            killed += QUERIES
            restarts += 1
    drain = start(warehouse, checkpoints, "drain")
    try:
        said, errors = drain.communicate(timeout=600)
        assert "done" in said, said + errors[-3000:]
    finally:
        kill(drain)
    print(f"{killed} queries killed in {restarts} processes, {len(others.written)} rows, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    wanted = Counter(others.written)
    by_key = {f"k{key}": [one for one in others.written if one % KEYS == key] for key in range(KEYS)}
    for number in range(PIPELINES):
        rows = others.lake.table(f"db.rows_{number}")
        found = Counter(rows.scan("id >= 0").to_arrow()["id"].to_pylist())
        assert found - wanted == Counter(), "rows that are there twice"
        assert wanted - found == Counter(), "rows that are lost"
        assert rows.scan("id < 0").count() == others.own[number]
        counts = others.lake.table(f"db.counts_{number}").scan().to_arrow().to_pylist()
        assert {one["k"]: (one["n"], one["total"]) for one in counts} == {
            key: (len(ids), sum(ids)) for key, ids in by_key.items() if ids
        }
        assert len(counts) == len({one["k"] for one in counts})
        assert rows.check().ok
    others.close()
