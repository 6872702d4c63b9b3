"""One commit to a table at a time, in this process: commits that ran at once would conflict and be tried again."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from frazil.threads import FairLock

Key: TypeAlias = tuple[str, ...]


class _Entry:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = FairLock()
        self.users = 0


class NameLocks:
    """Locks by name, made when they are asked for and forgotten when nobody holds them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: dict[Key, _Entry] = {}

    @contextmanager
    def held(self, names: Iterable[Key]) -> Iterator[None]:
        """Hold the locks of some names; taken in one order, so that nobody waits for each other."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(self._one(name))
            yield

    @contextmanager
    def _one(self, name: Key) -> Iterator[None]:
        with self._guard:
            entry = self._entries.setdefault(name, _Entry())
            entry.users += 1
        try:
            with entry.lock:
                yield
        finally:
            with self._guard:
                entry.users -= 1
                if entry.users == 0:
                    del self._entries[name]
