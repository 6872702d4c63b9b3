"""Requests that change one table come into threads by turns: in the order in which they arrived, few at a time.

Commits to a table go one after the other (`name_locks.py`). Those that waited for it in threads would leave none to
requests for other tables, and would get the lock in no order: a client could wait while others came again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

AT_ONCE: Final = 2
"""Requests for one table that have a thread: one commits, the next is read and made ready meanwhile."""


class _Entry:
    __slots__ = ("turn", "users")

    def __init__(self) -> None:
        self.turn = asyncio.Semaphore(AT_ONCE)
        self.users = 0


class Turns:
    """Turns by name, made when they are asked for and forgotten when nobody waits. All is in one event loop."""

    def __init__(self) -> None:
        self._entries: dict[object, _Entry] = {}

    @asynccontextmanager
    async def taken(self, name: object) -> AsyncIterator[None]:
        """Wait for the turn of a name, behind those who asked before."""
        entry = self._entries.setdefault(name, _Entry())
        entry.users += 1
        try:
            async with entry.turn:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._entries[name]
