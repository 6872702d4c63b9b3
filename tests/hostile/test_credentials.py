"""Credentials of the user are planted; a service and table metadata name hosts of a stranger. No secret reaches one.

Every request goes through a proxy that records each host and all that is sent, so nothing depends on what resolves.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidRequestError, UnsupportedError
from frazil.rest.open_rest import open_rest
from frazil.serve.auth import Auth, Right, Secret
from frazil.serve.store_access import StoreAccess
from frazil.spark.jvm.file_systems import hadoop_options, reach_files, settings_of
from frazil.spark.read.planned_files import check_paths
from frazil.storage.base import Storage
from frazil.storage.choose import choose_storage, stores_of
from frazil.storage.store_accounts import AZURE, GCS, S3, Credentials, Endpoint, Source, StoreAccount, Stores
from tests.hostile.recording_proxy import RecordingProxy, recording_proxy
from tests.hostile.test_rights import requests as requests_on
from tests.support.rest_lab import ScriptedService, scripted_service, table_json
from tests.support.served_lake import SCHEMA, served, table_path

TABLE = ("db", "t")
AT = "/v1/namespaces/db/tables/t"
STRANGER = "stranger.example"
OWN = "own.example"
KEY = base64.b64encode(b"planted-azure-key-5d20").decode()
WITHOUT_JVM: Any = SimpleNamespace()

USERS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "s3": {
        "keys": {"s3.access-key-id": "AKIAPLANTED0001", "s3.secret-access-key": "planted-secret"},
        "session": {
            "s3.access-key-id": "AKIAPLANTED0001",
            "s3.secret-access-key": "planted-secret",
            "s3.session-token": "planted-session",
        },
        "environment": {"s3.use-environment": "true"},
    },
    "gcs": {"token": {"gcs.oauth2.token": "planted-gcs-token"}},
    "azure": {
        "key": {"adls.account-name": "acct", "adls.account-key": KEY},
        "signature": {"adls.account-name": "acct", "adls.sas-token": "sv=2021&sig=planted-sas"},
        "token": {"adls.account-name": "acct", "adls.token": "planted-entra-token"},
    },
}
SECRETS = ("PLANTED", "planted", KEY, "SharedKey")
LOCATION = {"s3": "s3://bkt/t", "gcs": "gs://bkt/t", "azure": "abfss://bkt@acct.dfs.core.windows.net/t"}
ENDPOINT = {"s3": "s3.endpoint", "gcs": "gcs.service.host", "azure": "adls.endpoint"}
VENDED: Mapping[str, Mapping[str, str]] = {
    "s3": {"s3.access-key-id": "AKIAVENDED", "s3.secret-access-key": "vended", "s3.session-token": "vended-session"},
    "gcs": {"gcs.oauth2.token": "vended-token"},
    "azure": {"adls.sas-token.acct": "sv=2021&sig=vended"},
}
CASES = [(store, kind) for store, kinds in USERS.items() for kind in kinds]


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingProxy]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPLANTED0002")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-environment")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "planted-session-of-the-environment")
    with recording_proxy() as made:
        yield made


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


def opened(service: ScriptedService, proxy: RecordingProxy, properties: Mapping[str, str]) -> Any:
    return open_rest("lake", service.address, {**properties, "http-client.proxy-endpoint": proxy.url})


def run_all(storage: Storage, folder: str, *, most: int | None = None) -> list[FrazilError]:
    """Call the operations of a storage; return what was refused."""
    file = f"{folder}/f"
    operations: list[Callable[[], object]] = [
        lambda: storage.read(file),
        lambda: storage.read_range(file, 0, 1),
        lambda: storage.size(file),
        lambda: storage.exists(file),
        lambda: storage.create(file, b"data"),
        lambda: storage.create_exclusive(file, b"data"),
        lambda: storage.replace(file, b"data"),
        lambda: list(storage.list(folder)),
        lambda: storage.list_children(folder),
        lambda: storage.create_folder(folder),
        lambda: storage.delete_folder(folder),
        lambda: storage.delete(file),
        lambda: storage.delete_many([file]),
        lambda: storage.open_new(file).publish(),
    ]
    refused: list[FrazilError] = []
    for operation in operations[:most]:
        try:
            operation()
        except FrazilError as error:
            refused.append(error)
    return refused


def check_nothing_planted(proxy: RecordingProxy, host: str = STRANGER) -> None:
    text = proxy.text_to(host)
    assert not any(secret in text for secret in SECRETS), text[:2000]


def check_spark(catalog: Any, storage: Storage, location: str) -> None:
    """Check that what Spark is given has no secret beside a host of the stranger."""
    asked: tuple[Callable[[], dict[str, str]], ...] = (
        lambda: settings_of(location, stores_of(catalog.storage)),
        lambda: hadoop_options(WITHOUT_JVM, storage, f"{location}/data"),
    )
    for ask in asked:
        try:
            settings = ask()
        except (InvalidRequestError, UnsupportedError):
            continue
        has_secret = any(secret in value for value in settings.values() for secret in SECRETS)
        names_stranger = any(STRANGER in text for pair in settings.items() for text in pair)
        assert not (has_secret and names_stranger), settings


WAYS = ["defaults", "overrides", "config", "signed", "other keys", "environment"]
CASES_OF_WAYS = [
    (*case, way) for case in CASES for way in WAYS if way in WAYS[:3] or way == "other keys" or case[0] == "s3"
]


@pytest.mark.parametrize("trust", ["all", "none"])
@pytest.mark.parametrize(("store", "kind", "way"), CASES_OF_WAYS)
def test_endpoint_of_a_service_does_not_receive_user_credentials(
    service: ScriptedService, proxy: RecordingProxy, store: str, kind: str, way: str, trust: str
) -> None:
    evil = {ENDPOINT[store]: f"http://{STRANGER}:9000"}
    config: dict[str, str] = {}
    credentials: list[Any] = []
    if way in ("defaults", "overrides"):
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, way: evil}))
    elif way == "signed":
        config = {**evil, "s3.remote-signing-enabled": "true"}
        service.on("POST /v1/aws/s3/sign", lambda asked: (200, {"uri": asked.body["uri"], "headers": {}}))
    elif way == "other keys":
        other = VENDED["gcs" if store != "gcs" else "s3"]
        credentials = [{"prefix": "", "config": {**evil, **other}}]
    else:
        config = {**evil, "s3.use-environment": "true"} if way == "environment" else evil
    location = LOCATION[store]
    body: dict[str, Any] = {"config": config, "storage-credentials": credentials}
    service.on(f"GET {AT}", (200, table_json(**body)))
    properties = dict(USERS[store][kind])
    if trust == "none":
        properties["read.roots"] = location
    catalog = opened(service, proxy, properties)
    storage = catalog.load_table(TABLE).storage
    refused = run_all(storage, location, most=3 if way == "signed" else None)
    check_nothing_planted(proxy)
    check_spark(catalog, storage, location)
    if way == "signed":
        assert proxy.hosts == {STRANGER}
    else:
        assert STRANGER not in proxy.hosts
        message = str(refused[0])
        assert f"http://{STRANGER}:9000" in message and "credentials.endpoints" in message


@pytest.mark.parametrize("trusting", ["own", "credentials.endpoints"])
@pytest.mark.parametrize(("store", "kind"), CASES)
def test_endpoint_trusted_by_the_user_receives_user_credentials(
    service: ScriptedService, proxy: RecordingProxy, store: str, kind: str, trusting: str
) -> None:
    named = f"http://{OWN}:9000"
    service.on(f"GET {AT}", (200, table_json(config={ENDPOINT[store]: named})))
    properties = {**USERS[store][kind], ENDPOINT[store] if trusting == "own" else trusting: named}
    with pytest.raises(FrazilError, match="does not exist"):
        opened(service, proxy, properties).load_table(TABLE).storage.read(f"{LOCATION[store]}/f")
    assert proxy.hosts == {OWN}
    assert any(secret in proxy.text_to(OWN) for secret in SECRETS)


@pytest.mark.parametrize(("store", "kind"), CASES)
def test_endpoint_of_the_user_wins_over_that_of_a_service(
    service: ScriptedService, proxy: RecordingProxy, store: str, kind: str
) -> None:
    service.on(f"GET {AT}", (200, table_json(config={ENDPOINT[store]: f"http://{STRANGER}:9000"})))
    properties = {**USERS[store][kind], ENDPOINT[store]: f"http://{OWN}:9000"}
    run_all(opened(service, proxy, properties).load_table(TABLE).storage, LOCATION[store])
    assert proxy.hosts == {OWN}


@pytest.mark.parametrize(("store", "kind"), CASES)
def test_endpoint_of_a_service_is_used_with_vended_credentials_only(
    service: ScriptedService, proxy: RecordingProxy, store: str, kind: str
) -> None:
    vended = {**VENDED[store], ENDPOINT[store]: f"http://{STRANGER}:9000"}
    given: dict[str, Any] = {"storage-credentials": [{"prefix": LOCATION[store], "config": vended}]}
    service.on(f"GET {AT}", (200, table_json(**given)))
    catalog = opened(service, proxy, USERS[store][kind])
    storage = catalog.load_table(TABLE).storage
    run_all(storage, LOCATION[store])
    assert proxy.hosts == {STRANGER}
    check_nothing_planted(proxy)
    assert ("VENDED" in proxy.text_to(STRANGER)) or ("vended" in proxy.text_to(STRANGER))
    check_spark(catalog, storage, LOCATION[store])


HALF: tuple[dict[str, str], ...] = (
    {"s3.session-token": "vended-session"},
    {"s3.secret-access-key": "vended"},
    {"s3.access-key-id": "AKIAVENDED"},
    {"s3.access-key-id": "AKIAVENDED", "s3.secret-access-key": ""},
    {"s3.access-key-id": "AKIAVENDED", "s3.secret-access-key": "vended", "s3.session-token": ""},
)


@pytest.mark.parametrize("vended", HALF, ids=lambda vended: " ".join(vended))
@pytest.mark.parametrize("kind", USERS["s3"])
def test_missing_vended_credentials_are_not_completed_with_user_credentials(
    service: ScriptedService, proxy: RecordingProxy, kind: str, vended: dict[str, str]
) -> None:
    config = {**vended, "s3.endpoint": f"http://{STRANGER}:9000"}
    given: dict[str, Any] = {"storage-credentials": [{"prefix": "s3://", "config": config}]}
    service.on(f"GET {AT}", (200, table_json(**given)))
    storage = opened(service, proxy, USERS["s3"][kind]).load_table(TABLE).storage
    run_all(storage, "s3://bkt/t")
    check_nothing_planted(proxy)
    options = hadoop_options(WITHOUT_JVM, storage, "s3://bkt/t/data")
    # Hadoop takes what is missing or empty from its own settings, so nothing may be.
    provider = options["fs.s3a.bucket.bkt.aws.credentials.provider"].rpartition(".")[2]
    is_whole = vended.get("s3.access-key-id") and vended.get("s3.secret-access-key")
    assert provider == ("SimpleAWSCredentialsProvider" if is_whole else "AnonymousAWSCredentialsProvider")
    assert "fs.s3a.bucket.bkt.session.token" not in options
    for name in ("encryption.key", "encryption.algorithm", "delegation.token.binding"):
        assert options[f"fs.s3a.{name}"] == options[f"fs.s3a.bucket.bkt.{name}"] == ""


@pytest.mark.parametrize(
    "name", ["s3.access-key-id", "s3.secret-access-key", "s3.session-token", "adls.sas-token.acct"]
)
@pytest.mark.parametrize("value", ["${env.AWS_SECRET_ACCESS_KEY}", "x${fs.s3a.secret.key}", "${user.home}"])
def test_vended_credentials_cannot_set_hadoop_settings(
    service: ScriptedService, proxy: RecordingProxy, name: str, value: str
) -> None:
    store = "azure" if name.startswith("adls") else "s3"
    config = {**VENDED[store], ENDPOINT[store]: f"http://{STRANGER}:9000", name: value}
    given: dict[str, Any] = {"storage-credentials": [{"prefix": LOCATION[store], "config": config}]}
    service.on(f"GET {AT}", (200, table_json(**given)))
    storage = opened(service, proxy, USERS[store]["keys" if store == "s3" else "key"]).load_table(TABLE).storage
    # Hadoop puts the value of the variable or setting in its place.
    with pytest.raises(InvalidRequestError, match="names of its own settings"):
        hadoop_options(WITHOUT_JVM, storage, LOCATION[store])


@pytest.mark.parametrize("bucket", ["mine.assumed.role.sts", "mine.assumed.role"])
def test_bucket_setting_does_not_apply_to_another_bucket(
    service: ScriptedService, proxy: RecordingProxy, bucket: str
) -> None:
    config = {**VENDED["s3"], "s3.endpoint": f"http://{STRANGER}:9000"}
    given: dict[str, Any] = {"storage-credentials": [{"prefix": "s3://", "config": config}]}
    service.on(f"GET {AT}", (200, table_json(**given)))
    storage = opened(service, proxy, {}).load_table(TABLE).storage
    with pytest.raises(InvalidRequestError, match="names of its own settings"):
        hadoop_options(WITHOUT_JVM, storage, f"s3://{bucket}/t")


@pytest.mark.parametrize("name", ["config", "defaults", "overrides"])
@pytest.mark.parametrize("setting", [{"s3.force-virtual-addressing": "true"}, {"s3.path-style-access": "false"}])
def test_service_cannot_put_the_bucket_into_the_host_of_the_user_endpoint(
    service: ScriptedService, proxy: RecordingProxy, name: str, setting: dict[str, str]
) -> None:
    if name == "config":
        service.on(f"GET {AT}", (200, table_json(config=setting)))
    else:
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, name: setting}))
        service.on(f"GET {AT}", (200, table_json()))
    catalog = opened(service, proxy, {**USERS["s3"]["session"], "s3.endpoint": f"http://{OWN}:9000"})
    storage = catalog.load_table(TABLE).storage
    run_all(storage, "s3://bkt/t")
    assert proxy.hosts == {OWN}
    found = settings_of("s3://bkt/t", stores_of(catalog.storage))
    assert found["spark.hadoop.fs.s3a.bucket.bkt.path.style.access"] == "true"


def test_service_cannot_enable_credentials_of_this_machine(service: ScriptedService, proxy: RecordingProxy) -> None:
    config = {"s3.endpoint": f"http://{STRANGER}:9000", "s3.use-environment": "true"}
    service.on(f"GET {AT}", (200, table_json(config=config)))
    storage = opened(service, proxy, {}).load_table(TABLE).storage
    assert "no credentials are configured" in str(run_all(storage, "s3://bkt/t")[0])
    assert proxy.sent == []


def test_endpoint_of_a_service_applies_to_its_own_lake_only(service: ScriptedService, proxy: RecordingProxy) -> None:
    named = {"s3.endpoint": f"http://{STRANGER}:9000", "warehouse": "s3://bkt/theirs"}
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": named}))
    catalog = opened(service, proxy, {})
    # Another lake of the session, or Hadoop's own configuration, may have credentials for the same bucket.
    assert set(settings_of("s3://bkt/t", stores_of(catalog.storage))) == {
        "spark.hadoop.fs.s3.impl",
        "spark.hadoop.fs.s3a.impl",
    }
    options = hadoop_options(WITHOUT_JVM, catalog.storage, "s3://bkt/t/data")
    assert options["fs.s3a.bucket.bkt.endpoint"] == f"http://{STRANGER}:9000"
    assert options["fs.s3a.bucket.bkt.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert options["fs.s3a.impl.disable.cache"] == "true"


class Session:
    """Stands for a Spark session: its Hadoop settings, in a dict."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.sparkContext = self._jsc = self
        self.setIfUnset = self.settings.setdefault

    def hadoopConfiguration(self) -> Session:
        return self


LAKES: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
    ("s3://bkt/t", {**USERS["s3"]["session"]}, {"s3.endpoint": f"http://{OWN}:9000", **USERS["s3"]["session"]}),
    ("s3://bkt/t", {**USERS["s3"]["session"]}, {"s3.endpoint": f"http://{OWN}:9000"}),
    ("s3://bkt/t", {**USERS["s3"]["session"]}, {**USERS["s3"]["keys"]}),
    (LOCATION["azure"], {**USERS["azure"]["key"]}, {**USERS["azure"]["signature"]}),
)


@pytest.mark.parametrize(("location", "first", "second"), LAKES)
@pytest.mark.parametrize("is_swapped", [False, True])
def test_session_does_not_mix_endpoints_and_credentials_of_lakes(
    location: str, first: dict[str, str], second: dict[str, str], is_swapped: bool
) -> None:
    if is_swapped:
        first, second = second, first
    spark: Any = Session()
    for _ in range(2):
        reach_files(spark, "one", location, Stores(first))
    before = dict(spark.settings)
    with pytest.raises(InvalidRequestError, match="sessions of their own") as found:
        reach_files(spark, "two", location, Stores(second))
    assert "planted" not in str(found.value) and spark.settings == before
    reach_files(spark, "two", location, Stores(first))
    reach_files(spark, "three", location.replace("bkt", "other").replace("acct", "more"), Stores(second))
    assert {key: spark.settings[key] for key in before} == before


# An address that programs read differently is one host to the check and another to who connects.
ODD_ENDPOINTS = (
    "https://s3.amazonaws.com#@stranger.example",
    "https://s3.amazonaws.com?@stranger.example",
    "https://s3.amazonaws.com/@stranger.example",
    "https://s3.amazonaws.com\\@stranger.example",
    "https://s3.amazonaws.com@stranger.example",
    "https://s3.amazonaws.com:443@stranger.example",
    "https://s3.amazonaws.com.stranger.example",
    "https://s3.amazonaws.com\t.stranger.example",
    "http://s3.amazonaws.com",
    "//stranger.example",
    "stranger.example",
)


@pytest.mark.parametrize("url", ODD_ENDPOINTS)
def test_endpoint_resembling_the_default_host_receives_no_credentials(url: str) -> None:
    stores = Stores(USERS["s3"]["keys"]).with_service({"s3.endpoint": url})
    with pytest.raises(FrazilError, match="Cannot use"):
        settings_of("s3://bkt/t", stores)
    with pytest.raises(FrazilError, match="Cannot use"):
        choose_storage(USERS["s3"]["keys"], stores=stores).read("s3://bkt/t/f")


@pytest.mark.parametrize("region", ["x.stranger.example#", "stranger.example/", "us-east-1.evil", "a@b", "a:1"])
def test_region_cannot_inject_another_host(region: str) -> None:
    stores = Stores(USERS["s3"]["keys"]).with_service({"s3.region": region})
    with pytest.raises(FrazilError, match="not a region"):
        settings_of("s3://bkt/t", stores)
    with pytest.raises(FrazilError, match="not a region"):
        choose_storage(USERS["s3"]["keys"], stores=stores).read("s3://bkt/t/f")


# Hosts in locations

ODD_HOSTS = (
    "cont@acct.dfs.stranger.example:443", "cont@acct.dfs.core.windows.net:444", "cont@ACCT.dfs.stranger.example",
    "Cont@acct.dfs.stranger.example", "c@acct.dfs.stranger.example", "a@cont@acct.dfs.stranger.example",
    "cont@acct.stranger.example", "cont@acct.dfs.core.windows.net@stranger.example", "cont@stranger.example:80",
    "cont@acct.dfs.stran_ger.example", "cont@acct.dfs.stranger.example?x", "cont@acct.dfs.stranger.example#",
)  # fmt: skip


@pytest.mark.parametrize("host", ODD_HOSTS)
@pytest.mark.parametrize("kind", USERS["azure"])
def test_location_with_an_ambiguous_host_receives_no_credentials(kind: str, host: str) -> None:
    storage = choose_storage(USERS["azure"][kind])
    location = f"abfss://{host}/t"
    with pytest.raises(InvalidRequestError):
        settings_of(location, stores_of(storage))
    with pytest.raises(InvalidRequestError):
        check_paths(storage, pa.chunked_array([[f"{location}/f"]]))
    with pytest.raises(InvalidRequestError):
        storage.read(f"{location}/f")


HOSTS = (
    "cont@acct.dfs.stranger.example",
    "cont@acct.blob.stranger.example",
    "cont@acct.dfs.core.windows.net.stranger.example",
    "cont@acct.dfs.windows.net",
)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("kind", [*USERS["azure"], "anonymous"])
@pytest.mark.parametrize("scheme", AZURE.schemes)
def test_host_named_only_by_a_location_is_not_contacted(
    proxy: RecordingProxy, scheme: str, kind: str, host: str
) -> None:
    own = {"adls.anonymous": "true"} if kind == "anonymous" else USERS["azure"][kind]
    properties = {**own, "http-client.proxy-endpoint": proxy.url}
    location = f"{scheme}://{host}/t"
    storage = choose_storage(properties, warehouse="abfss://own@acct.dfs.core.windows.net/lake")
    refused = run_all(storage, location)
    assert "only a location names it" in str(refused[0]) and "credentials.endpoints" in str(refused[0])
    assert proxy.sent == []
    # Spark opens paths past the storage.
    with pytest.raises(InvalidRequestError, match="only a location names it"):
        check_paths(storage, pa.chunked_array([[f"{LOCATION['azure']}/f", f"{location}/f"]]))
    with pytest.raises(InvalidRequestError, match="only a location names it"):
        settings_of(location, stores_of(storage))


@pytest.mark.parametrize("kind", ["key", "signature"])
def test_key_of_one_account_is_not_used_for_another(proxy: RecordingProxy, kind: str) -> None:
    properties = {**USERS["azure"][kind], "http-client.proxy-endpoint": proxy.url}
    storage = choose_storage(properties)
    assert "belongs to acct" in str(run_all(storage, "abfss://cont@other.dfs.core.windows.net/t")[0])
    assert proxy.sent == []
    assert not settings_of("abfss://cont@other.dfs.core.windows.net/t", stores_of(storage))


@pytest.mark.parametrize(
    ("more", "warehouse"),
    [
        ({}, "abfss://own@acct.dfs.stack.example/lake"),
        ({"read.roots": "abfss://own@acct.dfs.stack.example/more"}, "abfss://own@acct.dfs.core.windows.net/lake"),
        ({"credentials.endpoints": "https://acct.dfs.stack.example"}, None),
    ],
)
def test_host_named_by_the_user_is_contacted(
    proxy: RecordingProxy, more: dict[str, str], warehouse: str | None
) -> None:
    properties = {**USERS["azure"]["token"], **more, "http-client.proxy-endpoint": proxy.url}
    storage = choose_storage(properties, warehouse=warehouse)
    with pytest.raises(FrazilError):
        storage.read("abfss://own@acct.dfs.stack.example/more/f")
    assert proxy.hosts == {"acct.blob.stack.example"}


def test_untrusted_metadata_leads_to_no_host(proxy: RecordingProxy, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    properties = {**USERS["azure"]["token"], "http-client.proxy-endpoint": proxy.url}
    with frazil.connect(folder) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(pa.table({"id": [1]}))
        path = Path(str(lake.catalog.load_table(TABLE).metadata_location).removeprefix("file://"))
    document = json.loads(path.read_text())
    document["snapshots"][0]["manifest-list"] = "abfss://cont@acct.dfs.stranger.example/x.avro"
    path.write_text(json.dumps(document))
    for trust in ("all", "none"):
        with frazil.connect(folder, trust=trust, properties=properties) as lake, pytest.raises(FrazilError):
            lake.table("db.t").scan().to_arrow()
    with (
        frazil.connect(folder, properties=properties) as lake,
        pytest.raises(FrazilError, match="only a location names it"),
    ):
        lake.register_table("db.u", "abfss://cont@acct.dfs.stranger.example/v1.metadata.json")
    assert proxy.sent == []


@pytest.mark.parametrize("right", ["read", "write"])
def test_clients_of_a_server_cannot_obtain_its_credentials(proxy: RecordingProxy, tmp_path: Path, right: str) -> None:
    properties = {
        **USERS["s3"]["session"], **USERS["gcs"]["token"], **USERS["azure"]["token"],
        "http-client.proxy-endpoint": proxy.url,
    }  # fmt: skip
    auth = Auth([Secret("all", "all-secret-00000000001"), Secret("me", "my-secret-000000000001", Right(right))])
    access = StoreAccess(properties, vend="keys", signs=True, roots=[f"{tmp_path}/lake"])
    places = (
        "abfss://cont@acct.dfs.stranger.example/v1.metadata.json", "s3://stranger/v1.metadata.json",
        "gs://stranger/v1.metadata.json", "abfss://cont@acct.dfs.core.windows.net/v1.metadata.json",
    )  # fmt: skip
    with served(tmp_path / "lake", auth=auth, access=access, properties=properties, more_roots=()) as server:
        server.headers["Authorization"] = "Bearer all-secret-00000000001"
        server.make_table("t", "db")
        server.headers["Authorization"] = "Bearer my-secret-000000000001"
        server.headers["X-Iceberg-Access-Delegation"] = "vended-credentials,remote-signing"
        replies = [reply for _, reply in requests_on(server, "db").values()]
        for place in places:
            folder = place.rpartition("/")[0]
            snapshot = {"snapshot-id": 7, "timestamp-ms": 2_000_000_000_000, "manifest-list": place, "summary": {}}
            updates: tuple[dict[str, Any], ...] = (
                {"action": "set-location", "location": folder},
                {"action": "set-properties", "updates": {"write.metadata.path": folder, "write.data.path": folder}},
                {"action": "add-snapshot", "snapshot": snapshot},
            )
            replies += [
                server.post("/v1/namespaces/db/register", {"name": "x", "metadata-location": place}),
                server.post("/v1/namespaces/db/register-view", {"name": "x", "metadata-location": place}),
                server.post("/v1/namespaces/db/tables", {"name": "n2", "schema": SCHEMA, "location": folder}),
                server.post("/v1/namespaces", {"namespace": ["far"], "properties": {"location": folder}}),
                *(server.post(table_path("t", "db"), {"requirements": [], "updates": [one]}) for one in updates),
                server.get(table_path("t", "db")),
                server.post(f"{table_path('t', 'db')}/plan", {}),
            ]
    assert proxy.sent == []
    for reply in replies:
        assert not any(secret.encode() in reply.body for secret in SECRETS), reply.body
        assert reply.code < 500, reply.body


# The address of the service itself

AUTH: Mapping[str, Mapping[str, str]] = {
    "token": {"token": "planted-token"},
    "oauth2": {"credential": "user:planted-credential"},
    "basic": {"rest.auth.basic.username": "user", "rest.auth.basic.password": "planted-password"},
    "sigv4": {
        "rest.sigv4-enabled": "true",
        "rest.access-key-id": "AKIAPLANTED0003",
        "rest.secret-access-key": "planted-signing",
        "rest.signing-region": "us-east-1",
    },
    "header": {"header.authorization": "Bearer planted-header"},
    "other header": {"header.x-tenant": "planted-header"},
}


@pytest.mark.parametrize("kind", AUTH)
def test_service_cannot_redirect_user_credentials_to_another_host(service: ScriptedService, kind: str) -> None:
    with scripted_service() as stranger:
        service.on("POST /v1/oauth/tokens", (200, {"access_token": "t", "token_type": "bearer", "expires_in": 900}))
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {"uri": stranger.address}}))
        with pytest.raises(InvalidRequestError, match=r"names .* as its address") as found:
            open_rest("lake", service.address, AUTH[kind])
        assert "credentials.endpoints" in str(found.value)
        assert stranger.asked == []
        stranger.on("GET /v1/namespaces", (200, {"namespaces": []}))
        trusting = {**AUTH[kind], "credentials.endpoints": stranger.address}
        open_rest("lake", service.address, trusting).list_namespaces()
        assert stranger.lines() == ["GET /v1/namespaces"]


def test_service_without_authentication_may_be_on_another_host(service: ScriptedService) -> None:
    with scripted_service() as other:
        other.on("GET /v1/namespaces", (200, {"namespaces": []}))
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {"uri": other.address}}))
        public = {"header.x-iceberg-access-delegation": "vended-credentials"}
        open_rest("lake", service.address, public).list_namespaces()
        assert other.lines() == ["GET /v1/namespaces"]


# The type


@pytest.mark.parametrize("store", [S3, GCS, AZURE], ids=lambda store: store.name)
def test_account_cannot_combine_user_credentials_with_a_service_endpoint(store: Any) -> None:
    credentials = Credentials(dict, Source.USER)
    endpoint = Endpoint(f"https://{STRANGER}", Source.SERVICE)
    with pytest.raises(InvalidRequestError, match="the catalog service names this endpoint"):
        StoreAccount(store, endpoint, credentials)
    StoreAccount(store, endpoint)
    StoreAccount(store, endpoint, Credentials(dict, Source.SERVICE))
    StoreAccount(store, Endpoint(f"https://{STRANGER}", Source.USER), credentials)
    StoreAccount(store, endpoint, credentials, trusted=frozenset({f"https://{STRANGER}:443"}))


@pytest.mark.parametrize(
    ("url", "is_default"),
    [
        ("https://s3.amazonaws.com", True),
        ("https://s3.eu-west-1.amazonaws.com", True),
        ("https://s3.dualstack.us-gov-west-1.amazonaws.com:443", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("http://s3.amazonaws.com", False),
        ("https://s3.amazonaws.com:444", False),
        ("https://s3.evil.amazonaws.com", False),
        ("https://x.execute-api.us-east-1.amazonaws.com", False),
        ("https://s3.amazonaws.com.stranger.example", False),
        ("https://s3.amazonaws.com@stranger.example", False),
        ("https://[", False),
    ],
)
def test_amazon_hosts_are_matched_exactly(url: str, is_default: bool) -> None:
    assert S3.is_default(url) is is_default
