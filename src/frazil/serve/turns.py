"""Requests that change one table come into threads by turns: in the order in which they arrived, few at a time.

Commits to a table go one after the other (`name_locks.py`). Those that waited for it in threads would leave none to
requests for other tables, and would get the lock in no order: a client could wait while others came again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Entry:
    __slots__ = ("turn", "users")

    def __init__(self, at_once: int) -> None:
        self.turn = asyncio.Semaphore(at_once)
        self.users = 0


class Turns:
    """Turns by name, made when they are asked for and forgotten when nobody waits. All is in one event loop."""

    def __init__(self) -> None:
        self._entries: dict[object, _Entry] = {}

    @asynccontextmanager
    async def taken(self, name: object, at_once: int) -> AsyncIterator[None]:
        """Wait behind those who asked for a name before, until fewer than `at_once` of them have their turn."""
        entry = self._entries.setdefault(name, _Entry(at_once))
        entry.users += 1
        try:
            async with entry.turn:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._entries[name]
