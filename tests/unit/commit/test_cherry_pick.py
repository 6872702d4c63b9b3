"""Cherry-picks and write-audit-publish."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.cherry_pick import CherryPick, PublishChanges
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.row_delta import RowDelta
from frazil.errors import ConcurrentChangeError, InvalidRequestError, SnapshotNotFoundError
from frazil.spec.frozen_map import FrozenMap
from tests.support.commit_lab import Lab, paths_of

STAGED = Target(is_staged=True)


def wap(wap_id: str) -> Target:
    """Return the target of a staged write."""
    return Target(is_staged=True, properties=FrozenMap({"wap.id": wap_id}))


def newest(lab: Lab) -> int:
    """Return the id of the snapshot that was added last."""
    return list(lab.load().metadata.snapshots.ids)[-1]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_staged_append_is_published_by_a_fast_forward(version: int) -> None:
    lab = Lab(format_version=version)
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    lab.commit(Append((two,), wap("w1")))
    staged = newest(lab)
    assert lab.paths() == paths_of(one)
    lab.commit(PublishChanges("w1"))
    assert lab.snapshot.snapshot_id == staged
    assert lab.paths() == paths_of(one, two)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_staged_append_is_reapplied_over_concurrent_commits(version: int) -> None:
    lab = Lab(format_version=version)
    files = [lab.file([at]) for at in range(3)]
    lab.commit(Append((files[0],)))
    lab.commit(Append((files[1],), wap("w1")))
    staged = newest(lab)
    lab.commit(Append((files[2],)))
    lab.commit(CherryPick(staged))
    assert lab.paths() == paths_of(*files)
    assert lab.summary["source-snapshot-id"] == str(staged)
    assert lab.summary["published-wap-id"] == "w1"
    assert lab.summary["added-data-files"] == "1"
    ids = [one.data_file.first_row_id for one in lab.live()]
    assert len(set(ids)) == (3 if version == 3 else 1)


def test_cherry_pick_survives_a_lost_race() -> None:
    lab = Lab()
    files = [lab.file([at]) for at in range(3)]
    lab.commit(Append((files[0],)))
    lab.commit(Append((files[1],), STAGED))
    lab.catalog.rivals = [lab.rival(Append((files[2],)))]
    lab.commit(CherryPick(newest(lab)))
    assert lab.paths() == paths_of(*files)


def test_snapshot_already_in_the_branch_is_refused() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(Append((lab.file([2]),), wap("w1")))
    staged = newest(lab)
    lab.commit(Append((lab.file([3]),), wap("w1")))
    again = newest(lab)
    lab.commit(Append((lab.file([4]),)))
    lab.commit(CherryPick(staged))
    with pytest.raises(InvalidRequestError, match="repeated it"):
        lab.commit(CherryPick(staged))
    with pytest.raises(InvalidRequestError, match="published already"):
        lab.commit(CherryPick(again))
    with pytest.raises(InvalidRequestError, match="it is in the branch already"):
        lab.commit(CherryPick(lab.snapshot.snapshot_id))


def test_two_publishers_of_the_same_snapshot_publish_once() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.commit(Append((lab.file([2]),), wap("w1")))
    staged = newest(lab)
    lab.commit(Append((lab.file([3]),)))
    lab.catalog.rivals = [lab.rival(CherryPick(staged))]
    with pytest.raises(InvalidRequestError, match="repeated it"):
        lab.commit(CherryPick(staged))
    assert len(lab.paths()) == 3


def test_dynamic_overwrite_is_reapplied_if_its_partitions_are_unchanged() -> None:
    lab = Lab(partition_by=["k"])
    a, b, new, other = lab.file([1], "a"), lab.file([2], "b"), lab.file([3], "a"), lab.file([4], "b")
    lab.commit(Append((a, b)))
    lab.commit(ReplacePartitions((new,), ReadSet(lab.snapshot.snapshot_id), STAGED))
    staged = newest(lab)
    lab.commit(Append((other,)))
    lab.commit(CherryPick(staged))
    assert lab.paths() == paths_of(new, b, other)


@pytest.mark.parametrize("change", ["added", "removed", "deleted"])
def test_dynamic_overwrite_is_refused_if_its_partitions_changed(change: str) -> None:
    lab = Lab(partition_by=["k"])
    a = lab.file([1], "a")
    lab.commit(Append((a,)))
    lab.commit(ReplacePartitions((lab.file([3], "a"),), ReadSet(lab.snapshot.snapshot_id), STAGED))
    staged = newest(lab)
    if change == "added":
        lab.commit(Append((lab.file([4], "a"),)))
    elif change == "removed":
        lab.commit(DeleteFiles(frozenset({a.file_path})))
    else:
        lab.commit(RowDelta((lab.position_deletes(a),), ReadSet(lab.snapshot.snapshot_id), "delete"))
    with pytest.raises(ConcurrentChangeError):
        lab.commit(CherryPick(staged))


def test_overwrite_can_only_be_fast_forwarded() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    lab.commit(Overwrite((lab.file([2]),), ReadSet(lab.snapshot.snapshot_id), (one,), target=STAGED))
    staged = newest(lab)
    lab.commit(Append((lab.file([3]),)))
    with pytest.raises(InvalidRequestError, match="not an append, dynamic overwrite or fast-forward"):
        lab.commit(CherryPick(staged))


def test_unknown_wap_id_or_snapshot_is_refused() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    with pytest.raises(SnapshotNotFoundError, match="no snapshot is staged"):
        lab.commit(PublishChanges("none"))
    with pytest.raises(SnapshotNotFoundError):
        lab.commit(CherryPick(5))
