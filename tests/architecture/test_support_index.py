"""Modules that tests share are in `tests/support`, and its README lists each."""

from __future__ import annotations

import re

from tests.architecture.source_files import ROOT

TESTS = ROOT / "tests"


def test_support_readme_lists_every_module_once() -> None:
    modules = sorted(path.name for path in (TESTS / "support").glob("*.py"))
    listed = re.findall(r"^\| `(\w+\.py)` \| .+ \|$", (TESTS / "support" / "README.md").read_text("utf-8"), re.M)
    assert sorted(listed) == modules


def test_conftest_is_the_only_module_at_the_top_of_tests() -> None:
    assert [path.name for path in TESTS.glob("*.py")] == ["conftest.py"]
