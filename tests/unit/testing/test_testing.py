"""What `frazil.testing` gives to users: lakes in memory, lakes that fail as planned, and fixtures of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import StorageError
from frazil.testing import Fault, FaultKind, SimulatedCrash, failing_lake, memory_lake

ROWS = pa.table({"id": [1, 2]})
COMMITS = frozenset({"create_exclusive"})


def test_memory_lakes_are_isolated() -> None:
    first, second = memory_lake(), memory_lake()
    first.create_namespace("db")
    first.create_table("db.t", ROWS.schema).append(ROWS)
    assert first.table("db.t").scan().count() == 2
    assert not second.namespace_exists("db")


@pytest.mark.parametrize("in_folder", [False, True])
def test_planned_fault_fails_the_commit_and_leaves_the_table_unchanged(in_folder: bool, tmp_path: Path) -> None:
    lake = failing_lake(warehouse=tmp_path if in_folder else None)
    table = lake.create_table("db.t", ROWS.schema)
    lake.fail_at(Fault(1, FaultKind.IO_ERROR, COMMITS))
    with pytest.raises(StorageError, match="create_exclusive"):
        table.append(ROWS)
    assert [call.fault for call in lake.calls if call.fault] == [FaultKind.IO_ERROR]
    assert lake.table("db.t").scan().count() == 0
    table.append(ROWS)
    assert lake.table("db.t").scan().count() == 2


def test_after_a_crash_the_next_process_finds_a_whole_table(tmp_path: Path) -> None:
    lake = failing_lake(warehouse=tmp_path)
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    lake.fail_at(Fault(1, FaultKind.TORN, COMMITS))
    with pytest.raises(SimulatedCrash):
        table.append(ROWS)
    with pytest.raises(SimulatedCrash):
        lake.table("db.t")
    assert frazil.connect(tmp_path, catalog="filesystem").table("db.t").scan().count() == 2


def run_pytest(folder: Path, test: str) -> str:
    (folder / "conftest.py").write_text('pytest_plugins = ["frazil.testing.fixtures"]\n', "utf-8")
    (folder / "test_pipeline.py").write_text(test, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300).stdout


def test_each_test_gets_its_own_lake(tmp_path: Path) -> None:
    test = "def test_one(frazil_lake):\n    frazil_lake.create_namespace('db')\n"
    assert "2 passed" in run_pytest(tmp_path, test + test.replace("one", "two"))
