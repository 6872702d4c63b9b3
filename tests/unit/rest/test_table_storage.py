"""Keys that a service gives for a table's files: by prefix, renewed before they end, never shown; signatures."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.catalog.outcomes import Committed
from frazil.changes.updates import SetProperties
from frazil.errors import AccessDeniedError, ServiceError, StorageError, UnsupportedError
from frazil.rest.load_result import VendedCredentials
from frazil.rest.table_storage import KeyRing, VendedStorage, table_storage
from frazil.spark.jvm.file_systems import hadoop_options
from frazil.spec.frozen_map import FrozenMap
from frazil.storage.choose import choose_storage
from frazil.storage.http import Answer
from tests.support.rest_lab import ScriptedService, error_json, opened, scripted_service, table_json

TABLE = ("db", "t")
AT = "/v1/namespaces/db/tables/t"


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


def keys(name: str, ends_ms: int | None = None) -> dict[str, str]:
    made = {
        "s3.access-key-id": f"{name}-id",
        "s3.secret-access-key": f"{name}-secret",
        "s3.session-token": f"{name}-token",
    }
    return made if ends_ms is None else made | {"s3.session-token-expires-at-ms": str(ends_ms)}


def credentials_of(storage: Any, location: str) -> Any:
    return storage.storage_of(location)._requests.service.credentials()


def with_keys(given: Any) -> Any:
    more: dict[str, Any] = {"storage-credentials": given}
    return table_json(**more)


def never() -> tuple[VendedCredentials, ...]:
    raise AssertionError("nobody asked for new keys")


def unsigned(_: dict[str, Any]) -> Answer:
    raise AssertionError("nothing is to be signed")


def test_longest_matching_prefix_selects_the_credentials() -> None:
    plain = choose_storage({})
    given = (VendedCredentials("s3://b/", keys("all")), VendedCredentials("s3://b/db/t/data", keys("data")))
    storage = table_storage(plain, {}, given, never, unsigned)
    assert credentials_of(storage, "s3://b/db/t/data/f.parquet").access_key_id == "data-id"
    assert credentials_of(storage, "s3a://b/db/t/metadata/m.avro").access_key_id == "all-id"
    with pytest.raises(Exception, match="no credentials are configured"):
        storage.storage_of("s3://other/f")  # type: ignore[attr-defined]


def test_table_settings_with_credentials_apply_to_all_files() -> None:
    storage = table_storage(choose_storage({}), {**keys("own"), "client.region": "eu-west-1"}, (), never, unsigned)
    assert credentials_of(storage, "s3://anywhere/f").session_token == "own-token"
    assert storage.storage_of("s3://b/f")._requests.service.region == "eu-west-1"  # type: ignore[attr-defined]


def test_without_vended_credentials_user_storage_is_used() -> None:
    plain = choose_storage({})
    assert table_storage(plain, {"some": "setting"}, (), never, unsigned) is plain


def test_credentials_are_renewed_before_expiry() -> None:
    now = [0]
    asked: list[int] = []

    def fetch() -> tuple[VendedCredentials, ...]:
        asked.append(now[0])
        return (VendedCredentials("s3://b/", keys(f"n{len(asked)}", now[0] + 1_000_000)),)

    ring = KeyRing((VendedCredentials("s3://b/", keys("n0", 1_000_000)),), fetch, now_ms=lambda: now[0])
    seen = []
    for moment in (0, 699_999, 700_000, 1_399_999, 1_400_000):
        now[0] = moment
        seen.append(ring.config("s3://b/")["s3.access-key-id"])
    assert seen == ["n0-id", "n0-id", "n1-id", "n1-id", "n2-id"]
    assert asked == [700_000, 1_400_000]


def test_credentials_that_cannot_be_renewed_are_used_until_expiry() -> None:
    now = [800_000]

    def fetch() -> tuple[VendedCredentials, ...]:
        raise ServiceError("Cannot reach it")

    ring = KeyRing((VendedCredentials("", keys("n0", 1_000_000)),), fetch, now_ms=lambda: now[0])
    assert ring.config("")["s3.access-key-id"] == "n0-id"
    now[0] = 1_000_001
    with pytest.raises(ServiceError):
        ring.config("")


def test_credentials_are_in_no_text_or_pickle(service: ScriptedService) -> None:
    catalog = opened(service)
    more: dict[str, Any] = {
        "config": keys("config"),
        "storage-credentials": [{"prefix": "s3://b/", "config": keys("vended")}],
    }
    service.on(f"GET {AT}", (200, table_json(**more)))
    loaded = catalog.load_table(TABLE)
    assert service.asked[-1].headers["x-iceberg-access-delegation"] == "vended-credentials"
    assert isinstance(loaded.storage, VendedStorage)
    assert credentials_of(loaded.storage, "s3://b/f").secret_access_key == "vended-secret"
    for text in (repr(loaded), repr(loaded.storage), pickle.dumps(loaded).decode("latin-1")):
        assert not any(f"{name}-{what}" in text for name in ("vended", "config") for what in ("secret", "token", "id"))


def test_new_credentials_come_from_their_endpoint_or_else_from_the_table(service: ScriptedService) -> None:
    ended = [{"prefix": "s3://b/", "config": keys("old", 1)}]
    fresh = [{"prefix": "s3://b/", "config": keys("new", 2**50)}]
    service.on(f"GET {AT}", (200, with_keys(ended)))
    service.on(f"GET {AT}/credentials", (200, {"storage-credentials": fresh}))
    endpoints = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    storage = opened(service).load_table(TABLE).storage
    assert credentials_of(storage, "s3://b/f").access_key_id == "new-id"
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}}))
    told = [{"prefix": "s3://b/", "config": {**keys("old", 1), "client.refresh-credentials-endpoint": "/v1/more/keys"}}]
    service.on(f"GET {AT}", (200, with_keys(told)))
    service.on("GET /v1/more/keys", (200, {"storage-credentials": fresh}))
    assert credentials_of(opened(service).load_table(TABLE).storage, "s3://b/f").access_key_id == "new-id"
    assert service.lines()[-1] == "GET /v1/more/keys"
    service.on(f"GET {AT}", (200, with_keys(ended)))
    storage = opened(service).load_table(TABLE).storage
    service.on(f"GET {AT}", (200, with_keys(fresh)))
    assert credentials_of(storage, "s3://b/f").access_key_id == "new-id"


def test_user_with_own_credentials_requests_none(service: ScriptedService) -> None:
    catalog = opened(service, {"s3.access-key-id": "mine", "s3.secret-access-key": "hidden"})
    service.on(f"GET {AT}", (200, table_json()))
    catalog.load_table(TABLE)
    assert "x-iceberg-access-delegation" not in service.asked[-1].headers


def test_service_cannot_extend_the_readable_roots(service: ScriptedService) -> None:
    config = {"defaults": {"read.roots": "/"}, "overrides": {"read.roots": "/etc", "delete.roots": "/etc"}}
    service.on("GET /v1/config", (200, config))
    catalog = opened(service, {"read.roots": "/srv/lake"})
    service.on(f"GET {AT}", (200, table_json(config={"read.roots": "/etc", "s3.region": "eu-west-1"})))
    assert catalog.delete_roots == ("/srv/lake",)
    for storage in (catalog.storage, catalog.load_table(TABLE).storage):
        with pytest.raises(Exception, match="outside the folders"):
            storage.read("/etc/passwd")


# A token of one table


def test_table_token_of_a_service_is_used_until_refused(service: ScriptedService) -> None:
    loaded_twice = (200, table_json(config={"token": "canary-table-token"}))
    service.on(f"GET {AT}", loaded_twice)
    service.on("GET /v1/namespaces/db/tables/u", (200, table_json()))
    catalog = opened(service, {"token": "canary-user-token"})
    loaded, other = catalog.load_table(TABLE), catalog.load_table(("db", "u"))
    service.on(f"POST {AT}", (200, table_json()))
    service.on("POST /v1/namespaces/db/tables/u", (200, table_json()))
    for one in (loaded, other):
        catalog.commit(one, (SetProperties(FrozenMap({"a": "b"})),))
    sent = [one.headers["authorization"] for one in service.asked if one.method == "POST"]
    assert sent == ["Bearer canary-table-token", "Bearer canary-user-token"]
    service.on(f"POST {AT}", error_json(401, "NotAuthorizedException"), (200, table_json()))
    assert isinstance(catalog.commit(loaded, (SetProperties(FrozenMap({"a": "c"})),)), Committed)
    assert service.asked[-1].headers["authorization"] == "Bearer canary-user-token"
    catalog.load_table(TABLE)
    service.on(f"POST {AT}", error_json(403, "ForbiddenException", "not for canary-table-token"))
    with pytest.raises(AccessDeniedError, match=r"not for \*\*\*"):
        catalog.commit(loaded, (SetProperties(FrozenMap({"a": "d"})),))
    for text in (repr(loaded), repr(vars(catalog)), pickle.dumps(loaded).decode("latin-1")):
        assert "canary" not in text


# Signatures

SIGNS = {"defaults": {}, "overrides": {}, "endpoints": ["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"]}


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({}, "/v1/aws/s3/sign"),
        ({"s3.signer.endpoint": "v1/old/sign"}, "/v1/old/sign"),
        ({"s3.signer.endpoint": "v1/old/sign", "signer.endpoint": "v1/new/sign"}, "/v1/new/sign"),
    ],
)
def test_default_signer_endpoint_is_that_of_the_service(
    service: ScriptedService, config: dict[str, str], place: str
) -> None:
    with scripted_service() as store:
        store.on("GET /bkt/f", (200, b"rows"))
        service.on(f"POST {place}", lambda asked: (200, {"uri": asked.body["uri"], "headers": {}}))
        given = {"s3.remote-signing-enabled": "true", "s3.endpoint": store.address, **config}
        service.on(f"GET {AT}", (200, table_json(config=given)))
        assert opened(service).load_table(TABLE).storage.read("s3://bkt/f") == b"rows"
        assert service.asked[-1].line == f"POST {place}"


def test_spark_does_not_read_files_that_require_request_signing(service: ScriptedService) -> None:
    given = {"s3.remote-signing-enabled": "true", "s3.endpoint": "http://127.0.0.1:1"}
    service.on(f"GET {AT}", (200, table_json(config=given)))
    without_jvm: Any = SimpleNamespace()
    with pytest.raises(UnsupportedError, match="signs each request"):
        hadoop_options(without_jvm, opened(service).load_table(TABLE).storage, "s3://bkt/f")


@pytest.mark.parametrize("trusting", ["s3.endpoint", "credentials.endpoints"])
def test_spark_uses_user_credentials_for_signed_files(service: ScriptedService, trusting: str) -> None:
    given = {"s3.remote-signing-enabled": "true", "s3.endpoint": "http://127.0.0.1:1"}
    service.on(f"GET {AT}", (200, table_json(config=given)))
    without_jvm: Any = SimpleNamespace()
    storage = opened(service, {**keys("own"), trusting: "http://127.0.0.1:1"}).load_table(TABLE).storage
    assert isinstance(storage, VendedStorage) and storage.is_signed
    options = hadoop_options(without_jvm, storage, "s3://bkt/f")
    assert options["fs.s3a.bucket.bkt.access.key"] == "own-id"
    assert options["fs.s3a.bucket.bkt.endpoint"] == "http://127.0.0.1:1"


def test_vended_credentials_win_over_request_signing(service: ScriptedService) -> None:
    both = with_keys([{"prefix": "s3://b/", "config": keys("vended", 2**50)}])
    service.on(f"GET {AT}", (200, {**both, "config": {"s3.remote-signing-enabled": "true"}}))
    assert credentials_of(opened(service).load_table(TABLE).storage, "s3://b/f").access_key_id == "vended-id"


@pytest.mark.parametrize("ends", ["9" * 5_000, "soon", ""])
def test_credentials_without_expiry_are_used(service: ScriptedService, ends: str) -> None:
    given = {**keys("vended"), "s3.session-token-expires-at-ms": ends}
    service.on(f"GET {AT}", (200, with_keys([{"prefix": "s3://b/", "config": given}])))
    storage = opened(service).load_table(TABLE).storage
    assert credentials_of(storage, "s3://b/f").access_key_id == "vended-id"
    without_jvm: Any = SimpleNamespace()
    assert hadoop_options(without_jvm, storage, "s3://b/f")["fs.s3a.bucket.b.access.key"] == "vended-id"


def test_request_is_sent_as_signed_by_the_service(service: ScriptedService) -> None:
    service.on("GET /v1/config", (200, SIGNS))
    with scripted_service() as store:
        store.on("GET /bkt/f", (200, b"rows"))
        service.on(
            f"POST {AT}/sign", lambda asked: (200, {"uri": asked.body["uri"], "headers": {"Authorization": ["sig"]}})
        )
        config = {"s3.remote-signing-enabled": "true", "s3.endpoint": store.address, "s3.region": "eu-west-1"}
        service.on(f"GET {AT}", (200, table_json(config=config)))
        loaded = opened(service).load_table(TABLE)
        (load,) = service.of(f"GET {AT}")
        assert load.headers["x-iceberg-access-delegation"] == "vended-credentials,remote-signing"
        assert loaded.storage.read("s3://bkt/f") == b"rows"
        assert store.asked[-1].headers["authorization"] == "sig"
        (asked,) = service.of(f"POST {AT}/sign")
        assert asked.body["uri"] == f"{store.address}/bkt/f"
        assert (asked.body["method"], asked.body["region"]) == ("GET", "eu-west-1")
        assert asked.body["headers"]["host"] == [store.address.removeprefix("http://")]


def test_signature_for_another_request_is_not_used(service: ScriptedService) -> None:
    service.on("GET /v1/config", (200, SIGNS))
    with scripted_service() as store:
        answer = (200, {"uri": f"{store.address}/bkt/other", "headers": {}})
        service.on(f"POST {AT}/sign", answer)
        config = {"s3.remote-signing-enabled": "true", "s3.endpoint": store.address}
        service.on(f"GET {AT}", (200, table_json(config=config)))
        with pytest.raises(StorageError, match="another request"):
            opened(service).load_table(TABLE).storage.read("s3://bkt/f")
        assert store.asked == []


def test_signer_on_another_host_receives_nothing(service: ScriptedService) -> None:
    with scripted_service() as elsewhere:
        config = {
            "s3.remote-signing-enabled": "true",
            "s3.signer.uri": elsewhere.address,
            "s3.signer.endpoint": "sign",
        }
        service.on(f"GET {AT}", (200, table_json(config=config)))
        with pytest.raises(Exception, match="no tokens are sent"):
            opened(service, {"token": "secret"}).load_table(TABLE).storage.read("s3://bkt/f")
        assert elsewhere.asked == []


def test_spark_gets_cached_credentials_per_location() -> None:
    fetched: list[int] = []

    def fetch() -> tuple[VendedCredentials, ...]:
        fetched.append(1)
        return (VendedCredentials("s3://b/db/t/", keys("new", 10_000_000)),)

    given = (VendedCredentials("s3://b/db/t/", {**keys("old", 2_000_000), "s3.endpoint": "http://127.0.0.1:1"}),)
    storage = table_storage(choose_storage({}), {}, given, fetch, unsigned, now_ms=lambda: 1_000_000)
    assert isinstance(storage, VendedStorage)
    account = storage.reach("s3a://b/db/t/data/f.parquet")
    assert account is not None and account.is_vended
    found = account.properties
    assert (found["s3.access-key-id"], fetched) == ("new-id", [1]), "old ones would end within half an hour"
    assert found["s3.session-token-expires-at-ms"] == "10000000"
    folder = storage.reach("s3://b/db/t")
    assert folder is not None and folder.properties == found
    assert storage.reach("s3://b/db/t2") is storage.reach("s3://b/other/f") is None
    without_jvm: Any = SimpleNamespace()
    options = hadoop_options(without_jvm, storage, "s3://b/db/t/data")
    assert options["fs.s3a.bucket.b.access.key"] == "new-id"
    assert options["fs.s3a.bucket.b.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert options["fs.s3.impl.disable.cache"] == "true"
    assert hadoop_options(without_jvm, storage, "s3://b/other") == {}
    assert hadoop_options(without_jvm, choose_storage({}), "s3://b/db/t") == {}
