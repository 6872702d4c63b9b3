"""Appends between snapshots."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidRequestError
from frazil.scan.incremental import plan_appends
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from tests.support.tables import TableBuilder

ROOT = "memory://lake/db/t/data/"


def data(name: str) -> DataFile:
    return DataFile(ROOT + name, FileFormat.PARQUET, 1, 1)


@pytest.fixture
def table() -> TableBuilder:
    """Appends 1, 2 and 5; an overwrite 3 that removes a file of 1 and adds one; a compaction 4."""
    builder = TableBuilder(Schema((NestedField(1, "id", LONG),)))
    builder.commit(data("a"))
    builder.commit(data("b"), data("c"))
    builder.commit(data("d"), deleted=[ROOT + "a"], operation="overwrite")
    builder.commit(data("bc"), deleted=[ROOT + "b", ROOT + "c"], operation="replace")
    builder.commit(data("e"))
    return builder


def names(table: TableBuilder, **window: int) -> list[str]:
    plan = plan_appends(table.load(), **window)  # type: ignore[arg-type]
    return [task.data_file.file_path.removeprefix(ROOT) for task in plan.tasks]


def test_only_appends_count_and_the_start_is_excluded(table: TableBuilder) -> None:
    assert names(table, from_snapshot_id=1) == ["b", "c", "e"]
    assert names(table, from_snapshot_id=1, to_snapshot_id=2) == ["b", "c"]
    assert names(table, from_snapshot_id=2, to_snapshot_id=4) == []
    assert names(table, from_snapshot_id=4) == ["e"]
    assert names(table) == ["a", "b", "c", "e"]
    assert names(table, from_snapshot_id=5) == []


def test_appended_files_removed_since_are_included(table: TableBuilder) -> None:
    assert "a" in names(table)


def test_deletes_are_not_applied(table: TableBuilder) -> None:
    table.commit(DataFile(ROOT + "x", FileFormat.PARQUET, 1, 1, FileContent.POSITION_DELETES))
    plan = plan_appends(table.load(), from_snapshot_id=4)
    assert [task.delete_files for task in plan.tasks] == [()]


def test_start_that_is_not_an_ancestor_is_refused(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot list the snapshots"):
        names(table, from_snapshot_id=99)
    with pytest.raises(InvalidRequestError):
        names(table, from_snapshot_id=3, to_snapshot_id=2)


def test_empty_table_has_no_appends() -> None:
    empty = TableBuilder(Schema((NestedField(1, "id", LONG),)))
    assert names(empty) == []
    with pytest.raises(InvalidRequestError, match="no current snapshot"):
        names(empty, from_snapshot_id=1)
