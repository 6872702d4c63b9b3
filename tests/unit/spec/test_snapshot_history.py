"""Ancestry and time travel."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidRequestError, NotFoundError, SnapshotNotFoundError
from frazil.spec.iso8601 import show_ms
from frazil.spec.snapshot import SnapshotLogEntry, SnapshotRef
from frazil.spec.snapshot_history import (
    ancestor_ids,
    ancestor_ids_between,
    ancestors_of,
    is_ancestor_of,
    schema_of_ref,
    schema_of_snapshot,
    snapshot_as_of,
    snapshot_id_as_of,
)
from tests.support import builders
from tests.support.metadata_builders import START_MS, chain, metadata, snapshot


def test_ancestors_are_newest_first_and_include_the_snapshot() -> None:
    table = chain(4)
    assert list(ancestor_ids(table, 3)) == [3, 2, 1]
    assert [one.snapshot_id for one in ancestors_of(table, 4)] == [4, 3, 2, 1]
    assert list(ancestor_ids(table, 99)) == []


def test_chain_ends_at_expired_parents() -> None:
    table = metadata(snapshot(3, 2), snapshot(4, 3))
    assert list(ancestor_ids(table, 4)) == [4, 3]


def test_parent_cycle_does_not_loop() -> None:
    table = metadata(snapshot(1, 2), snapshot(2, 1))
    assert list(ancestor_ids(table, 1)) == [1, 2]


def test_snapshot_is_its_own_ancestor_and_branches_are_unrelated() -> None:
    table = metadata(snapshot(1), snapshot(2, 1), snapshot(3, 1))
    assert is_ancestor_of(table, 2, 2)
    assert is_ancestor_of(table, 3, 1)
    assert not is_ancestor_of(table, 3, 2)
    assert not is_ancestor_of(table, 1, 3)


def test_snapshots_between_two_exclude_the_first() -> None:
    table = chain(5)
    assert ancestor_ids_between(table, after_snapshot_id=2, to_snapshot_id=5) == (5, 4, 3)
    assert ancestor_ids_between(table, after_snapshot_id=None, to_snapshot_id=3) == (3, 2, 1)
    assert ancestor_ids_between(table, after_snapshot_id=3, to_snapshot_id=3) == ()


def test_first_of_two_snapshots_may_be_expired_if_the_chain_names_it() -> None:
    table = metadata(snapshot(3, 2), snapshot(4, 3))
    assert ancestor_ids_between(table, after_snapshot_id=2, to_snapshot_id=4) == (4, 3)


@pytest.mark.parametrize("after", [1, 99, None])
def test_gap_in_the_chain_is_refused_and_never_skipped(after: int | None) -> None:
    table = metadata(snapshot(3, 2), snapshot(4, 3))
    with pytest.raises(InvalidRequestError, match="the chain of parents ends at 3, where its parent 2 has expired"):
        ancestor_ids_between(table, after_snapshot_id=after, to_snapshot_id=4)


def test_snapshot_on_another_branch_is_not_between() -> None:
    table = metadata(snapshot(1), snapshot(2, 1), snapshot(3, 1))
    with pytest.raises(InvalidRequestError, match="from snapshot 2 to 3: the chain of parents ends at 1"):
        ancestor_ids_between(table, after_snapshot_id=2, to_snapshot_id=3)
    with pytest.raises(SnapshotNotFoundError):
        ancestor_ids_between(table, after_snapshot_id=2, to_snapshot_id=9)


def test_time_travel_uses_the_last_entry_not_later() -> None:
    table = chain(3)
    assert snapshot_id_as_of(table, START_MS + 1) == 1
    assert snapshot_id_as_of(table, START_MS + 2) == 2
    assert snapshot_as_of(table, START_MS + 10_000).snapshot_id == 3


def test_time_travel_follows_rollbacks_in_the_log() -> None:
    table = chain(2, snapshot_log=(SnapshotLogEntry(10, 1), SnapshotLogEntry(20, 2), SnapshotLogEntry(30, 1)))
    assert [snapshot_id_as_of(table, at) for at in (10, 25, 30, 99)] == [1, 2, 1, 1]


def test_later_of_two_changes_in_one_millisecond_wins() -> None:
    table = chain(2, snapshot_log=(SnapshotLogEntry(10, 1), SnapshotLogEntry(10, 2)))
    assert snapshot_id_as_of(table, 10) == 2


def test_current_snapshot_is_current_even_after_a_clock_reset() -> None:
    table = chain(2, snapshot_log=(SnapshotLogEntry(100, 1), SnapshotLogEntry(90, 2)))
    assert snapshot_id_as_of(table, 150) == 2


def test_time_before_the_log_is_refused_with_its_start() -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"as of 1970-01-01T00:00:00\.000Z") as caught:
        snapshot_as_of(chain(2), 0)
    assert caught.value.hint == "The table's log starts at 2023-11-14T22:13:20.001Z."


def test_table_without_a_log_is_reported() -> None:
    with pytest.raises(SnapshotNotFoundError) as caught:
        snapshot_as_of(metadata(), 0)
    assert "keeps no snapshot log" in str(caught.value)


def test_time_of_an_expired_snapshot_is_refused() -> None:
    table = metadata(snapshot(2, 1), snapshot_log=(SnapshotLogEntry(10, 1), SnapshotLogEntry(20, 2)))
    with pytest.raises(SnapshotNotFoundError, match="snapshot 1, current then, has expired"):
        snapshot_as_of(table, 15)


def test_tag_uses_the_schema_of_its_snapshot_and_branch_that_of_the_table() -> None:
    old, new = builders.schema(schema_id=0), builders.schema(builders.field(1, "id"), schema_id=1)
    table = metadata(
        snapshot(1, schema_id=0),
        snapshot(2, 1, schema_id=1),
        schemas=(old, new),
        current_schema_id=1,
        last_column_id=3,
        refs={"t": SnapshotRef(1, "tag"), "b": SnapshotRef(1)},
    )
    assert schema_of_ref(table, "t") is old
    assert schema_of_ref(table, "b") is new
    assert schema_of_ref(table, "main") is new
    assert schema_of_snapshot(table, snapshot(1, schema_id=None)) is new
    with pytest.raises(NotFoundError, match="schema 9"):
        schema_of_snapshot(table, snapshot(1, schema_id=9))


def test_times_beyond_the_calendar_are_shown_as_numbers() -> None:
    assert show_ms(2**62) == f"{2**62} ms"
    assert show_ms(-1) == "1969-12-31T23:59:59.999Z"
