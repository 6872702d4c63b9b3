"""A private PostgreSQL server for tests, on a free port of this machine."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

PASSWORD = "s3cret/pass word"
"""Holds characters that a URI has to escape."""
_PATIENCE_SECONDS = 240
"""How long a server may take to start: a machine that is busy takes minutes."""
QUOTED_PASSWORD = "s3cret%2Fpass%20word"


class PostgresServer:
    """A server that runs; `uri` leads to an empty database of it."""

    def __init__(self, folder: Path, binaries: Path, user: str | None, port: int) -> None:
        self.folder = folder
        self.port = port
        self._binaries = binaries
        self._user = user

    @property
    def uri(self) -> str:
        return self.uri_at(self.port)

    def uri_at(self, port: int) -> str:
        return f"postgresql://frazil:{QUOTED_PASSWORD}@127.0.0.1:{port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            cwd=self.folder,
            user=self._user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            "-c fsync=off -c shared_buffers=16MB -c max_connections=50 -c log_min_messages=fatal"
        )
        self.run("pg_ctl", "-D", "data", "-w", "-t", str(_PATIENCE_SECONDS), "-l", "log", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", "data", "-w", "-t", str(_PATIENCE_SECONDS), "-m", mode, "stop")


def find_binaries() -> Path | None:
    """Return the folder of the newest server on this machine, or None."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        places.append(Path(on_path).resolve().parent)
    return next((one for one in places if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


def find_user() -> str | None:
    """Return whom to run the server as: it refuses root. None stands for whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return next((one for one in ("postgres", "nobody") if one in known), None)


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Make a server of its own, start it, and stop it at the end; skip the test where there is none to be had."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server on this machine (initdb not found)")
    user = find_user()
    if user is None and os.geteuid() == 0:
        pytest.skip("PostgreSQL does not run as root, and there is no other user to run it as")
    folder = Path(tempfile.mkdtemp(prefix="frazil-pg-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = PostgresServer(folder, binaries, user, port)
    try:
        (folder / "password").write_text(PASSWORD + "\n", "utf-8")
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(folder / "password", user)
        server.run(
            "initdb", "-D", "data", "-U", "frazil", "--pwfile=password", "-A", "scram-sha-256", "-E", "UTF8",
            "--no-sync", "--locale=C",
        )  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def shared_server() -> PostgresServer:
    """Return the server of this run, started at the first call and stopped when the process ends."""
    stack = ExitStack()
    server = stack.enter_context(running_server())
    atexit.register(stack.close)
    return server


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """The server of this run; each test has a catalog name of its own in it. Modules import this fixture."""
    return shared_server()
