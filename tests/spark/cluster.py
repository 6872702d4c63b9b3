"""A Spark cluster on this machine: a master and two workers, each with one core. Import as `tests.spark.cluster`.

`local[2]` runs everything in one JVM, so it cannot show what executors must have. Here they are processes of their own,
and their Python has no packages at all: what reads tables there is Spark alone.

    with cluster(folder) as master:
        run_tests(master, folder, ["tests/spark/test_read_model.py"])

Master and workers are stopped when the block is left, whatever happened in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[2]
MASTER = "FRAZIL_SPARK_MASTER"
"""The environment variable that names the master the tests' session runs on."""
SETTINGS = "FRAZIL_SPARK_SETTINGS"
"""The environment variable with further settings of that session, as a JSON object."""
WORKERS = 2
START_SECONDS = 300
_HOST = "127.0.0.1"
_PACKAGE = "org.apache.spark.deploy"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a cluster and return its master; logs and work go to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    master = f"spark://{_HOST}:{port}"
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.append(_start(folder, "master", f"{_PACKAGE}.master.Master", "-p", str(port)))
        _wait(folder / "master.log", "New state: ALIVE", running[0])
        for number in range(WORKERS):
            name = f"worker-{number}"
            work = folder / name
            running.append(
                _start(folder, name, f"{_PACKAGE}.worker.Worker", "-c", "1", "-m", "1g", "-d", str(work), master)
            )
        for number, worker in enumerate(running[1:]):
            _wait(folder / f"worker-{number}.log", "Successfully registered with master", worker)
        yield master
    finally:
        for one in reversed(running):
            _stop(one)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _start(folder: Path, name: str, java_class: str, *arguments: str) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    # Where frazil is found by a path, executors must not inherit it.
    environment.pop("PYTHONPATH", None)
    command = [str(home / "bin" / "spark-class"), java_class, "-h", _HOST, "--webui-port", "0", *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
        )


def _wait(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        text = log.read_text("utf-8", "replace")
        if words in text:
            return
        assert process.poll() is None, f"{log.name} ended:\n{text[-2000:]}"
        time.sleep(0.2)
    raise AssertionError(f"{log.name} did not say {words!r} in {START_SECONDS} s:\n{log.read_text()[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    # The whole group: a worker has executors of its own.
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_tests(master: str, folder: Path, arguments: Sequence[str], *, seconds: float) -> str:
    """Run tests in a process of their own whose session is on a cluster; return what it printed."""
    settings = {
        "spark.executor.memory": "512m",
        "spark.cores.max": str(WORKERS),
        "spark.pyspark.python": str(_python_without_packages(folder)),
        "spark.pyspark.driver.python": sys.executable,
    }
    environment = {**os.environ, MASTER: master, SETTINGS: json.dumps(settings), "SPARK_LOCAL_IP": _HOST}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={seconds:.0f}", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def _python_without_packages(folder: Path) -> Path:
    """Return a Python that has its standard library only; Spark adds its own."""
    path = folder / "bare-python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path
