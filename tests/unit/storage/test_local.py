"""Files of this machine: how locations are spelt, how files are made to last, and what is refused."""

from __future__ import annotations

import errno
import gc
import itertools
import multiprocessing
import os
import pickle
import stat
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import (
    FileAlreadyExistsError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.storage.local import LocalStorage, local_path

STORAGE = LocalStorage(durable=False)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file:///a%20b#c?d", "/a%20b#c?d"),
        ("/a:b", "/a:b"),
        ("relative/x", f"{Path.cwd()}/relative/x"),
    ],
)
def test_locations_have_several_spellings(location: str, path: str) -> None:
    assert local_path(location) == path


@pytest.mark.parametrize("location", ["", "s3://b/x", "file:x", "file://host/x", "file://", "a\0b", "hdfs:/x"])
def test_locations_of_other_hosts_are_refused(location: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot use the location"):
        STORAGE.read(location)


@pytest.mark.parametrize("location", ["relative", "./x", "/a/", "/a/.", "/a/..", "file:///", "/"])
@pytest.mark.parametrize("verb", ["create", "create_exclusive", "replace", "delete"])
def test_relative_paths_and_folders_are_never_written_or_deleted(location: str, verb: str) -> None:
    arguments = (location,) if verb == "delete" else (location, b"")
    with pytest.raises(InvalidRequestError, match="Cannot write or delete"):
        getattr(STORAGE, verb)(*arguments)


def test_unrepresentable_characters_are_refused(tmp_path: Path) -> None:
    for act in (STORAGE.read, STORAGE.exists, STORAGE.delete, lambda path: STORAGE.create(path, b"")):
        with pytest.raises(InvalidRequestError):
            act(f"{tmp_path}/\ud800")
    with pytest.raises(StorageError, match="too long"):
        STORAGE.create(f"{tmp_path}/{'x' * 300}", b"")
    assert list(tmp_path.iterdir()) == []


def test_listing_keeps_the_requested_spelling(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    for folder in (f"file:{tmp_path}", f"file://{tmp_path}", str(tmp_path)):
        assert [one.path for one in STORAGE.list(folder)] == [f"{folder}/f"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/null", str(tmp_path / "pipe"), str(tmp_path)):
        for read in (STORAGE.read, STORAGE.size, lambda one: STORAGE.read_range(one, 0, 1)):
            with pytest.raises(StorageError, match=r"not a regular file|a folder"):
                read(path)
        assert not STORAGE.exists(path)


def test_file_reporting_no_size_is_bounded() -> None:
    with pytest.raises(StorageError, match="more than the limit of 10"):
        STORAGE.read("/proc/self/status", max_bytes=10)


def test_reading_a_small_file_uses_little_memory(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert len(STORAGE.read(str(tmp_path / "small"))) == 1000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_file_with_a_meaningless_size_is_read_to_its_end() -> None:
    assert STORAGE.read("/proc/self/status").count(b"\n") > 10


def test_file_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(MissingFileError):
        STORAGE.read(f"{tmp_path}/f/g")
    assert not STORAGE.exists(f"{tmp_path}/f/g")
    with pytest.raises(StorageError):
        STORAGE.create(f"{tmp_path}/f/g", b"")


def test_folders_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="Cannot delete"):
        STORAGE.delete(f"{tmp_path}/d")
    failed = STORAGE.delete_many([f"{tmp_path}/d", f"{tmp_path}/absent"])
    assert list(failed) == [f"{tmp_path}/d"]


def test_links_to_files_are_listed_and_links_to_folders_not_followed(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_bytes(b"123")
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "away").symlink_to(tmp_path / "other")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "other" / "secret")
    (tmp_path / "t" / "dangling").symlink_to(tmp_path / "nowhere")
    assert [(one.path, one.size) for one in STORAGE.list(f"{tmp_path}/t")] == [(f"{tmp_path}/t/link", 3)]
    STORAGE.delete(f"{tmp_path}/t/link")
    assert (tmp_path / "other" / "secret").exists()


def test_folders_are_resolved_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert STORAGE.resolve_folder(f"file:{tmp_path}/link/x/../y") == f"file://{os.path.realpath(tmp_path)}/real/y"


def test_nothing_is_left_beside_a_file(tmp_path: Path) -> None:
    STORAGE.create(f"{tmp_path}/f", b"1")
    STORAGE.replace(f"{tmp_path}/f", b"2")
    with pytest.raises(FileAlreadyExistsError):
        STORAGE.create_exclusive(f"{tmp_path}/f", b"3")
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


def test_existing_folder_occupies_the_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(FileAlreadyExistsError):
        STORAGE.create_exclusive(f"{tmp_path}/d", b"")
    with pytest.raises(StorageError):
        STORAGE.replace(f"{tmp_path}/d", b"")


def test_dangling_link_occupies_the_name(tmp_path: Path) -> None:
    (tmp_path / "v1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileAlreadyExistsError):
        STORAGE.create_exclusive(f"{tmp_path}/v1", b"")
    assert not (tmp_path / "elsewhere").exists()


def test_storage_is_picklable(tmp_path: Path) -> None:
    back = pickle.loads(pickle.dumps(LocalStorage()))
    back.create(f"{tmp_path}/f", b"1")
    assert back.read(f"{tmp_path}/f") == b"1"


def _race(root: str, rounds: int, gate: Any, wins: Any) -> None:
    storage = LocalStorage(durable=False)
    for at in range(rounds):
        gate.wait()
        try:
            storage.create_exclusive(f"{root}/{at}/v1", str(os.getpid()).encode() * 1000)
        except FileAlreadyExistsError:
            continue
        wins.put((at, os.getpid()))


def test_one_of_several_processes_racing_for_a_name_wins(tmp_path: Path) -> None:
    rounds, racers = 30, 4
    spawn = multiprocessing.get_context("fork")
    gate, wins = spawn.Barrier(racers), spawn.Queue()
    processes = [spawn.Process(target=_race, args=(str(tmp_path), rounds, gate, wins)) for _ in range(racers)]
    for process in processes:
        process.start()
    won = [wins.get(timeout=60) for _ in range(rounds)]
    for process in processes:
        process.join(60)
    assert sorted(at for at, _ in won) == list(range(rounds))
    assert wins.empty()
    for at, process_id in won:
        assert (tmp_path / str(at) / "v1").read_bytes() == str(process_id).encode() * 1000


# Syncs and faults: the system's own calls are logged, and made to fail one at a time.


class System:
    """The system calls of a write, logged by name and path, one of them failing."""

    def __init__(self, patch: pytest.MonkeyPatch, *, fail_at: int | None = None, code: int = errno.EIO) -> None:
        self.calls: list[str] = []
        self.fail_at = fail_at
        self.code = code
        self.paths: dict[int, str] = {}
        self._os = {name: getattr(os, name) for name in ("open", "write", "fsync", "link", "replace", "close")}
        patch.setattr(os, "open", self.open)
        patch.setattr(os, "write", self.on_descriptor("write"))
        patch.setattr(os, "fsync", self.on_descriptor("fsync"))
        patch.setattr(os, "link", self.on_path("link"))
        patch.setattr(os, "replace", self.on_path("replace"))

    def log(self, verb: str, path: str) -> None:
        self.calls.append(f"{verb} {path}")
        if len(self.calls) == self.fail_at:
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        self.log("open", os.fspath(path))
        descriptor: int = self._os["open"](path, flags, mode, **rest)
        self.paths[descriptor] = os.fspath(path)
        return descriptor

    def on_descriptor(self, verb: str) -> Callable[..., Any]:
        def call(descriptor: int, *rest: Any) -> Any:
            self.log(verb, self.paths.get(descriptor, "?"))
            return self._os[verb](descriptor, *rest)

        return call

    def on_path(self, verb: str) -> Callable[..., Any]:
        def call(source: Any, target: Any, **rest: Any) -> Any:
            self.log(verb, os.fspath(target))
            return self._os[verb](source, target, **rest)

        return call


def test_file_and_new_folders_are_synced_before_the_name_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(new_id=lambda: "id")
    system = System(monkeypatch)
    storage.create_exclusive(f"{tmp_path}/a/b/f", b"data")
    temporary = f"{tmp_path}/a/b/.f.id.tmp"
    at = system.calls.index(f"link {tmp_path}/a/b/f")
    before, after = system.calls[:at], system.calls[at + 1 :]
    for synced in (temporary, f"{tmp_path}/a", str(tmp_path), str(tmp_path.parent)):
        assert f"fsync {synced}" in before
    assert after == [f"open {tmp_path}/a/b", f"fsync {tmp_path}/a/b"]
    system.calls.clear()
    storage.create_exclusive(f"{tmp_path}/a/b/g", b"data")
    assert [call for call in system.calls if call.startswith("fsync")] == [
        f"fsync {tmp_path}/a/b/.g.id.tmp",
        f"fsync {tmp_path}/a/b",
    ]


def test_multipart_file_is_named_and_then_synced_with_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(new_id=lambda: "id")
    system = System(monkeypatch)
    file = storage.open_new(f"{tmp_path}/a/b/f")
    file.write(b"data")
    assert not [call for call in system.calls if call.startswith("fsync")]
    file.publish()
    after = system.calls[system.calls.index(f"link {tmp_path}/a/b/f") + 1 :]
    for synced in (f"{tmp_path}/a/b/.f.id.tmp", f"{tmp_path}/a", str(tmp_path), str(tmp_path.parent)):
        assert f"fsync {synced}" in after
    assert after[-1] == f"fsync {tmp_path}/a/b"


def test_recreated_folder_is_synced_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage()
    storage.create(f"{tmp_path}/a/f", b"")
    (tmp_path / "a" / "f").unlink()
    (tmp_path / "a").rename(tmp_path / "b")
    system = System(monkeypatch)
    storage.create(f"{tmp_path}/a/f", b"")
    assert f"fsync {tmp_path}" in system.calls


def test_concurrent_files_share_syncs_of_their_parent_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage()
    storage.create(f"{tmp_path}/data/first/f", b"")
    count = 16
    events: list[tuple[str, int]] = []
    syncs = itertools.count()
    files_synced = threading.Semaphore(0)
    first_begun = threading.Event()
    sync = os.fsync
    above = (tmp_path / "data").stat().st_ino

    def slow_sync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        if found.st_ino != above:
            sync(descriptor)
            if stat.S_ISREG(found.st_mode):
                files_synced.release()
            return
        number = next(syncs)
        events.append(("begun", number))
        first_begun.set()
        if number == 0:
            for _ in range(count):
                assert files_synced.acquire(timeout=60)
        sync(descriptor)
        events.append(("ended", number))

    def write(number: int) -> None:
        if number >= count // 2:  # their folders come too late for the first sync
            assert first_begun.wait(timeout=60)
        file = storage.open_new(f"{tmp_path}/data/p{number}/f")
        events.append(("made", number))
        file.write(b"data")
        file.publish()
        events.append(("published", number))

    monkeypatch.setattr(os, "fsync", slow_sync)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(write, range(count)))
    ran = [number for event, number in events if event == "ended"]
    assert 0 < len(ran) < count
    for number in range(count):
        during = events[events.index(("made", number)) : events.index(("published", number))]
        assert any(("begun", synced) in during and ("ended", synced) in during for synced in ran)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_unreferenced_new_file_is_closed(tmp_path: Path) -> None:
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    file = LocalStorage().open_new(f"{tmp_path}/f")
    file.write(b"data")
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    del file
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_non_durable_storage_syncs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch)
    LocalStorage(durable=False).create(f"{tmp_path}/a/f", b"data")
    assert not [call for call in system.calls if call.startswith("fsync")]


@pytest.mark.parametrize("verb", ["create_exclusive", "replace"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS], ids=errno.errorcode.get)
def test_fault_at_any_call_is_atomic_and_reports_its_outcome(tmp_path: Path, verb: str, code: int) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        path = f"{folder}/a/f"
        with pytest.MonkeyPatch.context() as patch:
            system = System(patch, fail_at=at, code=code)
            try:
                getattr(LocalStorage(), verb)(path, b"data")
                outcome: FrazilError | None = None
            except FrazilError as error:
                outcome = error
        if len(system.calls) < at:
            break
        files = [one.read_bytes() for one in folder.rglob("*") if one.is_file()]
        assert files in ([], [b"data"])
        if outcome is None:
            # A folder above that may not be synced is not ours; see `_sync_way_to`.
            assert code == errno.EROFS
            assert files == [b"data"]
        elif isinstance(outcome, WriteOutcomeUnknownError):
            assert not outcome.may_clean_up
            assert system.calls[at - 1].split()[0] in ("link", "replace", "open", "fsync")
        else:
            assert isinstance(outcome, StorageError)
            assert files == []
    assert at > 8


def test_link_with_a_lost_response_is_found_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def linked_but_exists(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", linked_but_exists)
    STORAGE.create_exclusive(f"{tmp_path}/f", b"mine")
    assert STORAGE.read(f"{tmp_path}/f") == b"mine"


def test_file_system_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(UnsupportedError, match="no hard links"):
        STORAGE.create_exclusive(f"{tmp_path}/f", b"")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    STORAGE.create(f"{tmp_path}/f", b"0123456789")
    assert STORAGE.read(f"{tmp_path}/f") == b"0123456789"


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    STORAGE.create(f"{tmp_path}/f", b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: pread(descriptor, min(length, 3), offset))
    assert STORAGE.read(f"{tmp_path}/f") == b"0123456789"
    assert STORAGE.read_range(f"{tmp_path}/f", 2, 7) == b"2345678"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_inaccessible_file_is_neither_present_nor_missing(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(StorageError, match="Permission denied"):
        STORAGE.exists(f"{tmp_path}/closed/f")


def test_failed_lookup_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **_: Any) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        STORAGE.exists(f"{tmp_path}/f")
