"""Manifests: what is written for new, kept and removed files, how they merge, and what the list assigns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.commit import write_manifests
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpdateProperties, UpgradeFormat
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.write_manifests import pack_from_end
from frazil.errors import InvalidRequestError, NotFoundError
from frazil.expr.extract import parse_predicate
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestContent
from frazil.storage.failing import FailingStorage
from tests.support.commit_lab import Lab, paths_of

ADDED, EXISTING, DELETED = EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED


@pytest.mark.parametrize(
    ("weights", "target", "groups"),
    [
        ([], 10, []),
        ([1], 10, [[0]]),
        ([5, 5, 5], 10, [[0], [1, 2]]),
        ([20, 1, 1], 10, [[0], [1, 2]]),
        ([1, 20, 1], 10, [[0], [1], [2]]),
        ([4, 4, 4, 4, 4], 8, [[0], [1, 2], [3, 4]]),
        ([3, 3, 3, 3], 10, [[0], [1, 2, 3]]),
    ],
)
def test_manifests_are_packed_in_order_from_the_end(weights: list[int], target: int, groups: list[list[int]]) -> None:
    assert pack_from_end(list(range(len(weights))), weights, target) == groups


# What entries say


@pytest.mark.parametrize("version", [2, 3])
def test_rewritten_manifest_keeps_ids_and_sequence_numbers(version: int) -> None:
    lab = Lab(format_version=version)
    files = [lab.file([at], "abc"[at]) for at in range(3)]
    lab.commit(Append(tuple(files)))
    first = lab.snapshot
    before = {one.data_file.file_path: one for one in lab.entries()}
    lab.commit(Append((lab.file([9]),)))
    lab.commit(DeleteFiles(frozenset({files[1].file_path})))
    entries = {one.data_file.file_path: one for one in lab.entries()}
    for kept in (files[0], files[2]):
        one = entries[kept.file_path]
        assert one.status is EXISTING
        assert one.snapshot_id == first.snapshot_id
        assert (one.sequence_number, one.file_sequence_number) == (1, 1)
        assert one.data_file == before[kept.file_path].data_file
    gone = entries[files[1].file_path]
    assert gone.status is DELETED
    assert gone.snapshot_id == lab.snapshot.snapshot_id
    assert (gone.sequence_number, gone.file_sequence_number) == (1, 1)
    assert gone.data_file.first_row_id == before[files[1].file_path].data_file.first_row_id


def test_earlier_deleted_entries_are_dropped_from_a_rewritten_manifest() -> None:
    lab = Lab()
    files = [lab.file([at]) for at in range(3)]
    lab.commit(Append(tuple(files)))
    lab.commit(DeleteFiles(frozenset({files[0].file_path})))
    lab.commit(DeleteFiles(frozenset({files[1].file_path})))
    assert {one.data_file.file_path: one.status for one in lab.entries()} == {
        files[1].file_path: DELETED,
        files[2].file_path: EXISTING,
    }


def test_manifest_without_live_files_is_dropped_from_the_next_snapshot() -> None:
    lab = Lab()
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    assert [manifest.deleted_files_count for manifest in lab.manifests()] == [1]
    lab.commit(Append((two,)))
    assert [manifest.added_files_count for manifest in lab.manifests()] == [1]


def test_unaffected_manifests_are_kept_unchanged() -> None:
    lab = Lab(partition_by=["k"])
    lab.commit(Append((lab.file([1], "a"),)))
    lab.commit(Append((lab.file([2], "b"),)))
    before = {one.manifest_path for one in lab.manifests()}
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    after = {one.manifest_path for one in lab.manifests()}
    assert len(before & after) == 1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_sequence_numbers_follow_the_commits(version: int) -> None:
    lab = Lab(format_version=version)
    for at in range(3):
        lab.commit(Append((lab.file([at]),)))
    numbers = sorted(one.sequence_number or 0 for one in lab.live())
    assert numbers == ([0, 0, 0] if version == 1 else [1, 2, 3])
    assert lab.load().metadata.last_sequence_number == (0 if version == 1 else 3)


# Merging


def test_manifests_are_merged_from_the_minimum_count_on() -> None:
    lab = Lab(properties={"commit.manifest.min-count-to-merge": "3"})
    files = [lab.file([at]) for at in range(4)]
    lab.commit(Append((files[0],)))
    lab.commit(Append((files[1],)))
    assert len(lab.manifests()) == 2
    lab.commit(Append((files[2],)))
    (merged,) = lab.manifests()
    assert (merged.added_files_count, merged.existing_files_count) == (1, 2)
    statuses = {one.data_file.file_path: (one.status, one.sequence_number) for one in lab.entries()}
    assert statuses == {
        files[0].file_path: (EXISTING, 1),
        files[1].file_path: (EXISTING, 2),
        files[2].file_path: (ADDED, 3),
    }
    assert lab.summary["manifests-replaced"] == "2"
    lab.commit(Append((files[3],)))
    assert len(lab.manifests()) == 2


def test_old_groups_merge_at_any_count_and_large_manifests_are_kept() -> None:
    lab = Lab(properties={"commit.manifest.min-count-to-merge": "100"})
    for at in range(4):
        lab.commit(Append((lab.file([at]),), is_fast=True))
    size = max(one.manifest_length for one in lab.manifests())
    assert len(lab.manifests()) == 4
    lab.commit(UpdateProperties(FrozenMap({"commit.manifest.target-size-bytes": str(size * 2 + 10)})))
    lab.commit(Append((lab.file([9]),)))
    assert [one.added_files_count for one in lab.manifests()] == [1, 0, 0]
    assert len(lab.paths()) == 5


def test_merging_can_be_disabled_and_fast_append_never_merges() -> None:
    off = Lab(properties={"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"})
    fast = Lab(properties={"commit.manifest.min-count-to-merge": "2"})
    for at in range(3):
        off.commit(Append((off.file([at]),)))
        fast.commit(Append((fast.file([at]),), is_fast=True))
    assert len(off.manifests()) == 3
    assert len(fast.manifests()) == 3


def test_only_manifests_of_one_spec_are_merged() -> None:
    lab = Lab(partition_by=["k"], properties={"commit.manifest.min-count-to-merge": "2"})
    lab.commit(Append((lab.file([1], "a"),)))
    lab.commit(Append((lab.file([2], "a"),)))
    lab.commit(UpdateSpec(lambda u: u.remove_field("k")))
    lab.commit(Append((lab.file([3], "a"),)))
    assert sorted((one.partition_spec_id, len(lab.manifests())) for one in lab.manifests()) == [(0, 2), (1, 2)]
    lab.commit(Append((lab.file([4], "a"),)))
    assert [one.partition_spec_id for one in lab.manifests()] == [1, 0]
    assert len(lab.paths()) == 4


def test_merging_keeps_entries_deleted_in_the_same_commit() -> None:
    lab = Lab(properties={"commit.manifest.min-count-to-merge": "2"})
    one, two, new = lab.file([1]), lab.file([2]), lab.file([3])
    lab.commit(Append((one, two)))
    lab.commit(Overwrite((new,), ReadSet(lab.snapshot.snapshot_id), (one,)))
    (merged,) = lab.manifests()
    assert (merged.added_files_count, merged.existing_files_count, merged.deleted_files_count) == (1, 1, 1)
    statuses = {entry.data_file.file_path: entry.status for entry in lab.entries()}
    assert statuses == {one.file_path: DELETED, two.file_path: EXISTING, new.file_path: ADDED}


def test_data_and_delete_manifests_are_merged_separately() -> None:
    lab = Lab(properties={"commit.manifest.min-count-to-merge": "2"})
    one = lab.file([1])
    lab.commit(Append((one,)))
    for _ in range(2):
        lab.commit(RowDelta((lab.position_deletes(one), lab.file([5])), ReadSet(lab.snapshot.snapshot_id), "update"))
    assert [(one.content, one.partition_spec_id) for one in lab.manifests()] == [
        (ManifestContent.DATA, 0),
        (ManifestContent.DELETES, 0),
    ]
    assert len(lab.paths()) == 3 and len(lab.deletes()) == 2


# Splitting


def test_many_new_files_are_written_to_several_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_manifests, "FILES_PER_MANIFEST", 4)
    lab = Lab()
    files = tuple(lab.file([at]) for at in range(10))
    lab.commit(Append(files))
    assert [one.added_files_count for one in lab.manifests()] == [4, 4, 2]
    assert lab.paths() == paths_of(*files)


def test_new_manifests_are_split_at_the_target_size() -> None:
    lab = Lab(properties={"commit.manifest.target-size-bytes": "4000", "commit.manifest-merge.enabled": "false"})
    files = tuple(lab.file([at]) for at in range(200))
    lab.commit(Append(files))
    manifests = lab.manifests()
    assert len(manifests) > 1
    assert lab.paths() == paths_of(*files)
    assert all(one.manifest_length < 8000 for one in manifests)


# Deletes that can delete nothing any more


def test_delete_files_older_than_all_data_are_removed() -> None:
    lab = Lab(partition_by=["k"])
    one = lab.file([1], "a")
    lab.commit(Append((one,)))
    lab.commit(RowDelta((lab.equality_deletes([1], partition=("a",)),), None))
    lab.commit(Append((lab.file([2], "b"),)))
    assert len(lab.deletes()) == 1
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert lab.deletes() == []
    assert lab.summary["removed-delete-files"] == "1"
    assert lab.summary["total-delete-files"] == "0"


def test_vector_is_removed_with_its_data_file() -> None:
    lab = Lab(partition_by=["k"], format_version=3)
    one, two = lab.file([1, 2], "a"), lab.file([3, 4], "b")
    lab.commit(Append((one, two)))
    lab.commit(RowDelta(lab.vectors({one: [0], two: [1]}), ReadSet(lab.snapshot.snapshot_id), "delete"))
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert [file.referenced_data_file for file in lab.deletes()] == [two.file_path]
    assert lab.summary["removed-dvs"] == "1"


def test_vector_is_removed_with_its_data_file_however_the_path_is_spelled() -> None:
    lab = Lab(format_version=3)
    one, two = lab.file([1, 2]), lab.file([3, 4])
    lab.commit(Append((one, two)))
    lab.commit(RowDelta(lab.vectors({one: [0], two: [1]}), ReadSet(lab.snapshot.snapshot_id), "delete"))
    lab.commit(Overwrite((lab.file([2]),), ReadSet(lab.snapshot.snapshot_id), (one,)))
    assert [file.referenced_data_file for file in lab.deletes()] == [two.file_path]


# Format versions


@pytest.mark.parametrize("version", [1, 2])
def test_vectors_require_version_3(version: int) -> None:
    lab = Lab(format_version=version)
    one = lab.file([1, 2])
    lab.commit(Append((one,)))
    with pytest.raises(InvalidRequestError):
        lab.commit(RowDelta(lab.vectors({one: [0]}), ReadSet(lab.snapshot.snapshot_id), "delete"))


def test_v1_accepts_no_deletes_and_v3_no_new_position_delete_files() -> None:
    for version, action in ((1, "equality"), (3, "position")):
        lab = Lab(format_version=version)
        one = lab.file([1, 2])
        lab.commit(Append((one,)))
        deletes = lab.equality_deletes([1]) if action == "equality" else lab.position_deletes(one)
        with pytest.raises(InvalidRequestError):
            lab.commit(RowDelta((deletes,), ReadSet(lab.snapshot.snapshot_id), "delete"))


def test_several_vectors_of_one_file_in_a_commit_are_merged() -> None:
    lab = Lab(format_version=3)
    one = lab.file([1, 2, 3, 4])
    lab.commit(Append((one,)))
    vectors = (*lab.vectors({one: [0]}), *lab.vectors({one: [3]}))
    lab.commit(RowDelta(vectors, ReadSet(lab.snapshot.snapshot_id), "delete"))
    (vector,) = lab.deletes()
    assert lab.positions(vector) == [0, 3]
    assert "merged-dvs-" in vector.file_path


def test_vector_replaces_the_previous_one() -> None:
    lab = Lab(format_version=3)
    one = lab.file([1, 2, 3, 4])
    lab.commit(Append((one,)))
    first = lab.vectors({one: [0]})
    lab.commit(RowDelta(first, ReadSet(lab.snapshot.snapshot_id), "delete"))
    second = lab.vectors({one: [0, 1]})
    lab.commit(RowDelta(second, ReadSet(lab.snapshot.snapshot_id), "delete", removed_deletes=first))
    assert lab.deletes() == list(second)
    third = lab.vectors({one: [2]})
    lab.commit(RowDelta(third, ReadSet(lab.snapshot.snapshot_id), "delete"))
    (vector,) = lab.deletes()
    assert lab.positions(vector) == [0, 1, 2]


def test_table_upgraded_from_version_1_is_rewritten_with_counts_and_sequence_numbers() -> None:
    lab = Lab(format_version=1, properties={"commit.manifest.min-count-to-merge": "2"})
    files = [lab.file([at]) for at in range(2)]
    lab.commit(Append((files[0],)))
    lab.commit(UpgradeFormat(2))
    lab.commit(Append((files[1],)))
    (merged,) = lab.manifests()
    assert {one.data_file.file_path: one.sequence_number for one in lab.live()} == {
        files[0].file_path: 0,
        files[1].file_path: 1,
    }
    assert merged.min_sequence_number == 0


def test_file_of_an_unknown_spec_or_duplicate_file_is_refused() -> None:
    lab = Lab()
    one = lab.file([1])
    with pytest.raises(InvalidRequestError, match="listed twice"):
        lab.commit(Append((one, one)))
    with pytest.raises(NotFoundError, match="partition spec 7"):
        lab.commit(Append((replace(one, spec_id=7),)))


def test_row_ids_of_a_file_from_another_table_are_discarded() -> None:
    lab = Lab(format_version=3)
    lab.commit(Append((replace(lab.file([1]), first_row_id=500),)))
    assert [one.data_file.first_row_id for one in lab.live()] == [0]


# Rewriting manifests


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_are_rewritten_clustered_by_partition(version: int) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    files = [lab.file([at], "ab"[at % 2]) for at in range(6)]
    for one in files:
        lab.commit(Append((one,), is_fast=True))
    before = {one.data_file.file_path: replace(one, status=EXISTING) for one in lab.live()}
    lab.commit(RewriteManifests())
    (manifest,) = lab.manifests()
    assert manifest.existing_files_count == 6
    entries = lab.entries()
    assert [one.data_file.partition for one in entries] == [("a",)] * 3 + [("b",)] * 3
    assert {one.data_file.file_path: one for one in entries} == before
    assert lab.summary["operation"] == "replace"
    assert lab.summary["manifests-replaced"] == "6"
    assert lab.summary["manifests-created"] == "1"
    assert lab.summary["entries-processed"] == "6"
    assert lab.summary["total-data-files"] == "6"


def test_rewriting_manifests_twice_changes_nothing() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(Append((lab.file([2]),)))
    lab.commit(RewriteManifests())
    before = lab.snapshot
    lab.commit(RewriteManifests())
    assert lab.snapshot == before


def test_delete_manifests_are_rewritten_only_on_request() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    for _ in range(2):
        lab.commit(RowDelta((lab.position_deletes(one),), ReadSet(lab.snapshot.snapshot_id), "delete"))
    lab.commit(RewriteManifests())
    assert len(lab.manifests()) == 3
    lab.commit(RewriteManifests(includes_deletes=True))
    assert len(lab.manifests()) == 2
    assert len(lab.deletes()) == 2


def test_only_manifests_that_may_hold_a_replaced_file_are_opened() -> None:
    lab = Lab(partition_by=["k"])
    files = [lab.file([at], k) for at, k in enumerate(["a", "b", "c", "d", None])]
    for one in files:
        lab.commit(Append((one,), is_fast=True))
    for old in (files[2], files[4]):
        new, read = lab.file([9], old.partition[0]), ReadSet(lab.snapshot.snapshot_id)
        storage = FailingStorage(lab.storage)
        lab.catalog.storage = storage
        lab.commit(Overwrite((new,), read, (old,)))
        opened = {one.path for one in storage.calls if one.verb == "read" and "-m" in one.path.rpartition("/")[2]}
        assert len(opened) == 1
        assert old.file_path not in lab.paths() and new.file_path in lab.paths()
