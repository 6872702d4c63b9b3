"""What every storage promises; see `frazil/storage/base.py`. A new storage is added to `STORAGES` and nothing else."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from frazil.errors import (
    AlreadyExistsError,
    FileAlreadyExistsError,
    InvalidRequestError,
    MissingFileError,
    NotFoundError,
    StorageError,
)
from frazil.storage.base import Storage
from frazil.storage.choose import choose_storage
from frazil.storage.failing import FailingStorage
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from frazil.storage.webhdfs import HdfsStorage, hdfs_service
from tests.support.azure_server import ACCOUNT, CONTAINER
from tests.support.hdfs_cluster import shared_cluster
from tests.support.s3_server import BUCKET


class Case(NamedTuple):
    storage: Storage
    root: str
    """A folder that the test has to itself."""

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"


def s3(request: pytest.FixtureRequest) -> Case:
    storage: Storage = request.getfixturevalue("s3_storage")
    return Case(storage, f"s3://{BUCKET}/{uuid.uuid4().hex}/a//b")


def azure(request: pytest.FixtureRequest) -> Case:
    storage: Storage = request.getfixturevalue("azure_storage")
    return Case(storage, f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{uuid.uuid4().hex}/a/b")


def hdfs(request: pytest.FixtureRequest) -> Case:
    storage = HdfsStorage(hdfs_service(shared_cluster(), ["hdfs://cluster"]))
    return Case(storage, f"hdfs://cluster/{uuid.uuid4().hex}/a/b")


STORAGES: dict[str, Callable[[Path, pytest.FixtureRequest], Case]] = {
    "local": lambda folder, _: Case(LocalStorage(), f"file://{folder}"),
    "local-path": lambda folder, _: Case(LocalStorage(durable=False), str(folder)),
    "memory": lambda *_: Case(MemoryStorage(), "memory://bucket/warehouse"),
    "failing-never": lambda *_: Case(FailingStorage(MemoryStorage()), "s3://bucket/warehouse"),
    "s3": lambda _, request: s3(request),
    "azure": lambda _, request: azure(request),
    "hdfs": lambda _, request: hdfs(request),
    "by-scheme": lambda folder, _: Case(choose_storage(durable=False), f"file:{folder}"),
}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.extended) if name == "hdfs" else name for name in STORAGES]
)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    name: str = request.param
    return STORAGES[name](tmp_path, request)


CONTENTS = [b"", b"\0", b"text", bytes(range(256)) * 1000]
AWKWARD_NAMES = [
    "plain", "a b", "a%20b", "a+b", "k=v", "ü/ß", "日本", "a#b", "a?b=c&d", "a:b", "a;b", "~", "a'b\"c", "a\nb",
    "%2e%2e", "..a", "a..", "x" * 200, "a/b/c/d/e/f/g",
]  # fmt: skip


@pytest.mark.parametrize("data", CONTENTS, ids=len)
@pytest.mark.parametrize("verb", ["create", "create_exclusive", "replace"])
def test_file_reads_back_as_written(case: Case, verb: str, data: bytes) -> None:
    path = case.at("deep/er/file")
    getattr(case.storage, verb)(path, data)
    assert case.storage.read(path) == data
    assert case.storage.size(path) == len(data)
    assert case.storage.exists(path)


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_names_are_taken_literally(case: Case, name: str) -> None:
    if ":" in name and isinstance(case.storage, HdfsStorage):
        with pytest.raises(StorageError, match="Cannot"):
            case.storage.create(case.at(name), b"")
        return
    case.storage.create(case.at(name), name.encode())
    assert case.storage.read(case.at(name)) == name.encode()
    assert [one.path for one in case.storage.list(case.root)] == [case.at(name)]
    case.storage.delete(case.at(name))
    assert not case.storage.exists(case.at(name))


def test_names_that_differ_in_escaping_are_different_files(case: Case) -> None:
    for name in ("a b", "a%20b", "a+b", "A b"):
        case.storage.create(case.at(name), name.encode())
    assert case.storage.read(case.at("a%20b")) == b"a%20b"
    assert len(list(case.storage.list(case.root))) == 4


def test_ranged_reads_are_exact(case: Case) -> None:
    path = case.at("f")
    case.storage.create(path, b"0123456789")
    assert case.storage.read_range(path, 0, 10) == b"0123456789"
    assert case.storage.read_range(path, 3, 4) == b"3456"
    assert case.storage.read_range(path, 10, 0) == b""
    assert case.storage.read_range(path, 0, 0) == b""


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (10, 1), (11, 0), (2**62, 1), (0, 2**62)])
def test_range_beyond_the_end_is_an_error(case: Case, offset: int, length: int) -> None:
    case.storage.create(case.at("f"), b"0123456789")
    with pytest.raises(StorageError, match="the file has 10 bytes"):
        case.storage.read_range(case.at("f"), offset, length)


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1)])
def test_negative_range_is_refused(case: Case, offset: int, length: int) -> None:
    with pytest.raises(InvalidRequestError, match="negative"):
        case.storage.read_range(case.at("f"), offset, length)


def test_error_names_the_missing_file(case: Case) -> None:
    path = case.at("no/such")
    assert not case.storage.exists(path)
    for read in (case.storage.read, case.storage.size, lambda one: case.storage.read_range(one, 0, 1)):
        with pytest.raises(MissingFileError, match="the file does not exist") as caught:
            read(path)
        assert caught.value.context["path"] == path
        assert isinstance(caught.value, StorageError)
        assert isinstance(caught.value, NotFoundError)


def test_oversized_file_is_not_read(case: Case) -> None:
    case.storage.create(case.at("f"), b"12345")
    assert case.storage.read(case.at("f"), max_bytes=5) == b"12345"
    with pytest.raises(StorageError, match="5 bytes, more than the limit of 4"):
        case.storage.read(case.at("f"), max_bytes=4)


@pytest.mark.parametrize("verb", ["create", "create_exclusive"])
def test_existing_name_is_refused_and_its_file_kept(case: Case, verb: str) -> None:
    path = case.at("f")
    case.storage.create_exclusive(path, b"first")
    with pytest.raises(FileAlreadyExistsError, match="it exists") as caught:
        getattr(case.storage, verb)(path, b"second")
    assert isinstance(caught.value, AlreadyExistsError)
    assert case.storage.read(path) == b"first"
    assert [one.path for one in case.storage.list(case.root)] == [path]


def test_overwriting_replaces_the_file(case: Case) -> None:
    path = case.at("hint")
    for data in (b"1", b"2", b""):
        case.storage.replace(path, data)
        assert case.storage.read(path) == data
    assert len(list(case.storage.list(case.root))) == 1


def test_deleted_name_can_be_reused(case: Case) -> None:
    path = case.at("f")
    case.storage.create_exclusive(path, b"first")
    case.storage.delete(path)
    case.storage.create_exclusive(path, b"second")
    assert case.storage.read(path) == b"second"


def test_one_of_several_writers_racing_for_a_name_wins(case: Case) -> None:
    racers, rounds = 8, 20
    barrier = threading.Barrier(racers)

    def race(racer: int) -> list[int]:
        won = []
        for at in range(rounds):
            barrier.wait()
            try:
                case.storage.create_exclusive(case.at(f"new{at}/v1"), b"%d" % racer * 1000)
            except FileAlreadyExistsError:
                continue
            won.append(at)
        return won

    with ThreadPoolExecutor(racers) as pool:
        wins = list(pool.map(race, range(racers)))
    assert sorted(at for won in wins for at in won) == list(range(rounds))
    for racer, won in enumerate(wins):
        for at in won:
            assert case.storage.read(case.at(f"new{at}/v1")) == b"%d" % racer * 1000


def test_readers_see_a_whole_file_or_none(case: Case) -> None:
    path = case.at("f")
    whole = b"x" * 300_000
    done = threading.Event()
    seen: set[bytes] = set()

    def watch() -> None:
        while not done.is_set():
            try:
                seen.add(case.storage.read(path))
            except MissingFileError:
                continue

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        for at in range(30):
            case.storage.replace(path, whole if at % 2 else whole[::-1] + b"y")
        for _ in range(10):
            case.storage.delete(path)
            case.storage.create_exclusive(path, whole)
        done.set()
        watching.result()
    assert {len(one) for one in seen} <= {len(whole), len(whole) + 1}


def test_listing_shows_every_file_below_a_folder(case: Case) -> None:
    names = ["t/a", "t/b/c", "t/b/d/e", "t2/f", "t.x"]
    for name in names:
        case.storage.create(case.at(name), name.encode())
    found = {one.path: one for one in case.storage.list(case.at("t"))}
    assert set(found) == {case.at(name) for name in ("t/a", "t/b/c", "t/b/d/e")}
    assert found[case.at("t/b/c")].size == 5
    assert all(one.modified_ms > 1_600_000_000_000 for one in found.values())
    assert {one.path for one in case.storage.list(case.at("t") + "/")} == set(found)
    assert {one.path for one in case.storage.list(case.root)} == {case.at(name) for name in names}


def test_listing_an_empty_prefix_is_empty(case: Case) -> None:
    assert list(case.storage.list(case.at("absent"))) == []
    case.storage.create(case.at("file"), b"")
    assert list(case.storage.list(case.at("file"))) == []


def test_children_are_the_direct_entries_of_a_folder(case: Case) -> None:
    for name in ("t/a", "t/b/c", "t/b/d/e", "t2/f", "t.x"):
        case.storage.create(case.at(name), b"")
    case.storage.create_folder(case.at("t/empty"))
    assert case.storage.list_children(case.at("t")) == (("a",), ("b", "empty"))
    assert case.storage.list_children(case.at("t") + "/") == (("a",), ("b", "empty"))
    assert case.storage.list_children(case.root) == (("t.x",), ("t", "t2"))
    assert case.storage.list_children(case.at("t/empty")) == ((), ())
    assert case.storage.list_children(case.at("absent")) == ((), ())


def test_folder_is_created_once(case: Case) -> None:
    case.storage.create_folder(case.at("a/b"))
    for again in ("a/b", "a/b/", "a"):
        with pytest.raises(FileAlreadyExistsError, match="it exists"):
            case.storage.create_folder(case.at(again))
    case.storage.create(case.at("f"), b"")
    with pytest.raises(FileAlreadyExistsError):
        case.storage.create_folder(case.at("f"))


def test_only_empty_folders_are_removed(case: Case) -> None:
    case.storage.create_folder(case.at("a/b"))
    with pytest.raises(StorageError, match="not empty"):
        case.storage.delete_folder(case.at("a"))
    case.storage.delete_folder(case.at("a/b"))
    case.storage.delete_folder(case.at("a/b"))
    assert case.storage.list_children(case.at("a")) == ((), ())
    case.storage.create_folder(case.at("a/b"))
    case.storage.create(case.at("a/b/f"), b"")
    with pytest.raises(StorageError, match="not empty"):
        case.storage.delete_folder(case.at("a/b"))
    assert case.storage.exists(case.at("a/b/f"))


def test_one_of_several_creations_of_a_folder_wins(case: Case) -> None:
    barrier = threading.Barrier(8)

    def race(_: int) -> bool:
        barrier.wait()
        try:
            case.storage.create_folder(case.at("new"))
        except FileAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(race, range(8))) == 1


def test_deleting_a_missing_file_succeeds(case: Case) -> None:
    case.storage.delete(case.at("absent"))
    case.storage.delete(case.at("no/folder/either"))
    case.storage.create(case.at("f"), b"")
    case.storage.delete(case.at("f"))
    case.storage.delete(case.at("f"))
    assert not case.storage.exists(case.at("f"))


def test_many_files_are_deleted_at_once(case: Case) -> None:
    names = [case.at(f"f{at}") for at in range(5)]
    for name in names:
        case.storage.create(name, b"")
    assert case.storage.delete_many([*names[:4], case.at("absent")]) == {}
    assert [one.path for one in case.storage.list(case.root)] == [names[4]]


def test_folder_without_links_resolves_to_itself(case: Case) -> None:
    case.storage.create(case.at("t/f"), b"")
    assert case.storage.resolve_folder(case.at("t")).endswith("/t")


def test_changing_a_buffer_after_write_does_not_change_the_file(case: Case) -> None:
    data = bytearray(b"abc")
    case.storage.create(case.at("f"), data)  # type: ignore[arg-type]
    data[0] = 0
    assert case.storage.read(case.at("f")) == b"abc"
