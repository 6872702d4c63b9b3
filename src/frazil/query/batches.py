"""Batches of a running query: read on a thread, so that ctrl-C and a line of progress work at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from frazil.errors import InvalidRequestError
from frazil.progress import FIRST_SECONDS, find_line
from frazil.query.arrow_types import plain_batch
from frazil.query.limits import Limits

BATCH_ROWS: Final = 1 << 17
_TICK_SECONDS: Final = 0.1
_QUICK_SECONDS: Final = 0.002

Result = TypeVar("Result")


class Run(Protocol):
    """A started query."""

    def reader(self, batch_rows: int) -> pa.RecordBatchReader:
        """Return the rows as they are computed."""

    def progress(self) -> float:
        """Return how far the query is, in percent; -1 if unknown."""

    def interrupt(self) -> None:
        """Stop what runs."""

    def close(self) -> None:
        """Release everything."""


def read_batches(
    run: Run, schema: pa.Schema, limits: Limits, errors: Callable[[], AbstractContextManager[None]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a started query as they are computed, and close it.

    Columns get the names of `schema`: of two with one name, DuckDB gives the second another one. `errors` is the
    context that names errors.
    """
    watch = _Watch(run)
    count = 0
    try:
        with errors():
            reader = watch.call(lambda: run.reader(BATCH_ROWS))
        while True:
            with errors():
                batch = watch.call(lambda: next(reader, None))
            if batch is None:
                return
            count += batch.num_rows
            if limits.max_rows is not None and count > limits.max_rows:
                raise InvalidRequestError(
                    f"Cannot return the rows of the query: there are more than max_rows={limits.max_rows}",
                    hint="Add a LIMIT, or raise max_rows.",
                )
            yield plain_batch(batch).rename_columns(schema.names)
    finally:
        watch.close()


class _Watch:
    """Runs calls of one query on a thread, one after the other, while the caller's thread stays free for signals."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="frazil-sql")
        self._began = time.monotonic()
        self._line: Any = None

    def call(self, do: Callable[[], Result]) -> Result:
        """Return what a call returns; interrupt it if the caller is interrupted."""
        future: Future[Result] = self._pool.submit(do)
        try:
            return self._wait(future)
        except FutureTimeoutError:  # of the call itself
            raise
        except BaseException:
            if not future.done():
                self._run.interrupt()
            raise

    def _wait(self, future: Future[Result]) -> Result:
        seconds = _QUICK_SECONDS
        while True:
            try:
                return future.result(seconds)
            except FutureTimeoutError:
                if future.done():
                    return future.result()
                seconds = _TICK_SECONDS
                self._show()

    def _show(self) -> None:
        elapsed = time.monotonic() - self._began
        if elapsed < FIRST_SECONDS or threading.current_thread() is not threading.main_thread():
            return
        if self._line is None:
            self._line = find_line() or False
        if self._line:
            percent = self._run.progress()
            done = f"{percent:.0f} %, " if percent >= 0 else ""
            self._line.show(f"query: {done}{elapsed:.0f} s")

    def close(self) -> None:
        """End the line of progress and the query."""
        if self._line:
            self._line.end("")
        self._run.interrupt()
        self._pool.shutdown(wait=True)
        self._run.close()
