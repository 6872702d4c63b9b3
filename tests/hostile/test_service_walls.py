"""A stranger's catalog service says where files are: `read.roots` and `trust="none"` hold for what it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.owned_folders import owned_folders
from frazil.errors import FrazilError, InvalidRequestError
from frazil.rest.open_rest import open_rest
from frazil.spark.read.planned_files import check_paths
from frazil.storage.choose import check_readable, check_writable
from frazil.table.open_catalog import open_catalog
from tests.hostile.test_credentials import AT, TABLE, VENDED
from tests.support.rest_lab import ScriptedService, metadata_of, scripted_service, table_json

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "settings": {"config": {"s3.region": "eu-west-1"}},
    "vended": {"storage-credentials": [{"prefix": "s3://", "config": VENDED["s3"]}]},
    "vended for all": {"storage-credentials": [{"prefix": "", "config": {**VENDED["s3"], **VENDED["gcs"]}}]},
    "signed": {"config": {"s3.remote-signing-enabled": "true"}},
}
OUTSIDE = ("s3://other/t/f", "s3://bkt/t2/f", "s3://bkt/t/../u/f", "s3a://bkt/f", "gs://bkt/t/f", "file:///etc/passwd")
KEYS = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "secret", "gcs.oauth2.token": "token"}


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


def storage_of(service: ScriptedService, answer: dict[str, Any], **properties: str) -> Any:
    service.on(f"GET {AT}", (200, table_json(**answer)))
    return open_rest("lake", service.address, {**KEYS, **properties}).load_table(TABLE).storage


@pytest.mark.parametrize("way", WAYS)
def test_roots_hold_however_a_service_has_its_files_reached(service: ScriptedService, way: str) -> None:
    storage = storage_of(service, WAYS[way], **{"read.roots": "s3://bkt/t"})
    assert storage.is_fenced and storage.roots == ("s3://bkt/t",)
    asked: tuple[Callable[[str], object], ...] = (
        storage.storage_of,
        lambda location: check_readable(storage, [location]),
        lambda location: check_paths(storage, pa.chunked_array([[location]])),
    )
    for ask in asked:
        ask("s3://bkt/t/f")
        for location in OUTSIDE:
            with pytest.raises(InvalidRequestError, match="outside the folders that may be read"):
                ask(location)


@pytest.mark.parametrize("way", WAYS)
def test_links_out_of_the_roots_are_not_given_to_spark(service: ScriptedService, tmp_path: Path, way: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").write_bytes(b"data")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").write_bytes(b"data")
    storage = storage_of(service, WAYS[way], **{"read.roots": str(root)})
    check_readable(storage, [str(root / "file")])
    with pytest.raises(InvalidRequestError, match="outside the folders that may be read"):
        check_readable(storage, [str(root / "link")])


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_where_the_service_is_not_trusted(
    service: ScriptedService, tmp_path: Path, way: str
) -> None:
    location = f"file://{tmp_path}/t"
    metadata = metadata_of(location=location)
    service.on(f"GET {AT}", (200, table_json(metadata, f"{location}/metadata/0.metadata.json", **WAYS[way])))
    properties = {**KEYS, "read.roots": f"{location},s3://bkt/t"}
    with frazil.connect(service.address, trust="none", properties=properties) as lake:
        table = lake.table("db.t")
        with pytest.raises(InvalidRequestError, match='opened with trust="none"'):
            table.append(pa.table({"id": pa.array([1], pa.int64())}))
        storage = table.state.storage
        writes: tuple[Callable[[str], object], ...] = (
            lambda folder: storage.create(f"{folder}/f", b""),
            lambda folder: storage.create_exclusive(f"{folder}/f", b""),
            lambda folder: storage.replace(f"{folder}/f", b""),
            lambda folder: storage.open_new(f"{folder}/f"),
            storage.create_folder,
            storage.delete_folder,
            storage.delete,
            lambda folder: storage.delete_many([f"{folder}/f"]),
            lambda folder: check_writable(storage, folder),
        )
        for folder in (f"{location}/new", "s3://bkt/t/new"):
            for write in writes:
                with pytest.raises(InvalidRequestError, match='opened with trust="none"'):
                    write(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("warehouse", ["file:///", ""], ids=["with a warehouse", "without"])
def test_service_on_another_machine_names_no_local_files_to_delete(
    service: ScriptedService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    home = f"file://{tmp_path}/home"
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "diary.txt").write_bytes(b"dear diary")
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {"warehouse": warehouse} if warehouse else {}}))
    service.on(f"GET {AT}", (200, table_json(metadata_of(location=home), f"{home}/metadata/0.metadata.json")))

    service.on("GET /v1/namespaces", (200, {"namespaces": []}))

    def refusal(**properties: str) -> str | None:
        catalog: Any = open_rest("lake", service.address, properties)
        return owned_folders(catalog, catalog.load_table(TABLE)).find_refusal(f"{home}/data/diary.txt")

    assert refusal() is None, "a service of this machine may name its files"
    # The scripted service is on this machine.
    monkeypatch.setattr("frazil.rest.asked_catalog.is_loopback", lambda url: False)
    assert "outside the warehouse" in str(refusal())
    assert refusal(**{"delete.roots": home}) is None
    if not warehouse:
        assert refusal(warehouse=home) is None


def test_a_server_over_a_service_needs_the_folders_that_it_may_use(service: ScriptedService, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="a service says where files are") as found:
        open_catalog(service.address, more_roots=())
    assert "--read-root" in str(found.value)
    service.on(f"GET {AT}", (200, table_json()))
    given = {"read.roots": "s3://bkt/one", "delete.roots": "s3://bkt/two"}
    opened = open_catalog(service.address, properties={**KEYS, **given}, more_roots=[str(tmp_path)])
    storage: Any = opened.load_table(TABLE).storage
    for location in (f"{tmp_path}/f", "s3://bkt/one/f", "s3://bkt/two/f"):
        storage.storage_of(location)
    for location in ("/etc/passwd", "s3://bkt/three/f"):
        with pytest.raises(FrazilError, match="outside the folders that may be read"):
            storage.storage_of(location)
