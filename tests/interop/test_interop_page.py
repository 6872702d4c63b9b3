"""The pages say what was seen: a mark in each cell, each reason once, and nothing where nobody looked."""

from __future__ import annotations

import pytest

from tests.interop.interop_page import interop_page, sql_page

pytest.importorskip("duckdb", reason="the page names the versions of peers")


def test_reasons_are_numbered_and_missing_peers_are_marked_not_run() -> None:
    lines = [
        {"section": "Tables", "labels": {"table": "a"}, "seen": {"one": "✓", "two": "✗ why: theirs"}},
        {"section": "Tables", "labels": {"table": "b"}, "seen": {"one": "not made: cannot", "two": "✗ why: theirs"}},
        {"section": "Tables", "labels": {"table": "c"}, "seen": {"one": "✓"}},
        {"section": "Tables", "labels": {"table": "d"}, "seen": {"one": "145", "two": "0"}},
    ]
    text = interop_page(lines)
    assert "| table | one | two |" in text
    assert "| a | ✓ | ✗ [1] |" in text
    assert "| b | not made [2] | ✗ [1] |" in text
    assert "| c | ✓ | not run |" in text
    assert "| d | 145 | 0 |" in text
    assert "[1] why: theirs  \n[2] cannot  \n" in text


def test_differences_are_grouped_by_kind() -> None:
    one = {
        "kind": "jar lacks", "why": "it has none", "place": "t.txt:1", "statement": "select `a` | b", "frazil": "1 | 2",
        "jar": "an error",
    }  # fmt: skip
    text = sql_page(10, [one], [{"step": "load", "jar": "no", "why": "gone"}])
    assert "9 cases agree; 1 differ" in text
    assert "| t.txt:1 | ``select `a` \\| b`` | 1 \\| 2 | an error | it has none |" in text
    assert "| `load` | no | gone |" in text
