"""Tables that were loaded a short while ago, by the tag their service gave them: asked again, it answers "the same"."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from frazil.catalog.names import Identifier
from frazil.loaded import LoadedTable


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
        self._tables: OrderedDict[Identifier, CachedTable] = OrderedDict()

    def find(self, identifier: Identifier) -> CachedTable | None:
        """Return a table that is not too old, or None."""
        with self._lock:
            found = self._tables.get(identifier)
            if found is not None and self._now_ms() - found.loaded_ms > self._max_age_ms:
                del self._tables[identifier]
                return None
            return found

    def keep(self, loaded: LoadedTable, tag: str | None) -> None:
        """Keep a table by its tag; without one, forget what was kept."""
        with self._lock:
            self._tables.pop(loaded.identifier, None)
            if tag is not None and self._max_entries > 0:
                self._tables[loaded.identifier] = CachedTable(loaded, tag, self._now_ms())
                while len(self._tables) > self._max_entries:
                    self._tables.popitem(last=False)

    def forget(self, identifier: Identifier) -> None:
        """Forget a table."""
        with self._lock:
            self._tables.pop(identifier, None)
