"""Processes that commit to one table at once, and processes killed while they do: nothing acknowledged is lost.

The oracle is simple, since a table's snapshots are in one order: every operation has a tag in its snapshot's summary.
What was acknowledged is there exactly once, what failed never, what is not known at most once; and replaying the
operations in the order of the snapshots gives the files of every snapshot.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.base import Catalog
from frazil.loaded import LoadedTable
from frazil.scan.plan import SnapshotChoice, plan_scan
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot_history import ancestors_of
from tests.concurrency.commit_worker import TABLE, create_table, open_catalog

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
COMMITS = int(os.environ.get("FRAZIL_CONTENTION_COMMITS", "200"))
KILLS = int(os.environ.get("FRAZIL_CONTENTION_KILLS", "20"))
KINDS = ["sqlite", "filesystem"]


class Writer:
    """A process that commits, and what it tells, in a file: a pipe would lose lines when the process is killed."""

    def __init__(self, kind: str, folder: Path, number: int, commits: int) -> None:
        self._told = folder / f"writer-{number}.jsonl"
        module = "tests.concurrency.commit_worker"
        arguments = [sys.executable, "-m", module, kind, str(folder), str(number), str(commits)]
        with self._told.open("w") as out:
            self._process = subprocess.Popen(arguments, cwd=ROOT, stdout=out)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the process has told so far."""
        return lines_of(self._told.read_text())

    def wait_for_commit(self) -> None:
        """Wait until a commit of the process is acknowledged."""
        while not any(line["event"] == "ok" for line in self.told):
            assert self._process.poll() is None, "the process ended"
            time.sleep(0.01)

    def wait(self) -> None:
        """Wait until the process is done."""
        assert self._process.wait() == 0

    def kill(self) -> None:
        """Kill the process, wherever it is."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return what a process told; a line that was cut off by a kill is left out."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def check_history(loaded: LoadedTable, told: list[dict[str, Any]]) -> None:
    """Check a table's history against what its writers were told."""
    head = loaded.metadata.current_snapshot
    snapshots = [] if head is None else [*ancestors_of(loaded.metadata, head.snapshot_id)][::-1]
    assert len(snapshots) == len(loaded.metadata.snapshots)
    summaries = [one.summary or FrozenMap({"": ""}) for one in snapshots]
    tags = [one.get("tag", "") for one in summaries]
    assert len(set(tags)) == len(tags), "an operation happened twice"
    assert len({one.sequence_number for one in snapshots}) == len(snapshots)
    ended = {line["tag"]: line["event"] for line in told if line["event"] != "invoke"}
    changes = {line["tag"]: line for line in told if line["event"] == "invoke"}
    lost = {tag for tag, event in ended.items() if event == "ok"} - set(tags)
    assert not lost, "acknowledged commits are lost"
    assert not {tag for tag, event in ended.items() if event == "fail"} & set(tags), "a failed commit happened"
    live: set[str] = set()
    for at, (snapshot, tag) in enumerate(zip(snapshots, tags, strict=True)):
        change = changes[tag]
        assert set(change["removed"]) <= live
        live = live - set(change["removed"]) | set(change["added"])
        assert summaries[at]["total-data-files"] == str(len(live))
        if at % 10 == 0 or at == len(snapshots) - 1:
            plan = plan_scan(loaded, choice=SnapshotChoice(snapshot_id=snapshot.snapshot_id), threads=1)
            paths = plan.to_arrow().column("file_path").to_pylist()
            assert sorted(paths) == sorted(live)


def opened(kind: str, folder: Path) -> Catalog:
    """Return a catalog with the table in it."""
    catalog = open_catalog(kind, str(folder))
    create_table(catalog)
    return catalog


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [2, 8])
def test_processes_that_race_lose_nothing_and_repeat_nothing(kind: str, workers: int, tmp_path: Path) -> None:
    catalog = opened(kind, tmp_path)
    began = time.monotonic()
    running = [Writer(kind, tmp_path, number, COMMITS // workers) for number in range(workers)]
    for one in running:
        one.wait()
    told = [line for one in running for line in one.told]
    seconds = time.monotonic() - began
    check_history(catalog.load_table(TABLE), told)
    attempts = [line["attempts"] for line in told if line["event"] == "ok"]
    print(
        f"{kind}, {workers} processes: {len(attempts)} commits in {seconds:.1f} s, {len(attempts) / seconds:.0f}/s, "
        f"{sum(attempts) - len(attempts)} retries, at most {max(attempts)} attempts"
    )
    assert len(attempts) >= COMMITS * 0.9


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_are_killed_leave_a_table_that_reads(kind: str, tmp_path: Path) -> None:
    catalog = opened(kind, tmp_path)
    chance = random.Random(1)
    told: list[dict[str, Any]] = []
    kills = number = 0
    while kills < KILLS:
        running = [Writer(kind, tmp_path, number + at, 1000) for at in range(2)]
        number += len(running)
        # Starting takes a while; what is of interest is a kill while commits are under way.
        for one in running:
            one.wait_for_commit()
        time.sleep(chance.random() * 0.2)
        for one in running:
            one.kill()
            told += one.told
            kills += 1
        check_history(catalog.load_table(TABLE), told)
    print(f"{kind}: {kills} kills, {len(catalog.load_table(TABLE).metadata.snapshots)} commits")
