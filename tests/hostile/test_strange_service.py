"""Every method of the Python API over a stranger's catalog service, with secrets of every kind planted.

The service names a host of its own wherever properties have an address, and grants itself whatever can be granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import frazil
from tests.hostile.entry_points import Ear, run_lake, run_table
from tests.hostile.recording_proxy import RecordingProxy, recording_proxy
from tests.hostile.test_credentials import AT, SECRETS, STRANGER, USERS, VENDED
from tests.hostile.test_credentials_on_spark import table_in
from tests.support.rest_lab import ScriptedService, scripted_service, table_json

OWN = {
    "token": "planted-token",
    "header.x-tenant": "planted-tenant",
    "s3.region": "us-east-1",
    **USERS["s3"]["session"],
    **USERS["gcs"]["token"],
    **USERS["azure"]["token"],
}
ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
]


def named(elsewhere: str) -> dict[str, str]:
    """Return every property that has an address, or could give the service a right, with the stranger's host."""
    store = f"http://{STRANGER}:9000"
    services = (
        "oauth2-server-uri", "signer.uri", "s3.signer.uri", "signer.endpoint", "s3.signer.endpoint",
        "client.refresh-credentials-endpoint", "gcs.oauth2.refresh-credentials-endpoint",
        "adls.refresh-credentials-endpoint", "client.assume-role.endpoint", "metrics-endpoint",
    )  # fmt: skip
    stores = (
        "s3.endpoint", "gcs.service.host", "adls.endpoint", "s3.proxy-uri", "http-client.proxy-endpoint",
        "adls.connection-string", "gcs.endpoint", "client.endpoint", "hadoop.fs.s3a.endpoint", "fs.s3a.endpoint",
    )  # fmt: skip
    granted = {
        "credentials.endpoints": f"{store},{elsewhere}", "s3.use-environment": "true", "read.roots": "/",
        "delete.roots": "/",
        "client.assume-role.arn": "arn:aws:iam::1:role/r", "client.assume-role.region": "us-east-1",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.factory": "x.Factory", "rest.allow-plain-http": "true",
        "header.host": STRANGER, "header.x-forwarded-host": STRANGER, "rest.client.proxy.hostname": STRANGER,
        "s3.force-virtual-addressing": "true", "s3.access-points.lake": f"{STRANGER}/",
        "s3.cross-region-access-enabled": "true",
    }  # fmt: skip
    return dict.fromkeys(services, f"{elsewhere}/v1/oauth/tokens") | dict.fromkeys(stores, store) | granted


WAYS = ("plain", "vended", "half", "signed")
"""With what a table comes, beside the addresses."""


def answer_of(way: str, config: dict[str, str]) -> dict[str, Any]:
    if way == "vended":
        keys = {**VENDED["s3"], **VENDED["gcs"], **VENDED["azure"]}
        return {"config": config, "storage-credentials": [{"prefix": "", "config": {**config, **keys}}]}
    if way == "half":
        half = {**config, "s3.session-token": "vended-session"}
        return {"config": config, "storage-credentials": [{"prefix": "s3://lake/", "config": half}]}
    return {"config": {**config, "s3.remote-signing-enabled": "true"} if way == "signed" else config}


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingProxy]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPLANTED0002")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-environment")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "planted-session-of-the-environment")
    with recording_proxy() as made:
        yield made


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:The catalog service:RuntimeWarning")
@pytest.mark.parametrize("trust", ["all", "none"])
@pytest.mark.parametrize("where", ["config", "defaults", "overrides"])
@pytest.mark.parametrize("way", WAYS)
def test_no_method_sends_a_secret_to_a_host_that_a_service_names(
    proxy: RecordingProxy, way: str, where: str, trust: str
) -> None:
    with scripted_service() as elsewhere, scripted_service() as service:
        addresses = named(elsewhere.address)
        said = {"defaults": {}, "overrides": {}, **({} if where == "config" else {where: addresses})}
        service.on("GET /v1/config", (200, {**said, "endpoints": ENDPOINTS}))
        answer_what_is_asked(service, answer_of(way, addresses if where == "config" else {}))
        properties = {**OWN, "read.roots": "s3://lake/t", "http-client.proxy-endpoint": proxy.url}
        with Ear() as ear, frazil.connect(service.address, trust=trust, properties=properties) as lake:
            run_table(ear, lake, ("db", "t"))
            run_lake(ear, lake, ("db", "t"), ("db", "v"))
        assert elsewhere.asked == []
        assert any(one.headers.get("authorization") == "Bearer planted-token" for one in service.asked)
    ear.check(("planted-secret", "planted-session", "planted-gcs-token", "planted-entra-token", "planted-environment"))
    # The service may have buckets as a part of its own host.
    assert proxy.hosts <= {STRANGER, f"lake.{STRANGER}"}, proxy.hosts
    for host in proxy.hosts:
        text = proxy.text_to(host)
        assert not any(secret in text for secret in SECRETS), text[:3000]
    if way == "plain":
        assert proxy.hosts == set()


def answer_what_is_asked(service: ScriptedService, answer: dict[str, Any]) -> None:
    """Have a service answer for a table with a snapshot, for lists and for commits."""
    loaded = (200, table_json(table_in("lake"), "s3://lake/t/metadata/0.json", **answer))
    service.on(f"GET {AT}", loaded)
    service.on(f"POST {AT}", loaded)
    service.on(f"POST {AT}/metrics", (204, None))
    service.on("POST /v1/aws/s3/sign", lambda asked: (200, {"uri": asked.body["uri"], "headers": {}}))
    service.on("GET /v1/namespaces", (200, {"namespaces": [["db"]]}))
    service.on("GET /v1/namespaces/db/tables", (200, {"identifiers": [{"namespace": ["db"], "name": "t"}]}))
