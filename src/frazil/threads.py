"""Threads: the default number, a map that keeps the order of its items, and a fair lock.

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
    """A lock that threads acquire in the order of their calls.

    A lock of `threading` may be reacquired again and again by threads that arrive after one that is waiting.
    """

    __slots__ = ("_guard", "_is_held", "_waiting")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the lock; return whether it was acquired in time."""
        turn = threading.Lock()
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return True
            turn.acquire()
            self._waiting.append(turn)
        try:
            is_acquired = turn.acquire(timeout=-1 if timeout_seconds is None else timeout_seconds)
        except BaseException:
            if self._give_up(turn):
                self.release()
            raise
        return is_acquired or self._give_up(turn)

    def release(self) -> None:
        """Release the lock to the thread that has waited longest."""
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
        """Leave the queue; return True if the lock was acquired in the meantime."""
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return False
        return True


def default_threads() -> int:
    """Return the default number of threads: one per core, at most 16."""
    return min(_MAX_THREADS, cpu_count() or 1)


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int, ahead: int | None = None
) -> Iterator[Result]:
    """Yield the function's result for each item, in order, computing several at a time in threads.

    At most `ahead` results are pending, so memory does not grow with the number of items.
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
        # The consumer stopped early. The garbage collector may raise this anywhere, even while this thread holds a
        # lock of `threading`, so nothing here waits or locks; the threads end with the pool.
        for future in waiting:
            future.cancel()
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
