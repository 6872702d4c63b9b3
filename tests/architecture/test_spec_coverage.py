"""docs/spec-coverage.md: every row is marked, and every test it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.architecture.source_files import ROOT

PAGE = ROOT / "docs" / "spec-coverage.md"
MARKS = {"✓", "◐", "✗", "–"}


class Row(NamedTuple):
    heading: str
    marks: tuple[str, ...]
    tests: tuple[str, ...]


def rows() -> list[Row]:
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "heading":
            continue
        assert len(cells) == 5, line
        found.append(Row(cells[0], tuple(cells[1:4]), tuple(re.findall(r"`([^`]+)`", cells[4]))))
    return found


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """Return the names of the tests in a file, `test_x` and `TestY::test_x`."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.update(f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))
            names.update(
                f"{node.name}::{target.id}"
                for part in node.body
                if isinstance(part, ast.Assign)
                for target in part.targets
                if isinstance(target, ast.Name)
            )
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(name for name in names if name.split("::")[-1].lower().startswith("test"))


def exists(test: str) -> bool:
    """Return whether `tests/a/test_b.py`, or the test named after its `::`, is in the tree."""
    file_name, _, name = test.partition("::")
    path = ROOT / file_name
    return file_name.startswith("tests/") and path.is_file() and (not name or name in names_of_tests(path))


def test_every_row_has_a_status() -> None:
    assert len(rows()) > 100
    assert [row for row in rows() if not set(row.marks) <= MARKS] == []


def test_every_test_named_in_the_table_exists() -> None:
    assert [(row.heading, test) for row in rows() for test in row.tests if not exists(test)] == []


def test_every_supported_row_names_a_test() -> None:
    assert [row.heading for row in rows() if {"✓", "◐"} & set(row.marks) and not row.tests] == []
