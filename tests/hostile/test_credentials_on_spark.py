"""Spark's own S3 file system, with the user's credentials planted: a service's endpoint gets none of them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from frazil.changes.apply import apply_updates
from frazil.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot, SnapshotRef
from tests.hostile.recording_proxy import recording_proxy
from tests.hostile.test_credentials import OWN, SECRETS, STRANGER, USERS, VENDED
from tests.spark.hadoop_aws import CannotFetch, hadoop_aws_jars
from tests.support.rest_lab import metadata_of, scripted_service, table_json

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent
AT = "/v1/namespaces/db/tables/t"
STATEMENTS = (
    "select * from {lake}.db.t",
    "select count(*) from {lake}.db.t where id > 5",
    "insert into {lake}.db.t values (1, null, 'a')",
    "insert overwrite {lake}.db.t select id, null, 'b' from range(10)",
    "delete from {lake}.db.t where id = 3",
    "update {lake}.db.t set kind = 'c' where id = 3",
    "merge into {lake}.db.t t using (select 1L as id) s on t.id = s.id when matched then delete",
    "select * from {lake}.db.t.files",
    "call {lake}.system.rewrite_data_files('db.t')",
    "call {lake}.system.expire_snapshots('db.t')",
    "call {lake}.system.remove_orphan_files('db.t')",
)
KEY = base64.b64encode(b"planted-key-of-32-bytes-for-SSEC").decode()
EVIL = {"s3.endpoint": f"http://{STRANGER}:9000"}
VENDED_S3 = [{"prefix": "s3://", "config": {**VENDED["s3"], **EVIL}}]
SERVICES: dict[str, dict[str, Any]] = {
    "defaults": {"defaults": EVIL},
    "overrides": {"overrides": EVIL},
    "config": {"config": EVIL},
    "environment": {"config": {**EVIL, "s3.use-environment": "true"}},
    "signed": {"config": {**EVIL, "s3.remote-signing-enabled": "true"}},
    "vended": {"storage-credentials": VENDED_S3},
    "half": {"storage-credentials": [{"prefix": "s3://", "config": {**EVIL, "s3.session-token": "vended-session"}}]},
    "unsigned": {"storage-credentials": [{"prefix": "s3://", "config": {**EVIL, "s3.access-key-id": "AKIAVENDED"}}]},
    "empty": {"storage-credentials": [{"prefix": "s3://", "config": {**EVIL, **VENDED["s3"], "s3.session-token": ""}}]},
    "variables": {
        "storage-credentials": [
            {"prefix": "s3://", "config": {**VENDED["s3"], **EVIL, "s3.access-key-id": "x${fs.s3a.secret.key}"}}
        ]
    },
    "trusted": {"config": {"s3.endpoint": f"http://{OWN}:9000"}},
    "configured": {"config": EVIL},
}
"""What a service says about the store, by the name of the lake."""
OWN_PROPERTIES = {
    "trusted": {"credentials.endpoints": f"http://{OWN}:9000"},
    "configured": {"s3.endpoint": f"http://{OWN}:9000"},
}


def table_in(bucket: str) -> Any:
    """Return the metadata of a table in a bucket, with a snapshot."""
    summary = FrozenMap({"operation": "append"})
    snapshot = Snapshot(7, 1_700_000_000_001, f"s3://{bucket}/t/metadata/snap.avro", summary, None, 1, 0)
    updates = (AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(7)))
    return apply_updates(metadata_of(location=f"s3://{bucket}/t"), updates, now_ms=1_700_000_000_002)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["keys", "session", "environment"])
def test_endpoint_of_a_service_does_not_receive_user_credentials_from_spark(kind: str) -> None:
    try:
        jars = ",".join(map(str, hadoop_aws_jars()))
    except CannotFetch as reason:
        pytest.skip(str(reason))
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIAPLANTED0002",
        "AWS_SECRET_ACCESS_KEY": "planted-environment",
        "AWS_SESSION_TOKEN": "planted-session-of-the-environment",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": "us-east-1",
    }
    cases: dict[str, Any] = {}
    with ExitStack() as stack:
        proxy = stack.enter_context(recording_proxy())
        for name, given in SERVICES.items():
            named = {key: given.get(key, {}) for key in ("defaults", "overrides")}
            service = stack.enter_context(scripted_service(named))
            answer = {key: value for key, value in given.items() if key not in named}
            service.on(f"GET {AT}", (200, table_json(table_in(name), f"s3://{name}/t/metadata/0.json", **answer)))
            service.on("POST /v1/aws/s3/sign", lambda asked: (200, {"uri": asked.body["uri"], "headers": {}}))
            properties = {**USERS["s3"][kind], **OWN_PROPERTIES.get(name, {})}
            statements = [statement.format(lake=name) for statement in STATEMENTS]
            cases[name] = {"address": service.address, "properties": properties, "statements": statements}
            # A key that Hadoop sends with each request, whoever signs it.
            encryption = {"encryption.algorithm": "SSE-C", "encryption.key": KEY}
            session = {f"fs.s3a.bucket.{name}.{key}": value for key, value in encryption.items()}
            cases[name]["settings"] = {} if name in OWN_PROPERTIES else session
        done = subprocess.run(
            [sys.executable, "-m", "tests.hostile.planted_worker", str(proxy.port), jars, json.dumps(cases)],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    outcomes = json.loads(done.stdout.strip().splitlines()[-1])
    sent = proxy.text_to(STRANGER)
    assert not any(secret in sent for secret in SECRETS), sent[:3000]
    # Only a service that gives credentials of its own has its endpoint asked, and Spark does that, too.
    assert "AKIAVENDED" in sent and "Hadoop" in sent
    assert "/half/" in sent and "/unsigned/" in sent and "/empty/" in sent
    assert "encryption-customer" not in sent
    for name in ("defaults", "overrides", "config", "environment"):
        assert f"/{name}/" not in sent, name
        assert "credentials.endpoints" in outcomes[name][0], outcomes[name]
    assert "names of its own settings" in outcomes["variables"][2], outcomes["variables"]
    own = proxy.text_to(OWN)
    assert "AKIAPLANTED" in own and "Hadoop" in own and "/trusted/" in own and "/configured/" in own
    assert proxy.hosts <= {STRANGER, OWN}
