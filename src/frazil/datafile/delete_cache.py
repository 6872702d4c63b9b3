"""A cache of decoded deletes, shared by the tasks of one scan, with a memory budget.

A delete file of a partition applies to many data files. The first task that needs it reads it; concurrent tasks wait
for that one, and later ones use the cache. Values that exceed the budget are not cached and are read again.
Thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

DEFAULT_BUDGET_BYTES = 256 << 20

Value = TypeVar("Value")


class DeleteCache:
    """A least-recently-used cache of values by key, measured in bytes."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._loading: dict[Hashable, Lock] = {}
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """The size of the cached values."""
        return self._bytes

    def load(self, key: Hashable, read: Callable[[], tuple[Value, int]]) -> Value:
        """Return the value of a key; on a miss, call `read` for the value and its size in bytes."""
        entry = self._find(key)
        if entry is not None:
            return entry[0]  # type: ignore[no-any-return]
        with self._lock:
            turn = self._loading.setdefault(key, Lock())
        with turn:
            entry = self._find(key)
            if entry is not None:
                return entry[0]  # type: ignore[no-any-return]
            try:
                value, size = read()
                self._keep(key, value, size)
            finally:
                with self._lock:
                    self._loading.pop(key, None)
            return value

    def _find(self, key: Hashable) -> tuple[Any, int] | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def _keep(self, key: Hashable, value: Any, size: int) -> None:
        with self._lock:
            if size > self.budget_bytes or key in self._entries:
                return
            self._entries[key] = (value, size)
            self._bytes += size
            while self._bytes > self.budget_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped
