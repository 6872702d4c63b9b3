"""What notebooks show of tables, histories, reports, plans and differences: HTML, with everything escaped."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def table(tmp_path: Path) -> Any:
    with frazil.connect(tmp_path) as lake:
        made = lake.create_table(
            ("db", EVIL), f"id bigint, `{EVIL}` string", format_version=3, partition_by=["bucket(4, id)"]
        )
        for at in range(3):
            made.append(pa.table({"id": [at, at + 10], EVIL: [EVIL, None]}), snapshot_properties={"engine-name": EVIL})
        made.create_tag(EVIL)
        made.delete("id = 1")
        yield made


def test_tables_histories_reports_plans_and_differences_have_html(table: Any) -> None:
    first, *_, last = table.snapshots
    shown = [
        table,
        table.history(),
        table.health(),
        table.scan("id > 100").plan(),
        table.difference(first.snapshot_id, last.snapshot_id),
    ]
    for one in shown:
        html = one._repr_html_()
        assert html.startswith('<div class="fz"><style>')
        assert "<script>" not in html
        assert "<div" not in repr(one)
    assert "<svg" in table._repr_html_()
    assert table.history()._repr_html_().count('class="fz-lanes"') == 4
    assert "pruned by column bounds" in shown[3]._repr_html_()


def test_displayed_history_keeps_its_log(table: Any) -> None:
    history = table.history()
    assert isinstance(history, tuple)
    assert history == table.metadata.snapshot_log
    assert pickle.loads(pickle.dumps(history)) == history


def test_difference_has_rows_columns_and_files(table: Any) -> None:
    first, *_ = table.snapshots
    with table.update_schema() as update:
        update.add_column("more", "int")
    table.append(pa.table({"id": [7], EVIL: ["x"], "more": pa.array([1], pa.int32())}))
    found = table.difference(first.snapshot_id)
    assert (found.rows.added, found.rows.removed, found.rows.is_whole) == (4, 0, True)
    assert [str(one) for one in found.schema] == ["added more: int"]
    assert found.files.added == 3
    assert found.files.removed == 0
    assert table.difference(EVIL, "main").rows.added == 1


def test_moved_rows_are_not_a_difference(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id bigint")
        for at in range(5):
            table.append(pa.table({"id": [at]}))
        before = table.current_snapshot.snapshot_id  # type: ignore[union-attr]
        table.maintain.rewrite_data_files(min_input_files=2)
        table.delete("id = 3")
        found = table.difference(before)
        assert (found.rows.added, found.rows.removed) == (0, 1)
        assert found.rows.rows.column("id").to_pylist() == [3]


def test_unrelated_snapshots_have_no_row_difference(table: Any) -> None:
    table.create_branch("side", table.snapshots[0].snapshot_id)
    table.append(pa.table({"id": [5], EVIL: ["x"]}), branch="side")
    found = table.difference("side", "main")
    with pytest.raises(frazil.InvalidRequestError, match="not an ancestor"):
        _ = found.rows
    assert found.files.removed == 1
