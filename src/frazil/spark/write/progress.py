"""Progress of long work on Spark, on one line that is overwritten.

    append to db.t: 3 of 8 tasks, 1,250,000 rows, 38.2 MB written, 4 s
    append to db.t: 8 files, 3,200,000 rows, 97.1 MB in 9 s

The line is that of `frazil/progress.py`. The session setting `spark.frazil.progress` disables it with `false`, and
enables it with `true` for any output. By default it is also disabled if Spark shows its own bar
(`spark.ui.showConsoleProgress`). The thread that writes the line gets the numbers from Spark.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TextIO

from pyspark.sql import SparkSession

from frazil import progress
from frazil.progress import Line, TerminalLine, Work
from frazil.spark.jvm.jvm_write import JobTotals, job_totals
from frazil.spark.jvm.private_names import is_classic
from frazil.spark.jvm.stop_jobs import stopping_jobs
from frazil.spec.data_file import DataFile

SETTING = "spark.frazil.progress"
_CONSOLE_PROGRESS = "spark.ui.showConsoleProgress"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_local = threading.local()


def find_line(spark: SparkSession, out: TextIO | None = None) -> Line | None:
    """Return the line for progress, or None if there is no terminal or the session disables it."""
    if not is_classic(spark):
        return None
    setting = (spark.conf.get(SETTING, None) or "").lower()
    if setting == "false":
        return None
    line = progress.find_line(out, always=setting == "true")
    if not isinstance(line, TerminalLine) or setting == "true":
        return line
    draws_own = str(spark.sparkContext.getConf().get(_CONSOLE_PROGRESS, "false")).lower() == "true"
    return None if draws_own else line


@contextmanager
def showing_progress(spark: SparkSession, what: str, line: Line | None = None) -> Iterator[None]:
    """Show the progress of the work inside, if there is a terminal; `what` describes it: `append to db.t`.

    Nested work on Spark is not shown separately; inside other work, Spark's part is shown with it. On an interrupt, its
    jobs are stopped.
    """
    with stopping_jobs(spark), _shown(spark, what, line):
        yield


@contextmanager
def _shown(spark: SparkSession, what: str, line: Line | None) -> Iterator[None]:
    outer = progress.current_work()
    if outer is not None:
        with nullcontext() if outer.detail is not None else _reporting(spark, outer):
            yield
        return
    own_line = find_line(spark) if line is None else line
    if own_line is None:
        yield
        return
    with progress.showing(what, own_line) as work:
        assert work is not None
        files: list[DataFile] = []
        _local.files = files
        work.outcome = lambda: _result(files)
        try:
            with _reporting(spark, work):
                yield
        finally:
            _local.files = None


@contextmanager
def _reporting(spark: SparkSession, work: Work) -> Iterator[None]:
    """Report the progress of this thread's jobs as the detail of the work."""
    tag = f"frazil-{uuid.uuid4().hex}"
    spark.sparkContext.addJobTag(tag)
    work.detail = lambda: describe(job_totals(spark, tag))
    try:
        yield
    finally:
        work.detail = None
        spark.sparkContext.removeJobTag(tag)


def note_files(files: Iterable[DataFile]) -> None:
    """Record files that were written for the work that this thread shows, if any."""
    written: list[DataFile] | None = getattr(_local, "files", None)
    if written is not None:
        written += files


def _result(files: Sequence[DataFile]) -> str:
    rows = sum(file.record_count for file in files)
    size = sum(file.file_size_in_bytes for file in files)
    return f"{len(files):,} files, {rows:,} rows, {show_bytes(size)}"


def describe(totals: JobTotals) -> str:
    """Format the progress of jobs."""
    parts = [f"{totals.done_tasks:,} of {totals.all_tasks:,} tasks"]
    if totals.written_rows or totals.written_bytes:
        parts.append(f"{totals.written_rows:,} rows, {show_bytes(totals.written_bytes)} written")
    elif totals.read_rows:
        parts.append(f"{totals.read_rows:,} rows, {show_bytes(totals.read_bytes)} read")
    return ", ".join(parts)


def show_bytes(count: int) -> str:
    """Format a number of bytes with a unit."""
    size, unit = float(count), 0
    while size >= 1000 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
