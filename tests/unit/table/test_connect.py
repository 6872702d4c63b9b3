"""Opening a lake: which warehouses, catalogs and properties there are, and what may be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

KEYS = {"s3.access-key-id": "AKIACANARY00000001", "s3.secret-access-key": "canary-secret-01"}
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.mark.parametrize(
    ("warehouse", "options", "reason"),
    [
        ("ftp://host/wh", {}, "Cannot open a warehouse at a ftp: location"),
        ("abfss://c00@account/wh", {}, "no credentials are configured"),
        ("s3://bucket/wh", {}, "no credentials are configured"),
        ("s3://bucket/wh", {"properties": KEYS}, "no place for a database"),
        ("wh", {"catalog": "mysql://host/db"}, "Cannot open a catalog of type 'mysql'"),
        ("wh", {"catalog": "nonsense"}, "Cannot open the catalog: its type is not supported"),
        ("wh", {"catalog": "glue"}, "Cannot connect to Glue: there is no region"),
        ("wh", {"properties": {"s3.acess-key-id": "x"}}, "it is not known"),
        ("wh", {"properties": {"owner": "me"}}, "it is not known"),
        ("wh", {"properties": {"s3.region": 1}}, "not text"),
        ("wh", {"properties": {"read.roots": "relative"}}, "not an absolute path or URI"),
        ("wh", {"properties": {"read.roots": "/"}}, "not an absolute path or URI"),
        ("wh", {"properties": {"read.roots": ""}}, "not an absolute path or URI"),
        ("wh", {"name": ""}, "needs a name"),
        ("/dev/null/wh", {}, "Cannot make the lake's folder"),
        ("~nobody-of-that-name/wh", {}, "Cannot open the lake"),
    ],
)
def test_lake_that_cannot_be_opened_is_refused_with_the_reason(
    warehouse: str, options: dict[str, object], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(frazil.FrazilError, match=reason):
        frazil.connect(warehouse, **options)  # type: ignore[arg-type]


def test_misspelt_property_gets_a_suggestion() -> None:
    with pytest.raises(frazil.InvalidPropertyError) as raised:
        frazil.connect("memory:", properties={"s3.acess-key-id": "x"})
    assert raised.value.hint == "Did you mean s3.access-key-id?"


def test_folder_may_be_a_path_text_or_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with frazil.connect(tmp_path / "wh") as lake:
        lake.create_table("db.t", "id bigint").append(ROWS)
    for warehouse in ("wh", f"{tmp_path}/wh", f"file://{tmp_path}/wh", f"file:{tmp_path}/wh"):
        with frazil.connect(warehouse) as lake:
            assert lake.table("db.t").scan().count() == 3


def test_lakes_of_different_names_share_a_database(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with (
        frazil.connect(tmp_path / "a", catalog=uri, name="a") as first,
        frazil.connect(tmp_path / "b", catalog=uri, name="b") as second,
    ):
        first.create_table("db.t", "id bigint")
        assert second.list_namespaces() == []
        second.create_table("db.t", "id bigint").append(ROWS)
        assert first.table("db.t").scan().count() == 0


def test_memory_needs_no_catalog_name() -> None:
    with frazil.connect("memory:") as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(ROWS)
        assert table.scan().count() == 3


@pytest.mark.parametrize("catalog", [None, "filesystem"])
def test_roots_do_not_restrict_the_warehouse(tmp_path: Path, catalog: str | None) -> None:
    properties = {"read.roots": f"{tmp_path}/elsewhere, s3://bucket/x"}
    with frazil.connect(tmp_path / "wh", catalog=catalog, properties=properties) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(ROWS)
        table.append(ROWS)
        assert table.scan().count() == 6
        table.delete("id > 0")
        lake.drop_table("db.t", purge=True)


def test_files_outside_the_roots_are_not_read(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "other") as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(ROWS)
        location = table.metadata_location
    assert location is not None
    with frazil.connect(tmp_path / "wh", properties={"read.roots": f"file://{tmp_path}/wh"}) as lake:
        lake.create_namespace("db")
        with pytest.raises(frazil.InvalidRequestError, match="outside the folders that may be read"):
            lake.register_table("db.t", location)
    with frazil.connect(tmp_path / "wh", properties={"read.roots": f"{tmp_path}/other"}) as lake:
        assert lake.register_table("db.t", location).scan().to_arrow() == ROWS


def test_links_out_of_the_roots_are_not_followed(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "wh", properties={"read.roots": f"{tmp_path}/wh"}) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(ROWS)
        data = Path(table.location.removeprefix("file://")) / "data"
        shutil.move(data, tmp_path / "outside")
        data.symlink_to(tmp_path / "outside")
        with pytest.raises(frazil.InvalidRequestError, match="outside the folders that may be read"):
            table.scan().to_arrow()


def test_tilde_is_the_user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with frazil.connect("~/wh") as lake:
        lake.create_table("db.t", "id bigint")
    assert (tmp_path / "home" / "wh" / "catalog.db").exists()
    assert not (tmp_path / "~").exists()
