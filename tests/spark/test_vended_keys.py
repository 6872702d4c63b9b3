"""Keys that a catalog service gives for a table are given to Spark's own readers and writers, for that table alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.serve.store_access import StoreAccess
from tests.s3_server import BUCKET, KEY_ID, SECRET, running
from tests.served_lake import served
from tests.spark.hadoop_aws import CannotFetch, hadoop_aws_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent


def test_spark_reads_and_writes_with_the_keys_of_the_service_and_shows_them_nowhere(tmp_path: Path) -> None:
    try:
        jars = ",".join(map(str, hadoop_aws_jars()))
    except CannotFetch as reason:
        pytest.skip(str(reason))
    (tmp_path / "events").mkdir()
    with running() as store:
        warehouse = f"s3://{BUCKET}/vended"
        access = StoreAccess(store.properties, vend="keys", roots=(warehouse,))
        catalog = f"sqlite:///{tmp_path}/catalog.db"
        with served(warehouse, catalog=catalog, access=access, properties=store.properties) as server:
            server.post("/v1/namespaces", {"namespace": ["db"]})
            done = subprocess.run(
                [sys.executable, "-m", "tests.spark.vended_worker", server.uri, jars, str(tmp_path / "events")],
                cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=400, check=False,
            )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["rows"] == [90, sum(range(10, 100))]
    assert all(one.startswith(warehouse) for one in seen["files"])
    assert seen["without"] != "read", "the keys are for the table alone"
    events = b"".join(one.read_bytes() for one in (tmp_path / "events").rglob("*") if one.is_file())
    for secret in (SECRET, KEY_ID):
        assert secret not in seen["plan"] + seen["conf"]
        assert secret.encode() not in events
