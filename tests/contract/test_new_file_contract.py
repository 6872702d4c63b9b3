"""What every storage promises of files written piece by piece; see `frazil/storage/new_file.py`."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.errors import FileAlreadyExistsError, InvalidRequestError, StorageError, WriteOutcomeUnknownError
from frazil.storage.base import Storage
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support.azure_server import CONTAINER
from tests.support.s3_server import BUCKET

STORAGES: dict[str, Callable[[Path, pytest.FixtureRequest], tuple[Storage, str]]] = {
    "local": lambda folder, _: (LocalStorage(), f"file://{folder}"),
    "local-path": lambda folder, _: (LocalStorage(durable=False), str(folder)),
    "memory": lambda *_: (MemoryStorage(), "memory://bucket/warehouse"),
    "failing-never": lambda *_: (FailingStorage(MemoryStorage()), "s3://bucket/warehouse"),
    "s3": lambda _, request: (request.getfixturevalue("s3_storage"), f"s3://{BUCKET}/{uuid.uuid4().hex}"),
    "s3-in-parts": lambda _, request: (request.getfixturevalue("s3_parts"), f"s3://{BUCKET}/{uuid.uuid4().hex}"),
    "azure": lambda _, request: (request.getfixturevalue("azure_storage"), f"abfss://{CONTAINER}/{uuid.uuid4().hex}"),
    "azure-in-blocks": lambda _, request: (
        request.getfixturevalue("azure_parts"),
        f"abfss://{CONTAINER}/{uuid.uuid4().hex}",
    ),
}


@pytest.fixture(params=list(STORAGES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    name: str = request.param
    return STORAGES[name](tmp_path, request)


def test_file_written_in_pieces_reads_back_whole(place: tuple[Storage, str]) -> None:
    storage, root = place
    with storage.open_new(f"{root}/deep/er/file") as file:
        for piece in (b"one", b"", memoryview(b"two"), b"x" * 3_000_000):
            assert file.write(piece) == len(piece)
        assert file.size == 3_000_006
        file.publish()
    assert storage.read(f"{root}/deep/er/file") == b"onetwo" + b"x" * 3_000_000


def test_an_empty_file_can_be_published(place: tuple[Storage, str]) -> None:
    storage, root = place
    storage.open_new(f"{root}/empty").publish()
    assert storage.read(f"{root}/empty") == b""


def test_file_has_no_name_before_it_is_published(place: tuple[Storage, str]) -> None:
    storage, root = place
    file = storage.open_new(f"{root}/file")
    file.write(b"x" * 2_000_000)
    assert not storage.exists(f"{root}/file")
    file.publish()
    assert storage.exists(f"{root}/file")


def test_discarded_file_leaves_nothing(place: tuple[Storage, str]) -> None:
    storage, root = place
    with storage.open_new(f"{root}/a/file") as file:
        file.write(b"x" * 2_000_000)
    file.discard()
    assert list(storage.list(root)) == []


def test_discarding_after_publishing_keeps_the_file(place: tuple[Storage, str]) -> None:
    storage, root = place
    file = storage.open_new(f"{root}/file")
    file.write(b"kept")
    file.publish()
    file.discard()
    assert storage.read(f"{root}/file") == b"kept"
    assert [one.path for one in storage.list(root)] == [f"{root}/file"]


@pytest.mark.parametrize("end", ["publish", "discard"])
def test_closed_file_rejects_writes(place: tuple[Storage, str], end: str) -> None:
    storage, root = place
    file = storage.open_new(f"{root}/file")
    getattr(file, end)()
    with pytest.raises(InvalidRequestError, match="already published or discarded"):
        file.write(b"more")
    with pytest.raises(InvalidRequestError, match="already published or discarded"):
        file.publish()


def test_existing_name_is_refused_and_its_file_kept(place: tuple[Storage, str]) -> None:
    storage, root = place
    storage.create(f"{root}/file", b"first")
    file = storage.open_new(f"{root}/file")
    file.write(b"second")
    with pytest.raises(FileAlreadyExistsError):
        file.publish()
    assert storage.read(f"{root}/file") == b"first"
    assert [one.path for one in storage.list(root)] == [f"{root}/file"]


def test_one_of_several_writers_publishing_a_name_wins(place: tuple[Storage, str]) -> None:
    storage, root = place
    barrier = threading.Barrier(6)

    def race(racer: int) -> bool:
        file = storage.open_new(f"{root}/file")
        file.write(b"%d" % racer * 1000)
        barrier.wait()
        try:
            file.publish()
        except FileAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        wins = list(pool.map(race, range(6)))
    assert wins.count(True) == 1
    assert storage.read(f"{root}/file") == b"%d" % wins.index(True) * 1000


def test_changing_a_buffer_after_write_does_not_change_the_file(place: tuple[Storage, str]) -> None:
    storage, root = place
    data = bytearray(b"before")
    file = storage.open_new(f"{root}/file")
    file.write(memoryview(data))
    data[:] = b"after!"
    file.publish()
    assert storage.read(f"{root}/file") == b"before"


def test_storage_faults_occur_at_publishing() -> None:
    for kind, error in (
        (FaultKind.IO_ERROR, StorageError),
        (FaultKind.APPLIED_BUT_ERROR, WriteOutcomeUnknownError),
    ):
        storage = FailingStorage(MemoryStorage(), Fault(1, kind, frozenset({"create"})))
        file = storage.open_new("memory://a/file")
        file.write(b"data")
        with pytest.raises(error):
            file.publish()
        assert storage.exists("memory://a/file") == (kind is FaultKind.APPLIED_BUT_ERROR)


def test_full_disk_is_an_error_that_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    storage = LocalStorage()
    file = storage.open_new(f"{tmp_path}/sub/file")
    file.write(b"data")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left"):
        file.publish()
    monkeypatch.undo()
    assert list(storage.list(str(tmp_path))) == []
