"""Spark contexts that follow each other in one process, as notebooks and test suites have them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TURNS = 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lake_is_read_and_written_in_every_context_of_a_process(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(HERE / "restart_worker.py"), str(tmp_path / "lake"), str(TURNS)],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert json.loads(result.stdout.splitlines()[-1]) == [list(range(turn + 1)) for turn in range(TURNS)]
