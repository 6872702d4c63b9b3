"""Writers through `frazil serve` while it is killed and started again: no acknowledged commit is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

READY_SECONDS = 60


class ServeProcess:
    """`frazil serve` in a process of its own, on one port all its lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "frazil.cli",
            "-w",
            str(self.folder / "warehouse"),
            "serve",
            "--quiet",
            "--open",
        ]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen([*command, "--port", str(self.port)], stderr=log, stdout=log)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert self.process.poll() is None, (self.folder / "serve.log").read_text()
                time.sleep(0.02)
            else:
                return
        raise AssertionError((self.folder / "serve.log").read_text())

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        return self.process.wait(90)


class Writer(threading.Thread):
    """Appends one row after another to one of two tables; remembers which were acknowledged and which are unknown."""

    def __init__(self, uri: str, number: int, stop: threading.Event, *, retries: int = 3) -> None:
        super().__init__(daemon=True)
        self._uri = uri
        self._properties = {"rest.client.max-retries": str(retries)}
        self._number = number
        self._stopped = stop
        self.acknowledged: list[int] = []
        self.unknown: list[int] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.failed = error

    def _write(self) -> None:
        row = self._number * 1_000_000
        while not self._stopped.is_set():
            row += 1
            try:
                with frazil.connect(self._uri, properties=self._properties) as lake:
                    lake.table(f"db.t{row % 2}").append(pa.table({"id": pa.array([row], pa.int64())}))
            except frazil.FrazilError as error:
                if not error.may_clean_up:
                    self.unknown.append(row)
                time.sleep(0.05)
            else:
                self.acknowledged.append(row)


def _done(writers: list[Writer]) -> int:
    return sum(len(one.acknowledged) for one in writers)


def _write_and_kill(folder: Path, *, writers: int, seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    server = ServeProcess(folder)
    server.start()
    with frazil.connect(server.uri) as lake:
        lake.create_namespace("db")
        for at in range(2):
            properties = {"commit.retry.num-retries": "20", "commit.retry.min-wait-ms": "10"}
            lake.create_table(f"db.t{at}", "id bigint", properties=properties)
    stop = threading.Event()
    threads = [Writer(server.uri, at + 1, stop) for at in range(writers)]
    for one in threads:
        one.start()
    deadline = time.monotonic() + seconds
    kills = 0
    while time.monotonic() < deadline:
        # A life in which somebody got something done, and a little more.
        before, patience = _done(threads), time.monotonic() + 30
        while _done(threads) < before + 3 and time.monotonic() < patience:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.5))
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        kills += 1
        time.sleep(chance.uniform(0.0, 0.3))
        server.start()
    stop.set()
    for one in threads:
        one.join(120)
    assert [one.failed for one in threads if one.failed is not None] == []
    assert server.end(signal.SIGTERM) == 0
    with frazil.connect(folder / "warehouse") as lake:
        found: list[int] = []
        for at in range(2):
            table = lake.table(f"db.t{at}")
            assert table.check().ok
            found += table.scan().to_arrow()["id"].to_pylist()
    acknowledged = {row for one in threads for row in one.acknowledged}
    unknown = {row for one in threads for row in one.unknown}
    assert len(found) == len(set(found)), "a row was written twice"
    assert acknowledged <= set(found), "an acknowledged row is lost"
    assert set(found) <= acknowledged | unknown, "a row is there whose commit was said to have failed"
    assert len(acknowledged) > kills


@pytest.mark.extended
def test_acknowledged_commits_survive_server_kills_exactly_once(tmp_path: Path) -> None:
    _write_and_kill(tmp_path, writers=3, seconds=4, seed=7)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_sixteen_writers_run_for_ten_minutes_while_the_server_is_killed(tmp_path: Path) -> None:
    seconds = float(os.environ.get("FRAZIL_KILL_SECONDS", "600"))
    _write_and_kill(tmp_path, writers=16, seconds=seconds, seed=int(time.time()))


def test_signal_stops_the_server_without_losing_commits(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path)
    server.start()
    with frazil.connect(server.uri) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t0", "id bigint")
        lake.create_table("db.t1", "id bigint")
    stop = threading.Event()
    writers = [Writer(server.uri, at + 1, stop, retries=0) for at in range(2)]
    for one in writers:
        one.start()
    time.sleep(1.0)
    assert server.end(signal.SIGTERM) == 0
    stop.set()
    for one in writers:
        one.join(120)
    with frazil.connect(tmp_path / "warehouse") as lake:
        found = [row for at in range(2) for row in lake.table(f"db.t{at}").scan().to_arrow()["id"].to_pylist()]
    acknowledged = {row for one in writers for row in one.acknowledged}
    assert acknowledged <= set(found) <= acknowledged | {row for one in writers for row in one.unknown}
