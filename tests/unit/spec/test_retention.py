"""Which snapshots and references expire; the rules of the specification's "Snapshot Retention Policy"."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.retention import Retention, snapshots_to_retain
from frazil.spec.snapshot import Snapshot, SnapshotRef
from frazil.spec.table_metadata import TableMetadata
from tests.support.metadata_builders import DAY_MS, START_MS, metadata, snapshot

NOW_MS = START_MS + 100 * DAY_MS


def aged(snapshot_id: int, parent: int | None, days: float) -> Snapshot:
    return snapshot(snapshot_id, parent, timestamp_ms=NOW_MS - int(days * DAY_MS))


def daily(length: int, **fields: object) -> TableMetadata:
    """One snapshot a day; the last is of today."""
    return metadata(*(aged(one, one - 1 or None, length - one) for one in range(1, length + 1)), **fields)


def test_main_keeps_five_days_by_default() -> None:
    found = snapshots_to_retain(daily(10), NOW_MS)
    assert found.retained_ids == {5, 6, 7, 8, 9, 10}
    assert found.expired_ids == {1, 2, 3, 4}
    assert found.expired_refs == frozenset()


def test_branch_keeps_its_head_however_old() -> None:
    found = snapshots_to_retain(metadata(aged(1, None, 90), aged(2, 1, 80)), NOW_MS)
    assert found.retained_ids == {2}


def test_branch_keeps_its_minimum_number_of_snapshots() -> None:
    found = snapshots_to_retain(metadata(*daily(4).snapshots), NOW_MS + 90 * DAY_MS, min_snapshots_to_keep=3)
    assert found.retained_ids == {2, 3, 4}


def test_age_and_count_limits_are_combined() -> None:
    assert snapshots_to_retain(daily(10), NOW_MS, min_snapshots_to_keep=8).retained_ids == set(range(3, 11))
    assert snapshots_to_retain(daily(10), NOW_MS, min_snapshots_to_keep=2).retained_ids == set(range(5, 11))


def test_chain_is_cut_at_the_first_expired_ancestor() -> None:
    table = metadata(aged(1, None, 1), aged(2, 1, 50), aged(3, 2, 0))
    assert snapshots_to_retain(table, NOW_MS).retained_ids == {3}


def test_table_properties_are_the_default_limits() -> None:
    properties = FrozenMap(
        {"history.expire.max-snapshot-age-ms": str(2 * DAY_MS), "history.expire.min-snapshots-to-keep": "4"}
    )
    table = daily(10, properties=properties)
    assert snapshots_to_retain(table, NOW_MS).retained_ids == {7, 8, 9, 10}
    assert snapshots_to_retain(table, NOW_MS, min_snapshots_to_keep=1).retained_ids == {8, 9, 10}
    assert snapshots_to_retain(table, NOW_MS, older_than_ms=0).expired_ids == set()


def test_non_numeric_property_is_refused() -> None:
    table = daily(2, properties=FrozenMap({"history.expire.min-snapshots-to-keep": "few"}))
    with pytest.raises(InvalidPropertyError):
        snapshots_to_retain(table, NOW_MS)


def test_branch_limits_win_over_table_limits() -> None:
    refs = {"b": SnapshotRef(10, min_snapshots_to_keep=1, max_snapshot_age_ms=9 * DAY_MS)}
    assert snapshots_to_retain(daily(10, refs=refs), NOW_MS, older_than_ms=NOW_MS).retained_ids == set(range(1, 11))


def test_tag_keeps_its_snapshot_and_not_its_ancestors() -> None:
    found = snapshots_to_retain(daily(10, refs={"t": SnapshotRef(3, "tag")}), NOW_MS)
    assert found.retained_ids == {3, 5, 6, 7, 8, 9, 10}


def test_old_references_expire_with_snapshots_only_they_kept() -> None:
    table = daily(
        10,
        refs={
            "old": SnapshotRef(2, max_ref_age_ms=7 * DAY_MS),
            "young": SnapshotRef(2, "tag", max_ref_age_ms=8 * DAY_MS),
            "always": SnapshotRef(1, "tag"),
        },
    )
    found = snapshots_to_retain(table, NOW_MS)
    assert found.expired_refs == {"old"}
    assert found.retained_ids == {1, 2, 5, 6, 7, 8, 9, 10}
    assert snapshots_to_retain(table, NOW_MS, max_ref_age_ms=1).expired_refs == {"old", "always"}


def test_main_never_expires() -> None:
    table = metadata(aged(1, None, 90), refs={"main": SnapshotRef(1, max_ref_age_ms=1)})
    found = snapshots_to_retain(table, NOW_MS, max_ref_age_ms=1)
    assert found.expired_refs == frozenset()
    assert found.retained_ids == {1}


def test_unreferenced_snapshot_is_kept_until_old() -> None:
    table = metadata(aged(1, None, 3), aged(2, 1, 2), aged(3, 1, 20), aged(4, 1, 1), current_snapshot_id=2)
    found = snapshots_to_retain(table, NOW_MS)
    assert found.retained_ids == {1, 2, 4}
    assert found.expired_ids == {3}


def test_snapshots_of_an_expired_branch_are_unreferenced() -> None:
    table = metadata(
        aged(1, None, 3), aged(2, 1, 2), aged(3, 1, 4), aged(4, 1, 6), current_snapshot_id=2,
        refs={"a": SnapshotRef(3, max_ref_age_ms=1), "b": SnapshotRef(4, max_ref_age_ms=1)},
    )  # fmt: skip
    found = snapshots_to_retain(table, NOW_MS)
    assert found.expired_refs == {"a", "b"}
    assert found.retained_ids == {1, 2, 3}


def test_table_without_snapshots_keeps_none() -> None:
    found = snapshots_to_retain(metadata(), NOW_MS)
    assert found == Retention(frozenset(), frozenset(), frozenset())


def test_zero_snapshots_to_keep_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="at least 1 must be kept"):
        snapshots_to_retain(daily(2), NOW_MS, min_snapshots_to_keep=0)
