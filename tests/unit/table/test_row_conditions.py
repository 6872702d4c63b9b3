"""Scans filter by any condition that is computed: what planning cannot decide is tested on the rows that are read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.table.table import Table

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int32()),
        "a": pa.array([5, 2, 1, 7], pa.int32()),
        "kind": ["abc", "de", "fgh", None],
        "st": pa.array(
            [{"x": 1, "y": "q"}, {"x": 2, "y": "r"}, None, {"x": 4, "y": "s"}],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
    }
)
CONDITIONS = [
    ("length(kind) = 3 and id > a", [3]),
    ("id in (1, a)", [1, 2]),
    ("id > a", [3]),
    ("not (id > a)", [1, 2]),
    ("kind like '%h'", [3]),
    ("id + 1 = 2", [1]),
    ("target.id = 1", [1]),
    ("st.x = id and length(st.y) = 1", [1, 2]),
    ("isnull(st) or st.y > 'q'", [2, 3, None]),
    ("system.bucket(4, id) = 0 or length(kind) = 2", [1, 2]),
    ("id = 1 or id = a", [1, 2]),
    ("case when id = 2 then kind = 'de' else false end", [2]),
    ("id = 1 or a = :seven", [1, None]),
]


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    with frazil.connect("memory:", catalog="memory") as lake:
        made = lake.create_table("db.t", "id int, a int, kind string, st struct<x: bigint, y: string>")
        made.append(ROWS.slice(0, 2))
        made.append(ROWS.slice(2))
        yield made


def parameters(text: str) -> dict[str, Any]:
    return {"seven": 7} if ":seven" in text else {}


@pytest.mark.every_case
@pytest.mark.parametrize(("text", "ids"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_scan_keeps_the_rows_of_a_condition(table: Table, text: str, ids: list[int | None]) -> None:
    scan = table.scan(text, **parameters(text))
    found = scan.to_arrow()["id"].to_pylist()
    assert sorted(found, key=str) == sorted(ids, key=str)
    assert scan.to_arrow().schema == table.scan().to_arrow().schema
    assert scan.count() == len(ids)
    assert table.scan(text, columns=["id"], **parameters(text)).to_arrow().to_pydict() == {"id": found}
    assert table.scan(text, limit=1, **parameters(text)).to_arrow()["id"].to_pylist() == found[:1]
    assert scan.to_dataset().to_table(columns=["id"]).to_pydict() == {"id": found}
    assert scan.to_dataset().count_rows() == len(ids)
    assert pa.table(scan).num_rows == len(ids)


@pytest.mark.every_case
@pytest.mark.parametrize(("text", "ids"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_delete_leaves_the_rows_that_a_scan_lacks(text: str, ids: list[int | None]) -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        made = lake.create_table("db.t", "id int, a int, kind string, st struct<x: bigint, y: string>")
        made.append(ROWS)
        made.delete(text, engine="local", **parameters(text))
        assert made.scan().to_arrow()["id"].to_pylist() == [one for one in (1, 2, 3, None) if one not in ids]


def test_part_of_a_struct_is_shown_when_the_condition_reads_another(table: Table) -> None:
    found = table.scan("length(st.y) = 1 and st.y <> 'q' and id is not null", columns=["st.x"]).to_arrow()
    assert found.to_pylist() == [{"st": {"x": 2}}]


def test_parts_joined_by_and_prune(table: Table) -> None:
    scan = table.scan("length(kind) = 3 and id = 3")
    assert str(scan.predicate) == "id = 3"
    assert len(scan.plan().tasks) == 1
    assert "length(kind) = 3 and id = 3" in repr(scan)


def test_test_of_rows_can_be_sent(table: Table) -> None:
    test = table.scan("id > a").test
    assert test is not None
    _ = test.columns
    assert pickle.loads(pickle.dumps(test)) == test


def test_changed_and_appended_rows_are_tested(table: Table) -> None:
    found = list(table.follow("beginning", predicate="id > a", until="now"))
    assert pa.Table.from_batches(found)["id"].to_pylist() == [3]


def test_two_hundred_levels_are_computed(table: Table) -> None:
    deep = "id > a"
    for _ in range(99):
        deep = f"(({deep}) and kind is not null or id + 1 = 0)"
    assert table.scan(deep).to_arrow()["id"].to_pylist() == [3]
    assert table.scan("not " * 198 + "id > a").to_arrow()["id"].to_pylist() == [3]


def test_condition_of_an_unknown_column_or_type_is_refused(table: Table) -> None:
    with pytest.raises(frazil.FieldNotFoundError, match="nothing"):
        table.scan("id > nothing")
    with pytest.raises(frazil.FrazilError, match="Cannot"):
        table.scan("id + kind")
    with pytest.raises(frazil.FrazilError, match="Cannot"):
        table.scan("length(id) = 1")


def test_error_while_computing_is_of_frazil(table: Table) -> None:
    with pytest.raises(frazil.InvalidRequestError, match="divide by zero"):
        table.scan("1 / (id - 1) > 0").to_arrow()
    assert table.scan("id <> 1 and 1 / (id - 1) > 0.6D").to_arrow()["id"].to_pylist() == [2]
