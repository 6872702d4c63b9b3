"""Progress of long work on one line that is overwritten in place, with counts that the work reports.

    expire snapshots of db.t: 1,200 of 3,400 manifests read, 52,000 files deleted, 4 s
    expire snapshots of db.t: 3,400 of 3,400 manifests read, 160,000 files deleted in 11 s

The line is shown on a terminal (standard error) or in a notebook, once the work has taken a moment. Logs and pipes get
nothing. A separate thread writes the line, and its failures do not affect the work.

Work on Spark (`spark/write/progress.py`) adds the progress of Spark's tasks to the same line.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, TypeVar

from frazil.visible_text import visible

FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.5

Item = TypeVar("Item")


class Line(Protocol):
    """A line that can be overwritten."""

    def show(self, text: str) -> None:
        """Replace the text."""

    def end(self, text: str) -> None:
        """Replace the text for the last time and leave it visible."""


class TerminalLine:
    """A line on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, text: str) -> None:
        """Replace the text, truncated to the terminal's width."""
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self._out.write(f"\r\x1b[K{visible(text)[:width]}")
        self._out.flush()

    def end(self, text: str) -> None:
        """Replace the text and end the line."""
        self.show(text)
        self._out.write("\n")
        self._out.flush()


class NotebookLine:
    """The output of a notebook cell."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Replace the text."""
        forms = {"text/plain": visible(text)}
        if self._handle is None:
            self._handle = self._display(forms, raw=True, display_id=True)
        else:
            self._handle.update(forms, raw=True)

    def end(self, text: str) -> None:
        """Replace the text for the last time."""
        self.show(text)


def find_line(out: TextIO | None = None, *, always: bool = False) -> Line | None:
    """Return a line on which to show progress, or None; with `always`, treat `out` as a terminal."""
    display = _notebook_display()
    if display is not None:
        return NotebookLine(display)
    stream = sys.stderr if out is None else out
    if stream is None or not (always or stream.isatty()):
        return None
    return TerminalLine(stream)


def _notebook_display() -> Any:
    """Return IPython's display function, or None outside a notebook, without importing IPython."""
    shell = sys.modules.get("IPython")
    interactive_shell = None if shell is None else shell.get_ipython()
    if interactive_shell is None or getattr(interactive_shell, "kernel", None) is None:
        return None
    return getattr(sys.modules.get("IPython.display"), "display", None)


class Work:
    """Work whose progress is shown on a line."""

    def __init__(self, what: str, line: Line) -> None:
        self.detail: Callable[[], str] | None = None
        """Returns further progress text; called by the thread that writes the line."""
        self.outcome: Callable[[], str] | None = None
        """Returns the result text that replaces the counts at the end."""
        self._what, self._line = what, line
        self._counts: dict[str, tuple[int, int | None]] = {}
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._done = threading.Event()
        self._is_shown = False
        self._thread = threading.Thread(target=self._run, name="frazil progress", daemon=True)

    def start(self) -> None:
        """Start to show progress."""
        self._thread.start()

    def stop(self, *, failed: bool = False) -> None:
        """Stop, and show the result if any progress was shown."""
        self._done.set()
        self._thread.join()
        if self._is_shown:
            outcome = "failed" if failed else self._counted() if self.outcome is None else self.outcome()
            self._line.end(f"{self._text(outcome)} in {self._seconds()}")

    def count(self, unit: str, more: int, of: int | None) -> None:
        """Add `more` to the count of a unit; `of` is the expected total."""
        with self._lock:
            done, total = self._counts.get(unit, (0, None))
            self._counts[unit] = (done + more, total if of is None else of)

    def _counted(self) -> str:
        with self._lock:
            counts = list(self._counts.items())
        return ", ".join(f"{done:,}{'' if of is None else f' of {of:,}'} {unit}" for unit, (done, of) in counts)

    def _text(self, *parts: str) -> str:
        details = ", ".join(piece for piece in parts if piece)
        return f"{self._what}: {details}" if details else self._what

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.0f} s"

    def _run(self) -> None:
        wait = FIRST_SECONDS
        while not self._done.wait(wait):
            wait = _EVERY_SECONDS
            try:
                detail = self.detail
                self._line.show(self._text(self._counted(), "" if detail is None else detail(), self._seconds()))
            except Exception:
                # A failure to show progress must not stop the work.
                return
            self._is_shown = True


_work: ContextVar[Work | None] = ContextVar("frazil progress", default=None)


def current_work() -> Work | None:
    """Return the work whose progress is shown in this context, or None; new threads start without any."""
    return _work.get()


@contextmanager
def showing(what: str, line: Line | None = None) -> Iterator[Work | None]:
    """Show the progress of the work inside on a terminal or notebook; `what` names it: `expire snapshots of db.t`.

    Nested calls show nothing of their own.
    """
    own_line = None if current_work() is not None else find_line() if line is None else line
    if own_line is None:
        yield None
        return
    work = Work(what, own_line)
    token = _work.set(work)
    work.start()
    try:
        yield work
    except BaseException:
        work.stop(failed=True)
        raise
    else:
        work.stop()
    finally:
        _work.reset(token)


def count(unit: str, more: int = 1, of: int | None = None) -> None:
    """Add `more` to the count of a unit such as `files deleted`, if progress is shown; `of` is the expected total."""
    work = current_work()
    if work is not None:
        work.count(unit, more, of)


def counted(unit: str, items: Iterable[Item], of: int | None = None) -> Iterator[Item]:
    """Yield the items, counting each one in the progress that is shown."""
    work = current_work()
    if work is None:
        yield from items
        return
    work.count(unit, 0, of)
    for item in items:
        work.count(unit, 1, None)
        yield item
