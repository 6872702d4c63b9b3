"""Keys that a service gives for a table's files: by prefix, renewed before they end, never shown; signatures."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.errors import ServiceError, StorageError
from frazil.rest.load_result import VendedKeys
from frazil.rest.table_storage import KeyRing, VendedStorage, table_storage
from frazil.rest.transport import Reply
from frazil.spark.jvm.file_systems import hadoop_options
from frazil.storage.choose import choose_storage
from tests.rest_lab import ScriptedService, opened, scripted_service, table_json

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


def never() -> tuple[VendedKeys, ...]:
    raise AssertionError("nobody asked for new keys")


def unsigned(_: dict[str, Any]) -> Reply:
    raise AssertionError("nothing is to be signed")


def test_the_longest_prefix_that_fits_has_the_keys() -> None:
    plain = choose_storage({})
    given = (VendedKeys("s3://b/", keys("all")), VendedKeys("s3://b/db/t/data", keys("data")))
    storage = table_storage(plain, {}, {}, given, never, unsigned)
    assert credentials_of(storage, "s3://b/db/t/data/f.parquet").access_key_id == "data-id"
    assert credentials_of(storage, "s3a://b/db/t/metadata/m.avro").access_key_id == "all-id"
    with pytest.raises(Exception, match="there are no keys"):
        storage.storage_of("s3://other/f")  # type: ignore[attr-defined]


def test_keys_in_a_tables_settings_are_for_all_of_its_files() -> None:
    storage = table_storage(choose_storage({}), {}, {**keys("own"), "client.region": "eu-west-1"}, (), never, unsigned)
    assert credentials_of(storage, "s3://anywhere/f").session_token == "own-token"
    assert storage.storage_of("s3://b/f")._requests.service.region == "eu-west-1"  # type: ignore[attr-defined]


def test_without_keys_the_users_own_storage_is_used_as_it_is() -> None:
    plain = choose_storage({})
    assert table_storage(plain, {}, {"some": "setting"}, (), never, unsigned) is plain


def test_keys_are_asked_for_anew_before_they_end() -> None:
    now = [0]
    asked: list[int] = []

    def fetch() -> tuple[VendedKeys, ...]:
        asked.append(now[0])
        return (VendedKeys("s3://b/", keys(f"n{len(asked)}", now[0] + 1_000_000)),)

    ring = KeyRing((VendedKeys("s3://b/", keys("n0", 1_000_000)),), fetch, now_ms=lambda: now[0])
    source = ring.s3("s3://b/")
    seen = []
    for moment in (0, 699_999, 700_000, 1_399_999, 1_400_000):
        now[0] = moment
        seen.append(source().access_key_id)
    assert seen == ["n0-id", "n0-id", "n1-id", "n1-id", "n2-id"]
    assert asked == [700_000, 1_400_000]


def test_keys_that_cannot_be_renewed_are_used_until_they_end() -> None:
    now = [800_000]

    def fetch() -> tuple[VendedKeys, ...]:
        raise ServiceError("Cannot reach it")

    source = KeyRing((VendedKeys("", keys("n0", 1_000_000)),), fetch, now_ms=lambda: now[0]).s3("")
    assert source().access_key_id == "n0-id"
    now[0] = 1_000_001
    with pytest.raises(ServiceError):
        source()


def test_keys_are_in_no_text_and_no_pickle(service: ScriptedService) -> None:
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


def test_new_keys_come_from_the_operation_for_them_else_from_the_table(service: ScriptedService) -> None:
    ended = [{"prefix": "s3://b/", "config": keys("old", 1)}]
    fresh = [{"prefix": "s3://b/", "config": keys("new", 2**50)}]
    service.on(f"GET {AT}", (200, with_keys(ended)))
    service.on(f"GET {AT}/credentials", (200, {"storage-credentials": fresh}))
    endpoints = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    storage = opened(service).load_table(TABLE).storage
    assert credentials_of(storage, "s3://b/f").access_key_id == "new-id"
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}}))
    storage = opened(service).load_table(TABLE).storage
    service.on(f"GET {AT}", (200, with_keys(fresh)))
    assert credentials_of(storage, "s3://b/f").access_key_id == "new-id"


def test_a_user_with_keys_of_their_own_asks_for_none(service: ScriptedService) -> None:
    catalog = opened(service, {"s3.access-key-id": "mine", "s3.secret-access-key": "hidden"})
    service.on(f"GET {AT}", (200, table_json()))
    catalog.load_table(TABLE)
    assert "x-iceberg-access-delegation" not in service.asked[-1].headers


def test_a_service_does_not_widen_what_may_be_read(service: ScriptedService) -> None:
    config = {"defaults": {"read.roots": "/"}, "overrides": {"read.roots": "/etc", "delete.roots": "/etc"}}
    service.on("GET /v1/config", (200, config))
    catalog = opened(service, {"read.roots": "/srv/lake"})
    service.on(f"GET {AT}", (200, table_json(config={"read.roots": "/etc", "s3.region": "eu-west-1"})))
    assert catalog.delete_roots == ("/srv/lake",)
    for storage in (catalog.storage, catalog.load_table(TABLE).storage):
        with pytest.raises(Exception, match="outside the folders"):
            storage.read("/etc/passwd")


# Signatures


def test_a_request_goes_out_as_the_service_signed_it(service: ScriptedService) -> None:
    with scripted_service() as store:
        store.on("GET /bkt/f", (200, b"rows"))
        service.on(
            f"POST {AT}/sign", lambda asked: (200, {"uri": asked.body["uri"], "headers": {"Authorization": ["sig"]}})
        )
        config = {"s3.remote-signing-enabled": "true", "s3.endpoint": store.address, "s3.region": "eu-west-1"}
        service.on(f"GET {AT}", (200, table_json(config=config)))
        loaded = opened(service).load_table(TABLE)
        assert loaded.storage.read("s3://bkt/f") == b"rows"
        assert store.asked[-1].headers["authorization"] == "sig"
        (asked,) = service.of(f"POST {AT}/sign")
        assert asked.body["uri"] == f"{store.address}/bkt/f"
        assert (asked.body["method"], asked.body["region"]) == ("GET", "eu-west-1")
        assert asked.body["headers"]["host"] == [store.address.removeprefix("http://")]


def test_a_signature_for_another_request_is_not_used(service: ScriptedService) -> None:
    with scripted_service() as store:
        answer = (200, {"uri": f"{store.address}/bkt/other", "headers": {}})
        service.on(f"POST {AT}/sign", answer)
        config = {"s3.remote-signing-enabled": "true", "s3.endpoint": store.address}
        service.on(f"GET {AT}", (200, table_json(config=config)))
        with pytest.raises(StorageError, match="another request"):
            opened(service).load_table(TABLE).storage.read("s3://bkt/f")
        assert store.asked == []


def test_a_signer_elsewhere_is_sent_nothing(service: ScriptedService) -> None:
    with scripted_service() as elsewhere:
        config = {
            "s3.remote-signing-enabled": "true",
            "s3.signer.uri": elsewhere.address,
            "s3.signer.endpoint": "sign",
        }
        service.on(f"GET {AT}", (200, table_json(config=config)))
        with pytest.raises(Exception, match="is not sent tokens"):
            opened(service, {"token": "secret"}).load_table(TABLE).storage.read("s3://bkt/f")
        assert elsewhere.asked == []


def test_spark_is_given_the_keys_for_a_place_and_they_last_for_a_while() -> None:
    fetched: list[int] = []

    def fetch() -> tuple[VendedKeys, ...]:
        fetched.append(1)
        return (VendedKeys("s3://b/db/t/", keys("new", 10_000_000)),)

    given = (VendedKeys("s3://b/db/t/", {**keys("old", 2_000_000), "s3.endpoint": "http://127.0.0.1:1"}),)
    storage = table_storage(choose_storage({}), {}, {}, given, fetch, unsigned, now_ms=lambda: 1_000_000)
    assert isinstance(storage, VendedStorage)
    found = storage.reach("s3a://b/db/t/data/f.parquet")
    assert (found["s3.access-key-id"], fetched) == ("new-id", [1]), "old ones would end within half an hour"
    assert found["s3.session-token-expires-at-ms"] == "10000000"
    assert storage.reach("s3://b/db/t") == found
    assert storage.reach("s3://b/db/t2") == storage.reach("s3://b/other/f") == {}
    without_jvm: Any = SimpleNamespace()
    options = hadoop_options(without_jvm, storage, "s3://b/db/t/data")
    assert options["fs.s3a.bucket.b.access.key"] == "new-id"
    assert options["fs.s3a.bucket.b.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert options["fs.s3.impl.disable.cache"] == "true"
    assert hadoop_options(without_jvm, storage, "s3://b/other") == {}
    assert hadoop_options(without_jvm, choose_storage({}), "s3://b/db/t") == {}
