"""Other catalog services on the loopback, from Maven: Iceberg Java's own REST server, and Nessie.

They delete what a table's metadata names, anywhere on their machine. So they run as nobody where this process may
choose, in a folder of their own, and no test sends them a purge or a table that names files of others.

Run as a program, one serves until it is ended: `python -m tests.interop.rest_servers java`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.s3_server import BUCKET, KEY_ID, SECRET, running

CACHE = Path(os.environ.get("FRAZIL_JAVA_CACHE", Path.home() / ".cache" / "frazil-java"))
NESSIE = (
    "https://repo1.maven.org/maven2/org/projectnessie/nessie/nessie-quarkus/0.99.0/nessie-quarkus-0.99.0-runner.jar"
)
_START_SECONDS = 180
_FETCH_SECONDS = 900


class CannotStart(Exception):
    """A server cannot be had here; the text says why."""


@dataclass(frozen=True)
class OtherServer:
    """A server that runs."""

    address: str
    warehouse: str
    """The location that its tables are below."""
    properties: dict[str, str]


def java_jars() -> Path:
    """Return a folder with Iceberg Java's server and what it needs, fetched where it is missing."""
    folder = CACHE / "rest-server-1.11.0"
    if not folder.is_dir():
        if shutil.which("mvn") is None or shutil.which("java") is None:
            raise CannotStart("Iceberg Java's server needs Java and Maven")
        part = CACHE / f"rest-server-{os.getpid()}.part"
        pom = Path(__file__).with_name("rest_server_pom.xml")
        command = ["mvn", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
        done = subprocess.run(command, capture_output=True, timeout=_FETCH_SECONDS, check=False)
        if done.returncode != 0:
            raise CannotStart("Iceberg Java's server could not be had from Maven Central")
        part.rename(folder)
    return folder


def nessie_jar() -> Path:
    """Return Nessie's runner, fetched where it is missing."""
    path = CACHE / NESSIE.rpartition("/")[2]
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            with urllib.request.urlopen(NESSIE, timeout=60) as answer, part.open("wb") as out:
                shutil.copyfileobj(answer, out)
        except (OSError, urllib.error.URLError) as error:
            raise CannotStart(f"Nessie could not be had from Maven Central: {error}") from error
        part.rename(path)
    return path


def find_java(least: int) -> str:
    """Return a Java of some version or a newer one: the usual one, or another that is installed beside it."""
    usual = shutil.which("java")
    for one in ([usual] if usual is not None else []) + sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java"))):
        release = Path(one).resolve().parent.parent / "release"
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.exists() else None
        if found is not None and int(found[1]) >= least:
            return one
    raise CannotStart(f"the server needs Java {least}, and there is none")


@contextmanager
def java_server() -> Iterator[OtherServer]:
    """Run Iceberg Java's server over a SQLite file of its own."""
    with _own_folder() as folder:
        for one in java_jars().glob("*.jar"):
            shutil.copy(one, folder / "jars")
        (folder / "warehouse").mkdir()
        (folder / "warehouse").chmod(0o777)
        port = _free_port()
        environment = {
            "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
            "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_REST_PORT": str(port),
            "HOME": str(folder),
        }
        command = ["java", "-Xmx512m", f"-Djava.io.tmpdir={folder}", "-cp", f"{folder}/jars/*",
                   "org.apache.iceberg.rest.RESTCatalogServer"]  # fmt: skip
        with _process(command, folder, environment, f"http://127.0.0.1:{port}/v1/config"):
            yield OtherServer(f"http://127.0.0.1:{port}", f"file://{folder}/warehouse", {})


@contextmanager
def nessie_server() -> Iterator[OtherServer]:
    """Run Nessie, which keeps names in memory and files in the tests' S3 server."""
    with _own_folder() as folder, running() as store:
        jar = Path(shutil.copy(nessie_jar(), folder / "jars"))
        port, management = _free_port(), _free_port()
        settings = {
            "quarkus.http.port": port,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.management.port": management,
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.server.authentication.enabled": "false",
            "nessie.catalog.default-warehouse": "w",
            "nessie.catalog.warehouses.w.location": f"s3://{BUCKET}/nessie/",
            "nessie.catalog.service.s3.default-options.endpoint": f"http://127.0.0.1:{store.port}/",
            "nessie.catalog.service.s3.default-options.path-style-access": "true",
            "nessie.catalog.service.s3.default-options.region": "us-east-1",
            "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:tests.key",
            "tests.key.name": KEY_ID,
            "tests.key.secret": SECRET,
        }
        given = [f"-D{name}={value}" for name, value in settings.items()]
        command = [find_java(21), "-Xmx512m", f"-Djava.io.tmpdir={folder}", *given, "-jar", str(jar)]
        with _process(command, folder, {"HOME": str(folder)}, f"http://127.0.0.1:{port}/iceberg/v1/config"):
            # It has views, and lists no operations.
            properties = {**store.properties, "view-endpoints-supported": "true"}
            yield OtherServer(f"http://127.0.0.1:{port}/iceberg", f"s3://{BUCKET}/nessie", properties)


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Make a folder that nobody else's files are in, open to the server's user."""
    with tempfile.TemporaryDirectory(prefix="frazil-server-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "jars").mkdir()
        yield folder


@contextmanager
def _process(command: list[str], folder: Path, environment: dict[str, str], ready: str) -> Iterator[None]:
    # What a server deletes as root is gone, whoever's it was.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(  # type: ignore[call-overload]
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, umask=0,
            env={"PATH": os.environ["PATH"], **environment}, **user,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotStart(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
            try:
                with urllib.request.urlopen(ready, timeout=5):
                    break
            except OSError:
                time.sleep(0.3)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


SERVERS = {"java": java_server, "nessie": nessie_server}


def main() -> None:
    """Serve until standard input ends."""
    with SERVERS[sys.argv[1]]() as server:
        print(server.address, server.warehouse, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
