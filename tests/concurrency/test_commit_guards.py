"""Guards that only matter when two unlikely things happen at once. `tools/mutate_commits.py` switches each off.

Every test here fails if one guard of the commit path is taken away.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.memory import MemoryCatalog, MemoryPointers
from frazil.catalog.names import Identifier
from frazil.catalog.outcomes import Rejected
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.catalog.pointers import EntityType, PointerChange
from frazil.catalog.sql import SqlCatalog, SqlPointers
from frazil.catalog.sqlite import SqliteDatabase
from frazil.catalog.version_files import VersionFiles
from frazil.changes.requirements import AssertRefSnapshotId
from frazil.changes.updates import AddSnapshot, SetProperties
from frazil.commit.action import Changes, CommitContext
from frazil.commit.append import Append
from frazil.commit.change_files import ChangedFiles
from frazil.commit.cherry_pick import CherryPick
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import delete_expired_files
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.row_delta import RowDelta
from frazil.commit.summary import SummaryCounts
from frazil.commit.transaction import Transaction
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef
from frazil.commit.update_statistics import UpdateStatistics
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    FileAlreadyExistsError,
    FrazilError,
    InvalidManifestError,
    InvalidRequestError,
    StorageError,
    TableAlreadyExistsError,
)
from frazil.loaded import LoadedTable
from frazil.maintenance.purge_files import purge_files
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.properties import IsolationLevel
from frazil.spec.statistics import StatisticsFile
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support.commit_lab import SCHEMA, TABLE, Lab, LabCatalog, paths_of
from tests.support.commit_lab import Fault as Fate

# What an action says must hold, and when


@dataclass(frozen=True)
class Demand:
    """Wants a branch to be where it is not."""

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        return Changes((SetProperties(FrozenMap({"a": "1"})),), (AssertRefSnapshotId("main", 12345),))


def test_commits_check_the_requirements_of_their_actions() -> None:
    lab = Lab()
    with pytest.raises(CommitConflictError):
        lab.commit(Demand())
    assert "a" not in lab.load().metadata.properties


def test_clock_going_backwards_never_produces_an_older_snapshot() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    first = lab.snapshot.timestamp_ms
    lab.now_ms -= 3_600_000
    lab.commit(Append((lab.file([2]),)))
    assert lab.snapshot.timestamp_ms >= first


def test_commit_adds_at_most_one_vector_per_data_file() -> None:
    lab = Lab(format_version=3)
    file = lab.file([1, 2, 3])
    lab.commit(Append((file,)))
    lab.commit(RowDelta(lab.vectors({file: [0]}), ReadSet(lab.snapshot.snapshot_id), "delete"))
    old = next(one for one in lab.live() if one.data_file.is_deletion_vector)
    twice = tuple(AddedFile(lab.vectors({file: [0]})[0], old.sequence_number) for _ in range(2))
    with pytest.raises(InvalidRequestError, match="two deletion vectors"):
        lab.commit(RewriteFiles((), (), lab.snapshot.snapshot_id, (old.data_file,), twice))


@dataclass(frozen=True)
class AddEntries:
    """Adds files as they are, without a question, as a careless writer would."""

    files: tuple[AddedFile, ...]
    target: Target = MAIN
    operation: str = "delete"

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        parent = find_parent(loaded.metadata, self.target.branch)
        writer = ManifestWriter(loaded, context)
        new = writer.write_new(self.files, ManifestContent.DELETES)
        return snapshot_changes(
            writer,
            ChangedFiles([*writer.read_base(parent), *new], SummaryCounts(), 0),
            parent,
            self.target,
            self.operation,
        )


def test_cherry_pick_of_an_append_with_deletes_is_refused() -> None:
    lab = Lab()
    file = lab.file([1, 2])
    lab.commit(Append((file,)), CreateRef("dev", "branch"))
    lab.commit(AddEntries((AddedFile(lab.position_deletes(file)),), Target("dev"), "append"))
    picked = lab.head("dev")
    assert picked is not None
    lab.commit(Append((lab.file([3]),)))
    with pytest.raises(InvalidRequestError, match="adds deletes"):
        lab.commit(CherryPick(picked.snapshot_id))


def test_table_with_two_vectors_for_a_file_accepts_no_third() -> None:
    lab = Lab(format_version=3)
    file = lab.file([1, 2, 3])
    lab.commit(Append((file,)))
    for position in (0, 1):
        lab.commit(AddEntries((AddedFile(lab.vectors({file: [position]})[0]),)))
    with pytest.raises(InvalidManifestError, match="two are live"):
        lab.commit(RowDelta(lab.vectors({file: [2]}), ReadSet(lab.snapshot.snapshot_id), "delete"))


def test_reading_an_unknown_snapshot_of_an_empty_table_is_refused() -> None:
    lab = Lab()
    with pytest.raises(ConcurrentChangeError, match="no longer has a snapshot"):
        lab.commit(Append((lab.file([1]),), read=ReadSet(12345)))


def test_row_delta_does_not_remove_a_file_with_concurrent_deletes() -> None:
    lab = Lab(partition_by=["k"])
    file = lab.file([1, 2], "a")
    lab.commit(Append((file,)))
    read = ReadSet(lab.snapshot.snapshot_id, isolation="snapshot")
    lab.commit(RowDelta((lab.position_deletes(file),), read, "delete"))
    with pytest.raises(ConcurrentChangeError, match="deletes were added"):
        lab.commit(RowDelta((), read, "delete", removed=(file,)))


@dataclass(frozen=True)
class AppendInSilence:
    """Adds files, and does not say what it did, as old writers did."""

    append: Append

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        changes = self.append.prepare(loaded, context)
        updates = [
            AddSnapshot(replace(one.snapshot, summary=None)) if isinstance(one, AddSnapshot) else one
            for one in changes.updates
        ]
        return replace(changes, updates=tuple(updates))


def test_snapshot_without_a_summary_may_conflict_with_anything() -> None:
    lab = Lab(format_version=1)
    lab.commit(Append((lab.file([1]),)))
    read = ReadSet(lab.snapshot.snapshot_id)
    lab.commit(AppendInSilence(Append((lab.file([2]),))))
    with pytest.raises(ConcurrentChangeError):
        lab.commit(Append((lab.file([3]),), read=read))


# Clean-up


@dataclass(frozen=True)
class WriteThenFail:
    """Writes a file, then fails."""

    error: FrazilError

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        context.written.write(loaded.storage, f"{loaded.metadata.location}/metadata/written.avro", b"x")
        raise self.error


def test_error_that_forbids_cleanup_keeps_every_file() -> None:
    lab = Lab()
    with pytest.raises(CommitStateUnknownError):
        lab.commit(WriteThenFail(CommitStateUnknownError("Cannot tell")))
    assert any(path.endswith("written.avro") for path in lab.stored())


def test_error_that_allows_cleanup_deletes_every_file() -> None:
    lab = Lab()
    with pytest.raises(StorageError):
        lab.commit(WriteThenFail(StorageError("Cannot")))
    assert not any(path.endswith("written.avro") for path in lab.stored())


def test_success_after_an_unknown_outcome_deletes_no_files() -> None:
    lab = Lab()
    mine = lab.file([1])
    lab.pointers.faults = [Fate.LOST_BEFORE]
    lab.commit(Append((mine,)))
    lists = [path for path in lab.stored() if "/snap-" in path]
    assert len(lists) == 2, "the list of the attempt in doubt was deleted"


def test_snapshot_id_in_use_is_not_chosen() -> None:
    lab = Lab()
    first, second = lab.file([1]), lab.file([2])
    ids = lab.clock.ids
    lab.commit(Append((first,)))
    # The source of ids says the same again.
    lab.clock.ids = ids
    lab.commit(Append((second,)))
    assert lab.paths() == paths_of(first, second)
    assert len(lab.load().metadata.snapshots) == 2


def test_existing_file_with_the_same_name_is_not_overwritten_or_deleted() -> None:
    lab = Lab()
    mine = lab.file([1])
    before = lab.stored()
    ids = lab.clock.ids
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((mine,)))
    taken = next(path for path in lab.stored() - before if path.endswith("-m0.avro"))
    lab.clock.ids = ids
    with pytest.raises(FileAlreadyExistsError):
        lab.commit(Append((mine,)))
    assert taken in lab.stored()


@dataclass(frozen=True)
class Adopt:
    """Makes a snapshot of manifests that another writer has written."""

    manifests: tuple[ManifestFile, ...]

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        parent = find_parent(loaded.metadata, "main")
        writer = ManifestWriter(loaded, context)
        return snapshot_changes(writer, ChangedFiles(list(self.manifests), SummaryCounts(), 0), parent, MAIN, "append")


def test_cleanup_keeps_manifests_that_another_snapshot_uses() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "0"})
    transaction = lab.transaction()
    staged = transaction.table(lab.load()).add(Append((lab.file([1]),)))
    assert staged is not None
    lab.commit(Adopt(tuple(replace(one, sequence_number=1) for one in read_manifest_list(lab.storage, staged))))
    with pytest.raises(CommitConflictError):
        transaction.commit()
    lab.check_readable()
    assert staged.manifest_list not in lab.stored()


def test_landed_commit_keeps_its_files_after_a_refusal_and_a_later_fault() -> None:
    for call in range(1, 20):
        lab = Lab(properties={"commit.retry.num-retries": "0"})
        mine = lab.file([1])
        memory = lab.storage
        failing = FailingStorage(memory, Fault(call, FaultKind.IO_ERROR))
        lab.catalog.storage = failing
        lab.catalog.false_refusals = [True]
        with contextlib.suppress(FrazilError):
            lab.commit(Append((mine,)))
        lab.catalog.storage = memory
        lab.check_readable()
        if not any(one.fault for one in failing.calls):
            break
    assert call > 4


class LateCatalog(LabCatalog):
    """Refuses the first commit, which lands all the same when the second is tried."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.storage, lab.pointers, now_ms=lab.clock.now, new_id=lab.clock.new_id)
        self._kept: list[PointerChange] | None = None

    def _commit(self, kind: Any, changes: Any) -> Any:
        if self._kept is None:
            self._kept = [
                PointerChange(kind, one.base.identifier, one.base.metadata_location, one.loaded.metadata_location or "")
                for one in self._write(
                    [(one.base, one.carry_out(self.storage, now_ms=self.now_ms())) for one in changes]
                )
            ]
            return Rejected(CommitConflictError("Cannot commit: a proxy gave up"))
        kept, self._kept = self._kept, []
        if kept:
            assert self._pointers.swap(kept) is None
        return super()._commit(kind, changes)


def test_late_landing_of_an_earlier_attempt_keeps_its_files() -> None:
    lab = Lab()
    mine = lab.file([1])
    lab.catalog = LateCatalog(lab)
    lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine)
    assert len(lab.load().metadata.snapshots) == 1
    lab.check_readable()


def _lab_with_a_vector() -> tuple[Lab, RowDelta]:
    """Return a table with a deletion vector, and a delete that read it without: its commit unites the two."""
    lab = Lab(format_version=3, properties={"commit.retry.num-retries": "0"})
    file = lab.file([1, 2, 3])
    lab.commit(Append((file,)))
    read = ReadSet(lab.snapshot.snapshot_id, isolation="snapshot")
    lab.commit(RowDelta(lab.vectors({file: [0]}), read, "delete"))
    return lab, RowDelta(lab.vectors({file: [1]}), read, "delete")


def test_landed_vector_is_kept_after_a_refusal_and_a_later_fault() -> None:
    # United vectors are files of the commit that no manifest list names.
    for call in range(1, 30):
        lab, action = _lab_with_a_vector()
        memory = lab.storage
        failing = FailingStorage(memory, Fault(call, FaultKind.IO_ERROR))
        lab.catalog.storage = failing
        lab.catalog.false_refusals = [True]
        with contextlib.suppress(FrazilError):
            lab.commit(action)
        lab.catalog.storage = memory
        for vector in lab.deletes():
            assert lab.positions(vector) in ([0], [0, 1])
        if not any(one.fault for one in failing.calls):
            break
    assert call > 6


class CoveredCatalog(LabCatalog):
    """Answers a commit that landed with a refusal, after another writer built upon it and expired it."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.storage, lab.pointers, now_ms=lab.clock.now, new_id=lab.clock.new_id)
        self.cover: Callable[[], object] | None = None

    def _commit(self, kind: Any, changes: Any) -> Any:
        outcome = super()._commit(kind, changes)
        cover, self.cover = self.cover, None
        if cover is None:
            return outcome
        cover()
        return Rejected(CommitConflictError("Cannot commit: a repeated request met its own commit"))


def test_landed_vectors_are_kept_after_their_snapshot_expired() -> None:
    lab, action = _lab_with_a_vector()
    lab.catalog = CoveredCatalog(lab)

    def cover() -> None:
        landed = lab.snapshot.snapshot_id
        lab.commit(Append((lab.file([9]),)))
        lab.commit(ExpireSnapshots(snapshot_ids=(landed,)))

    lab.catalog.cover = cover
    with contextlib.suppress(FrazilError):
        lab.commit(action)
    assert [lab.positions(one) for one in lab.deletes()] == [[0, 1]]


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("change", ["deleted rows", "removed a file", "added rows"])
def test_full_table_overwrite_sees_all_concurrent_changes(change: str, isolation: IsolationLevel) -> None:
    lab = Lab()
    file = lab.file([1, 2])
    lab.commit(Append((file,)))
    read = ReadSet(lab.snapshot.snapshot_id, isolation=isolation)
    new = ReplacePartitions((lab.file([3]),), read)
    if change == "deleted rows":
        lab.commit(RowDelta((lab.position_deletes(file),), read, "delete"))
    elif change == "removed a file":
        lab.commit(DeleteFiles(frozenset({file.file_path})))
    else:
        lab.commit(Append((lab.file([4]),)))
    if change == "added rows" and isolation == "snapshot":
        lab.commit(new)
    else:
        with pytest.raises(ConcurrentChangeError):
            lab.commit(new)


def test_landed_creation_reported_as_refused_keeps_its_files() -> None:
    lab = Lab()
    staged = lab.catalog.stage_table(("db", "new"), SCHEMA)
    transaction = lab.transaction()
    transaction.table(staged).add(Append((replace(lab.file([1]), partition=(), spec_id=0),)))
    lab.catalog.false_refusals = [True]
    with pytest.raises(FrazilError):
        transaction.commit()
    loaded = lab.load(("db", "new"))
    assert loaded.metadata.current_snapshot is not None
    for one in read_manifest_list(lab.storage, loaded.metadata.current_snapshot):
        assert lab.storage.exists(one.manifest_path)


# Expiry


@dataclass(frozen=True)
class ShareList:
    """Adds a snapshot that has the manifest list of the current one, as a careless writer would."""

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        current = loaded.metadata.current_snapshot
        assert current is not None
        number = loaded.metadata.next_sequence_number
        return Changes((AddSnapshot(replace(current, snapshot_id=context.snapshot_id, sequence_number=number)),))


def test_manifest_list_shared_by_two_snapshots_is_kept_while_one_remains() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(ShareList())
    before = lab.load()
    after = lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000, retain_last=1))
    assert len(after.metadata.snapshots) == 1
    delete_expired_files(lab.catalog, before, after, threads=1)
    lab.check_readable()


def test_statistics_file_shared_by_two_snapshots_is_kept_while_one_remains() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    first = lab.snapshot.snapshot_id
    lab.commit(Append((lab.file([2]),)))
    path = f"{lab.load().metadata.location}/metadata/shared.puffin"
    lab.storage.create(path, b"x")
    shared = tuple(StatisticsFile(one, path, 1, 1) for one in (first, lab.snapshot.snapshot_id))
    lab.commit(UpdateStatistics(shared))
    before = lab.load()
    after = lab.commit(ExpireSnapshots(snapshot_ids=(first,)))
    delete_expired_files(lab.catalog, before, after, threads=1)
    assert lab.storage.exists(path)


# Purging


class LatePointers(MemoryPointers):
    """Pointers in memory; a writer commits when they are first asked for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.on_locations: Callable[[], object] | None = None

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        act, self.on_locations = self.on_locations, None
        if act is not None:
            act()
        return super().locations()


def test_purge_drops_only_the_state_whose_files_it_deletes() -> None:
    lab = Lab()
    pointers = LatePointers()
    catalog = PointerCatalog("lake", "memory://purged", lab.storage, pointers, now_ms=lab.clock.now)
    catalog.create_namespace(("db",))
    loaded = catalog.create_table(TABLE, SCHEMA)

    def commit() -> None:
        transaction = Transaction(catalog, threads=1)
        transaction.table(loaded).add(Append((replace(lab.file([1]), partition=()),)))
        transaction.commit()

    pointers.on_locations = commit
    catalog.drop_table(TABLE, purge=purge_files)
    # Nothing is left: what the late writer wrote was found and deleted too.
    assert [one.path for one in lab.storage.list("memory://purged")] == []


# SQL


class Recorder:
    """Opens SQLite connections and keeps the statements that are run."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.connections: list[sqlite3.Connection] = []

    def __call__(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(*arguments, **options)
        connection.set_trace_callback(self.statements.append)
        self.connections.append(connection)
        return connection


def test_sqlite_commits_are_synced_to_disk(tmp_path: Path) -> None:
    recorder = Recorder()
    database = SqliteDatabase(tmp_path / "catalog.db", connect=recorder)
    assert recorder.connections[0].execute("PRAGMA synchronous").fetchone() == (2,)
    assert recorder.connections[0].execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_sqlite_takes_the_write_lock_at_the_first_statement(tmp_path: Path) -> None:
    first = SqliteDatabase(tmp_path / "catalog.db")
    second = SqliteDatabase(tmp_path / "catalog.db", busy_timeout_ms=50)
    with first.transaction() as run:
        run("CREATE TABLE t (a INT)")
    with first.transaction() as run:
        run("SELECT * FROM t")
        with pytest.raises(CommitConflictError), second.transaction() as other:
            other("INSERT INTO t VALUES (1)")
        run("INSERT INTO t VALUES (2)")
    assert first.read("SELECT a FROM t") == [(2,)]
    first.close()
    second.close()


def test_table_pointers_are_updated_in_name_order(tmp_path: Path) -> None:
    recorder = Recorder()
    pointers = SqlPointers(SqliteDatabase(tmp_path / "catalog.db", connect=recorder), "lake")
    pointers.create_namespace(("db",), {})
    for name in ("b", "a", "c"):
        assert pointers.swap([PointerChange(EntityType.TABLE, ("db", name), None, f"{name}1")]) is None
    recorder.statements.clear()
    assert pointers.swap([PointerChange(EntityType.TABLE, ("db", one), f"{one}1", f"{one}2") for one in "cab"]) is None
    moved = [one.partition("metadata_location = '")[2][:2] for one in recorder.statements if one.startswith("UPDATE")]
    assert moved == ["a2", "b2", "c2"]
    pointers.close()


def test_pointer_that_became_a_view_is_not_updated_as_a_table(tmp_path: Path) -> None:
    pointers = SqlPointers(SqliteDatabase(tmp_path / "catalog.db"), "lake")
    pointers.create_namespace(("db",), {})
    assert pointers.swap([PointerChange(EntityType.VIEW, ("db", "v"), None, "v1")]) is None
    assert pointers.swap([PointerChange(EntityType.TABLE, ("db", "v"), "v1", "v2")]) is not None
    found = pointers.find(("db", "v"))
    assert found is not None and found.metadata_location == "v1"
    pointers.close()


def test_pooled_connection_to_a_replaced_database_is_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = SqlCatalog("lake", "memory://lake", SqliteDatabase(path), MemoryStorage())
    catalog.create_namespace(("old",))
    path.rename(tmp_path / "moved.db")
    for one in tmp_path.glob("catalog.db-*"):
        one.unlink()
    SqlCatalog("lake", "memory://lake", SqliteDatabase(path), MemoryStorage()).close()
    assert not catalog.namespace_exists(("old",))
    catalog.close()


# States in files


def test_two_newest_states_are_never_emptied() -> None:
    storage = MemoryStorage()
    states = VersionFiles(storage, "memory://lake/t")
    for version in (1, 2, 3):
        assert states.claim(version, b"state")
    states.empty([1, 2, 3])
    assert [states.find_bytes(version) for version in (1, 2, 3)] == [b"", b"state", b"state"]


# Local files


def _synced(patch: pytest.MonkeyPatch) -> list[str]:
    """Return what is synced from now on, by path."""
    found: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        found.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    patch.setattr(os, "fsync", fsync)
    return found


def test_overwriting_a_file_syncs_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(new_id=lambda: "id")
    storage.create(f"{tmp_path}/f", b"1")
    synced = _synced(monkeypatch)
    storage.replace(f"{tmp_path}/f", b"2")
    assert synced == [f"{tmp_path}/.f.id.tmp", str(tmp_path)]


def test_new_folder_is_synced_in_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage()
    storage.create(f"{tmp_path}/f", b"1")
    synced = _synced(monkeypatch)
    storage.create_folder(f"{tmp_path}/folder")
    assert synced == [str(tmp_path)]


def test_multipart_file_is_synced_before_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(new_id=lambda: "id")
    storage.create(f"{tmp_path}/f", b"1")
    with storage.open_new(f"{tmp_path}/g") as file:
        file.write(b"2")
        synced = _synced(monkeypatch)
        file.publish()
    assert synced == [f"{tmp_path}/.g.id.tmp", str(tmp_path)]


@pytest.mark.parametrize("is_in_pieces", [False, True])
def test_existing_temporary_name_is_not_written_to(tmp_path: Path, is_in_pieces: bool) -> None:
    storage = LocalStorage(new_id=lambda: "id")
    other = tmp_path / ".f.id.tmp"
    other.write_bytes(b"bytes of another writer")
    opened = os.open(other, os.O_RDONLY)
    try:
        with pytest.raises(StorageError):
            if is_in_pieces:
                storage.open_new(f"{tmp_path}/f")
            else:
                storage.create(f"{tmp_path}/f", b"mine")
        assert os.read(opened, 100) == b"bytes of another writer"
    finally:
        os.close(opened)
    assert not (tmp_path / "f").exists()


def test_properties_set_by_concurrent_writers_are_both_kept() -> None:
    catalog = MemoryCatalog()
    catalog.create_namespace(("db",))
    loaded = catalog.create_table(TABLE, SCHEMA)
    for name in ("a", "b"):
        transaction = Transaction(catalog, threads=1)
        transaction.table(loaded).add(UpdateProperties(FrozenMap({name: "1"})))
        transaction.commit()
    properties = catalog.load_table(TABLE).metadata.properties
    assert properties["a"] == properties["b"] == "1"


def test_loser_of_a_create_race_keeps_the_files_of_the_winner() -> None:
    lab = Lab()
    transactions = [lab.transaction() for _ in range(2)]
    for one in transactions:
        staged = lab.catalog.stage_table(("db", "new"), SCHEMA)
        one.table(staged).add(Append((replace(lab.file([1]), partition=(), spec_id=0),)))
    transactions[0].commit()
    with pytest.raises(TableAlreadyExistsError):
        transactions[1].commit()
    snapshot = lab.load(("db", "new")).metadata.current_snapshot
    assert snapshot is not None
    for manifest in read_manifest_list(lab.storage, snapshot):
        assert lab.storage.exists(manifest.manifest_path)
