"""How far long work is, on one line that is written over: counts that the work names as it goes.

    expire snapshots of db.t: 1,200 of 3,400 manifests read, 52,000 files deleted, 4 s
    expire snapshots of db.t: 3,400 of 3,400 manifests read, 160,000 files deleted in 11 s

The line is shown where somebody looks: on a terminal (standard error) or in a notebook, once the work has taken
a moment. Logs and pipes get nothing. A thread of its own writes the line; whatever goes wrong with it, the work goes
on.

Work on Spark (`spark/write/progress.py`) shows the same line, with what Spark says of its tasks.
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
        self._out.write(f"\r\x1b[K{visible(text)[:width]}")
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
        forms = {"text/plain": visible(text)}
        if self._handle is None:
            self._handle = self._display(forms, raw=True, display_id=True)
        else:
            self._handle.update(forms, raw=True)

    def end(self, text: str) -> None:
        """Show a last text."""
        self.show(text)


def find_line(out: TextIO | None = None, *, always: bool = False) -> Line | None:
    """Return where progress is shown, None where nobody looks; `always` takes what is no terminal for one."""
    display = _notebook_display()
    if display is not None:
        return NotebookLine(display)
    stream = sys.stderr if out is None else out
    if stream is None or not (always or stream.isatty()):
        return None
    return TerminalLine(stream)


def _notebook_display() -> Any:
    """Return the function that shows things in a notebook, None outside of one; nothing is imported for it."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    if running is None or getattr(running, "kernel", None) is None:
        return None
    return getattr(sys.modules.get("IPython.display"), "display", None)


class Work:
    """Work whose progress a line shows."""

    def __init__(self, what: str, line: Line) -> None:
        self.detail: Callable[[], str] | None = None
        """Says more while the work goes on, in the thread that shows it."""
        self.outcome: Callable[[], str] | None = None
        """Says what came of the work, in place of its counts."""
        self._what, self._line = what, line
        self._counts: dict[str, tuple[int, int | None]] = {}
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._done = threading.Event()
        self._is_shown = False
        self._thread = threading.Thread(target=self._run, name="frazil progress", daemon=True)

    def start(self) -> None:
        """Begin to show it."""
        self._thread.start()

    def stop(self, *, failed: bool = False) -> None:
        """Show what came of it, where anything was shown."""
        self._done.set()
        self._thread.join()
        if self._is_shown:
            outcome = "failed" if failed else self._counted() if self.outcome is None else self.outcome()
            self._line.end(f"{self._text(outcome)} in {self._seconds()}")

    def count(self, unit: str, more: int, of: int | None) -> None:
        """Add to a count; `of` is how many there will be."""
        with self._lock:
            done, all_of_them = self._counts.get(unit, (0, None))
            self._counts[unit] = (done + more, all_of_them if of is None else of)

    def _counted(self) -> str:
        with self._lock:
            counts = list(self._counts.items())
        return ", ".join(f"{done:,}{'' if of is None else f' of {of:,}'} {unit}" for unit, (done, of) in counts)

    def _text(self, *parts: str) -> str:
        said = ", ".join(piece for piece in parts if piece)
        return f"{self._what}: {said}" if said else self._what

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
                # A line that cannot be shown must not stop the work that it is about.
                return
            self._is_shown = True


_work: ContextVar[Work | None] = ContextVar("frazil progress", default=None)


def current_work() -> Work | None:
    """Return the work that is shown and that this is a part of, None where none is; threads start without any."""
    return _work.get()


@contextmanager
def showing(what: str, line: Line | None = None) -> Iterator[Work | None]:
    """Show how far the work inside is, where somebody looks; `what` says what it is: `expire snapshots of db.t`.

    Inside of work that is shown already, nothing more is.
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
    """Count something that is done, where work is shown: `files deleted`, of so many."""
    work = current_work()
    if work is not None:
        work.count(unit, more, of)


def counted(unit: str, items: Iterable[Item], of: int | None = None) -> Iterator[Item]:
    """Yield items, counting each."""
    work = current_work()
    if work is None:
        yield from items
        return
    work.count(unit, 0, of)
    for item in items:
        work.count(unit, 1, None)
        yield item
