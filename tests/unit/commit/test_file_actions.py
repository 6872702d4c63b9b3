"""Appends, overwrites, deletes and replaced partitions: which files go, which stay, and what is refused."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_spec import UpdateSpec
from frazil.errors import ConcurrentChangeError, FieldNotFoundError, InvalidRequestError
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE
from tests.support.commit_lab import Lab, paths_of

VERSIONS = [1, 2, 3]


# Appends


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_fast", [True, False])
def test_append_adds_files_to_existing_ones(version: int, is_fast: bool) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    one, two = lab.file([1], "a"), lab.file([2], None)
    lab.commit(Append((one,), is_fast=is_fast))
    lab.commit(Append((two,), is_fast=is_fast))
    assert lab.paths() == paths_of(one, two)
    assert lab.summary["operation"] == "append"
    assert {entry.data_file for entry in lab.live()} == {one, two} or version == 3


def test_empty_append_makes_no_snapshot() -> None:
    lab = Lab()
    before = lab.load().metadata_location
    assert lab.commit(Append(())).metadata_location == before


def test_append_refuses_delete_files() -> None:
    lab = Lab()
    with pytest.raises(InvalidRequestError, match="it holds deletes"):
        lab.commit(Append((lab.equality_deletes([1]),)))


def test_append_over_several_specs_writes_a_manifest_for_each() -> None:
    lab = Lab(partition_by=["k"])
    old = lab.file([1], "a")
    lab.commit(UpdateSpec(lambda u: u.remove_field("k")))
    new = lab.file([2], "a")
    lab.commit(Append((old, new)))
    assert [one.partition_spec_id for one in lab.manifests()] == [1, 0]
    assert lab.paths() == paths_of(old, new)


def test_new_branch_starts_at_the_current_snapshot() -> None:
    lab = Lab()
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    lab.commit(Append((two,), Target("audit")))
    assert lab.paths() == paths_of(one)
    assert lab.paths(lab.head("audit")) == paths_of(one, two)


def test_first_commit_to_a_branch_of_an_empty_table_has_no_parent() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,), Target("audit")))
    assert lab.load().metadata.current_snapshot is None
    assert lab.paths(lab.head("audit")) == paths_of(one)


# Deletes by filter


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("k = 'a'", "bn"),
        ("k is null", "ab"),
        ("k in ('a', 'b')", "n"),
        ("id < 10", "bn"),
        ("id >= 10", "a"),
        ("k = 'a' and id <= 3", "bn"),
        ("k = 'a' and id > 3", "abn"),
        ("k = 'zz'", "abn"),
        ("true", ""),
        ("false", "abn"),
        ("k = 'a' or id = 30", "bn"),
        ("not (k = 'a')", "an"),
    ],
)
def test_delete_by_filter_removes_whole_files_by_partition_or_metrics(version: int, where: str, left: str) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    files = {"a": lab.file([1, 2, 3], "a"), "b": lab.file([10, 11], "b"), "n": lab.file([20, 21], None)}
    lab.commit(Append(tuple(files.values())))
    lab.commit(DeleteFiles(where=parse_predicate(where)))
    assert lab.paths() == paths_of(*(files[one] for one in left))


@pytest.mark.parametrize("where", ["id = 2", "id < 3", "k = 'a' and id = 2", "v is null and id = 1"])
def test_partially_matching_file_cannot_be_deleted_whole(where: str) -> None:
    lab = Lab(partition_by=["k"])
    one = lab.file([1, 2, 3], "a")
    lab.commit(Append((one,)))
    with pytest.raises(InvalidRequestError, match="some, but not all, rows may match") as caught:
        lab.commit(DeleteFiles(where=parse_predicate(where)))
    assert one.file_path in str(caught.value)
    assert lab.paths() == paths_of(one)


def test_file_without_metrics_is_not_deleted_by_a_row_filter() -> None:
    lab = Lab(partition_by=["k"])
    one = lab.file([1], "a", has_metrics=False)
    lab.commit(Append((one,)))
    with pytest.raises(InvalidRequestError, match="some, but not all"):
        lab.commit(DeleteFiles(where=parse_predicate("id = 1")))
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert lab.paths() == set()


def test_filter_is_evaluated_with_the_spec_of_each_file() -> None:
    lab = Lab(partition_by=["k"])
    old = lab.file([1], "a", has_metrics=False)
    lab.commit(Append((old,)))
    lab.commit(UpdateSpec(lambda u: u.remove_field("k")))
    new = lab.file([2], "a", has_metrics=False)
    lab.commit(Append((new,)))
    with pytest.raises(InvalidRequestError, match="some, but not all"):
        lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    lab.commit(DeleteFiles(frozenset({new.file_path})))
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert lab.paths() == set()


def test_partition_match_needs_no_metrics() -> None:
    lab = Lab(partition_by=["k"])
    a, b = lab.file([1, 9], "a"), lab.file([1, 9], "b")
    lab.commit(Append((a, b)))
    lab.commit(DeleteFiles(where=parse_predicate("(k = 'a' and id < 100) or (k = 'b' and id > 100)")))
    assert lab.paths() == paths_of(b)


def test_filter_on_a_missing_column_is_refused() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    with pytest.raises(FieldNotFoundError):
        lab.commit(DeleteFiles(where=parse_predicate("nope = 1")))


def test_delete_by_filter_removes_delete_files_of_the_partition_too() -> None:
    lab = Lab(partition_by=["k"])
    a, b = lab.file([1], "a"), lab.file([2], "b")
    lab.commit(Append((b, a)))
    lab.commit(RowDelta((lab.equality_deletes([1], partition=("a",)),), None))
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert lab.deletes() == []
    assert lab.summary["removed-equality-delete-files"] == "1"


def test_paths_must_exist_unless_missing_ones_are_allowed() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    wanted = frozenset({one.file_path, "memory://none"})
    with pytest.raises(ConcurrentChangeError, match="memory://none"):
        lab.commit(DeleteFiles(wanted))
    lab.commit(DeleteFiles(wanted, must_find=False))
    assert lab.paths() == set()
    with pytest.raises(InvalidRequestError, match="pass a set"):
        DeleteFiles("memory://one")  # type: ignore[arg-type]


# Overwrites


@pytest.mark.parametrize("version", VERSIONS)
def test_overwrite_by_filter_replaces_matching_files(version: int) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    a, b, new = lab.file([1], "a"), lab.file([2], "b"), lab.file([3], "a")
    lab.commit(Append((a, b)))
    where = parse_predicate("k = 'a'")
    lab.commit(Overwrite((new,), ReadSet(lab.snapshot.snapshot_id, where), where=where, must_match=True))
    assert lab.paths() == paths_of(b, new)
    assert lab.summary["operation"] == "overwrite"


def test_new_rows_outside_the_filter_are_refused_on_request() -> None:
    lab = Lab(partition_by=["k"])
    where = parse_predicate("k = 'a'")
    outside = lab.file([3], "b")
    with pytest.raises(InvalidRequestError, match="may not match"):
        lab.commit(Overwrite((outside,), ReadSet(None), where=where, must_match=True))
    lab.commit(Overwrite((outside,), ReadSet(None), where=where))
    assert lab.paths() == paths_of(outside)


@pytest.mark.parametrize(
    ("adds", "removes", "operation"),
    [(True, True, "overwrite"), (True, False, "append"), (False, True, "delete")],
)
def test_overwrite_records_its_operation(adds: bool, removes: bool, operation: str) -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    added = (lab.file([2]),) if adds else ()
    lab.commit(Overwrite(added, ReadSet(lab.snapshot.snapshot_id), (one,) if removes else ()))
    assert lab.summary["operation"] == operation


def test_overwrite_of_the_whole_table() -> None:
    lab = Lab(partition_by=["k"])
    lab.commit(Append((lab.file([1], "a"), lab.file([2], "b"))))
    new = lab.file([3], "c")
    lab.commit(Overwrite((new,), ReadSet(lab.snapshot.snapshot_id), where=TRUE))
    assert lab.paths() == paths_of(new)


def test_overwrite_without_changes_makes_no_snapshot() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    before = lab.snapshot
    lab.commit(Overwrite((), ReadSet(before.snapshot_id), where=parse_predicate("id = 99")))
    assert lab.snapshot == before


# Replaced partitions


@pytest.mark.parametrize("version", VERSIONS)
def test_only_partitions_with_new_files_are_replaced(version: int) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    a, b, n = lab.file([1], "a"), lab.file([2], "b"), lab.file([3], None)
    lab.commit(Append((a, b, n)))
    new_a, new_n = lab.file([4], "a"), lab.file([5], None)
    lab.commit(ReplacePartitions((new_a, new_n), ReadSet(lab.snapshot.snapshot_id)))
    assert lab.paths() == paths_of(b, new_a, new_n)
    assert lab.summary["replace-partitions"] == "true"


def test_replacing_partitions_removes_their_delete_files() -> None:
    lab = Lab(partition_by=["k"])
    a, b = lab.file([1], "a"), lab.file([2], "b")
    lab.commit(Append((a, b)))
    lab.commit(
        RowDelta((lab.equality_deletes([1], partition=("a",)), lab.equality_deletes([2], partition=("b",))), None)
    )
    lab.commit(ReplacePartitions((lab.file([3], "a"),), ReadSet(lab.snapshot.snapshot_id)))
    assert [one.partition for one in lab.deletes()] == [("b",)]


def test_files_of_another_spec_are_not_replaced() -> None:
    lab = Lab(partition_by=["k"])
    old = lab.file([1], "a")
    lab.commit(Append((old,)))
    lab.commit(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
    new = lab.file([2], "a", partition=("a", 1))
    lab.commit(ReplacePartitions((new,), ReadSet(lab.snapshot.snapshot_id)))
    assert lab.paths() == paths_of(old, new)


def test_unpartitioned_table_is_replaced_whole() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]), lab.file([2]))))
    new = lab.file([3])
    lab.commit(ReplacePartitions((new,), ReadSet(lab.snapshot.snapshot_id)))
    assert lab.paths() == paths_of(new)


# Rewrites


@pytest.mark.parametrize("version", VERSIONS)
def test_rewritten_files_use_operation_replace(version: int) -> None:
    lab = Lab(format_version=version)
    small = [lab.file([at]) for at in range(3)]
    lab.commit(Append(tuple(small)))
    large = lab.file(range(3))
    lab.commit(RewriteFiles(tuple(small), (large,), lab.snapshot.snapshot_id))
    assert lab.paths() == paths_of(large)
    assert lab.summary["operation"] == "replace"
    assert lab.summary["total-records"] == "3"


def test_rewrite_requires_files_to_replace() -> None:
    lab = Lab()
    one = lab.file([1])
    for wrong in ({"removed": (), "added": ()}, {"removed": (), "added": (one,)}):
        with pytest.raises(InvalidRequestError):
            RewriteFiles(**wrong, start_snapshot_id=None)
    with pytest.raises(InvalidRequestError, match="it holds deletes"):
        RewriteFiles((lab.equality_deletes([1]),), (), None)


# Row deltas


def test_file_cannot_be_removed_and_have_rows_deleted_in_one_commit() -> None:
    lab = Lab()
    one = lab.file([1, 2])
    lab.commit(Append((one,)))
    with pytest.raises(InvalidRequestError, match="new deletes refer to its rows"):
        lab.commit(RowDelta((lab.position_deletes(one),), ReadSet(lab.snapshot.snapshot_id), removed=(one,)))


@pytest.mark.parametrize(
    ("data", "deletes", "operation"), [(True, True, "overwrite"), (True, False, "append"), (False, True, "delete")]
)
def test_row_delta_records_its_operation(data: bool, deletes: bool, operation: str) -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    added = ((lab.file([2]),) if data else ()) + ((lab.equality_deletes([1]),) if deletes else ())
    lab.commit(RowDelta(added, None))
    assert lab.summary["operation"] == operation


def test_deletes_of_rows_added_in_the_same_commit_need_no_read_set() -> None:
    lab = Lab()
    one = lab.file([1, 2])
    lab.commit(RowDelta((one, lab.position_deletes(one)), None))
    assert len(lab.deletes()) == 1


def test_row_delta_may_remove_whole_files_too() -> None:
    lab = Lab()
    one, two, new = lab.file([1, 2]), lab.file([3]), lab.file([4])
    lab.commit(Append((one, two)))
    lab.commit(RowDelta((lab.position_deletes(one), new), ReadSet(lab.snapshot.snapshot_id), removed=(two,)))
    assert lab.paths() == paths_of(one, new)
    assert len(lab.deletes()) == 1
