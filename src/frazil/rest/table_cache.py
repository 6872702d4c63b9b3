"""Tables that were loaded a short while ago, by the tag their service gave them: asked again, it answers "the same"."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from frazil.catalog.names import Identifier
from frazil.loaded import LoadedTable

_Key = tuple[Identifier, tuple[Identifier, ...]]
"""A table, and the views it was loaded for."""


class CachedTable(NamedTuple):
    """A table, the tag of its state, and when it was loaded."""

    loaded: LoadedTable
    tag: str
    loaded_ms: int


class TableCache:
    """The last tables of one catalog. Several threads may use it."""

    def __init__(self, max_entries: int, max_age_ms: int, now_ms: Callable[[], int]) -> None:
        self._max_entries = max_entries
        self._max_age_ms = max_age_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._tables: OrderedDict[_Key, CachedTable] = OrderedDict()

    def find(self, identifier: Identifier, views: tuple[Identifier, ...] = ()) -> CachedTable | None:
        """Return a table, as it was loaded for views, that is not too old; else None."""
        key = (identifier, views)
        with self._lock:
            found = self._tables.get(key)
            if found is not None and self._now_ms() - found.loaded_ms > self._max_age_ms:
                del self._tables[key]
                return None
            return found

    def keep(self, loaded: LoadedTable, tag: str | None) -> None:
        """Keep a table by its tag; without one, forget what was kept."""
        key = (loaded.identifier, loaded.referenced_by)
        with self._lock:
            self._tables.pop(key, None)
            if tag is not None and self._max_entries > 0:
                self._tables[key] = CachedTable(loaded, tag, self._now_ms())
                while len(self._tables) > self._max_entries:
                    self._tables.popitem(last=False)

    def forget(self, identifier: Identifier) -> None:
        """Forget a table, for whatever views it was loaded."""
        with self._lock:
            for key in [key for key in self._tables if key[0] == identifier]:
                del self._tables[key]
