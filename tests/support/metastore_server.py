"""A real Hive Metastore on the loopback: the one in PySpark's jars (Hive 2.3.10 on Derby), with its lock tables made.

The first start of a test run makes the database, in the test mode of the server, which makes lock tables too and
refuses the locks of other clients. The second start, of the server that tests use, has left that mode.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

from frazil.catalog.hive.connection import Host, MetastoreClient
from frazil.catalog.hive.metastore import Metastore

_PATIENCE_SECONDS = 240
"""How long a server may take to start: a machine that is busy takes minutes."""
_SITE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/metastore_db;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "none",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "hive.async.log.enabled": "false",
}
_WITHOUT_LOCKS = {"datanucleus.connectionPoolingType": "BONECP"}
"""A pool that PySpark's jars lack: names and tables work without it, and locks do not."""
_LOGGING = """
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{12}
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class MetastoreServer:
    """A metastore in a folder of its own; it can be stopped, killed and started again."""

    def __init__(self, folder: Path, port: int, *, has_locks: bool = True) -> None:
        self.folder = folder
        self.port = port
        self._has_locks = has_locks
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self, *, in_test: bool = False) -> None:
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        site = {**_SITE, **({} if self._has_locks or in_test else _WITHOUT_LOCKS), "hive.in.test": str(in_test).lower()}
        rows = "".join(
            f"<property><name>{name}</name><value>{value.format(folder=self.folder)}</value></property>"
            for name, value in site.items()
        )
        (conf / "hive-site.xml").write_text(f"<configuration>{rows}</configuration>", "utf-8")
        (conf / "log4j2.properties").write_text(_LOGGING, "utf-8")
        log = self.folder / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [
                    "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    "-cp", f"{conf}:{jars_folder()}/*",
                    "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port),
                ],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, log.read_text("utf-8", errors="replace")[-2000:]
            assert time.monotonic() < deadline, "the metastore does not listen"
            time.sleep(0.1)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def jars_folder() -> Path:
    """Return the folder of PySpark's jars; skip the test where there is none, or no Java."""
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java on this machine")
    folder = Path(pyspark.__file__).parent / "jars"
    if not any(folder.glob("hive-metastore-*.jar")):
        pytest.skip("this PySpark brings no Hive Metastore")
    return folder


@contextmanager
def running_metastore(*, has_locks: bool = True) -> Iterator[MetastoreServer]:
    """Run a metastore until the block ends."""
    jars_folder()
    folder = Path(tempfile.mkdtemp(prefix="frazil-hive-"))
    server = MetastoreServer(folder, _free_port(), has_locks=has_locks)
    try:
        server.start(in_test=True)
        # The lock tables are made when they are first needed.
        made = Metastore(MetastoreClient([Host("127.0.0.1", server.port)]))
        made.locks("default", "any")
        made.close()
        server.stop()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _shared(process: int) -> MetastoreServer:
    stack = ExitStack()
    server = stack.enter_context(running_metastore())
    atexit.register(stack.close)
    return server


def shared_metastore() -> MetastoreServer:
    """Return the metastore of this run, started at the first call and stopped when the process ends."""
    return _shared(os.getpid())


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
