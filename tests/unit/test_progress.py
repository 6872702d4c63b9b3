"""Progress of long work in this process: one line that counts, where somebody looks."""

from __future__ import annotations

import contextvars
import io
import re
import threading
from pathlib import Path

import pytest

import frazil
from frazil import progress
from frazil.progress import TerminalLine, count, counted, current_work, find_line, showing


class Screen(io.StringIO):
    """A terminal that says when something was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.was_shown = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.was_shown.set()

    @property
    def lines(self) -> list[str]:
        """What was shown, as if it had taken no time: a busy machine may take seconds."""
        return [re.sub(r"\d+ s$", "0 s", line.rstrip("\n")) for line in self.getvalue().split("\r\x1b[K")]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.01)
    return Screen()


def test_progress_line_counts_completed_work_and_stays_at_the_end(screen: Screen) -> None:
    with showing("expire snapshots of db.t", TerminalLine(screen)):
        for _ in counted("manifests read", range(1200), 3400):
            pass
        count("files deleted", 5000)
        screen.was_shown.clear()
        screen.was_shown.wait(60)
    shown = "expire snapshots of db.t: 1,200 of 3,400 manifests read, 5,000 files deleted"
    assert f"{shown}, 0 s" in screen.lines
    assert screen.lines[-1] == f"{shown} in 0 s"


def test_nested_work_counts_for_the_outer_one(screen: Screen) -> None:
    with showing("optimize db.t", TerminalLine(screen)) as outer:
        with showing("rewrite manifests of db.t") as inner:
            count("manifests read", 2)
            screen.was_shown.wait(60)
        assert inner is None
        assert current_work() is outer
    assert current_work() is None
    assert screen.lines[-1] == "optimize db.t: 2 manifests read in 0 s"


def test_other_threads_count_only_as_part_of_the_work(screen: Screen) -> None:
    with showing("optimize db.t", TerminalLine(screen)):
        parts = [threading.Thread(target=count, args=("groups", 1))]
        parts += [threading.Thread(target=contextvars.copy_context().run, args=(count, "groups", 3))]
        for one in parts:
            one.start()
            one.join()
        screen.was_shown.wait(60)
    assert screen.lines[-1] == "optimize db.t: 3 groups in 0 s"


def test_failed_work_is_reported_and_a_failing_line_stops_nothing(screen: Screen) -> None:
    def fail() -> None:
        with showing("add files to db.t", TerminalLine(screen)):
            screen.was_shown.wait(60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert screen.lines[-1] == "add files to db.t: failed in 0 s"
    closed = Screen()
    closed.close()
    with showing("add files to db.t", TerminalLine(closed)):
        assert list(counted("files described", [1, 2])) == [1, 2]


def test_progress_is_shown_on_terminals_only() -> None:
    assert isinstance(find_line(Screen()), TerminalLine)
    assert find_line(io.StringIO()) is None
    assert isinstance(find_line(io.StringIO(), always=True), TerminalLine)


def test_maintenance_shows_progress(screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    with frazil.connect(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint")
        for at in range(4):
            table.append([{"id": at}])
        table.maintain.rewrite_data_files(rewrite_all=True)
        table.overwrite([{"id": 9}])
        table.maintain.rewrite_manifests()
        table.maintain.compute_table_stats()
        table.maintain.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
    ends = [one.rpartition(" in ")[0] for one in screen.lines if " in 0 s" in one]
    assert "rewrite data files of db.t: 4 of 4 manifests read, 4 rows written, 1 of 1 groups written" in ends
    assert any(one.startswith("rewrite manifests of db.t") for one in ends)
    assert "compute statistics of db.t: 1 of 1 manifests read, 1 rows read" in ends
    assert any(one.startswith("expire snapshots of db.t: ") and one.endswith(" files deleted") for one in ends), ends
