"""On a cluster whose tasks fail, run twice or die with their executor, rows are there once and tables are whole.

`FRAZIL_FAULT_RUNS` says how many changes are made, 50 without it; each has one fault (`fault_worker.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import cluster

HERE = Path(__file__).parent
RUNS = int(os.environ.get("FRAZIL_FAULT_RUNS", "50"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_changes_on_a_failing_cluster_are_atomic(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as master:
        done = subprocess.run(
            [sys.executable, str(HERE / "fault_worker.py"), master, str(tmp_path / "lake"), str(RUNS)],
            capture_output=True,
            text=True,
            timeout=3400,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    print(told)
    assert told["problems"] == []
    assert told["runs"] == RUNS
    # Spark makes good what fails; what it cannot make good, a change does by starting over.
    assert told["succeeded"] >= RUNS * 0.9
    assert told["killed"] >= RUNS // 4
