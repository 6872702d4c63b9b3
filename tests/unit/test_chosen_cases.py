"""What `--cases`, `--beyond` and `--most-seconds` choose: a few cases of each test, what those leave, no long ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.conftest import ROOT
from tools.run_tests import CASES_SEED

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

    @pytest.mark.parametrize("store", ["disk", "memory", "s3", "azure"])
    def test_first(store):
        pass

    @pytest.mark.parametrize("store", ["disk", "memory", "s3", "azure"])
    def test_second(store):
        pass

    @pytest.mark.parametrize("store", ["disk", "memory", "s3", "azure"])
    def test_third(store):
        pass

    @pytest.mark.every_case
    @pytest.mark.parametrize("verb", range(9))
    def test_promises(verb):
        pass

    @pytest.mark.extended
    @pytest.mark.parametrize("number", range(5))
    def test_long(number):
        pass

    class TestInClass:
        @pytest.mark.parametrize("number", range(5))
        def test_many(self, number):
            pass
"""

LONG = """
    import time
    import pytest

    def work(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    @pytest.fixture(scope="session")
    def shared():
        work(1)

    def test_shared(shared):
        pass

    def test_short():
        work(0.01)

    def test_waiting():
        time.sleep(0.8)

    def test_busy():
        work(1)
"""


def run(folder: Path, text: str, *arguments: str, seed: str = "1") -> subprocess.CompletedProcess[str]:
    suite = folder / "test_suite.py"
    suite.write_text(dedent(text))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  every_case\n  extended\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(folder / "pytest.ini"), "-q"]
    return subprocess.run(
        [*command, *arguments, str(suite)],
        cwd=ROOT,
        env={**os.environ, CASES_SEED: seed},
        capture_output=True,
        text=True,
        check=False,
    )


def collected(folder: Path, *arguments: str, seed: str = "1") -> list[str]:
    process = run(folder, SUITE, "--collect-only", *arguments, seed=seed)
    assert process.returncode == 0, process.stdout + process.stderr
    return [line.partition("::")[2] for line in process.stdout.splitlines() if "::" in line]


def test_every_test_has_a_case_and_none_more_than_requested(tmp_path: Path) -> None:
    chosen = collected(tmp_path, "--cases", "3")
    counts = {
        name: sum(case.split("[")[0] == name for case in chosen) for name in {one.split("[")[0] for one in chosen}
    }
    promises = counts.pop("test_promises")
    stores = {counts.pop(f"test_{name}") for name in ("first", "second", "third")}
    assert counts == {"test_product": 3, "test_many": 3, "test_one": 1, "test_long": 3, "TestInClass::test_many": 3}
    assert (stores, promises) == ({3}, 9)


def test_tests_sharing_a_parameter_select_different_values(tmp_path: Path) -> None:
    chosen = [case.split("[") for case in collected(tmp_path, "--cases", "2") if "[" in case]
    values = {test: {value for name, value in chosen if name == test} for test in ("test_first", "test_second")}
    assert values["test_first"] != values["test_second"]


def test_selected_cases_differ_in_all_arguments(tmp_path: Path) -> None:
    chosen = [case for case in collected(tmp_path, "--cases", "3") if case.startswith("test_product")]
    words = {word for case in chosen for word in case[len("test_product[") : -1].split("-")}
    assert words == {"1", "2", "3", "copy", "read"}


def test_seed_repeats_a_selection_and_other_seeds_reach_the_other_cases(tmp_path: Path) -> None:
    first = collected(tmp_path, "--cases", "2", seed="1")
    assert first == collected(tmp_path, "--cases", "2", seed="1")
    reached = {case for seed in range(4) for case in collected(tmp_path, "--cases", "2", seed=str(seed))}
    assert {case for case in reached if case.startswith("test_product")} > {
        case for case in first if case.startswith("test_product")
    }
    assert {f"test_first[{store}]" for store in ("disk", "memory", "s3", "azure")} <= reached


def test_all_cases_run_without_a_number(tmp_path: Path) -> None:
    assert len(collected(tmp_path)) == 6 + 100 + 1 + 3 * 4 + 9 + 5 + 5


def test_quick_and_extended_selections_match_ci_without_overlap(tmp_path: Path) -> None:
    quick = collected(tmp_path, "-m", "not extended", "--cases", "2")
    extended = collected(tmp_path, "--cases", "4", "--beyond", "2")
    assert sorted([*quick, *extended]) == sorted(collected(tmp_path, "--cases", "4"))


def test_test_using_too_much_cpu_fails_and_waiting_or_shared_time_is_ignored(tmp_path: Path) -> None:
    ran = run(tmp_path, LONG, "--most-seconds", "0.5")
    assert ran.returncode == 1
    assert "4 passed, 1 error" in ran.stdout
    assert "test_busy" in ran.stdout and "more than 0.5: make it cheaper, or mark it `extended`" in ran.stdout
