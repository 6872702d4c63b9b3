"""Streams that are killed at random moments: no row is lost, and none is there twice.

Rows are fed into a table, streamed on to others, counted by key in Spark's state, and streamed on from there
(`stream_kill_worker.py`). While that runs, others compact, expire snapshots and write rows of their own
(`stream_kill_others.py`). Those who feed and those who stream are processes that are killed, alone and both at once,
and start again. Kills are counted by SIGKILLs; one that ends a streaming process ends several queries.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import frazil
from tests.spark.stream_kill_others import FED, FEED, OWN, done, feed_ids, key_of
from tests.spark.stream_kill_worker import PROPERTIES, QUERIES, generation

HERE = Path(__file__).parent
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""No process lives long enough for better code."""
ARCHIVE_FROM = 50
"""From so many kills on, an archive of Spark's classes saves more time than it takes to make."""
KILLS = int(os.environ.get("FRAZIL_STREAM_KILLS", "100"))
"""How many processes are killed."""
SECONDS = float(os.environ.get("FRAZIL_STREAM_KILL_SECONDS", "inf"))
"""After so many seconds nothing more is killed."""
RUNS = 60.0
"""How many seconds queries run at most before they are killed."""


class Process:
    """A process that is killed; what it says is kept whole."""

    def __init__(self, said: Path, java_options: str, script: str, *arguments: object) -> None:
        self.said = said
        with said.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / script), *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                env={**os.environ, "JDK_JAVA_OPTIONS": f"{JAVA_OPTIONS} {java_options}"},
            )

    @property
    def text(self) -> str:
        return self.said.read_text()

    def check(self) -> None:
        assert self.process.poll() is None, f"the process ended: {self.text}"

    def wait_for(self, line: str, seconds: float = 300) -> None:
        until = time.monotonic() + seconds
        while line not in self.text.splitlines():
            self.check()
            assert time.monotonic() < until, f"the process does not say {line!r}: {self.text}"
            time.sleep(0.02)

    def go(self) -> None:
        self.wait_for("ready")
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def wait_for_all(self, seconds: float) -> None:
        """Wait until the process has ended, and those that it started."""
        self.process.communicate()
        until = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.killpg(self.process.pid, 0)
                time.sleep(0.1)

    def kill(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def batches(checkpoint: Path) -> int:
    """Return how many batches of a query are done."""
    log = checkpoint / "commits"
    return 1 + max((int(one.name) for one in log.glob("*") if one.name.isdigit()), default=-1)


class Run:
    """The processes of one run, and what was killed."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.warehouse, self.checkpoints, self.journal = (folder / one for one in ("lake", "checkpoints", "journal"))
        self.killed: Counter[str] = Counter()
        self.started: list[Process] = []
        self.java_options = ""
        self._make_archive()
        self.others = self._start_others("run")

    def _start(self, script: str, *arguments: object) -> Process:
        said = self.folder / f"said-{len(self.started)}"
        self.started.append(Process(said, self.java_options, script, self.warehouse, *arguments))
        return self.started[-1]

    def _make_archive(self) -> None:
        """Let streams run to their end once, and the classes that they load be kept: the others start sooner."""
        if KILLS < ARCHIVE_FROM:
            return
        archive = self.folder / "classes.jsa"
        self.java_options = f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
        first = self.start_streams("drain")
        first.go()
        first.wait_for("done")
        first.wait_for_all(120)
        self.java_options = f"-XX:SharedArchiveFile={archive} -Xlog:cds=off" if archive.exists() else ""

    def _start_others(self, how: str) -> Process:
        return self._start("stream_kill_others.py", self.journal, self.chance.randrange(1 << 32), how)

    def start_streams(self, how: str) -> Process:
        return self._start("stream_kill_worker.py", self.checkpoints, how)

    def kill_others(self, streams: Process | None = None) -> None:
        """Kill those who feed, at the same moment as the streams where they are given, and start them again."""
        self.others.check()
        self.killed["others"] += 1
        self.others.kill()
        if streams is not None:
            self.killed["both at once"] += 1
            self.kill_streams(streams)
        self.others = self._start_others("run")

    def kill_streams(self, streams: Process) -> None:
        streams.check()
        self.killed["streams"] += 1
        streams.kill()
        assert "failed:" not in streams.text and "Traceback" not in streams.text, streams.text

    @property
    def sigkills(self) -> int:
        return self.killed["streams"] + self.killed["others"]

    def let_run(self, streams: Process) -> None:
        """Let queries start, or some batches of one of them be done, however long those take."""
        streams.wait_for("starting")
        if self.chance.random() < 0.7:
            place = self.checkpoints / self.chance.choice(("rows", "counts", "counts", "totals"))
            wanted, until = batches(place) + self.chance.randrange(3), time.monotonic() + RUNS
            while batches(place) < wanted and time.monotonic() < until:
                streams.check()
                time.sleep(0.02)
        time.sleep(self.chance.uniform(0, 1))

    def kill_often(self) -> None:
        began = time.monotonic()
        streams = self.start_streams("run")
        while self.sigkills < KILLS and time.monotonic() - began < SECONDS:
            streams.go()
            # The next ones start their Spark meanwhile.
            following = self.start_streams("run")
            self.let_run(streams)
            for _ in range(self.chance.randrange(4)):
                self.kill_others()
                time.sleep(self.chance.uniform(0, 2))
            if self.chance.random() < 0.4:
                self.kill_others(streams)
            else:
                self.kill_streams(streams)
            streams = following
        streams.kill()

    def finish(self) -> None:
        """Do what was left open, and read all there is."""
        self.others.check()
        self.others.kill()
        last = self._start_others("finish")
        assert last.process.wait(300) == 0, last.text
        drain = self.start_streams("drain")
        drain.go()
        drain.wait_for("done", 1200)

    def end(self) -> None:
        for one in self.started:
            one.kill()


@pytest.mark.slow
@pytest.mark.timeout(1800 + 60 * KILLS)
def test_killed_streams_lose_and_duplicate_no_rows(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        for name in (*FED, "rows"):
            lake.create_table(f"db.{name}", "id bigint, k string", properties=PROPERTIES)
        for name in ("counts", "totals"):
            lake.create_table(f"db.{name}", "k string, n bigint, total bigint", properties=PROPERTIES)
    began = time.monotonic()
    run = Run(tmp_path, random.Random(seed))
    try:
        run.kill_often()
        run.finish()
    finally:
        run.end()
    did = done(run.journal)
    batches_done = sum(batches(one) for one in run.checkpoints.iterdir())
    streams = run.killed["streams"]
    print(
        f"{run.sigkills} SIGKILLs: {streams} of streams ({streams * len(QUERIES)} queries), "
        f"{run.killed['others']} of those who feed and maintain, {run.killed['both at once']} of them both at once; "
        f"{batches_done} batches, {dict(did)}, a stream without a guard said {generation(run.checkpoints)} times "
        f"that it lost rows; {time.monotonic() - began:.0f} s"
    )
    check_tables(run, did)


def check_tables(run: Run, did: Counter[str]) -> None:
    written = [one for number in range(did[FEED]) for one in feed_ids(number)]
    by_key: dict[str, list[int]] = {}
    for one in written:
        by_key.setdefault(key_of(one), []).append(one)
    with frazil.connect(run.warehouse) as lake:
        for name in FED:
            assert sorted(lake.table(f"db.{name}").scan().to_arrow()["id"].to_pylist()) == sorted(written), name
        last = generation(run.checkpoints)
        for name in ("rows", *(f"free_{one}" for one in range(last + 1))):
            found = Counter(lake.table(f"db.{name}").scan("id >= 0").to_arrow()["id"].to_pylist())
            assert found - Counter(written) == Counter(), f"rows of {name} that are there twice"
            if name in ("rows", f"free_{last}"):
                assert Counter(written) - found == Counter(), f"rows of {name} that are lost"
        assert lake.table("db.rows").scan("id < 0").count() == did[OWN]
        for name in ("counts", "totals"):
            rows = lake.table(f"db.{name}").scan().to_arrow().to_pylist()
            expected = {key: (len(ids), sum(ids)) for key, ids in by_key.items()}
            assert {one["k"]: (one["n"], one["total"]) for one in rows} == expected, name
            assert len(rows) == len(expected), name
        for table in lake.list_tables("db"):
            assert lake.table(table).check().ok, table
