"""Who may go on with what has a name: locks of threads, and turns of requests that wait for a thread.

One commit to a table at a time, in this process: commits that ran at once would conflict and be tried again. Those that
waited for it in threads would leave none to requests for other tables, and would get the lock in no order: a client
could wait while others came again and again. So they come into threads by turns: in the order in which they arrived,
few at a time.
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
    """Things by name, made when they are asked for and forgotten when nobody uses them."""

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
        """Return how many have or wait for what a name stands for."""
        with self._guard:
            return self._used[name][1] if name in self._used else 0


class NameLocks(_Shared[FairLock]):
    """Locks by name."""

    @contextmanager
    def held(self, names: Iterable[Key]) -> Iterator[None]:
        """Hold the locks of some names; taken in one order, so that nobody waits for each other."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(stack.enter_context(self.used(name, FairLock)))
            yield


class Turns(_Shared[asyncio.Semaphore]):
    """Turns by name, in one event loop."""

    @asynccontextmanager
    async def taken(self, name: Key, at_once: int) -> AsyncIterator[None]:
        """Wait behind those who asked for a name before, until fewer than `at_once` of them have their turn."""
        with self.used(name, lambda: asyncio.Semaphore(at_once)) as turn:
            async with turn:
                yield
