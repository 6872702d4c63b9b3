"""The batches of a running query, read on a thread, so that Ctrl-C and a progress line work at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from frazil.errors import InvalidRequestError
from frazil.progress import FIRST_SECONDS, find_line
from frazil.query.arrow_types import plain_batch
from frazil.query.engine import MORE_TIME, too_long
from frazil.query.limits import Limits

BATCH_ROWS: Final = 1 << 17
_TICK_SECONDS: Final = 0.1
_QUICK_SECONDS: Final = 0.002
_CLOSE_SECONDS: Final = 0.5

Result = TypeVar("Result")


class Run(Protocol):
    """A query that is about to run."""

    def schema(self) -> pa.Schema:
        """Return the columns, in DuckDB's Arrow types."""

    def explain(self) -> str:
        """Return DuckDB's plan."""

    def reader(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Return the rows as they are computed."""

    def progress(self) -> float:
        """Return the progress of the query in percent, or -1 if unknown."""

    def interrupt(self) -> None:
        """Stop the running statement."""

    def close(self) -> None:
        """Release everything."""


def read_batches(
    watch: Watch, schema: pa.Schema, limits: Limits, errors: Callable[[], AbstractContextManager[None]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query as they are computed, and close it.

    Columns get the names of `schema`, since DuckDB renames the second of two columns with one name. `errors` is the
    context that translates errors.
    """
    count = 0
    try:
        with errors():
            reader = watch.call(lambda: watch.run.reader(BATCH_ROWS))
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


class Watch:
    """Runs the calls of one query on threads, one after the other, so that the caller's thread can handle signals."""

    def __init__(self, run: Run, limits: Limits) -> None:
        self.run = run
        self._limits = limits
        self._last: Future[Any] | None = None
        self._began = time.monotonic()
        self._line: Any = None

    def call(self, do: Callable[[], Result]) -> Result:
        """Run a function on a thread; interrupt it if the caller is interrupted."""
        future: Future[Result] = Future()
        self._last = future
        # DuckDB cannot stop some of its functions: they must not delay the end of the process.
        threading.Thread(target=_resolve, args=(future, do), name="frazil-sql", daemon=True).start()
        try:
            return self._wait(future)
        except FutureTimeoutError:  # of the call itself
            raise
        except BaseException:
            if not future.done():
                self.run.interrupt()
            raise

    def _wait(self, future: Future[Result]) -> Result:
        seconds, began, limit = _QUICK_SECONDS, time.monotonic(), self._limits.timeout_seconds
        while True:
            try:
                return future.result(seconds)
            except FutureTimeoutError:
                if future.done():
                    return future.result()
                # DuckDB does not count the time of binding, and cannot stop some of its functions.
                if limit is not None and time.monotonic() > began + limit + _CLOSE_SECONDS:
                    raise too_long(limit, MORE_TIME) from None
                seconds = _TICK_SECONDS
                self._show()

    def _show(self) -> None:
        elapsed = time.monotonic() - self._began
        if elapsed < FIRST_SECONDS or threading.current_thread() is not threading.main_thread():
            return
        if self._line is None:
            self._line = find_line() or False
        if self._line:
            percent = self.run.progress()
            done = f"{percent:.0f} %, " if percent >= 0 else ""
            self._line.show(f"query: {done}{elapsed:.0f} s")

    def close(self) -> None:
        """End the progress line and the query. A query that does not stop immediately is closed when it does."""
        if self._line:
            self._line.end("")
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._last is not None and not self._last.done() and time.monotonic() < deadline:
            self.run.interrupt()  # once more: before a statement begins, it is forgotten
            wait([self._last], _TICK_SECONDS)
        if self._last is None or self._last.done():
            self.run.close()
        else:
            self._last.add_done_callback(lambda _: self.run.close())


def _resolve(future: Future[Result], do: Callable[[], Result]) -> None:
    try:
        future.set_result(do())
    except BaseException as error:
        future.set_exception(error)
