"""HDFS on the loopback: a name node and a data node in one process, by Hadoop's MiniDFSCluster, fetched once: 57 MB.

`FaultyHttp` is a client of HTTP that loses requests and answers, for what is asked of the cluster.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from frazil.storage.http import Answer, AnswerLost, HttpClient, RequestNotSent
from frazil.storage.origin import Origin
from tests.support.metastore_server import jars_folder

CACHE = Path(os.environ.get("FRAZIL_JAVA_CACHE", Path.home() / ".cache" / "frazil-java"))
CENTRAL = "https://repo1.maven.org/maven2"
LIBRARIES = (
    "org/junit/jupiter/junit-jupiter-api/5.11.4/junit-jupiter-api-5.11.4.jar",
    "org/junit/platform/junit-platform-commons/1.11.4/junit-platform-commons-1.11.4.jar",
    "org/opentest4j/opentest4j/1.3.0/opentest4j-1.3.0.jar",
    "org/mockito/mockito-core/4.11.0/mockito-core-4.11.0.jar",
)
"""What the cluster's test code needs beside Hadoop."""
_PATIENCE_SECONDS = 240


class FaultyHttp(HttpClient):
    """Loses requests whose target has a text in it: so many, before or after they are carried out."""

    __slots__ = ("count", "is_carried_out", "text")

    def __init__(self, text: str, count: int, *, is_carried_out: bool) -> None:
        super().__init__()
        self.text = text
        self.count = count
        self.is_carried_out = is_carried_out

    def send(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | memoryview = b"",
        **options: Any,
    ) -> Answer:
        if self.count == 0 or self.text not in target:
            return super().send(origin, method, target, headers, body, **options)
        self.count -= 1
        if self.is_carried_out:
            super().send(origin, method, target, headers, body, **options)
        raise AnswerLost("lost by the test")


def _cluster_jars() -> Path:
    """Return the folder of the cluster's jars, fetched if they are missing; skip the test if that fails."""
    hadoop = next(jars_folder().glob("hadoop-client-api-*.jar"), None)
    if hadoop is None:
        pytest.skip("this PySpark brings no Hadoop")
    version = hadoop.stem.removeprefix("hadoop-client-api-")
    name = f"hadoop-client-minicluster-{version}.jar"
    folder = CACHE / f"hadoop-minicluster-{version}"
    if not folder.is_dir():
        part = CACHE / f"hadoop-minicluster-{os.getpid()}.part"
        part.mkdir(parents=True, exist_ok=True)
        try:
            for path in (f"org/apache/hadoop/hadoop-client-minicluster/{version}/{name}", *LIBRARIES):
                with urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=60) as answer:
                    (part / path.rpartition("/")[2]).write_bytes(answer.read())
        except (OSError, urllib.error.URLError) as error:
            shutil.rmtree(part)
            pytest.skip(f"the cluster could not be had from Maven Central: {error}")
        part.rename(folder)
    return folder


@contextmanager
def running_cluster() -> Iterator[dict[str, str]]:
    """Run a cluster until the block ends; yield the properties of a connection to it."""
    jars = _cluster_jars()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="frazil-hdfs-"))
    with (folder / "cluster.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "java", "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{jars}/*:{jars_folder()}/*",
                "org.apache.hadoop.test.MiniDFSClusterManager",
                "-datanodes", "1", "-format", "-httpport", str(port),
            ],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    properties = {"webhdfs.endpoint": f"http://127.0.0.1:{port}", "webhdfs.user": _user()}
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _is_ready(port):
            assert process.poll() is None, (folder / "cluster.log").read_text("utf-8", errors="replace")[-2000:]
            assert time.monotonic() < deadline, "the cluster does not answer"
            time.sleep(0.2)
        yield properties
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _is_ready(port: int) -> bool:
    """Return whether a file can be written: whether the data node has joined, too."""
    target = f"/webhdfs/v1/ready?op=CREATE&overwrite=true&user.name={_user()}"
    http = HttpClient()
    try:
        return http.send(Origin("127.0.0.1", port, is_tls=False), "PUT", target, {"host": "x"}).status == 307
    except (RequestNotSent, AnswerLost):
        return False
    finally:
        http.close()


@cache
def _shared(process: int) -> dict[str, str]:
    stack = ExitStack()
    properties = stack.enter_context(running_cluster())
    atexit.register(stack.close)
    return properties


def shared_cluster() -> dict[str, str]:
    """Return how the cluster of this run is reached; started at the first call, stopped when the process ends."""
    return _shared(os.getpid())
