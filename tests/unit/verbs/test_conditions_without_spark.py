"""Deletes and overwrites of conditions in the language start no JVM where files go whole, or there are none."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

import frazil

KEYS = ["a", "a\tb", r"a\tb", "it's", "\\", "b"]


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        pytest.fail("a session was asked for")

    monkeypatch.setattr("frazil.verbs.write_session.choose_session", refuse)


@pytest.mark.parametrize(
    "where",
    [
        "k != 'a'",
        "k not in ('a')",
        "k not like 'a%'",
        "f > 1.5",
        "not f = 2",
        "f < 1e3 or isnan(f)",
        "x = X'00'",
        "u = '0f8fad5b-d9cb-469f-a165-70867728950e'",
        "K <=> null",
        "1 = 1",
    ],
)
def test_empty_table_needs_no_spark(tmp_path: Path, where: str) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "k string, f double, x binary, u uuid")
        assert table.delete(where) is None


@pytest.mark.parametrize(
    ("where", "gone"),
    [
        (r"k = 'a\tb'", {"a\tb"}),
        (r"k = 'a\\tb'", {r"a\tb"}),
        (r"k = r'a\tb'", {r"a\tb"}),
        (r"k = 'it\'s' or k = '\\'", {"it's", "\\"}),
        ("K <> 'a'", {"a\tb", r"a\tb", "it's", "\\", "b"}),
        ("k not in ('a', 'b')", {"a\tb", r"a\tb", "it's", "\\"}),
        (r"k like 'a\\\\%'", {r"a\tb"}),
        ("not (k > 'a')", {"a", "\\"}),
    ],
)
def test_whole_partition_delete_equals_spark(tmp_path: Path, where: str, gone: set[str]) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "k string", partition_by=["k"])
        table.append(pa.table({"k": KEYS}))
        table.delete(where)
        assert set(table.scan().to_arrow()["k"].to_pylist()) == set(KEYS) - gone
        table.overwrite(pa.table({"k": ["new"]}), where="k = 'new' or k <> 'none'")
        assert table.scan().to_arrow()["k"].to_pylist() == ["new"]
