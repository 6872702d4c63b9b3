"""A lake in Azure's object store, by Azurite: who asks, what is written, and who wins."""

from __future__ import annotations

import base64
import hashlib
import hmac
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.errors import (
    FileAlreadyExistsError,
    InvalidPropertyError,
    InvalidRequestError,
    MissingFileError,
    StorageError,
)
from frazil.storage.azure import AzureStorage, azure_service
from frazil.storage.choose import choose_storage
from frazil.table.lake import Lake
from tests.support.azure_server import ACCOUNT, CONTAINER, KEY

CANARY = base64.b64encode(b"canary-account-key-0001").decode()


def place() -> str:
    return f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{uuid.uuid4().hex}"


def signed_query(permissions: str) -> str:
    """Return an account's shared access signature, as the emulator's owner makes one."""
    fields = {"sv": "2021-08-06", "ss": "b", "srt": "sco", "sp": permissions, "se": "2099-01-01T00:00:00Z"}
    text = "\n".join([ACCOUNT, permissions, "b", "sco", "", fields["se"], "", "", fields["sv"], "", ""])
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return "&".join(
        f"{name}={quote(value, safe='')}"
        for name, value in {**fields, "sig": base64.b64encode(digest).decode()}.items()
    )


@pytest.mark.parametrize("catalog", ["sqlite", "filesystem"])
def test_lake_in_an_azure_container_works_like_a_local_one(
    azure_running: dict[str, str], tmp_path: Path, catalog: str
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db" if catalog == "sqlite" else catalog
    with frazil.connect(place(), catalog=uri, properties=azure_running) as lake:
        table = lake.create_table("db.t", "id bigint not null, kind string", partition_by=["kind"], format_version=3)
        for start in (0, 100):
            table.append(pa.table({"id": range(start, start + 100), "kind": ["a", "b"] * 50}))
        table.delete("id < 10")
        assert table.scan("id >= 50 and kind = 'a'").count() == 75
        table.maintain.rewrite_data_files(options={"rewrite-all": "true"})
        table.expire_snapshots(retain_last=1, older_than="2100-01-01T00:00:00Z")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(10, 200))
        assert table.check(bounds=True).ok
        lake.drop_table("db.t", purge=True)


def test_one_of_several_creations_of_the_same_blob_wins(azure_running: dict[str, str]) -> None:
    path = f"{place()}/v1.metadata.json"

    def create(writer: int) -> int:
        storage = AzureStorage(azure_service(azure_running), schemes=("abfss",))
        try:
            storage.create_exclusive(path, b"%d" % writer)
        except FileAlreadyExistsError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(24))) == 1


def test_racing_commits_are_all_counted(azure_running: dict[str, str]) -> None:
    warehouse = place()

    def lake() -> Lake:
        return Lake(FilesystemCatalog("lake", warehouse, choose_storage(azure_running)))

    lake().create_namespace("db")
    lake().create_table("db.t", pa.schema([("id", pa.int64())]))

    def write(writer: int) -> None:
        table = lake().table("db.t")
        for at in range(3):
            table.append(pa.table({"id": [writer * 10 + at]}))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    assert sorted(lake().table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


@pytest.mark.parametrize(
    "name", ["adls.sas-token", f"adls.sas-token.{ACCOUNT}", f"adls.sas-token.{ACCOUNT}.dfs.core.windows.net"]
)
def test_sas_token_authenticates_requests(azure_running: dict[str, str], name: str) -> None:
    known = {"adls.endpoint": azure_running["adls.endpoint"], name: signed_query("rwdlc")}
    path = f"{place()}/file"
    storage = choose_storage(known)
    storage.create(path, b"bytes")
    assert storage.read(path) == b"bytes"
    assert [one.path for one in storage.list(path.rpartition("/")[0])] == [path]
    only_read = choose_storage({**known, name: signed_query("r")})
    assert only_read.read(path) == b"bytes"
    with pytest.raises(StorageError) as caught:
        only_read.replace(path, b"other")
    assert "sig=" not in str(caught.value)


def test_wrong_key_is_refused_and_never_shown(azure_running: dict[str, str]) -> None:
    storage = choose_storage({**azure_running, "adls.account-key": CANARY})
    with pytest.raises(StorageError, match="Cannot read") as caught:
        storage.read(f"{place()}/file")
    inner = storage.storage_of(place())
    for text in (str(caught.value), repr(storage), repr(inner), pickle.dumps(inner).decode("latin-1")):
        assert CANARY not in text


def test_missing_objects_are_distinguished_from_other_errors(azure_running: dict[str, str]) -> None:
    storage = choose_storage(azure_running)
    with pytest.raises(MissingFileError, match="file does not exist"):
        storage.read(f"{place()}/none")
    with pytest.raises(MissingFileError, match="no such bucket"):
        storage.read(f"abfss://nowhere@{ACCOUNT}.dfs.core.windows.net/none")
    storage.delete(f"{place()}/none")


@pytest.mark.parametrize(
    ("properties", "location", "said"),
    [
        ({}, "abfss://c00@account.dfs.core.windows.net/x", "no credentials are configured"),
        ({"adls.account-key": "not base64!"}, "abfss://c00@account.dfs.core.windows.net/x", "invalid characters"),
        ({"adls.account-key": KEY}, "abfss://c00/x", "it names no account"),
        ({"adls.account-key": KEY, "adls.account-name": "No/Name"}, "abfss://c00/x", "not an account name"),
        ({"adls.account-key": KEY}, "abfss://c00@evil.example/x", "not a bucket name"),
        ({"adls.account-key": KEY}, "abfss://c00@account.dfs.core.windows.net/a/../x", "path segments"),
    ],
)
def test_unusable_settings_are_refused_before_any_request(properties: dict[str, str], location: str, said: str) -> None:
    with pytest.raises((InvalidRequestError, InvalidPropertyError), match=said):
        choose_storage(properties).read(location)
