"""`format("iceberg")` in a session of Spark Connect, which has no JVM in reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

ROOT = Path(__file__).parents[2]
NEEDED = ("grpc", "grpc_status", "google.rpc", "zstandard")


def missing_packages() -> list[str]:
    """Return which of the packages that Spark Connect needs are not installed."""
    return [name for name in NEEDED if find_spec(name.partition(".")[0]) is None]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(missing_packages()), reason=f"Spark Connect needs {', '.join(missing_packages())}")
def test_connect_session_reads_tables_and_reports_unsupported_features(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with frazil.connect(folder) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint not null, kind string", partition_by=["kind"])
        table.append(pa.table({"id": [1, 2, 3], "kind": ["a", "b", "b"]}))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_checks", str(folder)],
        cwd=ROOT,
        # A server's Python workers are no workers of this process: they must be told which Python has frazil's needs.
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["session"] == "pyspark.sql.connect.session"
    assert found["schema"] == "struct<id:bigint,kind:string>"
    assert found["rows"] == [[2, "b"], [3, "b"]]
    assert found["by_path"] == [[2], [3]]
    for text in found["refused"]:
        assert "Spark Connect" in text
        assert 'format("iceberg")' in text
