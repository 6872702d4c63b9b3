"""Tasks that fail and run again neither lose rows nor write them twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rows_of_retried_tasks_are_written_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "retry_worker.py"), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {"native": True, "arrow": True}
