"""Progress of long work: one line on terminals and in notebooks, nothing in logs."""

from __future__ import annotations

import io
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, TextIO

import pytest
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil import progress
from frazil.progress import NotebookLine, TerminalLine
from frazil.spark.jvm.jvm_write import JobTotals
from frazil.spark.write.progress import SETTING, describe, find_line, show_bytes, showing_progress


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal: what is written to, and the descriptor that it is read from."""
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as out:
        yield out, master
    os.close(master)


def said(master: int) -> str:
    os.set_blocking(master, False)
    found = b""
    while True:
        try:
            found += os.read(master, 65536)
        except (BlockingIOError, OSError):
            return found.decode()


def slow_rows(spark: SparkSession) -> DataFrame:
    """Return four rows that take a while."""
    return spark.range(4, numPartitions=2).selectExpr("id", "java_method('java.lang.Thread', 'sleep', 900L) as k")


def test_terminal_shows_write_progress_and_result(
    spark: SparkSession, lake: frazil.Lake, terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, master = terminal
    table = lake.create_table("db.t", "id bigint, k string")
    monkeypatch.setattr(sys, "stderr", out)
    table.append(slow_rows(spark))
    lines = said(master).split("\r\x1b[K")
    assert any(one.startswith("write to db.t: ") and " tasks" in one for one in lines)
    last = lines[-1].rstrip()
    assert last.startswith("write to db.t: 2 files, 4 rows, ")
    assert last.endswith(" s")


def test_logs_pipes_and_short_work_show_no_progress(
    spark: SparkSession,
    lake: frazil.Lake,
    terminal: tuple[TextIO, int],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = lake.create_table("db.t", "id bigint, k string")
    table.append(slow_rows(spark))
    assert "write to" not in capfd.readouterr().err
    out, master = terminal
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 3600.0)
    table.append(spark.range(3).selectExpr("id", "'a' as k"))
    assert said(master) == ""


def test_session_setting_switches_progress(spark: SparkSession, terminal: tuple[TextIO, int]) -> None:
    out, _ = terminal
    try:
        assert isinstance(find_line(spark, out), TerminalLine)
        assert find_line(spark, io.StringIO()) is None
        spark.conf.set(SETTING, "false")
        assert find_line(spark, out) is None
        spark.conf.set(SETTING, "true")
        assert isinstance(find_line(spark, io.StringIO()), TerminalLine)
    finally:
        spark.conf.unset(SETTING)


def test_notebook_shows_one_updating_output(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(data["text/plain"])
        return Handle()

    # Stands in for a library that is not installed here; its two names are all that is used of it.
    notebook: Any = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    parts: Any = types.ModuleType("IPython.display")
    parts.display = display
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    line = find_line(spark, io.StringIO())
    assert isinstance(line, NotebookLine)
    line.show("a")
    line.end("b")
    assert shown == ["a", "b"]
    notebook.get_ipython = lambda: types.SimpleNamespace()
    assert find_line(spark, io.StringIO()) is None


def test_failed_work_reports_and_raises(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    out = io.StringIO()

    def fail() -> None:
        with showing_progress(spark, "merge into db.t", TerminalLine(out)):
            slow_rows(spark).collect()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "merge into db.t: failed in " in out.getvalue()


def test_progress_lines_describe_reads_and_writes() -> None:
    assert describe(JobTotals(1, 8, 5000, 3_000_000)) == "1 of 8 tasks, 5,000 rows, 3.0 MB read"
    written = JobTotals(8, 8, 5000, 3_000_000, 1_250_000, 38_240_000)
    assert describe(written) == "8 of 8 tasks, 1,250,000 rows, 38.2 MB written"
    assert [show_bytes(one) for one in (0, 999, 1000, 2_500_000_000)] == ["0 B", "999 B", "1.0 kB", "2.5 GB"]
