"""Work in threads: how many, and results in the order of the items. Used by scans, commits and maintenance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from os import cpu_count
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_THREADS = 16


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
