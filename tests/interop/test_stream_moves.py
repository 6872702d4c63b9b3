"""A streaming query moves between Iceberg's jar and frazil with its checkpoint, and back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.interop.java_runtime import PACKAGE, PYTHON, ROOT

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]


def test_sink_switches_between_the_jar_and_frazil_and_writes_each_batch_once(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("no environment with PySpark 4.1")
    script = str(Path(__file__).with_name("stream_moves.py"))
    done = subprocess.run(
        [str(PYTHON), script, PACKAGE, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unresolved dependency" in done.stderr or "Unresolved" in done.stderr:
        pytest.skip("the Java runtime could not be had from Maven Central")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    # One query, by its id; the batch that runs again under the other one is not written twice.
    assert found["queries"] == 1
    assert [rows for _, rows in found["turns"]] == [list(range(number + 1)) for number in range(6)]
    assert found["ok"]
