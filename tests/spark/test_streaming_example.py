"""The example of the streaming pages runs, and goes on where it was when it is run again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "streaming_orders.py"


@pytest.mark.slow
def test_streaming_example_aggregates_and_compacts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path)], capture_output=True, text=True, check=False, timeout=550
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.strip().splitlines()[-4:]
    assert lines[:3] == [
        "round 1: {'shop': 15, 'web': 14}",
        "round 2: {'shop': 30, 'web': 28}",
        "round 3: {'shop': 45, 'web': 42}",
    ]
    found = re.fullmatch(r"9 batches, (\d+) data files", lines[3])
    assert found is not None, lines[3]
    assert int(found[1]) < 9
