"""Connections that files of a user's home name: frazil's own, and PyIceberg's."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.table import open_catalog as opening
from frazil.table.named_connections import OWN_FILE, PYICEBERG_FILE, NamedConnection, find_connection, read_yaml
from tests.support.rest_lab import scripted_service

YAML = """\
# catalogs
catalog:
  prod:
    uri: https://catalog.example/api  # theirs
    warehouse: 'w: 1'
    credential: "id:se#cret"
    py-io-impl: pyiceberg.io.fsspec.FsspecFileIO
    s3.region: eu-central-1

  local:
    type: sql
    uri: postgresql+psycopg2://me@127.0.0.1/lake
    warehouse: /srv/wh
  hive:
    type: hive
    uri: thrift://h:9083
    warehouse: s3://b/wh
  glue:
    type: glue
    warehouse: s3://b/wh
    glue.region: eu-central-1
  dynamo:
    type: dynamodb
"""
TOML = """\
[catalog.prod]
uri = "https://own.example"
warehouse = "mine"
[catalog.prod.rest.client]
max-retries = 3
[catalog.prod.s3]
"path-style-access" = true
[catalog.folder]
warehouse = "/srv/folder"
"""


def home(tmp_path: Path, toml: str | None = None, yaml: str | None = None) -> Path:
    for name, text in ((OWN_FILE, toml), (PYICEBERG_FILE, yaml)):
        if text is not None:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
    return tmp_path


def test_pyiceberg_configuration_file_is_read(tmp_path: Path) -> None:
    folder = home(tmp_path, yaml=YAML)
    assert find_connection("prod", folder) == NamedConnection(
        "https://catalog.example/api",
        None,
        {"warehouse": "w: 1", "credential": "id:se#cret", "s3.region": "eu-central-1"},
    )
    assert find_connection("local", folder) == NamedConnection("/srv/wh", "postgresql://me@127.0.0.1/lake", {})
    assert find_connection("hive", folder) == NamedConnection("thrift://h:9083", None, {"warehouse": "s3://b/wh"})
    assert find_connection("glue", folder) == NamedConnection("s3://b/wh", "glue", {"glue.region": "eu-central-1"})
    with pytest.raises(UnsupportedError, match="'dynamodb' are not built"):
        find_connection("dynamo", folder)
    assert find_connection("other", folder) is None


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            (
                "type: oauth2\n      oauth2:\n        client_id: me\n        client_secret: hidden\n"
                "        token_url: https://t.example/token\n        scope: all\n        expires_in: 60"
            ),
            {
                "rest.auth.type": "oauth2",
                "credential": "me:hidden",
                "oauth2-server-uri": "https://t.example/token",
                "scope": "all",
                "token-expires-in-ms": "60000",
            },
        ),
        (
            "type: basic\n      basic:\n        username: me\n        password: hidden",
            {
                "rest.auth.type": "basic",
                "rest.auth.basic.username": "me",
                "rest.auth.basic.password": "hidden",
            },
        ),
        ("type: google", {"rest.auth.type": "google"}),
        ("type: noop", {"rest.auth.type": "none"}),
        ("type: legacyoauth2", {}),
    ],
)
def test_pyiceberg_authentication_block_is_honoured(tmp_path: Path, block: str, expected: dict[str, str]) -> None:
    text = f"catalog:\n  prod:\n    uri: https://c.example\n    s3.signer: S3V4RestSigner\n    auth:\n      {block}\n"
    found = find_connection("prod", home(tmp_path, yaml=text))
    assert found == NamedConnection("https://c.example", None, expected)


@pytest.mark.parametrize("block", ["type: entra", "impl: mine.Auth", "type: google\n      google.credentials_path: /k"])
def test_unknown_pyiceberg_authentication_is_refused(tmp_path: Path, block: str) -> None:
    text = f"catalog:\n  prod:\n    uri: https://c.example\n    auth:\n      {block}\n"
    with pytest.raises(UnsupportedError, match="is not known here"):
        find_connection("prod", home(tmp_path, yaml=text))


def test_frazil_configuration_wins_and_nests(tmp_path: Path) -> None:
    folder = home(tmp_path, TOML, YAML)
    assert find_connection("prod", folder) == NamedConnection(
        "https://own.example",
        None,
        {"warehouse": "mine", "rest.client.max-retries": "3", "s3.path-style-access": "true"},
    )
    assert find_connection("folder", folder) == NamedConnection("/srv/folder", None, {})
    found = find_connection("local", folder)
    assert found is not None and found.address == "/srv/wh"


def test_configured_values_are_not_shown(tmp_path: Path) -> None:
    assert "cret" not in repr(find_connection("prod", home(tmp_path, yaml=YAML)))


def test_paths_and_addresses_are_not_connection_names(tmp_path: Path) -> None:
    folder = home(tmp_path, TOML)
    for text in ("./prod", "/prod", "prod/", "s3://prod", "https://prod", "", "a b"):
        assert find_connection(text, folder) is None


@pytest.mark.parametrize("text", ["catalog: [a]\n  - x\n", "a\n", "\tcatalog: x\n", "? x\n: y\n"])
def test_unsupported_yaml_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot read line"):
        read_yaml(text, "f.yaml")


def test_invalid_file_is_refused_without_its_values(tmp_path: Path) -> None:
    folder = home(tmp_path, '[catalog.prod]\ncredential = "hid-den\n')
    with pytest.raises(InvalidRequestError, match="no TOML") as caught:
        find_connection("prod", folder)
    assert "hid-den" not in str(caught.value)


def test_name_opens_the_configured_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_service() as service:
        text = f'[catalog.prod]\nuri = "{service.address}"\nwarehouse = "w"\ntoken = "t1"\n'
        folder = home(tmp_path, text)
        monkeypatch.setattr(opening, "find_connection", lambda name: find_connection(name, folder))
        monkeypatch.chdir(tmp_path)
        with frazil.connect("prod") as lake:
            assert "RestCatalog" in repr(lake)
        assert service.asked[0].query == {"warehouse": "w"}
        assert service.asked[0].headers["authorization"] == "Bearer t1"
        assert opening.lake_exists("prod")
        (tmp_path / "prod").mkdir()
        with pytest.raises(InvalidRequestError, match="it is a folder here"):
            frazil.connect("prod")


def test_service_is_connected_by_address() -> None:
    with scripted_service() as service:
        with frazil.connect(service.address, warehouse="w", token="t1") as lake:
            assert repr(lake) == f"Lake(RestCatalog('lake', '{service.address}'))"
        with pytest.raises(InvalidRequestError, match="not known"):
            frazil.connect(service.address, properties={"rest.client.max-retry": "1"})
        with pytest.raises(InvalidRequestError, match="a service says where files are"):
            frazil.connect(service.address, trust="none")
        with pytest.raises(InvalidRequestError, match="no lake was named"):
            frazil.connect()
