"""Iceberg's own compatibility kit for REST servers, against a served lake over SQLite and over PostgreSQL.

The kit is a suite of Iceberg Java's, which `../shared/rck/run.sh` fetches from Maven; where that is absent, this is
skipped. Some of its tests give up by their own assumptions, on Iceberg Java's server too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.interop_page import record
from tests.support.postgres_server import shared_server
from tests.support.served_lake import served

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]
KIT = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "rck" / "run.sh"
LEAST = 145
"""How many tests succeed at least, so that a kit that gives up everywhere fails this one."""


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_compatibility_kit_passes(tmp_path: Path, database: str) -> None:
    if not KIT.exists() or shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("the kit needs ../shared/rck, Maven and Java")
    catalog = shared_server().uri if database == "PostgreSQL" else None
    with served(tmp_path / "warehouse", catalog=catalog, state=tmp_path / "serve.db") as server:
        command = [str(KIT), f"{server.uri}/", "-Dwarehouse=lake"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1400, check=False, cwd=tmp_path)
    counts = {word: int(found) for found, word in re.findall(r"\[ *(\d+) tests (\w+) *\]", done.stdout)}
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert counts["failed"] == 0
    assert counts["successful"] >= LEAST, counts
    record(
        "Iceberg's compatibility kit for REST servers, against `frazil serve`",
        {"catalog": database, "tests": str(counts["found"]), "give up": str(counts["aborted"] + counts["skipped"])},
        {"succeed": str(counts["successful"]), "fail": "0"},
    )
