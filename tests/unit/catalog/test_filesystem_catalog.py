"""The filesystem catalog: version files, hints that lie, files of other tools, and writers that slept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.outcomes import Committed, Unknown
from frazil.catalog.version_files import VersionFiles, find_version
from frazil.codec.gzip_text import gzip_text
from frazil.errors import (
    CommitConflictError,
    FrazilError,
    InvalidRequestError,
    NamespaceNotFoundError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    WriteOutcomeUnknownError,
)
from frazil.loaded import LoadedTable
from frazil.maintenance.purge_files import purge_files
from frazil.storage.failing import FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    committed,
    made_table,
    rejected,
    set_property,
    set_property_until_it_works,
)

WAREHOUSE = "memory://bucket/warehouse"
METADATA = f"{WAREHOUSE}/db/events/metadata"
HINT = f"{METADATA}/version-hint.text"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def catalog(storage: MemoryStorage) -> FilesystemCatalog:
    return FilesystemCatalog("lake", WAREHOUSE, storage)


def names(storage: Any) -> list[str]:
    return sorted(one.path.removeprefix(f"{METADATA}/") for one in storage.list(METADATA))


def with_versions(catalog: FilesystemCatalog, count: int) -> LoadedTable:
    loaded = made_table(catalog)
    for at in range(1, count):
        loaded = committed(set_property(catalog, loaded, at=str(at)))
    return loaded


class TestVersionFiles:
    def test_versions_start_at_one_and_the_hint_follows(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        with_versions(catalog, 3)
        assert names(storage) == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "version-hint.text"]
        assert storage.read(HINT) == b"3"

    @pytest.mark.parametrize(
        ("name", "version"),
        [
            ("v1.metadata.json", 1),
            ("v12.gz.metadata.json", 12),
            ("v12.metadata.json.gz", 12),
            ("v0.metadata.json", None),
            ("v01.metadata.json", None),
            ("v-1.metadata.json", None),
            ("v1.gz.metadata.json.gz", None),
            ("00001-x.metadata.json", None),
            ("v1.metadata.json.tmp", None),
            (".v1.metadata.json.crc", None),
            ("v9999999999.metadata.json", None),
            ("v١.metadata.json", None),
        ],
    )
    def test_metadata_file_names_are_recognised(self, name: str, version: int | None) -> None:
        assert find_version(f"{METADATA}/{name}") == version

    @pytest.mark.parametrize(
        "hint", [None, b"", b"garbage", b"1", b"2", b"99", b"-1", b"3\n", b"\xff\xfe", b"9" * 100_000, b"v3"]
    )
    def test_version_hint_is_never_trusted(
        self, catalog: FilesystemCatalog, storage: MemoryStorage, hint: bytes | None
    ) -> None:
        loaded = with_versions(catalog, 3)
        if hint is None:
            storage.delete(HINT)
        else:
            storage.replace(HINT, hint)
        assert catalog.load_table(EVENTS).metadata == loaded.metadata
        changed = committed(set_property(catalog, loaded, after="hint"))
        assert (changed.metadata_location or "").endswith("/v4.metadata.json")
        assert storage.read(HINT) == b"4"

    @pytest.mark.parametrize("hint", [None, b"1", b"3", b"99"])
    def test_stale_hint_does_not_lead_to_deleted_metadata(
        self, catalog: FilesystemCatalog, storage: MemoryStorage, hint: bytes | None
    ) -> None:
        loaded = with_versions(catalog, 6)
        # As another tool leaves it that deletes old states: there is a hole after the first.
        for version in (2, 3, 4):
            storage.delete(f"{METADATA}/v{version}.metadata.json")
        if hint is None:
            storage.delete(HINT)
        else:
            storage.replace(HINT, hint)
        assert catalog.load_table(EVENTS).metadata == loaded.metadata
        assert (committed(set_property(catalog, loaded, a="b")).metadata_location or "").endswith("/v7.metadata.json")

    def test_unwritable_hint_is_ignored(self, catalog: FilesystemCatalog, storage: MemoryStorage) -> None:
        loaded = with_versions(catalog, 2)
        for kind in (FaultKind.IO_ERROR, FaultKind.APPLIED_BUT_ERROR):
            failing = FailingStorage(storage, Fault(1, kind, frozenset({"replace"})))
            handle = FilesystemCatalog("lake", WAREHOUSE, failing)
            loaded = committed(set_property(handle, loaded, at=kind.name))
            assert any(one.fault is not None for one in failing.calls)
        assert catalog.load_table(EVENTS).metadata == loaded.metadata

    @pytest.mark.parametrize("suffix", [".gz.metadata.json", ".metadata.json.gz"])
    def test_compressed_metadata_of_other_tools_is_read_and_continued(
        self, catalog: FilesystemCatalog, storage: MemoryStorage, suffix: str
    ) -> None:
        loaded = with_versions(catalog, 2)
        plain = storage.read(loaded.metadata_location or "")
        storage.create(f"{METADATA}/v3{suffix}", gzip_text(plain))
        found = catalog.load_table(EVENTS)
        assert found.metadata == loaded.metadata
        assert (found.metadata_location or "").endswith(f"/v3{suffix}")
        rejected(set_property(catalog, loaded, late="yes"))
        changed = committed(set_property(catalog, found, a="b"))
        assert (changed.metadata_location or "").endswith("/v4.metadata.json")
        catalog.drop_table(EVENTS)
        assert not catalog.table_exists(EVENTS)

    def test_plain_metadata_wins_over_compressed_metadata_of_the_same_version(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        loaded = with_versions(catalog, 2)
        storage.create(f"{METADATA}/v2.gz.metadata.json", b"something else")
        assert catalog.load_table(EVENTS).metadata == loaded.metadata

    def test_writers_with_different_codecs_cannot_both_win(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        base = with_versions(catalog, 1)
        codec = {"write.metadata.compression-codec": "gzip"}
        committed(set_property(catalog, base, **codec))
        assert isinstance(rejected(set_property(catalog, base, a="b")).reason, CommitConflictError)
        changed = set_property_until_it_works(catalog, EVENTS, a="b")
        assert changed.metadata.properties["write.metadata.compression-codec"] == "gzip"
        assert not any("gz" in name for name in names(storage))


class TestSleepingWriters:
    def test_delayed_writer_does_not_find_its_version_free(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        forgetful = {
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": "true",
        }
        old = made_table(catalog, properties=forgetful)
        for at in range(8):
            set_property_until_it_works(catalog, EVENTS, at=str(at))
        assert storage.size(f"{METADATA}/v2.metadata.json") == 0
        # Even one that looked before it slept: the name is taken.
        states = VersionFiles(storage, f"{WAREHOUSE}/db/events")
        assert not states.claim(2, b"{}")
        rejected(set_property(catalog, old, late="yes"))
        assert catalog.load_table(EVENTS).metadata.properties["at"] == "7"

    def test_version_deleted_by_another_tool_is_not_reused(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        old = with_versions(catalog, 1)
        for at in range(4):
            set_property_until_it_works(catalog, EVENTS, at=str(at))
        storage.delete(f"{METADATA}/v2.metadata.json")
        rejected(set_property(catalog, old, late="yes"))
        assert not storage.exists(f"{METADATA}/v2.metadata.json")

    def test_writer_of_a_recreated_table_is_notified(self, catalog: FilesystemCatalog) -> None:
        old = made_table(catalog)
        catalog.drop_table(EVENTS)
        new = made_table(catalog)
        # Both are version 1, and the name of version 2 is free.
        assert isinstance(rejected(set_property(catalog, old, a="b")).reason, CommitConflictError)
        assert catalog.load_table(EVENTS).metadata == new.metadata

    def test_commits_must_start_from_metadata_of_this_catalog(self, catalog: FilesystemCatalog) -> None:
        loaded = made_table(catalog)
        odd = LoadedTable(EVENTS, loaded.metadata, f"{METADATA}/00001-x.metadata.json", catalog.storage)
        with pytest.raises(InvalidRequestError, match="not a state of this catalog"):
            set_property(catalog, odd, a="b")


class TestDrop:
    def test_last_metadata_file_is_kept_for_registration_elsewhere(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        loaded = with_versions(catalog, 3)
        last = storage.read(loaded.metadata_location or "")
        catalog.drop_table(EVENTS)
        (left,) = names(storage)
        assert left.startswith("dropped-v3-")
        assert storage.read(f"{METADATA}/{left}") == last
        assert catalog.list_namespaces(("db",)) == ()
        with pytest.raises(InvalidRequestError, match="files of the dropped table events"):
            catalog.drop_namespace(("db",))

    def test_interrupted_drop_leaves_the_table_intact(self, storage: MemoryStorage) -> None:
        for call in range(1, 40):
            root = f"memory://bucket/w{call}"
            plain = FilesystemCatalog("lake", root, storage)
            loaded = made_table(plain)
            for at in range(3):
                loaded = committed(set_property(plain, loaded, at=str(at)))
            failing = FailingStorage(storage, Fault(call, FaultKind.CRASH_BEFORE))
            try:
                FilesystemCatalog("lake", root, failing).drop_table(EVENTS)
            except SimulatedCrash:
                if plain.table_exists(EVENTS):
                    assert plain.load_table(EVENTS).metadata == loaded.metadata
                    plain.drop_table(EVENTS)
                assert not plain.table_exists(EVENTS)
                continue
            assert not plain.table_exists(EVENTS)
            break
        else:
            raise AssertionError("the faults never ended")

    def test_commit_cannot_slip_in_after_a_drop(self, catalog: FilesystemCatalog, storage: MemoryStorage) -> None:
        for _ in range(20):
            loaded = made_table(catalog)
            outcomes: list[Any] = []
            barrier = threading.Barrier(2)

            def write(loaded: LoadedTable = loaded, outcomes: list[Any] = outcomes, barrier: Any = barrier) -> None:
                barrier.wait()
                outcomes.append(set_property(catalog, loaded, a="b"))

            writer = threading.Thread(target=write)
            writer.start()
            barrier.wait()
            catalog.drop_table(EVENTS)
            writer.join()
            assert not catalog.table_exists(EVENTS)
            (outcome,) = outcomes
            assert isinstance(outcome, Committed) or isinstance(rejected(outcome).reason, FrazilError)

    @pytest.mark.parametrize("is_made_anew", [False, True])
    def test_write_after_a_concurrent_drop_restores_nothing(
        self, catalog: FilesystemCatalog, storage: MemoryStorage, is_made_anew: bool
    ) -> None:
        loaded = with_versions(catalog, 4)

        def drop() -> None:
            catalog.drop_table(EVENTS)
            if is_made_anew:
                made_table(catalog)

        writer = FilesystemCatalog("lake", WAREHOUSE, _ActBeforeCreate(storage, drop))
        outcome = set_property(writer, loaded, late="yes")
        assert isinstance(outcome, Unknown)
        assert catalog.table_exists(EVENTS) == is_made_anew
        if is_made_anew:
            found = catalog.load_table(EVENTS)
            assert found.metadata.table_uuid != loaded.metadata.table_uuid
            committed(set_property(catalog, found, a="b"))

    def test_commit_succeeds_if_its_base_file_was_deleted_meanwhile(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        loaded = with_versions(catalog, 4)
        writer = FilesystemCatalog(
            "lake",
            WAREHOUSE,
            _ActBeforeCreate(storage, lambda: storage.delete(loaded.metadata_location or "")),
        )
        changed = committed(set_property(writer, loaded, a="b"))
        assert catalog.load_table(EVENTS).metadata == changed.metadata

    def test_commit_during_a_drop_is_dropped_too(self, catalog: FilesystemCatalog, storage: MemoryStorage) -> None:
        with_versions(catalog, 2)
        acting = _ActBeforeCreate(storage, lambda: set_property_until_it_works(catalog, EVENTS, a="b"), verb="delete")
        FilesystemCatalog("lake", WAREHOUSE, acting).drop_table(EVENTS)
        assert not catalog.table_exists(EVENTS)
        assert [name.split("-")[1] for name in names(storage)] == ["v2", "v3"]

    def test_two_concurrent_drops_both_succeed(self, catalog: FilesystemCatalog) -> None:
        made_table(catalog)
        results: list[BaseException | None] = []

        def drop() -> None:
            try:
                catalog.drop_table(EVENTS)
                results.append(None)
            except TableNotFoundError as error:
                results.append(error)

        threads = [threading.Thread(target=drop) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert None in results
        assert not catalog.table_exists(EVENTS)

    def test_purge_removes_the_folder(self, tmp_path: Path) -> None:
        catalog = FilesystemCatalog("lake", f"file://{tmp_path}/w", LocalStorage(durable=False))
        made_table(catalog)
        (tmp_path / "w" / "db" / "events" / "metadata" / ".v1.metadata.json.crc").write_bytes(b"crc")
        catalog.drop_table(EVENTS, purge=purge_files)
        assert list((tmp_path / "w" / "db").iterdir()) == []
        catalog.drop_namespace(("db",))
        assert list((tmp_path / "w").iterdir()) == []


class TestFolders:
    def test_folder_is_a_namespace_until_it_is_a_table(self, tmp_path: Path) -> None:
        catalog = FilesystemCatalog("lake", str(tmp_path), LocalStorage(durable=False))
        (tmp_path / "made" / "by" / "hand").mkdir(parents=True)
        (tmp_path / "file").write_bytes(b"")
        assert catalog.list_namespaces() == (("made",),)
        assert catalog.namespace_exists(("made", "by"))
        assert not catalog.namespace_exists(("file",))
        made_table(catalog, ("made", "t"))
        assert not catalog.namespace_exists(("made", "t"))
        with pytest.raises(NamespaceNotFoundError):
            catalog.create_table(("made", "t", "inner"), builders.schema())
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_namespace(("made", "t"))
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_namespace(("made", "t", "inner"))

    def test_link_out_of_the_warehouse_is_not_a_namespace(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        warehouse = tmp_path / "w"
        warehouse.mkdir()
        (warehouse / "link").symlink_to(outside)
        catalog = FilesystemCatalog("lake", str(warehouse), LocalStorage(durable=False))
        assert catalog.list_namespaces() == ()
        with pytest.raises(NamespaceNotFoundError):
            catalog.create_table(("link", "t"), builders.schema())

    def test_locations_may_be_spelled_differently(self, tmp_path: Path) -> None:
        first = FilesystemCatalog("lake", f"file://{tmp_path}/w/", LocalStorage(durable=False))
        loaded = made_table(first)
        second = FilesystemCatalog("lake", f"{tmp_path}/w", LocalStorage(durable=False))
        found = second.load_table(EVENTS)
        assert found.metadata == loaded.metadata
        changed = committed(set_property(second, found, a="b"))
        assert first.load_table(EVENTS).metadata == changed.metadata
        assert changed.metadata.location == loaded.metadata.location


class TestReadingBack:
    def test_pending_write_is_prevented_from_landing(self, catalog: FilesystemCatalog, storage: MemoryStorage) -> None:
        loaded = with_versions(catalog, 2)
        late = _LateStorage(storage)
        outcome = set_property(FilesystemCatalog("lake", WAREHOUSE, late), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        verdict = rejected(catalog.resolve_unknown(outcome))
        assert isinstance(verdict.reason, CommitConflictError)
        # Now it comes, and finds the name taken.
        with pytest.raises(StorageError):
            late.arrive()
        current = catalog.load_table(EVENTS)
        assert "mine" not in current.metadata.properties
        assert current.metadata == loaded.metadata
        committed(set_property(catalog, current, mine="again"))

    def test_pending_creation_stays_unknown(self, catalog: FilesystemCatalog, storage: MemoryStorage) -> None:
        catalog.create_namespace(("db",))
        staged = catalog.stage_table(EVENTS, builders.schema())
        outcome = FilesystemCatalog("lake", WAREHOUSE, _LateStorage(storage)).commit(staged, ())
        assert isinstance(outcome, Unknown)
        assert isinstance(catalog.resolve_unknown(outcome), Unknown)

    def test_emptied_metadata_file_may_have_been_the_commit(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        forgetful = {
            "write.metadata.previous-versions-max": "1",
            "write.metadata.delete-after-commit.enabled": "true",
        }
        loaded = made_table(catalog, properties=forgetful)
        fault = Fault(1, FaultKind.APPLIED_BUT_ERROR, frozenset({"create_exclusive"}))
        outcome = set_property(FilesystemCatalog("lake", WAREHOUSE, FailingStorage(storage, fault)), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        for at in range(6):
            set_property_until_it_works(catalog, EVENTS, at=str(at))
        assert isinstance(catalog.resolve_unknown(outcome), Unknown)

    def test_unavailable_storage_leaves_the_outcome_unknown(
        self, catalog: FilesystemCatalog, storage: MemoryStorage
    ) -> None:
        loaded = made_table(catalog)
        fault = Fault(1, FaultKind.APPLIED_BUT_ERROR, frozenset({"create_exclusive"}))
        outcome = set_property(FilesystemCatalog("lake", WAREHOUSE, FailingStorage(storage, fault)), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        deaf = FilesystemCatalog("lake", WAREHOUSE, FailingStorage(storage, Fault(1, FaultKind.IO_ERROR)))
        assert isinstance(deaf.resolve_unknown(outcome), Unknown)
        committed(deaf.resolve_unknown(outcome))


class _LateStorage(FailingStorage):
    """A storage whose first exclusive create is on its way when its caller gives up."""

    __slots__ = ("_late",)

    def create_exclusive(self, path: str, data: bytes) -> None:
        self._late = (path, data)
        raise WriteOutcomeUnknownError(f"Cannot tell whether {path} was written: no answer", path=path)

    def arrive(self) -> None:
        """Carry the write out after all."""
        path, data = self._late
        try:
            self.inner.create_exclusive(path, data)
        except Exception as error:
            raise StorageError(str(error)) from error


class _ActBeforeCreate(FailingStorage):
    """Lets something happen right before the first exclusive create, or another verb."""

    __slots__ = ("_act", "_verb")

    def __init__(self, inner: MemoryStorage, act: Callable[[], object], *, verb: str = "create_exclusive") -> None:
        super().__init__(inner)
        self._act: Callable[[], object] | None = act
        self._verb = verb

    def _run(self, verb: str, path: str, act: Callable[[], Any], data: bytes | None = None) -> Any:
        if verb == self._verb and self._act is not None:
            happen, self._act = self._act, None
            happen()
        return super()._run(verb, path, act, data)
