"""Read the tasks of a plan in one process: several streams concurrently, in order, with bounded memory.

Each task is a stream of batches. A few tasks are read concurrently, each by its own thread, which stops when it is a
few batches ahead of the reader. Batches are yielded in the order of the tasks and, within a task, of the file. So
memory holds a few batches of a few files, regardless of the size and number of files.

A caller that keeps all batches anyway sets `keeps_all`; then no thread waits for the reader.

A task that fails raises at its place in the order, after the batches before it. If the reader stops early, the threads
stop too.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as pools
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Batch = TypeVar("Batch")

_MAX_BATCHES_AHEAD = 4
_POLL_SECONDS = 0.05


class _Stream(Generic[Batch]):
    """The queue of one task's batches from its thread to the reader."""

    def __init__(self, batches_ahead: int) -> None:
        self.queue: Queue[tuple[bool, object]] = Queue(batches_ahead)

    def fill(self, source: Callable[[], Iterator[Batch]], stopped: threading.Event) -> None:
        """Put batches into the queue, then an end mark or the exception raised."""
        last: object = None
        try:
            batches = source()
            try:
                for batch in batches:
                    if not self._put((True, batch), stopped):
                        return
            finally:
                close = getattr(batches, "close", None)
                if close is not None:
                    close()
        except BaseException as error:
            last = error
        self._put((False, last), stopped)

    def _put(self, entry: tuple[bool, object], stopped: threading.Event) -> bool:
        while not stopped.is_set() and not _is_interpreter_exiting():
            try:
                self.queue.put(entry, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def drain(self) -> Iterator[Batch]:
        """Yield the batches as they arrive."""
        while True:
            is_batch, value = self.queue.get()
            if is_batch:
                yield value  # type: ignore[misc]
            elif isinstance(value, BaseException):
                raise value
            else:
                return


def read_in_order(
    read: Callable[[Item], Iterator[Batch]], items: Iterable[Item], *, threads: int, keeps_all: bool = False
) -> Generator[Batch]:
    """Yield the batches of all items in order, reading `threads` items at a time."""
    if threads <= 1:
        for item in items:
            yield from read(item)
        return
    stopped = threading.Event()
    # A thread that has finished its task can start another while the reader still consumes the first.
    max_streams = 2 * threads if keeps_all else threads
    waiting: deque[_Stream[Batch]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="frazil-read") as pool:

        def start(item: Item) -> _Stream[Batch]:
            stream: _Stream[Batch] = _Stream(0 if keeps_all else _MAX_BATCHES_AHEAD)
            pool.submit(stream.fill, lambda: read(item), stopped)
            return stream

        try:
            for item in items:
                waiting.append(start(item))
                if len(waiting) >= max_streams:
                    yield from waiting.popleft().drain()
            while waiting:
                yield from waiting.popleft().drain()
        finally:
            stopped.set()
            for stream in waiting:
                _empty(stream.queue)


def _is_interpreter_exiting() -> bool:
    """Return whether Python is exiting: it waits for all pool threads, and a reader may be only half consumed."""
    return bool(getattr(pools, "_shutdown", False))


def _empty(queue: Queue[tuple[bool, object]]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        pass
