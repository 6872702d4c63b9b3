"""How clients reach files in an object store: what they are told, keys, and requests that the server signs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import InvalidPropertyError
from frazil.loaded import LoadedTable
from frazil.serve.auth import Auth, Right, Secret
from frazil.serve.exchange import Refusal
from frazil.serve.sign_requests import SignRequest
from frazil.serve.store_access import StoreAccess, table_policy
from frazil.spec.new_table import new_table_metadata
from frazil.storage.assume_role import SessionKeys
from frazil.storage.memory import MemoryStorage
from frazil.storage.sign_v4 import S3Credentials
from tests.support import builders
from tests.support.served_lake import Served, served

KEY_ID, SECRET = "AKIACANARYKEYID00001", "canary/secret+key/of/the/tests/0000000001"
STORE = {
    "s3.endpoint": "http://127.0.0.1:9000",
    "s3.region": "eu-central-1",
    "s3.access-key-id": KEY_ID,
    "s3.secret-access-key": SECRET,
}
ROOT = "s3://bucket/lake"
TABLE = f"{ROOT}/db/t"


def table(location: str = TABLE, **properties: str) -> LoadedTable:
    metadata = new_table_metadata(
        builders.schema(),
        location=location,
        properties=properties,
        uuid="00000000-0000-4000-8000-000000000000",
        now_ms=1,
    )
    return LoadedTable(("db", "t"), metadata, f"{location}/metadata/v1.json", MemoryStorage())


def request(
    method: str = "GET", uri: str = "http://127.0.0.1:9000/bucket/lake/db/t/data/a.parquet", **more: Any
) -> SignRequest:
    return SignRequest(method, uri, "eu-central-1", more.pop("headers", {"Range": ["bytes=0-9"]}), **more)


def signer(**options: Any) -> StoreAccess:
    return StoreAccess(STORE, signs=True, roots=[ROOT], **options)


def test_clients_get_the_store_location_and_no_secret() -> None:
    access = StoreAccess(STORE, roots=[ROOT])
    told = access.config(table())
    assert told == {
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.path-style-access": "true",
        "s3.region": "eu-central-1",
        "client.region": "eu-central-1",
    }
    assert access.delegated(table(), "vended-credentials,remote-signing", can_write=True) == {}
    assert access.config(table("file:///lake/db/t")) == {}


def test_credentials_are_vended_if_enabled_and_to_writers_only() -> None:
    access = StoreAccess(STORE, vend="keys", roots=[ROOT])
    (given,) = access.delegated(table(), "vended-credentials", can_write=True)["storage-credentials"]
    assert given["prefix"] == f"{TABLE}/"
    assert given["config"]["s3.secret-access-key"] == SECRET
    assert access.credentials(table(), can_write=False) == []
    assert access.credentials(table("s3://elsewhere/t"), can_write=True) == []


def test_session_credentials_are_limited_to_the_table_folder_and_renewed_before_expiry() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    now = [0]

    def assume(role: str, policy: str, seconds: int) -> SessionKeys:
        asked.append((role, json.loads(policy)))
        return SessionKeys(S3Credentials("ASIA", f"secret{len(asked)}", "token"), now[0] + seconds * 1000)

    access = StoreAccess(
        STORE, vend="session", role="arn:aws:iam::1:role/x", roots=[ROOT], now_ms=lambda: now[0], assume_role=assume
    )
    (first,) = access.credentials(table(), can_write=False)
    again = "v1/namespaces/db/tables/t/credentials"
    assert first["config"]["client.refresh-credentials-endpoint"] == again
    told = access.delegated(table(), "vended-credentials", can_write=False)
    assert told["config"]["client.refresh-credentials-endpoint"] == again
    assert first["config"]["s3.session-token"] == "token"
    assert first["config"]["s3.session-token-expires-at-ms"] == "3600000"
    assert access.credentials(table(), can_write=False) == [first]
    actions = asked[0][1]["Statement"][0]["Action"]
    assert actions == ["s3:GetObject"]
    assert asked[0][1]["Statement"][0]["Resource"] == ["arn:aws:s3:::bucket/lake/db/t/*"]
    access.credentials(table(), can_write=True)
    assert "s3:PutObject" in asked[1][1]["Statement"][0]["Action"]
    now[0] = 3_000_000
    access.credentials(table(), can_write=False)
    assert len(asked) == 3


def test_credentials_cover_each_folder_of_the_table_in_the_server_store() -> None:
    policies: list[str] = []

    def assume(role: str, policy: str, seconds: int) -> SessionKeys:
        policies.append(policy)
        return SessionKeys(S3Credentials("ASIA", "secret", "token"), 2**50)

    access = StoreAccess(STORE, vend="session", role="arn:aws:iam::1:role/x", roots=[ROOT], assume_role=assume)
    split = table("s3a://bucket/lake/db/t", **{"write.data.path": f"{ROOT}/data/t"})
    assert [one["prefix"] for one in access.credentials(split, can_write=True)] == [
        "s3a://bucket/lake/db/t/",
        f"{ROOT}/data/t/",
    ]
    assert [one["prefix"] for one in access.credentials(table(), can_write=True)] == [f"{TABLE}/"]
    assert ["lake/data/t/*" in one for one in policies] == [True, False]


def test_policy_never_exceeds_the_folders() -> None:
    policy = json.loads(table_policy(["s3://bucket/lake/db/t"], can_write=True))
    assert policy["Statement"][1]["Condition"] == {"StringLike": {"s3:prefix": ["lake/db/t/*"]}}


def test_request_for_a_table_file_is_signed() -> None:
    uri, headers = signer().sign(table(), request(), can_write=False)
    assert uri == "http://127.0.0.1:9000/bucket/lake/db/t/data/a.parquet"
    (signature,) = headers["authorization"]
    assert f"Credential={KEY_ID}/" in signature
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date" in signature
    assert headers["range"] == ["bytes=0-9"]
    assert SECRET not in str(headers)


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:9000/bucket/lake/db/other/a.parquet",
        "http://127.0.0.1:9000/bucket/lake/db/t2/a.parquet",
        "http://127.0.0.1:9000/bucket/lake/db/t/../other/a.parquet",
        "http://127.0.0.1:9000/bucket/lake/db/t/%2e%2e/other/a.parquet",
        "http://127.0.0.1:9000/elsewhere/lake/db/t/a.parquet",
        "http://evil.example/bucket/lake/db/t/a.parquet",
        "https://sts.amazonaws.com/",
        "http://127.0.0.1:9000/bucket?list-type=2&prefix=lake/db/",
    ],
)
def test_other_requests_are_not_signed(uri: str) -> None:
    with pytest.raises(Refusal) as refused:
        signer().sign(table(), request(uri=uri), can_write=True)
    assert refused.value.code == 403


def test_metadata_does_not_extend_the_use_of_server_credentials() -> None:
    moved = table("s3://secrets/t", **{"write.data.path": "s3://secrets"})
    with pytest.raises(Refusal):
        signer().sign(moved, request(uri="http://127.0.0.1:9000/secrets/t/a"), can_write=True)


def test_readers_get_no_write_signature() -> None:
    uri = "http://127.0.0.1:9000/bucket/lake/db/t/data/a.parquet"
    for method, address in (("PUT", uri), ("DELETE", uri), ("POST", f"{uri}?uploads")):
        with pytest.raises(Refusal) as refused:
            signer().sign(table(), request(method, address), can_write=False)
        assert refused.value.code == 403
        signer().sign(table(), request(method, address), can_write=True)


def test_every_file_of_a_bulk_delete_is_checked() -> None:
    uri = "http://127.0.0.1:9000/bucket?delete"
    good = "<Delete><Object><Key>lake/db/t/a</Key></Object><Object><Key>lake/db/t/b&amp;c</Key></Object></Delete>"
    signer().sign(table(), request("POST", uri, body=good), can_write=True)
    bad = good.replace("lake/db/t/a", "lake/db/other/a")
    with pytest.raises(Refusal):
        signer().sign(table(), request("POST", uri, body=bad), can_write=True)


def test_invalid_choices_are_refused() -> None:
    for options in ({"vend": "all"}, {"vend": "session"}, {"role": "arn"}):
        with pytest.raises(InvalidPropertyError):
            StoreAccess(STORE, **options)  # type: ignore[arg-type]


@pytest.fixture
def make_server(tmp_path: Path) -> Callable[[StoreAccess], Any]:
    def make(access: StoreAccess) -> Any:
        secrets = [Secret("w", "writer-token-0000001"), Secret("r", "reader-token-0000001", Right.READ)]
        return served(tmp_path / "w", access=access, auth=Auth(secrets))

    return make


def test_operations_match_the_protocol(make_server: Callable[[StoreAccess], Any]) -> None:
    with make_server(StoreAccess(STORE, vend="keys", signs=True, roots=[ROOT])) as server:
        assert isinstance(server, Served)
        server.headers["Authorization"] = "Bearer writer-token-0000001"
        server.make_table("t", "db")
        path = "/v1/namespaces/db/tables/t"
        given = server.get(f"{path}/credentials")
        assert (given.code, given.json, given.headers["cache-control"]) == (
            200,
            {"storage-credentials": []},
            "no-store",
        )
        # The table is in a folder of this machine: nothing is signed for it.
        body = {
            "region": "eu-central-1",
            "uri": "http://127.0.0.1:9000/bucket/lake/db/t/a",
            "method": "GET",
            "headers": {"x": ["y"]},
        }
        assert server.post(f"{path}/sign", body).error == "ForbiddenException"
        assert server.post(f"{path}/sign", {**body, "provider": "gcs"}).code == 406
        assert server.post(f"{path}/sign", {**body, "method": "FLY"}).code == 400
        assert server.post(f"{path}/sign", {**body, "headers": {"x": "y"}}).code == 400
        # A way that is not known here is one that the server does not choose.
        assert server.get(path, **{"X-Iceberg-Access-Delegation": "magic"}).code == 200
        assert server.get(path, **{"X-Iceberg-Access-Delegation": "vended-credentials"}).code == 200
    with make_server(StoreAccess()) as plain:
        plain.headers["Authorization"] = "Bearer reader-token-0000001"
        refused = plain.post("/v1/namespaces/db/tables/t/sign", body)
        assert (refused.code, refused.error) == (406, "UnsupportedOperationException")
