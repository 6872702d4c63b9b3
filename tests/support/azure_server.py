"""Azure's object store on the loopback, for tests: Azurite, which `make azurite` installs from npm."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The emulator's own, which everybody knows."""
CONTAINER = "warehouse"


def find_azurite() -> str | None:
    """Return the program, or None where it is not installed."""
    own = ROOT / ".azurite" / "node_modules" / ".bin" / "azurite-blob"
    return str(own) if own.exists() else shutil.which("azurite-blob")


@contextmanager
def running() -> Iterator[dict[str, str]]:
    """Run the emulator until the block ends; yield the properties of a connection to it."""
    program = find_azurite()
    if program is None:
        pytest.skip("Azurite is not installed: make azurite")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [program, "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent",
         "--skipApiVersionCheck", "--disableTelemetry"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "Azurite ended"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "Azurite does not answer"
                time.sleep(0.1)
        yield {
            "adls.endpoint": f"http://127.0.0.1:{port}",
            "adls.account-name": ACCOUNT,
            "adls.account-key": KEY,
        }
    finally:
        process.terminate()
        process.wait(20)
