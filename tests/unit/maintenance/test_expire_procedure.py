"""Expiry as a procedure: counts by kind, dry runs, and writers beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_refs import CreateRef
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import InvalidRequestError
from frazil.maintenance.expire_snapshots import ExpireSnapshotsResult, expire_snapshots
from frazil.spec.data_file import DataFile
from frazil.spec.statistics import StatisticsFile
from tests.support.commit_lab import Lab

LATER = 10**9


def new_lab(**properties: str) -> Lab:
    lab = Lab(properties=properties)
    lab.writes_files = True
    return lab


def expire(lab: Lab, *, dry_run: bool = False, threads: int = 1, **options: object) -> ExpireSnapshotsResult:
    options.setdefault("older_than_ms", lab.now_ms + LATER)
    action = ExpireSnapshots(**options)  # type: ignore[arg-type]
    return expire_snapshots(lab.catalog, lab.load(), action, dry_run=dry_run, threads=threads)[1]


def with_every_kind(lab: Lab) -> list[DataFile]:
    """Commit files of every kind and remove them all; the current snapshot leads to one other file."""
    one = lab.file([1, 2, 3])
    lab.commit(Append((one,)))
    positions, equality = lab.position_deletes(one), lab.equality_deletes([2])
    lab.commit(RowDelta((positions, equality), ReadSet(lab.snapshot.snapshot_id)))
    path = f"{lab.load().metadata.location}/metadata/stats.puffin"
    lab.storage.create(path, b"x")
    lab.commit(UpdateStatistics(statistics=(StatisticsFile(lab.snapshot.snapshot_id, path, 1, 1, ()),)))
    lab.commit(Append((lab.file([9]),)))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    return [one, positions, equality]


def test_files_are_deleted_and_counted_by_kind() -> None:
    lab = new_lab()
    gone = with_every_kind(lab)
    before = lab.stored()
    found = expire(lab)
    assert found.deleted_data_files_count == 1
    assert found.deleted_position_delete_files_count == 1
    assert found.deleted_equality_delete_files_count == 1
    assert found.deleted_statistics_files_count == 1
    assert found.deleted_manifest_lists_count == 3
    deleted = before - lab.stored()
    assert {one.file_path for one in gone} <= deleted
    counts = [getattr(found, one) for one in ExpireSnapshotsResult.__slots__ if one.endswith("_count")]
    assert sum(counts) == len(deleted)
    assert len(found.expired_snapshot_ids) == 3
    lab.check_readable()


def test_dry_run_reports_and_changes_nothing() -> None:
    lab = new_lab()
    with_every_kind(lab)
    before, files = lab.load(), lab.stored()
    planned = expire(lab, dry_run=True)
    assert (lab.load(), lab.stored()) == (before, files)
    assert expire(lab) == planned


def test_files_are_deleted_by_several_threads() -> None:
    lab = new_lab()
    for at in range(30):
        one = lab.file([at])
        lab.commit(Append((one,)))
        lab.commit(DeleteFiles(frozenset({one.file_path})))
    found = expire(lab, threads=4)
    assert found.deleted_data_files_count == 30
    assert not [path for path in lab.stored() if "/data/" in path]


def test_tag_keeps_its_snapshot_and_a_second_run_finds_nothing() -> None:
    lab = new_lab()
    with_every_kind(lab)
    first = lab.load().metadata.snapshots.ids
    oldest = next(iter(first))
    lab.commit(CreateRef("keep", "tag", oldest))
    found = expire(lab)
    assert found.deleted_data_files_count == 0
    assert oldest not in found.expired_snapshot_ids
    assert expire(lab) == ExpireSnapshotsResult()
    lab.check_readable()


def test_file_added_again_before_deletion_is_kept() -> None:
    lab = new_lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    before = lab.load()
    refresh = lab.catalog.refresh

    class AddedAgain(type(lab.catalog)):  # type: ignore[misc]
        """A catalog in which the file comes back after the expiry's commit."""

    lab.catalog.__class__ = AddedAgain
    lab.catalog.refresh = lambda loaded: (lab.commit(Append((replace(one),))), refresh(loaded))[1]  # type: ignore[method-assign]
    action = ExpireSnapshots(older_than_ms=lab.now_ms + LATER)
    found = expire_snapshots(lab.catalog, before, action, threads=1)[1]
    assert found.deleted_data_files_count == 0
    assert one.file_path in lab.stored()


def test_files_outside_the_table_folders_are_kept_and_reported() -> None:
    lab = new_lab()
    outside = replace(lab.file([1]), file_path="memory://lake/elsewhere/x.parquet")
    lab.storage.create(outside.file_path, b"x")
    lab.commit(Append((outside,)))
    lab.commit(DeleteFiles(frozenset({outside.file_path})))
    found = expire(lab)
    assert found.deleted_data_files_count == 0
    assert [path for path, _ in found.kept] == [outside.file_path]
    assert "outside the table's folders" in found.kept[0][1]


def test_table_with_possibly_shared_files_is_refused() -> None:
    lab = new_lab(**{"gc.enabled": "false"})
    stored = lab.stored()
    with pytest.raises(InvalidRequestError, match="may be used by other tables"):
        expire(lab)
    assert lab.stored() == stored
