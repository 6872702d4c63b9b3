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


def start(kind: str, folder: Path, number: int, commits: int) -> subprocess.Popen[str]:
    """Start a process that commits."""
    arguments = [sys.executable, "-m", "tests.concurrency.commit_worker", kind, str(folder), str(number), str(commits)]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return what a process told; a line that was cut off by a kill is left out."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def told_until_ok(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Return what a process tells until its first commit is acknowledged."""
    assert process.stdout is not None
    found: list[dict[str, Any]] = []
    while not found or found[-1]["event"] != "ok":
        line = process.stdout.readline()
        assert line, "the process ended"
        found += lines_of(line)
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
    running = [start(kind, tmp_path, number, COMMITS // workers) for number in range(workers)]
    told: list[dict[str, Any]] = []
    for one in running:
        out, err = one.communicate()
        assert one.returncode == 0, err
        told += lines_of(out)
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
        running = [start(kind, tmp_path, number + at, 1000) for at in range(2)]
        number += len(running)
        # Starting takes a while; what is of interest is a kill while commits are under way.
        for one in running:
            told += told_until_ok(one)
        time.sleep(chance.random() * 0.2)
        for one in running:
            one.send_signal(signal.SIGKILL)
            told += lines_of(one.communicate()[0])
            kills += 1
        check_history(catalog.load_table(TABLE), told)
    print(f"{kind}: {kills} kills, {len(catalog.load_table(TABLE).metadata.snapshots)} commits")
