"""Expiry: which snapshots go, and that only files go with them that nothing else leads to."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import delete_expired_files, find_expired_files
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef, DropRef
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import FrazilError, InvalidRequestError
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.statistics import StatisticsFile
from tests.support.commit_lab import Lab
from tests.support.expiry_lab import check_whole, expire, stored_file


def test_files_used_only_by_removed_snapshots_are_deleted() -> None:
    lab = Lab()
    old, kept, new = stored_file(lab, [1]), stored_file(lab, [2]), stored_file(lab, [3])
    lab.commit(Append((old,)))
    lab.commit(Append((kept,)))
    lab.commit(Overwrite((new,), ReadSet(lab.snapshot.snapshot_id), (old,)))
    found = expire(lab)
    assert found.data_files == [old.file_path]
    assert len(found.manifest_lists) == 2
    assert not lab.storage.exists(old.file_path)
    assert len(lab.load().metadata.snapshots) == 1
    check_whole(lab)
    assert found.kept == {}


def test_expiry_of_appends_deletes_no_data() -> None:
    lab = Lab()
    for at in range(4):
        lab.commit(Append((stored_file(lab, [at]),)))
    found = expire(lab)
    assert found.data_files == []
    assert len(found.manifest_lists) == 3
    check_whole(lab)


def test_branches_and_tags_keep_their_snapshots_and_files() -> None:
    lab = Lab()
    one, two = stored_file(lab, [1]), stored_file(lab, [2])
    lab.commit(Append((one,)))
    lab.commit(CreateRef("keep", "tag"))
    lab.commit(Append((two,), Target("audit")))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    found = expire(lab)
    assert found.data_files == []
    check_whole(lab)
    lab.commit(DropRef("keep", "tag"))
    lab.commit(DropRef("audit", "branch"))
    found = expire(lab)
    assert sorted(found.data_files) == sorted([one.file_path, two.file_path])


def test_last_and_recent_snapshots_are_kept() -> None:
    lab = Lab()
    for at in range(5):
        lab.commit(Append((lab.file([at]),)))
    ids = list(lab.load().metadata.snapshots.ids)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000, retain_last=3))
    assert list(lab.load().metadata.snapshots.ids) == ids[2:]
    lab.commit(ExpireSnapshots())
    assert list(lab.load().metadata.snapshots.ids) == ids[2:]


def test_only_the_given_ids_expire() -> None:
    lab = Lab()
    for at in range(4):
        lab.commit(Append((lab.file([at]),)))
        lab.now_ms += 30 * 24 * 3_600_000
    ids = list(lab.load().metadata.snapshots.ids)
    lab.commit(ExpireSnapshots(snapshot_ids=(ids[1], 12345)))
    assert list(lab.load().metadata.snapshots.ids) == [ids[0], ids[2], ids[3]]


def test_referenced_snapshot_cannot_be_expired_by_id() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    with pytest.raises(InvalidRequestError, match="branch or tag 'main' refers to it"):
        lab.commit(ExpireSnapshots(snapshot_ids=(lab.snapshot.snapshot_id,)))


def test_nothing_expires_from_a_table_with_shared_files() -> None:
    lab = Lab(properties={"gc.enabled": "false"})
    lab.commit(Append((lab.file([1]),)))
    with pytest.raises(InvalidRequestError, match="used by other tables"):
        lab.commit(ExpireSnapshots())


def test_files_outside_the_table_folders_are_reported_and_kept() -> None:
    lab = Lab()
    inside = stored_file(lab, [1])
    outside = DataFile("memory://other/data.parquet", inside.file_format, 1, 4)
    lab.storage.create(outside.file_path, b"rows")
    lab.commit(Append((inside, outside)))
    lab.commit(DeleteFiles(frozenset({inside.file_path, outside.file_path})))
    found = expire(lab)
    assert found.data_files == [inside.file_path]
    assert list(found.kept) == [outside.file_path]
    assert lab.storage.exists(outside.file_path)


def test_file_removed_and_added_again_is_kept() -> None:
    lab = Lab()
    one = stored_file(lab, [1])
    lab.commit(Append((one,)))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    lab.commit(Append((one,)))
    assert expire(lab).data_files == []
    check_whole(lab)


@pytest.mark.parametrize("lost", ["manifest", "manifest list"])
def test_nothing_is_deleted_if_remaining_snapshots_are_unreadable(lost: str) -> None:
    lab = Lab()
    one = stored_file(lab, [1])
    lab.commit(Append((one,)))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    lab.commit(Append((stored_file(lab, [2]),)))
    before = lab.load()
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000))
    after = lab.load()
    lab.storage.delete(lab.manifests()[0].manifest_path if lost == "manifest" else lab.snapshot.manifest_list or "")
    files = lab.stored()
    with pytest.raises(FrazilError):
        delete_expired_files(lab.catalog, before, after, threads=1)
    assert lab.stored() == files


def test_unreadable_files_of_removed_snapshots_are_kept() -> None:
    lab = Lab()
    one = stored_file(lab, [1])
    lab.commit(Append((one,)))
    first = lab.snapshot
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    before = lab.load()
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000))
    lab.storage.delete(first.manifest_list or "")
    found = find_expired_files(lab.catalog, before, lab.load(), threads=1)
    assert found.data_files == []


def test_statistics_are_removed_with_their_snapshot() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    path = f"{lab.load().metadata.location}/metadata/stats.puffin"
    lab.storage.create(path, b"stats")
    lab.commit(UpdateStatistics((StatisticsFile(lab.snapshot.snapshot_id, path, 5, 1),)))
    lab.commit(Append((lab.file([2]),)))
    assert expire(lab).statistics_files == [path]
    assert not lab.storage.exists(path)
    assert lab.load().metadata.statistics == ()


def test_unused_schemas_and_specs_are_removed_on_request() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(UpdateSchema(lambda u: u.add_column("x", "long")))
    lab.commit(UpdateSchema(lambda u: u.add_column("y", "long")))
    lab.commit(UpdateSpec(lambda u: u.add_field("k")))
    lab.commit(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000, cleans_metadata=True))
    metadata = lab.load().metadata
    assert sorted(metadata.schemas_by_id) == [0, 2]
    assert sorted(metadata.specs_by_id) == [0, 2]


def test_old_references_expire_but_never_main() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(CreateRef("short", "branch", max_ref_age_ms=10))
    lab.now_ms += 1000
    lab.commit(ExpireSnapshots())
    assert list(lab.load().metadata.refs) == ["main"]


def test_unreachable_row_delta_files_are_deleted() -> None:
    lab = Lab(format_version=3)
    one = stored_file(lab, [1, 2, 3])
    lab.commit(Append((one,)))
    first = lab.vectors({one: [0]})
    lab.commit(RowDelta(first, ReadSet(lab.snapshot.snapshot_id), "delete"))
    second = lab.vectors({one: [0, 1]})
    lab.commit(RowDelta(second, ReadSet(lab.snapshot.snapshot_id), "delete", removed_deletes=first))
    found = expire(lab)
    assert found.data_files == [first[0].file_path]
    assert lab.storage.exists(second[0].file_path)
    lab.commit(UpdateProperties(FrozenMap({"x": "y"})))
