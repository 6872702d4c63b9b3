"""Snapshots, references and the lists of them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Operation, Snapshot, SnapshotRef, with_main_branch
from frazil.spec.snapshot_list import SnapshotList
from tests.support.metadata_builders import chain, snapshot


def test_snapshot_without_summary_has_no_operation() -> None:
    assert snapshot(1, summary=None).operation is None
    assert snapshot(1, summary={}).operation is None


def test_summary_without_operation_is_read_as_overwrite() -> None:
    assert snapshot(1, summary={"added-records": "1"}).operation == Operation.OVERWRITE
    assert snapshot(1, summary={"operation": "delete"}).operation == Operation.DELETE


def test_snapshot_requires_a_manifest_list_or_manifests() -> None:
    with pytest.raises(InvalidRequestError, match="snapshot 1: it has neither a manifest list nor manifests"):
        Snapshot(1, 0)
    assert Snapshot(1, 0, manifests=()).manifests == ()


def test_first_row_id_requires_a_row_count() -> None:
    with pytest.raises(InvalidRequestError, match="first row id but no number"):
        snapshot(1, first_row_id=0)


def test_snapshot_is_frozen_and_picklable() -> None:
    one = snapshot(1, 0, key_id="k", extra=FrozenMap({"new": [1]}), manifests=["a"])
    assert pickle.loads(pickle.dumps(one)) == one
    assert isinstance(one.summary, FrozenMap)
    assert one.manifests == ("a",)
    assert hash(one) == hash(replace(one))


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "twig"},
        {"min_snapshots_to_keep": 0},
        {"max_snapshot_age_ms": -1},
        {"max_ref_age_ms": 0},
        {"type": "tag", "min_snapshots_to_keep": 1},
        {"type": "tag", "max_snapshot_age_ms": 1},
    ],
)
def test_reference_with_impossible_retention_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot make a"):
        SnapshotRef(1, **fields)


def test_branches_and_tags_know_their_kind() -> None:
    assert SnapshotRef(1).is_branch and not SnapshotRef(1).is_tag
    tag = SnapshotRef(1, "tag", max_ref_age_ms=5)
    assert tag.is_tag and not tag.is_branch


def test_main_is_added_only_if_missing() -> None:
    assert with_main_branch({}, None) == {}
    assert with_main_branch({}, 7) == {"main": SnapshotRef(7)}
    known = FrozenMap({"main": SnapshotRef(7, max_ref_age_ms=3)})
    assert with_main_branch(known, 7) is known


class Unread:
    """A stored snapshot that counts how often it is read."""

    def __init__(self, whole: Snapshot) -> None:
        self.whole = whole
        self.reads = 0
        self.snapshot_id = whole.snapshot_id
        self.parent_snapshot_id = whole.parent_snapshot_id
        self.sequence_number = whole.sequence_number
        self.timestamp_ms = whole.timestamp_ms
        self.first_row_id = whole.first_row_id
        self.added_rows = whole.added_rows

    def read(self) -> Snapshot:
        self.reads += 1
        return self.whole


def test_list_parses_only_the_requested_snapshot() -> None:
    unread = [Unread(one) for one in chain(3).snapshots]
    found = SnapshotList(unread)
    assert found.find(2) == snapshot(2, 1)
    assert found.find_head(3) is unread[2]
    assert list(found.ids) == [1, 2, 3]
    assert [one.reads for one in unread] == [0, 1, 0]


def test_adding_and_removing_snapshots_parses_none() -> None:
    unread = [Unread(one) for one in chain(3).snapshots]
    found = SnapshotList(unread).with_added(snapshot(4, 3)).without({1})
    assert list(found.ids) == [2, 3, 4]
    assert [one.reads for one in unread] == [0, 0, 0]
    assert list(found) == [snapshot(2, 1), snapshot(3, 2), snapshot(4, 3)]


def test_lists_are_equal_whether_parsed_or_not() -> None:
    read = chain(3).snapshots
    unread = SnapshotList(Unread(one) for one in read)
    assert read == read[:] and read == read
    assert read == unread and hash(read) == hash(unread)
    assert read != SnapshotList(reversed(read))
    assert read != SnapshotList([*read[:2], snapshot(3, 2, key_id="other")])
    assert read != list(read)


def test_lists_index_slice_and_pickle_like_sequences() -> None:
    found = chain(4).snapshots
    assert found[-1] == snapshot(4, 3)
    assert list(found[1:3].ids) == [2, 3]
    assert found.find(9) is None and found.find_head(9) is None
    assert pickle.loads(pickle.dumps(found)) == found
    assert repr(found) == "SnapshotList(<4 snapshots>)"


def test_duplicate_snapshot_id_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="two have the id 5"):
        SnapshotList([snapshot(5), snapshot(6), snapshot(5)])
