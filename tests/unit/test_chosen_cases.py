"""What `pytest --cases N` runs: of each test a few cases, which differ as much as can be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.conftest import ROOT

SUITE = """
    import pytest

    @pytest.mark.parametrize("mode", ["copy", "read"])
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_product(version, mode):
        pass

    @pytest.mark.parametrize("number", range(100))
    def test_many(number):
        pass

    def test_one():
        pass

    class TestInClass:
        @pytest.mark.parametrize("number", range(5))
        def test_many(self, number):
            pass
"""


def collected(folder: Path, *arguments: str) -> list[str]:
    suite = folder / "test_suite.py"
    suite.write_text(dedent(SUITE))
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "/dev/null", "--rootdir", str(folder)]
    found = subprocess.run([*command, "--collect-only", "-q", *arguments, str(suite)],
                           cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    return [line.partition("::")[2] for line in found.stdout.splitlines() if "::" in line]


def test_every_test_has_a_case_and_none_has_more_than_asked(tmp_path: Path) -> None:
    chosen = collected(tmp_path, "--cases", "3")
    counts = {
        name: sum(case.split("[")[0] == name for case in chosen) for name in {one.split("[")[0] for one in chosen}
    }
    assert counts == {"test_product": 3, "test_many": 3, "test_one": 1, "TestInClass::test_many": 3}


def test_cases_that_are_chosen_differ_in_all_arguments(tmp_path: Path) -> None:
    chosen = [case for case in collected(tmp_path, "--cases", "3") if case.startswith("test_product")]
    words = {word for case in chosen for word in case[len("test_product[") : -1].split("-")}
    assert words == {"1", "2", "3", "copy", "read"}


def test_without_a_number_all_cases_run(tmp_path: Path) -> None:
    assert len(collected(tmp_path)) == 6 + 100 + 1 + 5
