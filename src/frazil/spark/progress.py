"""Progress of long work on Spark: what is being done, and how far it is, on one line that is written over.

    append to db.t: 3 of 8 tasks, 1,250,000 rows, 38.2 MB written, 4 s
    append to db.t: 8 files, 3,200,000 rows, 97.1 MB in 9 s

The line is shown where somebody looks: on a terminal (standard error) or in a notebook, once the work has taken
a moment. Logs and pipes get nothing. The setting `spark.frazil.progress` of the session turns it off with `false`, and
on with `true` wherever the output goes; without it nothing is shown either where Spark draws its own bar
(`spark.ui.showConsoleProgress`). A thread of its own asks Spark for the numbers; whatever goes wrong with it, the work
goes on.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from pyspark.sql import SparkSession

from frazil.spark.jvm import is_classic
from frazil.spark.jvm_write import JobTotals, job_totals
from frazil.spec.data_file import DataFile

SETTING = "spark.frazil.progress"
_SPARKS_OWN = "spark.ui.showConsoleProgress"
_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.5
_UNITS = ("B", "kB", "MB", "GB", "TB")
_local = threading.local()


class Line(Protocol):
    """One line that can be written over."""

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""

    def end(self, text: str) -> None:
        """Show a last text, which stays."""


class TerminalLine:
    """A line of a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, text: str) -> None:
        """Show a text in place of the one before, cut to the terminal's width."""
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self._out.write(f"\r\x1b[K{text[:width]}")
        self._out.flush()

    def end(self, text: str) -> None:
        """Show a last text and go to the next line."""
        self.show(text)
        self._out.write("\n")
        self._out.flush()


class NotebookLine:
    """The output of a notebook's cell."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def end(self, text: str) -> None:
        """Show a last text."""
        self.show(text)


def find_line(spark: SparkSession, out: TextIO | None = None) -> Line | None:
    """Return where progress is shown, None where nobody looks or the session says no."""
    if not is_classic(spark):
        return None
    asked = (spark.conf.get(SETTING, None) or "").lower()
    if asked == "false":
        return None
    display = _notebook_display()
    if display is not None:
        return NotebookLine(display)
    stream = sys.stderr if out is None else out
    if asked == "true":
        return TerminalLine(stream)
    if stream is None or not stream.isatty():
        return None
    draws_own = str(spark.sparkContext.getConf().get(_SPARKS_OWN, "false")).lower() == "true"
    return None if draws_own else TerminalLine(stream)


def _notebook_display() -> Any:
    """Return the function that shows things in a notebook, None outside of one; nothing is imported for it."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    if running is None or getattr(running, "kernel", None) is None:
        return None
    return getattr(sys.modules.get("IPython.display"), "display", None)


@contextmanager
def showing_progress(spark: SparkSession, what: str, line: Line | None = None) -> Iterator[None]:
    """Show how far the work inside is, where somebody looks; `what` says what it is: `append to db.t`.

    Inside of work that is shown already, nothing more is.
    """
    shown = None if getattr(_local, "work", None) is not None else line or find_line(spark)
    if shown is None:
        yield
        return
    tag = f"frazil-{uuid.uuid4().hex}"
    work = _local.work = _Work(spark, what, tag, shown)
    spark.sparkContext.addJobTag(tag)
    work.start()
    try:
        yield
    except BaseException:
        work.stop(f"{what}: failed")
        raise
    else:
        work.stop(work.result())
    finally:
        spark.sparkContext.removeJobTag(tag)
        _local.work = None


def note_files(files: Iterable[DataFile]) -> None:
    """Count files that were written for the work that this thread shows, if any."""
    work: _Work | None = getattr(_local, "work", None)
    if work is not None:
        work.files += files


class _Work:
    def __init__(self, spark: SparkSession, what: str, tag: str, line: Line) -> None:
        self.files: list[DataFile] = []
        self._spark, self._what, self._tag, self._line = spark, what, tag, line
        self._began = time.monotonic()
        self._done = threading.Event()
        self._is_shown = False
        self._thread = threading.Thread(target=self._run, name="frazil progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, text: str) -> None:
        self._done.set()
        self._thread.join()
        if self._is_shown:
            self._line.end(f"{text} in {self._seconds()}")

    def result(self) -> str:
        rows = sum(one.record_count for one in self.files)
        size = sum(one.file_size_in_bytes for one in self.files)
        return f"{self._what}: {len(self.files):,} files, {rows:,} rows, {show_bytes(size)}"

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.0f} s"

    def _run(self) -> None:
        wait = _FIRST_SECONDS
        while not self._done.wait(wait):
            wait = _EVERY_SECONDS
            try:
                self._line.show(f"{describe(self._what, job_totals(self._spark, self._tag))}, {self._seconds()}")
            except Exception:
                # A line that cannot be shown must not stop the work that it is about.
                return
            self._is_shown = True


def describe(what: str, totals: JobTotals) -> str:
    """Return how far work is as a line of text."""
    parts = [f"{totals.done_tasks:,} of {totals.all_tasks:,} tasks"]
    if totals.written_rows or totals.written_bytes:
        parts.append(f"{totals.written_rows:,} rows, {show_bytes(totals.written_bytes)} written")
    elif totals.read_rows:
        parts.append(f"{totals.read_rows:,} rows, {show_bytes(totals.read_bytes)} read")
    return f"{what}: {', '.join(parts)}"


def show_bytes(count: int) -> str:
    """Return a number of bytes with a unit."""
    size, unit = float(count), 0
    while size >= 1000 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
