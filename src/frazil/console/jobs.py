"""Work that takes longer than a page may: done once in a thread, told of while it goes on, kept for those who ask next.

A page waits for its parts a moment. What is there by then is in the page; for the rest it has an empty element, and its
script asks again. A key names the state that the work is of, so that a result is good as long as the key is asked for.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from frazil.errors import FrazilError
from frazil.progress import showing
from frazil.query.worker import end_queries
from frazil.serve.telemetry import LOG

THREADS: Final = 4
QUERY_THREADS: Final = 2
"""Queries of users run on threads of their own, so that pages do not wait for them."""
MAX_KEPT: Final = 200
FAILED_SECONDS: Final = 5.0
"""How long a failure is kept: what failed may be well by the next look."""


class Job:
    """One piece of work: it waits or goes on, or has a result, or failed."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.text = what
        """How far it is."""
        self.result: Any = None
        self.error: Exception | None = None
        self.ended = 0.0
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, up to a time; return whether it has come."""
        return self._done.wait(max(seconds, 0))

    def run(self, make: Callable[[], Any]) -> None:
        """Do the work; this is what threads run."""
        try:
            with showing(self.what, self):
                self.result = make()
        except Exception as error:
            # Whatever it is, it is told on the page and not lost with the thread.
            self.error = error
            if not isinstance(error, FrazilError):
                LOG.error("console: %s failed", self.what, exc_info=error)
        finally:
            self.ended = time.monotonic()
            self._done.set()

    # A line of progress

    def show(self, text: str) -> None:
        """Take how far the work is."""
        self.text = text

    def end(self, text: str) -> None:
        """Take the last line."""
        self.text = text


class Jobs:
    """The work of a console, by key."""

    def __init__(self, threads: int = THREADS, kept: int = MAX_KEPT) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="frazil-console")
        self._queries = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="frazil-queries")
        self._kept = kept
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()

    def job(self, key: Hashable, what: str, make: Callable[[], Any], *, is_query: bool = False) -> Job:
        """Return the work of a key; begin it if there is none."""
        with self._lock:
            found = self._jobs.get(key)
            if found is not None and not _is_stale(found):
                self._jobs.move_to_end(key)
                return found
            job = self._jobs[key] = Job(what)
            self._jobs.move_to_end(key)
            for old in [key for key, known in self._jobs.items() if known.is_done][: len(self._jobs) - self._kept]:
                del self._jobs[old]
        (self._queries if is_query else self._pool).submit(job.run, make)
        return job

    def find(self, key: Hashable) -> Job | None:
        """Return the work of a key, where it is known."""
        with self._lock:
            return self._jobs.get(key)

    def close(self) -> None:
        """Begin nothing more, end queries, and wait for the rest."""
        self._queries.shutdown(wait=False, cancel_futures=True)
        end_queries()
        self._queries.shutdown(wait=True)
        self._pool.shutdown(wait=True, cancel_futures=True)


def _is_stale(job: Job) -> bool:
    return job.error is not None and time.monotonic() - job.ended > FAILED_SECONDS


def wait_for(jobs: Sequence[Job], seconds: float) -> None:
    """Wait for several, up to a time for all of them."""
    end = time.monotonic() + seconds
    for job in jobs:
        job.wait(end - time.monotonic())


def reason_of(error: Exception) -> tuple[str, str | None]:
    """Return what an error says to a person, and its hint; of one that is not frazil's, its kind alone."""
    if isinstance(error, FrazilError):
        text = str(error)
        reason, _, _ = text.partition("\nHint: ")
        return reason, error.hint
    return f"Cannot show this: the console met an error of its own ({type(error).__name__})", None
