"""Requests that a client wants signed with the server's credentials: nothing beyond a table's reads and writes."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.serve.exchange import Refusal
from frazil.serve.sign_requests import SignRequest
from frazil.serve.store_access import StoreAccess, table_policy

ROOT = "s3://wh/lake"
BASE = "http://minio:9000/wh"
FILE = f"{BASE}/lake/db/t/data/x"
KEYS = {"s3.access-key-id": "AKIAPLANTED", "s3.secret-access-key": "S" * 20}
MINIO = {"s3.endpoint": "http://minio:9000", **KEYS}
AMAZON = {"s3.region": "us-east-1", **KEYS}
TABLE: Any = SimpleNamespace(
    identifier=("db", "t"), metadata=SimpleNamespace(location="s3://wh/lake/db/t", properties={})
)


def sign(
    method: str,
    uri: str,
    *,
    headers: dict[str, list[str]] | None = None,
    body: str | None = None,
    can_write: bool = True,
    store: dict[str, str] = MINIO,
    region: str = "us-east-1",
) -> dict[str, list[str]]:
    access = StoreAccess(store, signs=True, roots=[ROOT])
    return access.sign(TABLE, SignRequest(method, uri, region, headers or {}, body), can_write=can_write)[1]


def refuse(*arguments: Any, **more: Any) -> None:
    with pytest.raises((Refusal, InvalidRequestError)) as found:
        sign(*arguments, **more)
    assert "Cannot sign" in str(found.value)


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", ""),
        ("HEAD", ""),
        ("GET", "?x-id=GetObject"),
        ("GET", "?partNumber=2"),
        ("PUT", ""),
        ("PUT", "?partNumber=1&uploadId=u&x-id=UploadPart"),
        ("POST", "?uploads"),
        ("POST", "?uploadId=u"),
        ("DELETE", ""),
        ("DELETE", "?uploadId=u"),
    ],
)
def test_reads_and_writes_of_a_table_file_are_signed(method: str, query: str) -> None:
    headers = {"Range": ["bytes=0-9"], "x-amz-meta-frazil-write": ["id"], "x-amz-checksum-crc32": ["AAAAAA=="]}
    assert "authorization" in sign(method, FILE + query, headers=headers)


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-copy-source", "X-Amz-Copy-Source-Range", "x-amz-acl", "x-amz-grant-read", "x-amz-grant-full-control",
        "x-amz-tagging", "x-amz-object-lock-mode", "x-amz-website-redirect-location",
        "x-amz-bypass-governance-retention", "x-http-method-override",
        "x-amz-server-side-encryption", "x-amz-server-side-encryption-customer-key", "x-amz-mfa",
        "x-amz-expected-bucket-owner", "x-amz-storage-class", "x-forwarded-host",
    ],
)  # fmt: skip
def test_request_with_extra_headers_is_not_signed(name: str) -> None:
    refuse("PUT", FILE, headers={name: ["/payroll/2026.parquet"]})


def test_encryption_headers_are_signed_as_configured() -> None:
    store = {**MINIO, "s3.sse.type": "s3"}
    assert sign("PUT", FILE, headers={"x-amz-server-side-encryption": ["AES256"]}, store=store)
    refuse("PUT", FILE, headers={"x-amz-server-side-encryption": ["aws:kms"]}, store=store)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize(
    "name",
    ["acl", "policy", "tagging", "versionId", "versions", "uploads2", "retention", "legal-hold", "torrent", "select",
     "restore", "attributes", "location", "logging", "cors", "website", "replication", "notification", "lifecycle",
     "response-content-type", "x-amz-acl", "x-amz-copy-source"],
)  # fmt: skip
def test_sub_resource_request_is_not_signed(method: str, name: str) -> None:
    refuse(method, f"{FILE}?{name}")
    refuse(method, f"{BASE}?{name}&prefix=lake/db/t/data", can_write=False)
    refuse(method, f"{BASE}?list-type=2&prefix=lake/db/t/data&{name}=1")


def test_listing_is_signed_for_one_prefix_inside_the_table() -> None:
    assert sign("GET", f"{BASE}?list-type=2&prefix=lake/db/t/data&max-keys=10", can_write=False)
    assert sign("GET", f"{BASE}?prefix=lake/db/t/data&delimiter=/", can_write=False)
    for query in (
        "list-type=2&prefix=&prefix=lake/db/t/data",
        "list-type=2&prefix=lake/db/t/data&prefix=",
        "list-type=2&list-type=2&prefix=lake/db/t/data",
        "list-type=2&prefix=lake/db/",
        "list-type=2",
        "list-type=3&prefix=lake/db/t/data",
        "",
    ):
        refuse("GET", f"{BASE}?{query}", can_write=False)


@pytest.mark.parametrize(
    "body",
    [
        "<Delete><Object><k:Key xmlns:k='u'>lake/db/other/a</k:Key></Object></Delete>",
        "<Delete><!-- <Key>lake/db/t/a</Key> --><Object><Key>lake/db/other/a</Key></Object></Delete>",
        "<Delete><Object><Key>lake/db/t/&#46;&#46;/other/a</Key></Object></Delete>",
        "<Delete><Object><Key>lake/db/t/a</Key><VersionId>1</VersionId></Object></Delete>",
        "<Delete><Object><Key>lake/db/t/a</Key><Key>lake/db/other</Key></Object></Delete>",
        "<Delete><Object><Key>lake/db/t/a<b>/../other</b></Key></Object></Delete>",
        "<!DOCTYPE d [<!ENTITY e 'lake/db/other/a'>]><Delete><Object><Key>&e;</Key></Object></Delete>",
        "<?xml version='1.0' encoding='utf-16'?><Delete><Object><Key>lake/db/t/a</Key></Object></Delete>",
        "<Delete></Delete>",
        "<Delete><Key>lake/db/t/a</Key></Delete>",
        "not xml",
    ],
)
def test_bulk_delete_is_signed_for_files_of_the_table_only(body: str) -> None:
    refuse("POST", f"{BASE}?delete", body=body)


def test_bulk_delete_is_signed_with_the_hash_of_the_checked_body() -> None:
    head = "<Delete xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
    body = f"{head}<Quiet>true</Quiet><Object><Key>lake/db/t/a</Key></Object></Delete>"
    digest = hashlib.sha256(body.encode()).hexdigest()
    assert sign("POST", f"{BASE}?delete", body=body)["x-amz-content-sha256"] == [digest]
    shown = {"x-amz-content-sha256": [digest]}
    assert sign("POST", f"{BASE}?delete", body=body, headers=shown)["x-amz-content-sha256"] == [digest]
    other = {"x-amz-content-sha256": [hashlib.sha256(b"<Delete/>").hexdigest()]}
    refuse("POST", f"{BASE}?delete", body=body, headers=other)
    refuse("POST", f"{BASE}?delete", headers=other)
    refuse("POST", f"{BASE}?delete", body=body, can_write=False)


@pytest.mark.parametrize(
    "uri",
    [
        "http://wh.minio.evil.example:9000/lake/db/t/a",
        "http://wh.minio:9000.evil.example/lake/db/t/a",
        "http://minio:1/wh/lake/db/t/a",
        "http://minio/wh/lake/db/t/a",
        "https://minio:9000/wh/lake/db/t/a",
        "ftp://minio:9000/wh/lake/db/t/a",
        "http://user@minio:9000/wh/lake/db/t/a",
        "http://minio:9000//wh/lake/db/t/a",
        "http://minio:9000/wh/lake/db/t/a\n",
        "http://minio:9000/wh/lake/db/t/a b",
        "http://minio:9000/wh/lake/db/t/a#b",
        "//minio:9000/wh/lake/db/t/a",
        # A store that knows no buckets in hosts reads these as objects of the bucket `lake`.
        "http://wh.minio:9000/lake/db/t/a",
        "http://WH.minio:9000/lake/db/t/a",
        # Stores differ in whether an escaped slash ends the bucket.
        "http://minio:9000/wh%2Flake/db/t/a",
        "http://minio:9000/%77h/lake/db/t/a",
        "http://[minio:9000/wh/lake/db/t/a",
    ],
)
def test_only_the_store_of_the_server_is_signed_for(uri: str) -> None:
    refuse("GET", uri)


def test_virtual_host_request_is_signed_if_the_server_uses_virtual_hosts() -> None:
    virtual = {**MINIO, "s3.force-virtual-addressing": "true"}
    assert sign("GET", "http://wh.minio:9000/lake/db/t/a", store=virtual)
    refuse("GET", "http://other.minio:9000/lake/db/t/a", store=virtual)
    told = [StoreAccess(store).config(TABLE)["s3.path-style-access"] for store in (MINIO, virtual)]
    assert told == ["true", "false"]


@pytest.mark.parametrize(
    ("uri", "is_own"),
    [
        ("https://wh.s3.us-east-1.amazonaws.com/lake/db/t/a", True),
        ("https://s3.us-east-1.amazonaws.com/wh/lake/db/t/a", True),
        ("https://wh.s3.amazonaws.com/lake/db/t/a", True),
        ("http://wh.s3.us-east-1.amazonaws.com/lake/db/t/a", False),
        ("https://s3.evil.amazonaws.com/wh/lake/db/t/a", False),
        ("https://s3-x.amazonaws.com/wh/lake/db/t/a", False),
        ("https://wh.s3.eu-west-1.amazonaws.com/lake/db/t/a", False),
        ("https://wh.s3.us-east-1.amazonaws.com.cn/lake/db/t/a", False),
    ],
)
def test_regional_amazon_hosts_are_signed_for(uri: str, is_own: bool) -> None:
    if is_own:
        assert sign("GET", uri, store=AMAZON)
    else:
        refuse("GET", uri, store=AMAZON)
    refuse("GET", uri, store=AMAZON, region="eu-west-1")


def test_reader_receives_no_signature_for_writes() -> None:
    for method, query in (("PUT", ""), ("POST", "?uploads"), ("DELETE", ""), ("GET", "?uploadId=u")):
        refuse(method, FILE + query, can_write=False)


def test_location_characters_are_not_wildcards_in_a_policy() -> None:
    policy = json.loads(table_policy(["s3://wh/lake/*", "s3://wh/lake/a?b/${aws:username}"], can_write=True))
    files = policy["Statement"][0]["Resource"]
    assert files == ["arn:aws:s3:::wh/lake/${*}/*", "arn:aws:s3:::wh/lake/a${?}b/${$}{aws:username}/*"]
    assert policy["Statement"][1]["Condition"] == {"StringLike": {"s3:prefix": ["lake/${*}/*"]}}
