"""Changes of rows beside a compaction: it changes no rows, so it stops none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import ConcurrentChangeError
from tests.support.races import overtaken

MODES = ["copy-on-write", "merge-on-read"]
Change = Callable[[Any], Any]
ROWS = pa.table({"id": [0, 1, 2, 3, 4, 5], "v": [0, 1, 2, 3, 4, 5]})
NEW = pa.table({"id": [3], "v": [-1]}).to_batches()
CHANGES: dict[str, Change] = {
    "delete": lambda table: table.delete("id = 3"),
    "update": lambda table: table.update({"v": "-1"}, where="id = 3"),
    "upsert": lambda table: table.upsert(pa.RecordBatchReader.from_batches(ROWS.schema, iter(NEW)), ["id"]),
    "merge": lambda table: (
        table.merge(pa.table({"id": [3]}), "target.id = source.id").when_matched().delete().execute()
    ),
    "once": lambda table: table.delete("id = 3", once=("cancellations", 1)),
}
LEFT = {0: 0, 1: 1, 2: 2, 4: 4, 5: 5}


def compact(table: frazil.Table) -> None:
    assert table.maintain.rewrite_data_files(rewrite_all=True).rewritten_data_files_count > 0


def compact_and_append(table: frazil.Table) -> None:
    compact(table)
    table.append(pa.table({"id": [100], "v": [100]}))


@pytest.fixture
def lake(tmp_path: Path) -> frazil.Lake:
    return frazil.connect(tmp_path / "lake")


def make(lake: frazil.Lake, mode: str) -> frazil.Table:
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", "id bigint, v bigint", properties=properties)
    table.append(ROWS.slice(0, 2))
    table.append(ROWS.slice(2))
    return table


def values(table: frazil.Table) -> dict[int, int]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("held", [False, True])
def test_compaction_of_the_same_files_stops_no_change(lake: frazil.Lake, mode: str, name: str, held: bool) -> None:
    table = make(lake, mode)
    made = CHANGES[name](overtaken(table, compact, held=held))
    assert made is not None
    expected = {**LEFT, 3: -1} if name in ("update", "upsert") else LEFT
    assert values(table) == expected
    assert [one.operation for one in table.snapshots].count("replace") == 1
    assert table.check().ok


@pytest.mark.parametrize("mode", MODES)
def test_change_beside_a_compaction_and_an_append_sees_both(lake: frazil.Lake, mode: str) -> None:
    table = make(lake, mode)
    overtaken(table, compact_and_append).delete("id in (3, 100)")
    assert values(table) == LEFT


@pytest.mark.parametrize("mode", MODES)
def test_statement_whose_rows_were_changed_concurrently_is_refused(lake: frazil.Lake, mode: str) -> None:
    """What it has read of the table beside the rows that it changes is of the state it began with."""
    table = make(lake, mode)
    with pytest.raises(ConcurrentChangeError):
        overtaken(table, compact_and_append, held=True).delete("id in (3, 100)")
    assert values(table) == {**LEFT, 3: 3, 100: 100}


@pytest.mark.parametrize("mode", MODES)
def test_concurrently_changed_rows_stop_a_change_despite_a_compaction(lake: frazil.Lake, mode: str) -> None:
    table = make(lake, mode)
    with pytest.raises(ConcurrentChangeError):
        overtaken(table, lambda other: other.update({"v": "7"}, where="id = 3")).delete("id = 3")
    assert values(table)[3] == 7


def test_change_that_always_meets_a_compaction_gives_up(lake: frazil.Lake) -> None:
    table = make(lake, "copy-on-write")
    with pytest.raises(ConcurrentChangeError):
        overtaken(table, compact, times=1000).delete("id = 3")
    assert values(table) == {**LEFT, 3: 3}


@pytest.mark.parametrize("mode", MODES)
def test_files_of_abandoned_attempts_are_deleted(lake: frazil.Lake, mode: str, tmp_path: Path) -> None:
    table = make(lake, mode)
    overtaken(table, compact).delete("id = 3")
    known = {Path(one).name for one in table.refresh().inspect.all_files()["file_path"].to_pylist()}
    assert {one.name for one in (tmp_path / "lake").rglob("*.parquet")} == known
