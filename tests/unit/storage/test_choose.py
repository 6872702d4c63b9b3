"""Storages by scheme: every call goes where its location belongs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from frazil.errors import InvalidPropertyError, InvalidRequestError, MissingFileError, StorageError, UnsupportedError
from frazil.storage.choose import SchemeStorage, choose_storage, storage_of
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from frazil.storage.object_store import ObjectStorage

KEYS = {"s3.access-key-id": "AKIACANARY00000001", "s3.secret-access-key": "canary-secret-01"}


def test_schemes_select_their_storage() -> None:
    memory = MemoryStorage()
    storage = choose_storage({**KEYS, "gcs.oauth2.token": "canary-token"}, memory=memory)
    assert isinstance(storage.storage_of("/tmp/f"), LocalStorage)
    assert storage.storage_of("file:///tmp/f") is storage.storage_of("FILE:/tmp/f")
    assert storage.storage_of("memory://m/f") is memory
    s3 = storage.storage_of("s3://b/f")
    assert isinstance(s3, ObjectStorage)
    assert all(storage.storage_of(f"{scheme}://b/f") is s3 for scheme in ("s3", "s3a", "s3n", "S3A"))
    gcs = storage.storage_of("gs://b/f")
    assert isinstance(gcs, ObjectStorage)
    assert gcs is not s3
    assert gcs is storage.storage_of("gcs://b/f")


def test_credentials_are_required_only_for_used_storages(tmp_path: Path) -> None:
    storage = choose_storage()
    storage.create(f"{tmp_path}/f", b"data")
    with pytest.raises(InvalidRequestError, match="no credentials are configured"):
        storage.read("s3://bucket/f")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("adl://account/f", "the scheme is not supported"),
        ("hdfs://host/f", "the scheme is not supported"),
        ("https://host/f", "the scheme is not supported"),
    ],
)
def test_unsupported_scheme_is_refused(location: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        choose_storage().read(location)


def test_memory_storage_must_be_supplied() -> None:
    with pytest.raises(InvalidRequestError, match="no memory storage"):
        choose_storage().read("memory://m/f")


def test_table_may_have_files_under_several_schemes(tmp_path: Path) -> None:
    storage = choose_storage(memory=MemoryStorage())
    near, far = f"file://{tmp_path}", "memory://bucket/t"
    for root in (near, far):
        storage.create(f"{root}/a", b"a")
        storage.create_exclusive(f"{root}/b", b"b")
        storage.replace(f"{root}/b", b"bb")
        storage.create_folder(f"{root}/folder")
        with storage.open_new(f"{root}/c") as file:
            file.write(b"ccc")
            file.publish()
        assert storage.read(f"{root}/a") == b"a"
        assert storage.read_range(f"{root}/c", 1, 2) == b"cc"
        assert storage.size(f"{root}/b") == 2
        assert storage.exists(f"{root}/b")
        assert storage.list_children(root) == (("a", "b", "c"), ("folder",))
        assert {one.path for one in storage.list(root)} == {f"{root}/{name}" for name in "abc"}
        assert storage.resolve_folder(root) == root
        storage.delete_folder(f"{root}/folder")
        storage.delete(f"{root}/a")
    assert storage.delete_many([f"{near}/b", f"{far}/b", f"{near}/c", f"{far}/c"]) == {}
    assert [*storage.list(near), *storage.list(far)] == []
    with pytest.raises(MissingFileError):
        storage.read(f"{far}/a")


def test_failures_of_each_storage_are_reported() -> None:
    failing = FailingStorage(MemoryStorage(), Fault(1, FaultKind.IO_ERROR, frozenset({"delete"})))
    storage = SchemeStorage({"memory": MemoryStorage(), "s3": failing})
    failed = storage.delete_many(["memory://b/f", "s3://b/f"])
    assert list(failed) == ["s3://b/f"]
    assert isinstance(failed["s3://b/f"], StorageError)


def test_storage_is_pickled_without_memory_and_credentials(tmp_path: Path) -> None:
    storage = choose_storage(KEYS, memory=MemoryStorage())
    data = pickle.dumps(storage)
    assert not any(secret.encode() in data for secret in KEYS.values())
    assert not any(secret in repr(storage) for secret in KEYS.values())
    again = pickle.loads(data)
    again.create(f"{tmp_path}/f", b"data")
    assert storage.read(f"{tmp_path}/f") == b"data"
    with pytest.raises(InvalidRequestError, match="no memory storage"):
        again.read("memory://m/f")
    with pytest.raises(InvalidRequestError, match="not included in a pickled storage"):
        again.read("s3://bucket/f")


def test_storage_without_credentials_is_picklable(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(choose_storage()))
    assert not again.exists(f"{tmp_path}/f")
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match="no credentials are configured"):
            again.read("s3://bucket/f")


def test_storage_of_a_location_is_found_in_any_storage() -> None:
    local = LocalStorage()
    assert storage_of(local, "/tmp/f") is local
    assert isinstance(storage_of(choose_storage(), "/tmp/f"), LocalStorage)


@pytest.mark.parametrize("seconds", ["soon", "", "-1", "0", "nan"])
def test_timeouts_are_numbers_of_seconds(seconds: str) -> None:
    for name in ("s3.connect-timeout", "s3.request-timeout"):
        with pytest.raises((InvalidPropertyError, InvalidRequestError)):
            choose_storage({**KEYS, name: seconds}).storage_of("s3://bucket/f")


# What somebody else may be given to read


def test_unlisted_schemes_are_not_passed_on() -> None:
    storage = choose_storage({"read.schemes": "hdfs, ABFSS:"})
    storage.check_readable(["/x/f", "file:/x/f", "hdfs://n/x/f", "abfss://c@a/f", "relative"])
    for location in ("http://h/f", "HTTPS://h/f", "ftp://h/f", "webhdfs://h/f", "jar:file:/x!/f", "viewfs:///f"):
        with pytest.raises(UnsupportedError, match="the scheme is not supported"):
            storage.check_readable(["/x/f", location])
    with pytest.raises(InvalidPropertyError, match="is not a scheme"):
        choose_storage({"read.schemes": "hdfs, //"})


def test_locations_outside_the_roots_are_not_passed_on(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "f").write_bytes(b"")
    (inside / "link").symlink_to(outside / "f")
    (inside / "alias").symlink_to(outside)
    (inside / "same").symlink_to(inside / "f")
    storage = choose_storage({"read.roots": f"{inside}, hdfs://n/in", "read.schemes": "hdfs"})
    storage = pickle.loads(pickle.dumps(storage))
    storage.check_readable([f"{inside}/f", f"file://{inside}/same", "hdfs://n/in/f"])
    for location in (
        f"{outside}/f",
        f"{inside}/link",
        f"{inside}/alias/f",
        f"{inside}/../out/f",
        "hdfs://n/out/f",
        "hdfs://n/in/../f",
    ):
        with pytest.raises(InvalidRequestError, match="outside the folders that may be read"):
            storage.check_readable([f"{inside}/f", location])
