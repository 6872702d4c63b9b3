"""A short-lived cache of loaded tables, validated by their ETags."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from frazil.catalog.names import Identifier
from frazil.loaded import LoadedTable

_Key = tuple[Identifier, tuple[Identifier, ...]]
"""A table, and the views it was loaded through."""


class CachedTable(NamedTuple):
    """A table, its ETag, and the time it was loaded."""

    loaded: LoadedTable
    tag: str
    loaded_ms: int


class TableCache:
    """The most recent tables of one catalog. Thread-safe."""

    def __init__(self, max_entries: int, max_age_ms: int, now_ms: Callable[[], int]) -> None:
        self._max_entries = max_entries
        self._max_age_ms = max_age_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._tables: OrderedDict[_Key, CachedTable] = OrderedDict()

    def find(self, identifier: Identifier, views: tuple[Identifier, ...] = ()) -> CachedTable | None:
        """Return a cached table, loaded through the same views and not too old, or None."""
        key = (identifier, views)
        with self._lock:
            cached = self._tables.get(key)
            if cached is not None and self._now_ms() - cached.loaded_ms > self._max_age_ms:
                del self._tables[key]
                return None
            return cached

    def keep(self, loaded: LoadedTable, tag: str | None) -> None:
        """Cache a table with its ETag; without one, remove it from the cache."""
        key = (loaded.identifier, loaded.referenced_by)
        with self._lock:
            self._tables.pop(key, None)
            if tag is not None and self._max_entries > 0:
                self._tables[key] = CachedTable(loaded, tag, self._now_ms())
                while len(self._tables) > self._max_entries:
                    self._tables.popitem(last=False)

    def forget(self, identifier: Identifier) -> None:
        """Remove a table from the cache, whatever views it was loaded through."""
        with self._lock:
            for key in [key for key in self._tables if key[0] == identifier]:
                del self._tables[key]
