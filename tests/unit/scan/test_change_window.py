"""Which snapshots a change feed is of."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.update_refs import CreateRef
from frazil.errors import InvalidRequestError, SnapshotNotFoundError
from frazil.scan.change_window import ChangeRange, change_window
from tests.support.commit_lab import Lab


@pytest.fixture
def lab() -> Lab:
    """Five appends, versions 1 to 5; the third has the tag eom."""
    made = Lab()
    for at in range(5):
        made.commit(Append((made.file([at + 1]),)))
        if at == 2:
            made.commit(CreateRef("eom", "tag"))
    return made


def versions(lab: Lab, asked: ChangeRange) -> list[int]:
    metadata = lab.load().metadata
    window = change_window(metadata, metadata.current_snapshot_id, asked)
    return [metadata.snapshot(one).sequence_number for one in window.snapshot_ids]


def test_window_bounds_are_inclusive_versions_ids_or_names(lab: Lab) -> None:
    ids = [one.snapshot_id for one in lab.load().metadata.snapshots]
    assert versions(lab, ChangeRange("2", "4")) == [2, 3, 4]
    assert versions(lab, ChangeRange(str(ids[1]), str(ids[3]))) == [2, 3, 4]
    assert versions(lab, ChangeRange("eom")) == [3, 4, 5]
    assert versions(lab, ChangeRange("0", "2")) == [1, 2]
    assert versions(lab, ChangeRange("2", "4", has_start=False, has_end=False)) == [3]
    assert versions(lab, ChangeRange("5", has_start=False)) == []
    assert versions(lab, ChangeRange()) == [1, 2, 3, 4, 5]


def test_times_are_commit_times(lab: Lab) -> None:
    times = [one.timestamp_ms * 1000 for one in lab.load().metadata.snapshots]
    assert versions(lab, ChangeRange(start_us=times[1], end_us=times[3])) == [2, 3, 4]
    assert versions(lab, ChangeRange(start_us=times[1], end_us=times[3], has_start=False, has_end=False)) == [3]
    assert versions(lab, ChangeRange(start_us=times[1] + 1)) == [3, 4, 5]
    assert versions(lab, ChangeRange(start_us=times[4] + 1)) == []
    with pytest.raises(InvalidRequestError, match="before its start"):
        versions(lab, ChangeRange(start_us=times[3], end_us=times[1]))


def test_missing_bounds_are_reported(lab: Lab) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"'9'.*no such snapshot"):
        versions(lab, ChangeRange("9"))
    with pytest.raises(InvalidRequestError, match="the end is not later"):
        versions(lab, ChangeRange("4", "2"))
    lab.commit(ExpireSnapshots(snapshot_ids=(lab.load().metadata.snapshots[0].snapshot_id,)))
    assert versions(lab, ChangeRange("2")) == [2, 3, 4, 5]
    for gone in (ChangeRange("0"), ChangeRange(start_us=0)):
        with pytest.raises(SnapshotNotFoundError, match="have expired"):
            versions(lab, gone)
