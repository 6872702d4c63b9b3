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
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitError

WORKER = Path(__file__).parent / "stream_kill_worker.py"
PIPELINES = 5
QUERIES = 2 * PIPELINES
KILLS = int(os.environ.get("FRAZIL_STREAM_KILLS", "100"))
"""How many running queries are killed; one process has several."""
SECONDS = float(os.environ.get("FRAZIL_STREAM_KILL_SECONDS", "inf"))
"""After so many seconds nothing more is killed."""
RUNS = 120.0
"""How many seconds queries run at most before they are killed."""
KEYS = 7


class Others:
    """Everybody else: who feeds the source, and who works on the tables meanwhile."""

    def __init__(self, warehouse: Path, chance: random.Random) -> None:
        self.lake = frazil.connect(warehouse)
        self.chance = chance
        self.written: list[int] = []
        self.own: Counter[int] = Counter()
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=given) for given in ((self._feed, 0.3), (self._meddle, 0.4))
        ]

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

    def _repeat(self, turn: Callable[[], None], pause: float) -> None:
        while not self._over.wait(pause):
            try:
                turn()
            except Exception:
                self.problems.append(traceback.format_exc())
                return

    def _feed(self) -> None:
        first = len(self.written)
        ids = list(range(first, first + self.chance.randrange(1, 20)))
        rows = pa.table({"id": ids, "k": [f"k{one % KEYS}" for one in ids]})
        self.lake.table("db.source").append(rows, once=("feed", first))
        self.written += ids

    def _meddle(self) -> None:
        number = self.chance.randrange(PIPELINES)
        name = self.chance.choice(("source", f"rows_{number}", f"counts_{number}"))
        table = self.lake.table(f"db.{name}")
        what = self.chance.choice(("append", "compact", "expire"))
        with contextlib.suppress(CommitError):
            if what == "expire":
                table.expire_snapshots(older_than=self.lake.catalog.now_ms() + 1000, retain_last=1)
            elif what == "compact":
                table.maintain.rewrite_data_files(min_input_files=3)
            elif name.startswith("rows"):
                table.append(pa.table({"id": [-1], "k": ["own"]}), once=("own", self.own[number]))
                self.own[number] += 1
            self.done[what] += 1


def batches(checkpoint: Path) -> int:
    """Return how many batches of a query are done."""
    log = checkpoint / "commits"
    return 1 + max((int(one.name) for one in log.glob("*") if one.name.isdigit()), default=-1)


class Worker:
    """A process with queries; what it says is kept whole."""

    def __init__(self, folder: Path, number: int, how: str) -> None:
        self.said = folder / f"worker-{number}.out"
        command = [sys.executable, str(WORKER), str(folder / "lake"), str(folder / "checkpoints"), str(PIPELINES), how]
        with self.said.open("w") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True
            )

    @property
    def text(self) -> str:
        return self.said.read_text()

    def wait_for(self, line: str, seconds: float = 300) -> None:
        until = time.monotonic() + seconds
        while line not in self.text.splitlines():
            assert self.process.poll() is None, f"the worker ended: {self.text}"
            assert time.monotonic() < until, f"the worker does not say {line!r}: {self.text}"
            time.sleep(0.02)

    def wait_for_batches(self, checkpoint: Path, count: int) -> None:
        wanted, until = batches(checkpoint) + count, time.monotonic() + RUNS
        while batches(checkpoint) < wanted and time.monotonic() < until:
            assert self.process.poll() is None, f"the worker ended: {self.text}"
            time.sleep(0.05)

    def go(self) -> None:
        self.wait_for("ready")
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_streams_that_are_killed_at_any_moment_lose_no_row_and_write_none_twice(tmp_path: Path) -> None:
    warehouse, checkpoints = tmp_path / "lake", tmp_path / "checkpoints"
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    print(f"seed {seed}")
    patient = {"commit.retry.num-retries": "100"}
    with frazil.connect(warehouse) as lake:
        lake.create_namespace("db")
        lake.create_table("db.source", "id bigint, k string", properties=patient)
        for number in range(PIPELINES):
            lake.create_table(f"db.rows_{number}", "id bigint, k string", properties=patient)
            lake.create_table(f"db.counts_{number}", "k string, n bigint, total bigint", properties=patient)
    others = Others(warehouse, chance)
    killed = restarts = 0
    began = time.monotonic()
    workers = [Worker(tmp_path, 0, "run")]
    try:
        with others:
            while killed < KILLS and time.monotonic() - began < SECONDS:
                worker = workers[-1]
                worker.go()
                # The next one starts its Spark meanwhile.
                workers.append(Worker(tmp_path, len(workers), "run"))
                # Some die while their queries start, most after some batches of one of them, however long those take.
                worker.wait_for("starting")
                if chance.random() < 0.8:
                    name = f"{chance.choice(('rows', 'counts'))}-{chance.randrange(PIPELINES)}"
                    worker.wait_for_batches(checkpoints / name, chance.randrange(4))
                time.sleep(chance.uniform(0, 1))
                assert worker.process.poll() is None, worker.text
                worker.kill()
                assert "failed" not in worker.text and "Traceback" not in worker.text, worker.text
                killed += QUERIES
                restarts += 1
                workers[-1].wait_for("ready")
        workers[-1].kill()
        assert others.problems == []
        workers.append(Worker(tmp_path, len(workers), "drain"))
        workers[-1].go()
        workers[-1].wait_for("done", 1200)
    finally:
        for one in workers:
            one.kill()
    print(f"{killed} queries killed in {restarts} processes, {sum(map(batches, checkpoints.iterdir()))} batches, "
          f"{len(others.written)} rows, {dict(others.done)}, {time.monotonic() - began:.0f} s")  # fmt: skip
    check_tables(others)
    others.close()


def check_tables(others: Others) -> None:
    wanted = Counter(others.written)
    by_key = {f"k{key}": [one for one in others.written if one % KEYS == key] for key in range(KEYS)}
    for number in range(PIPELINES):
        rows = others.lake.table(f"db.rows_{number}")
        found = Counter(rows.scan("id >= 0").to_arrow()["id"].to_pylist())
        assert found - wanted == Counter(), "rows that are there twice"
        assert wanted - found == Counter(), "rows that are lost"
        assert rows.scan("id < 0").count() == others.own[number]
        table = others.lake.table(f"db.counts_{number}")
        counts = table.scan().to_arrow().to_pylist()
        assert {one["k"]: (one["n"], one["total"]) for one in counts} == {
            key: (len(ids), sum(ids)) for key, ids in by_key.items() if ids
        }
        assert len(counts) == len({one["k"] for one in counts})
        assert rows.check().ok and table.check().ok
