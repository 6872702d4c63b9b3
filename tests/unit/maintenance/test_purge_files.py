"""Deleting the files of a dropped table: what is reached, what stays, and what the report says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.owned_folders import owned_folders
from frazil.catalog.purge import PurgeReport, remove_empty_folders
from frazil.changes.updates import AddSnapshot, SetPartitionStatistics, SetSnapshotRef, SetStatistics
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.purge_files import MAX_REPORTED, purge_files
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.memory import MemoryStorage
from tests.support.catalog_cases import commit, committed, made_table, write_snapshot


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


def appended(catalog: MemoryCatalog, loaded: LoadedTable, snapshot_id: int, *paths: str) -> LoadedTable:
    snapshot = write_snapshot(loaded, snapshot_id, *paths)
    for path in paths:
        if not catalog.storage.exists(path):
            catalog.storage.create(path, b"rows")
    return committed(commit(catalog, loaded, AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(snapshot_id))))


def purged(catalog: MemoryCatalog, loaded: LoadedTable) -> PurgeReport:
    return purge_files(loaded, owned_folders(catalog, loaded))


def files(catalog: MemoryCatalog) -> list[str]:
    return [one.path for one in catalog.storage.list(catalog.warehouse)]


def test_every_reachable_file_is_deleted_once(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog)
    data = [f"{loaded.metadata.location}/data/{at}.parquet" for at in range(4)]
    loaded = appended(catalog, loaded, 1, *data[:2])
    loaded = appended(catalog, loaded, 2, *data[1:])
    statistics = f"{loaded.metadata.location}/metadata/s.puffin"
    partitions = f"{loaded.metadata.location}/metadata/p.parquet"
    for path in (statistics, partitions):
        catalog.storage.create(path, b"")
    loaded = committed(
        commit(
            catalog,
            loaded,
            SetStatistics(StatisticsFile(1, statistics, 1, 1)),
            SetPartitionStatistics(PartitionStatisticsFile(2, partitions, 1)),
        )
    )
    present = len(files(catalog))
    report = purged(catalog, loaded)
    assert files(catalog) == []
    assert (report.deleted_count, report.kept_count) == (present, 0)


def test_unreadable_manifest_list_is_kept_and_the_rest_deleted(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog)
    data = [f"{loaded.metadata.location}/data/{at}.parquet" for at in range(2)]
    loaded = appended(catalog, loaded, 1, data[0])
    loaded = appended(catalog, loaded, 2, data[1])
    broken = f"{loaded.metadata.location}/metadata/snap-1.avro"
    catalog.storage.replace(broken, b"")
    report = purged(catalog, loaded)
    assert [path for path, _ in report.kept] == [broken]
    assert set(files(catalog)) == {broken, data[0], f"{loaded.metadata.location}/metadata/m1.avro"}


def test_inline_manifests_are_found(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog, format_version=1)
    data = f"{loaded.metadata.location}/data/f.parquet"
    catalog.storage.create(data, b"rows")
    snapshot = write_snapshot(replace(loaded, metadata=replace(loaded.metadata, format_version=2)), 1, data)
    inline = replace(
        snapshot,
        manifest_list=None,
        manifests=(f"{loaded.metadata.location}/metadata/m1.avro",),
        sequence_number=0,
    )
    catalog.storage.delete(snapshot.manifest_list or "")
    loaded = committed(commit(catalog, loaded, AddSnapshot(inline), SetSnapshotRef("main", SnapshotRef(1))))
    purged(catalog, loaded)
    assert files(catalog) == []


def test_error_names_some_of_many_kept_files(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog)
    outside = [f"memory://elsewhere/{at}.parquet" for at in range(MAX_REPORTED + 50)]
    report = purged(catalog, appended(catalog, loaded, 1, *outside))
    assert report.kept_count == MAX_REPORTED + 50
    assert len(report.kept) == MAX_REPORTED
    assert all("outside the table's folders" in reason for _, reason in report.kept)


def test_undeletable_file_is_kept_and_named(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog)
    data = f"{loaded.metadata.location}/data/f.parquet"
    loaded = appended(catalog, loaded, 1, data)
    fault = Fault(1, FaultKind.IO_ERROR, frozenset({"delete"}))
    report = purged(catalog, replace(loaded, storage=FailingStorage(catalog.storage, fault)))
    assert [path for path, _ in report.kept] == [data]
    assert files(catalog) == [data]


def test_table_with_possibly_shared_files_is_refused(catalog: MemoryCatalog) -> None:
    loaded = made_table(catalog, properties={"gc.enabled": "false"})
    with pytest.raises(InvalidRequestError, match="may be another table's"):
        purged(catalog, loaded)
    assert files(catalog) == [loaded.metadata_location]


def test_only_empty_folders_are_removed() -> None:
    storage = MemoryStorage()
    for name in ("a/b/c", "a/d"):
        storage.create_folder(f"memory://w/{name}")
    storage.create("memory://w/a/d/f", b"")
    assert not remove_empty_folders(storage, "memory://w/a")
    assert storage.list_children("memory://w/a") == ((), ("d",))
    failing = FailingStorage(storage, Fault(1, FaultKind.IO_ERROR))
    assert not remove_empty_folders(failing, "memory://w/a")
