"""Processes that commit to one table at once, and processes killed while they do: nothing acknowledged is lost.

All operations are mixed (`commit_worker.py`), on each catalog that processes can share; `replay_history.py` is the
judge. FRAZIL_CONTENTION_COMMITS and FRAZIL_CONTENTION_KILLS are how many commits and kills there are in all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.base import Catalog
from frazil.scan.plan import plan_scan
from tests.concurrency.check_files import check_table
from tests.concurrency.commit_worker import TABLE, KeepingStorage, Order, WriterServer, create_table, open_catalog
from tests.concurrency.replay_history import Replay, check_history
from tests.support.postgres_server import shared_server

KINDS = ["sqlite", "postgresql", "filesystem"]
PROCESSES = [2, 8, 16]
COMMITS = int(os.environ.get("FRAZIL_CONTENTION_COMMITS", "20000")) // (len(KINDS) * len(PROCESSES)) + 1
KILLS = int(os.environ.get("FRAZIL_CONTENTION_KILLS", "500")) // len(KINDS) + 1
WRITERS_TO_KILL = 4


class Race:
    """A table, its writers and their stories."""

    def __init__(self, kind: str, folder: Path, version: int, *, deletes_files: bool) -> None:
        self.kind = kind
        self.folder = folder
        self.deletes_files = deletes_files
        self.uri = shared_server().uri if kind == "postgresql" else ""
        self.stories: list[Path] = []
        self.catalog: Catalog = open_catalog(kind, str(folder), self.uri)
        create_table(self.catalog, version)

    def order(self, commits: int) -> Order:
        """Return the order for another writer."""
        number = len(self.stories) + 1
        story = self.folder / f"story-{number}.jsonl"
        self.stories.append(story)
        return Order(self.kind, str(self.folder), self.uri, number, commits, self.deletes_files, str(story))

    def told(self) -> list[dict[str, Any]]:
        """Return what the writers told; a line that was cut off by a kill is left out."""
        found: list[dict[str, Any]] = []
        for story in self.stories:
            error = Path(f"{story}.error")
            assert not error.exists(), error.read_text()
            for line in story.read_text().splitlines() if story.exists() else ():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def check(self, told: list[dict[str, Any]]) -> Replay:
        """Check the table and its history."""
        loaded = self.catalog.load_table(TABLE)
        check_table(loaded)
        list(plan_scan(loaded, threads=1).tasks)
        everything = KeepingStorage(self.folder / "deleted", sees_all=True)
        return check_history(self.catalog, replace(loaded, storage=everything), told)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processes", PROCESSES)
def test_racing_processes_lose_and_duplicate_nothing(
    kind: str, processes: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    # Both format versions, and expiry with and without deleting files, are spread over the races.
    turn = KINDS.index(kind) + PROCESSES.index(processes)
    race(kind, processes, COMMITS, 2 + turn % 2, turn % 3 == 0, tmp_path, record_property)


def test_short_race_loses_nothing(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    race("sqlite", 3, 40, 3, False, tmp_path, record_property)


def race(
    kind: str,
    processes: int,
    commits: int,
    version: int,
    deletes_files: bool,
    folder: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """Let processes commit until each has its share of commits, and check everything."""
    racing = Race(kind, folder, version, deletes_files=deletes_files)
    with WriterServer() as server:
        # Without writers there is nothing to wait for but the server itself.
        server.wait()
        began = time.monotonic()
        for _ in range(processes):
            server.start(racing.order(-(-commits // processes)))
        server.wait()
        seconds = time.monotonic() - began
    told = racing.told()
    assert sum(line["event"] == "end" for line in told) == processes, "a writer died"
    replay = racing.check(told)
    invoked = {line["tag"]: line for line in told if line["event"] == "invoke"}
    acknowledged = [line for line in told if line["event"] == "ok"]
    attempts = [line["attempts"] for line in acknowledged]
    waits = [line["at"] - invoked[line["tag"]]["at"] for line in acknowledged]
    refused = Counter(line["kind"] for line in told if line["event"] == "fail")
    operations = {line["op"] for line in invoked.values()}
    assert len(acknowledged) >= commits
    record_property(
        "line",
        f"{kind}, {processes} processes, v{version}{', files deleted' if deletes_files else ''}: "
        f"{len(acknowledged)} commits of {len(operations)} operations in {seconds:.0f} s "
        f"({len(acknowledged) / seconds:.0f}/s), "
        f"{sum(attempts) - len(attempts)} retries, at most {max(attempts)} attempts, longest wait {max(waits):.1f} s, "
        f"{sum(refused.values())} refused; {replay.states} states replayed, {replay.snapshots} "
        "snapshots compared, 0 lost, 0 twice",
    )
    racing.catalog.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_processes_leave_a_readable_table(
    kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kill_writers(kind, KILLS, 3, tmp_path, record_property)


@pytest.mark.extended
def test_few_killed_processes_leave_a_readable_table(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kill_writers("filesystem", 4, 2, tmp_path, record_property)


def kill_writers(
    kind: str, kills: int, version: int, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    """Kill one writer after another, each while it commits, and start another in its place; then check everything."""
    racing = Race(kind, folder, version, deletes_files=False)
    chance = random.Random(kills)
    with WriterServer() as server:
        alive: list[tuple[int, Path]] = []
        for _ in range(kills):
            while len(alive) < WRITERS_TO_KILL:
                order = racing.order(1_000_000)
                alive.append((server.start(order), Path(order.story)))
            process, story = alive.pop(chance.randrange(len(alive)))
            deadline = time.monotonic() + 60
            while not story.exists() or story.stat().st_size == 0:
                assert time.monotonic() < deadline, "the writer does not start"
                time.sleep(0.005)
            time.sleep(chance.random() * 0.3)
            os.kill(process, signal.SIGKILL)
            # It reads, whatever the writer was doing.
            loaded = racing.catalog.load_table(TABLE)
            list(plan_scan(loaded, threads=1).tasks)
        for process, _ in alive:
            os.kill(process, signal.SIGKILL)
        server.wait()
    told = racing.told()
    replay = racing.check(told)
    acknowledged = sum(line["event"] == "ok" for line in told)
    ended = {line["tag"] for line in told if line["event"] in ("ok", "fail", "nothing", "unknown")}
    cut = {line["tag"] for line in told if line["event"] == "invoke"} - ended
    record_property(
        "line",
        f"{kind}: {kills + len(alive)} writers killed, {acknowledged} commits acknowledged, {len(cut)} under way when "
        f"killed, {len(cut & set(replay.tags))} of them happened; 0 unreadable tables, {replay.states} states "
        f"replayed, {replay.snapshots} snapshots compared, 0 lost, 0 twice",
    )
    racing.catalog.close()
