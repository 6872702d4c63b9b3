"""Every verb that changes rows tells how many there were, on the snapshot that it returns."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
from frazil.spec.snapshot import Snapshot


def rows(*ids: int, kind: str = "a") -> list[dict[str, Any]]:
    return [{"id": one, "kind": kind} for one in ids]


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(request: pytest.FixtureRequest) -> frazil.Table:
    modes = {f"write.{one}.mode": request.param for one in ("delete", "update", "merge")}
    made = frazil.connect("memory:").create_table("db.t", "id bigint, kind string", properties=modes)
    made.append(rows(*range(10)))
    return made


def counts(made: Snapshot | None) -> tuple[int | None, ...]:
    """Return the rows that were affected, and those inserted, updated, deleted."""
    assert made is not None
    return made.num_affected_rows, made.num_inserted_rows, made.num_updated_rows, made.num_deleted_rows


def test_each_verb_counts_its_rows(table: frazil.Table) -> None:
    assert counts(table.append(rows(10, 11))) == (2, 2, None, None)
    assert counts(table.update({"kind": "'b'"}, where="id < 3", engine="local")) == (3, None, 3, None)
    assert counts(table.delete("id in (3, 4)", engine="local")) == (2, None, None, 2)
    assert counts(table.upsert(rows(0, 50, kind="c"), ["id"], engine="local")) == (2, 1, 1, None)
    merge = table.merge(rows(1, 2, 60), "target.id = source.id", engine="local")
    merge = merge.when_matched("target.id = 1").delete().when_matched().update_all().when_not_matched().insert_all()
    assert counts(merge.execute()) == (3, 1, 1, 1)
    assert counts(table.overwrite(rows(5, 5), where="id = 5", engine="local")) == (2, 2, None, None)
    assert counts(table.overwrite_partitions(rows(1))) == (1, 1, None, None)
    assert counts(table.overwrite(rows(1, 2, 3))) == (3, 3, None, None)
    assert table.scan().count() == 3
    # What is stored tells the same later.
    assert [one.num_affected_rows for one in table.refresh().snapshots] == [10, 2, 3, 2, 2, 3, 1, 2, 1, 3]


def test_verb_without_changes_returns_none(table: frazil.Table) -> None:
    assert table.append([]) is None
    assert table.update({"kind": "'b'"}, where="id = 99", engine="local") is None
    assert table.upsert(rows(1), ["id"], engine="local") is None


def test_rows_of_whole_removed_files_are_counted_unless_deletes_hide_some(table: frazil.Table) -> None:
    is_marked = table.properties["write.delete.mode"] == "merge-on-read"
    table.delete("id = 1", engine="local")
    assert counts(table.delete("id >= 0 or id is null"))[0] == (None if is_marked else 9)
    table.append(rows(1, 2))
    assert counts(table.delete("true"))[0] == (None if is_marked and table.inspect.delete_files().num_rows else 2)


def test_idempotent_write_counts_rows_the_first_time_only(table: frazil.Table) -> None:
    assert counts(table.delete("id < 4", once=("clean", 1), engine="local"))[0] == 4
    assert table.delete("id < 4", once=("clean", 1), engine="local") is None


def test_compaction_counts_no_rows(table: frazil.Table) -> None:
    table.append(rows(11))
    table.maintain.rewrite_data_files(options={"rewrite-all": "true"})
    made = table.refresh().current_snapshot
    assert made is not None
    assert (made.operation, made.num_affected_rows) == ("replace", 0)


def test_change_in_a_transaction_counts_its_own_rows(table: frazil.Table) -> None:
    with table.transaction() as changes:
        assert counts(changes.append(rows(20)))[0] == 1
        assert counts(changes.delete("id < 2", engine="local"))[0] == 2


def test_merge_counts_zero_rows_for_missing_clauses(table: frazil.Table) -> None:
    gone = table.merge(rows(1), "target.id = source.id", engine="local").when_matched().delete().execute()
    assert counts(gone) == (1, 0, 0, 1)
