"""The pipeline of `make demo`, with few rows: every step happens, and the commands at its end work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from examples.demo import DAYS, RIDER, run_spark_demo
from pyspark.sql import SparkSession

import frazil
from frazil.errors import InvalidRequestError

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The pipeline's folder, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "trips"
    lines: list[str] = []
    assert run_spark_demo(lines.append, folder=str(folder), rows=20_000) == str(folder)
    return folder, "\n".join(lines)


def test_every_step_reports_time_and_disk_usage(shown: tuple[Path, str]) -> None:
    titles = re.findall(r"^\d\. (\w+)", shown[1], re.MULTILINE)
    assert titles == ["Create", "Load", "Evolve", "Merge", "Delete", "Travel", "Branch", "Compact"]
    assert len(re.findall(r"^   \[\d+\.\d s; .* on disk\]$", shown[1], re.MULTILINE)) == len(titles)
    assert "20,000 rows, 90 data files" in shown[1]


def test_lake_of_the_demo_matches_its_report(shown: tuple[Path, str]) -> None:
    with frazil.connect(shown[0]) as lake:
        table = lake.table("city.trips")
        assert len(table.snapshots) == 1
        assert table.scan(f"rider_id = {RIDER}").count() == 0
        assert table.scan("tip > 0").count() > 200
        assert set(table.refs) == {"main"}
        assert table.check(bounds=True).ok


def test_commands_printed_at_the_end_work(shown: tuple[Path, str]) -> None:
    folder, text = shown
    after = text.partition("Look around in the terminal:")[2]
    commands = [shlex.split(one.strip()) for one in after.splitlines() if one.strip().startswith("frazil ")]
    assert len(commands) > 4
    for _, *arguments in commands:
        # Statements are run in a session of their own; `test_terminal.py` has those.
        if arguments[0] != "sql":
            command = [sys.executable, "-m", "frazil.cli", "-w", str(folder), *arguments]
            subprocess.run(command, check=True, capture_output=True)
    python = [one.strip()[4:] for one in after.splitlines() if one.strip().startswith(">>> ")]
    exec("\n".join(python), {})


def test_fewer_than_two_rows_a_day_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="at least"):
        run_spark_demo(print, rows=DAYS)


def test_folder_that_is_not_empty_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InvalidRequestError, match="not empty"):
        run_spark_demo(print, folder=str(tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]
