"""Which files hold the rows that changed, and which of their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import InvalidRequestError, SnapshotNotFoundError
from frazil.scan.changelog import Changelog, changelog_between, plan_changelog
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from tests.support.tables import START_MS, STEP_MS, TableBuilder

ROOT = "memory://lake/db/t/data/"
SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "part", LONG)))
Change = tuple[int, int, str, str]


def data(name: str, *, part: int | None = None) -> DataFile:
    partition = () if part is None else (part,)
    return DataFile(ROOT + name, FileFormat.PARQUET, 10, 1, spec_id=0, partition=partition)


def positions(name: str, of: str) -> DataFile:
    return DataFile(
        ROOT + name,
        FileFormat.PARQUET,
        1,
        1,
        FileContent.POSITION_DELETES,
        referenced_data_file=ROOT + of,
    )


def vector(name: str, of: str, offset: int = 4) -> DataFile:
    return DataFile(
        ROOT + name,
        FileFormat.PUFFIN,
        1,
        99,
        FileContent.POSITION_DELETES,
        referenced_data_file=ROOT + of,
        content_offset=offset,
        content_size_in_bytes=10,
    )


def equality(name: str) -> DataFile:
    return DataFile(ROOT + name, FileFormat.PARQUET, 1, 1, FileContent.EQUALITY_DELETES, equality_ids=(1,))


@pytest.fixture
def table() -> TableBuilder:
    """Appends 1, 2 and 5; an overwrite 3 that removes a file of 1 and adds one; a compaction 4."""
    builder = TableBuilder(SCHEMA)
    builder.commit(data("a"))
    builder.commit(data("b"), data("c"))
    builder.commit(data("d"), deleted=[ROOT + "a"], operation="overwrite")
    builder.commit(data("bc"), deleted=[ROOT + "b", ROOT + "c"], operation="replace")
    builder.commit(data("e"))
    return builder


def changes(table: TableBuilder, window: Changelog = Changelog(), **options: Any) -> list[Change]:  # noqa: B008
    plan = plan_changelog(table.load(), window=window, **options)
    return [
        (one.change_ordinal, one.commit_snapshot_id, one.change_type, one.data_file.file_path.removeprefix(ROOT))
        for one in plan.iter_tasks()
    ]


def deletes(table: TableBuilder) -> list[tuple[str, str, list[str], list[str] | None]]:
    """Return of the last snapshot's changes the file, the kind, and the deletes that hide and that single out."""
    last = table.metadata.snapshots[-1].snapshot_id
    found = []
    for one in plan_changelog(table.load()).iter_tasks():
        if one.commit_snapshot_id == last:
            singled = one.singled_out_by
            found.append(
                (
                    one.data_file.file_path.removeprefix(ROOT),
                    one.change_type,
                    [each.data_file.file_path.removeprefix(ROOT) for each in one.delete_files],
                    None if singled is None else [each.data_file.file_path.removeprefix(ROOT) for each in singled],
                )
            )
    return found


def test_added_and_removed_files_are_changes_in_order(table: TableBuilder) -> None:
    assert changes(table) == [
        (0, 1, "INSERT", "a"),
        (1, 2, "INSERT", "b"),
        (1, 2, "INSERT", "c"),
        (2, 3, "INSERT", "d"),
        (2, 3, "DELETE", "a"),
        (3, 5, "INSERT", "e"),
    ]


def test_start_is_excluded_and_rewrites_take_no_ordinal(table: TableBuilder) -> None:
    assert changes(table, Changelog(2)) == [(0, 3, "INSERT", "d"), (0, 3, "DELETE", "a"), (1, 5, "INSERT", "e")]
    assert changes(table, Changelog(3)) == [(0, 5, "INSERT", "e")]
    assert changes(table, Changelog(3, 4)) == []
    assert changes(table, Changelog(5)) == []
    assert changes(table, Changelog(is_empty=True)) == []


def test_unrelated_window_bounds_are_refused(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot list the snapshots"):
        changes(table, Changelog(99))
    with pytest.raises(InvalidRequestError, match="Cannot list the snapshots"):
        changes(table, Changelog(3, 2))
    with pytest.raises(SnapshotNotFoundError):
        changes(table, Changelog(1, 99))


def test_empty_table_has_no_changes() -> None:
    empty = TableBuilder(SCHEMA)
    assert changes(empty) == []
    with pytest.raises(InvalidRequestError, match="no current snapshot"):
        changes(empty, Changelog(1))


def test_expired_start_is_accepted_if_a_parent_names_it(table: TableBuilder) -> None:
    table.commit(positions("p", "bc"))
    kept = table.metadata.snapshots.without([1, 2])
    table.metadata = replace(table.metadata, snapshots=kept, snapshot_log=())
    assert changes(table, Changelog(2))[0] == (0, 3, "INSERT", "d")
    assert deletes(table) == [("bc", "DELETE", [], ["p"])]


def test_new_position_deletes_remove_single_rows(table: TableBuilder) -> None:
    table.commit(positions("p1", "e"))
    assert deletes(table) == [("e", "DELETE", [], ["p1"])]
    table.commit(positions("p2", "e"))
    assert deletes(table) == [("e", "DELETE", ["p1"], ["p1", "p2"])]


def test_deletes_of_an_added_file_hide_its_rows(table: TableBuilder) -> None:
    table.commit(data("f"), positions("p", "f"))
    assert deletes(table) == [("f", "INSERT", ["p"], None)]


def test_removed_file_shows_its_remaining_rows(table: TableBuilder) -> None:
    table.commit(positions("p", "e"))
    table.commit(data("f"), deleted=[ROOT + "e", ROOT + "p"], operation="overwrite")
    assert deletes(table) == [("f", "INSERT", [], None), ("e", "DELETE", ["p"], None)]


def test_replaced_vector_shows_the_difference() -> None:
    table = TableBuilder(SCHEMA, format_version=3)
    table.commit(data("a"))
    first, second = vector("v1", "a"), vector("v2", "a")
    table.commit(first)
    table.commit_vectors([second], [first])
    # Rows that come back are asked for too: the vectors themselves are not read here.
    assert deletes(table) == [("a", "DELETE", ["v1"], ["v2"]), ("a", "INSERT", ["v2"], ["v1"])]


def test_removed_deletes_restore_rows(table: TableBuilder) -> None:
    table.commit(positions("p", "e"))
    table.commit(deleted=[ROOT + "p"], operation="overwrite")
    assert deletes(table) == [("e", "INSERT", [], ["p"])]


def test_equality_deletes_apply_to_older_files_only(table: TableBuilder) -> None:
    table.commit(data("f"), equality("q"))
    assert deletes(table) == [
        ("f", "INSERT", [], None),
        ("e", "DELETE", [], ["q"]),
        ("bc", "DELETE", [], ["q"]),
        ("d", "DELETE", [], ["q"]),
    ]


def test_append_after_deletes_reads_no_delete_files(table: TableBuilder) -> None:
    table.commit(equality("q"))
    table.commit(data("f"))
    assert deletes(table) == [("f", "INSERT", [], None)]


def test_filters_prune_changed_files() -> None:
    table = TableBuilder(SCHEMA, partition_by=["part"])
    table.commit(data("a", part=1), data("b", part=2))
    table.commit(deleted=[ROOT + "a", ROOT + "b"], operation="delete")
    assert changes(table, predicate="part = 2") == [(0, 1, "INSERT", "b"), (1, 2, "DELETE", "b")]


def between(table: TableBuilder, **window: int) -> Changelog:
    return changelog_between(table.metadata, **window)


def at(number: int) -> int:
    """Return the time of a snapshot."""
    return START_MS + STEP_MS * number


def test_times_are_resolved_along_the_ancestry(table: TableBuilder) -> None:
    assert between(table) == Changelog()
    assert between(table, start_ms=START_MS) == Changelog()
    assert between(table, start_ms=at(2)) == Changelog(2)
    assert between(table, start_ms=at(2) + 1) == Changelog(2)
    assert between(table, start_ms=at(2) - 1) == Changelog(1)
    assert between(table, end_ms=at(3)) == Changelog(None, 3)
    assert between(table, end_ms=at(4) - 1) == Changelog(None, 3)
    assert between(table, start_ms=at(2), end_ms=at(4)) == Changelog(2, 4)
    assert between(table, start_snapshot_id=1, end_ms=at(4)) == Changelog(1, 4)


def test_times_without_snapshots_between_them_have_no_changes(table: TableBuilder) -> None:
    assert between(table, start_ms=at(5) + 1).is_empty
    assert between(table, start_ms=at(2), end_ms=at(2) + 1).is_empty
    assert between(table, end_ms=START_MS).is_empty
    assert between(TableBuilder(SCHEMA), start_ms=START_MS).is_empty


def test_duplicate_or_reversed_windows_are_refused(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="start-snapshot-id and start-timestamp"):
        between(table, start_snapshot_id=1, start_ms=1)
    with pytest.raises(InvalidRequestError, match="end-snapshot-id and end-timestamp"):
        between(table, end_snapshot_id=1, end_ms=1)
    with pytest.raises(InvalidRequestError, match="not later"):
        between(table, start_ms=2, end_ms=2)


def test_time_before_the_oldest_snapshot_is_refused(table: TableBuilder) -> None:
    kept = table.metadata.snapshots.without([1, 2])
    table.metadata = replace(table.metadata, snapshots=kept, snapshot_log=())
    assert between(table, start_ms=at(3)) == Changelog(3)
    with pytest.raises(InvalidRequestError, match="expired"):
        between(table, start_ms=at(2))
