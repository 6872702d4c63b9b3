"""Work in threads: how many, results in the order of the items, and a lock that threads get in their order.

Used by catalogs, scans, commits, maintenance and the server.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from os import cpu_count
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_THREADS = 16


class FairLock:
    """A lock that threads get in the order in which they asked.

    One of `threading` may be taken again by a thread that has just given it back, or by one that comes, over and over,
    before one that waits.
    """

    __slots__ = ("_guard", "_is_held", "_waiting")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the lock; return whether it was given in time."""
        turn = threading.Lock()
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return True
            turn.acquire()
            self._waiting.append(turn)
        try:
            is_given = turn.acquire(timeout=-1 if timeout_seconds is None else timeout_seconds)
        except BaseException:
            if self._give_up(turn):
                self.release()
            raise
        return is_given or self._give_up(turn)

    def release(self) -> None:
        """Give the lock to who has waited longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _give_up(self, turn: threading.Lock) -> bool:
        """Leave the queue; return True where the lock was given meanwhile."""
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return False
        return True


def default_threads() -> int:
    """Return how many threads to work in where nobody says: one for each core, 16 at most."""
    return min(_MAX_THREADS, cpu_count() or 1)


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int, ahead: int | None = None
) -> Iterator[Result]:
    """Yield a function's results in the items' order, computing a few of them at a time in threads.

    At most `ahead` results wait unread, so memory does not grow with the number of items.
    """
    if threads <= 1 or (isinstance(items, Sized) and len(items) <= 1):
        yield from map(function, items)
        return
    window = ahead if ahead is not None else threads + 2
    pool = ThreadPoolExecutor(threads, thread_name_prefix="frazil")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except GeneratorExit:
        # Nobody reads on. The garbage collector may say so anywhere, even where this thread holds a lock of
        # `threading`, so nothing here waits or locks; the threads end when the pool is gone.
        for future in waiting:
            future.cancel()
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
