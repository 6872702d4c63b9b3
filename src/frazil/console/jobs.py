"""Slow work of pages: done once in a thread, with its progress shown, and its result cached.

A page waits briefly for its parts. Finished parts are included in the page; for the others it has an empty element, and
its script polls them. A key names the state that the work is for, so that a result stays valid as long as it is
requested.
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
"""Queries of users run on separate threads, so that pages do not wait for them."""
MAX_KEPT: Final = 200
FAILED_SECONDS: Final = 5.0
"""How long a failure is cached: the next attempt may succeed."""


class Job:
    """One piece of work: pending, finished with a result, or failed."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.text = what
        """The progress."""
        self.result: Any = None
        self.error: Exception | None = None
        self.ended = 0.0
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the end for a limited time; return whether it has come."""
        return self._done.wait(max(seconds, 0))

    def run(self, make: Callable[[], Any]) -> None:
        """Do the work; called by a thread."""
        try:
            with showing(self.what, self):
                self.result = make()
        except Exception as error:
            # Whatever the error, it is shown on the page and not lost with the thread.
            self.error = error
            if not isinstance(error, FrazilError):
                LOG.error("console: %s failed", self.what, exc_info=error)
        finally:
            self.ended = time.monotonic()
            self._done.set()

    # The interface of a progress line

    def show(self, text: str) -> None:
        """Set the progress text."""
        self.text = text

    def end(self, text: str) -> None:
        """Set the final text."""
        self.text = text


class Jobs:
    """The jobs of a console, by key."""

    def __init__(self, threads: int = THREADS, max_jobs: int = MAX_KEPT) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="frazil-console")
        self._queries = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="frazil-queries")
        self._kept = max_jobs
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()

    def job(self, key: Hashable, what: str, make: Callable[[], Any], *, is_query: bool = False) -> Job:
        """Return the job of a key; start it if there is none."""
        with self._lock:
            existing = self._jobs.get(key)
            if existing is not None and not _is_stale(existing):
                self._jobs.move_to_end(key)
                return existing
            job = self._jobs[key] = Job(what)
            self._jobs.move_to_end(key)
            finished = [other_key for other_key, other in self._jobs.items() if other.is_done]
            for old in finished[: len(self._jobs) - self._kept]:
                del self._jobs[old]
        (self._queries if is_query else self._pool).submit(job.run, make)
        return job

    def find(self, key: Hashable) -> Job | None:
        """Return the job of a key, or None."""
        with self._lock:
            return self._jobs.get(key)

    def close(self) -> None:
        """Start nothing more, end queries, and wait for the rest."""
        self._queries.shutdown(wait=False, cancel_futures=True)
        end_queries()
        self._queries.shutdown(wait=True)
        self._pool.shutdown(wait=True, cancel_futures=True)


def _is_stale(job: Job) -> bool:
    return job.error is not None and time.monotonic() - job.ended > FAILED_SECONDS


def wait_for(jobs: Sequence[Job], seconds: float) -> None:
    """Wait for several jobs, with a common time limit."""
    end = time.monotonic() + seconds
    for job in jobs:
        job.wait(end - time.monotonic())


def reason_of(error: Exception) -> tuple[str, str | None]:
    """Return an error's message and hint for users; for errors other than frazil's, only the type."""
    if isinstance(error, FrazilError):
        text = str(error)
        reason, _, _ = text.partition("\nHint: ")
        return reason, error.hint
    return f"Cannot show this: internal error of the console ({type(error).__name__})", None
