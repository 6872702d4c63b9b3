"""Locks of threads by name, and turns of requests that wait for a thread.

Commits to one table run one at a time in this process, since concurrent ones would conflict and be retried. If they
waited for each other in threads, none would be left for requests to other tables, and the lock would go to them in no
particular order: a client could wait while others came again and again. So requests enter threads by turns: in the
order of their arrival, a few at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Generic, TypeAlias, TypeVar

from frazil.threads import FairLock

Key: TypeAlias = tuple[str, ...]
T = TypeVar("T")


class _Shared(Generic[T]):
    """Objects by name, created on demand and dropped when unused."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._used: dict[Key, tuple[T, int]] = {}

    @contextmanager
    def used(self, name: Key, make: Callable[[], T]) -> Iterator[T]:
        with self._guard:
            thing, users = self._used.get(name) or (make(), 0)
            self._used[name] = thing, users + 1
        try:
            yield thing
        finally:
            with self._guard:
                users = self._used.pop(name)[1]
                if users > 1:
                    self._used[name] = thing, users - 1

    def users(self, name: Key) -> int:
        """Return the number of users of a name's object, including those waiting."""
        with self._guard:
            return self._used[name][1] if name in self._used else 0


class NameLocks(_Shared[FairLock]):
    """Locks by name."""

    @contextmanager
    def held(self, names: Iterable[Key]) -> Iterator[None]:
        """Hold the locks of several names, acquired in a fixed order to prevent deadlocks."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(stack.enter_context(self.used(name, FairLock)))
            yield


class Turns(_Shared[asyncio.Semaphore]):
    """Turns by name, in one event loop."""

    @asynccontextmanager
    async def taken(self, name: Key, at_once: int) -> AsyncIterator[None]:
        """Wait behind earlier requests for a name until fewer than `at_once` of them have their turn."""
        with self.used(name, lambda: asyncio.Semaphore(at_once)) as turn:
            async with turn:
                yield
