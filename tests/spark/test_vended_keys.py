"""Keys that a catalog service gives for a table are given to Spark's own readers and writers, for that table alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from frazil.serve.store_access import StoreAccess
from frazil.storage.assume_role import SessionKeys
from frazil.storage.sign_v4 import S3Credentials
from tests.spark.cluster import cluster
from tests.spark.hadoop_aws import CannotFetch, hadoop_aws_jars
from tests.support.s3_server import BUCKET, ENDS, KEY_ID, SECRET, running
from tests.support.served_lake import served

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent


def test_spark_uses_vended_credentials_and_never_shows_them(tmp_path: Path) -> None:
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


KEYS_LAST_S = 12


@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["local", "cluster"])
def test_job_continues_when_vended_credentials_expire(where: str, tmp_path: Path) -> None:
    try:
        jars = list(map(str, hadoop_aws_jars()))
    except CannotFetch as reason:
        pytest.skip(str(reason))
    given: list[str] = []

    def short_keys(role: str, policy: str, seconds: int) -> SessionKeys:
        ends = int(time.time() * 1000) + KEYS_LAST_S * 1000
        given.append(f"{ENDS}{ends}")
        return SessionKeys(S3Credentials(given[-1], SECRET, f"canary-token-{len(given)}"), ends)

    def run(master: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.ending_keys_worker", server.uri, master, ":".join(jars),
             str(KEYS_LAST_S), str(tmp_path)],
            cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found

    with running() as store:
        warehouse = f"s3://{BUCKET}/ending"
        access = StoreAccess(store.properties, vend="session", role="arn:r", roots=(warehouse,), assume_role=short_keys)
        catalog = f"sqlite:///{tmp_path}/catalog.db"
        with served(warehouse, catalog=catalog, access=access, properties=store.properties) as server:
            server.post("/v1/namespaces", {"namespace": ["db"]})
            if where == "local":
                seen = run("local[2]")
            else:
                with cluster(tmp_path / "cluster") as master:
                    seen = run(master)
    assert seen["seconds"] > 2 * KEYS_LAST_S, "the job did not outlive its keys"
    assert seen["kept frame"] == [12, 66]
    assert seen["one task"] == [12, 66]
    assert seen["written"] == [12, 66]
    assert len(set(seen["files"])) >= 6, "a task that reads one file has all it needs at once"
    for secret in (SECRET, "canary-token", ENDS):
        assert secret not in seen["plan"] + seen["conf"] + seen["logs"]
