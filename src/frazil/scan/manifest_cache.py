"""A cache of decoded manifests with a memory budget. Manifests are immutable, so entries are never stale.

A plan reads some columns of a manifest; an entry that has at least those columns serves it. Least recently used entries
are evicted first. The last few manifest lists are cached too, since a change reads the same list when it plans and when
it commits. Thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from frazil.codec.manifest_avro import ManifestColumns
from frazil.spec.manifest import ManifestFile

DEFAULT_BUDGET_BYTES = 64 * 1024 * 1024
"""Manifests of 120,000 files with metrics of ten columns, or of 450,000 without metrics."""

_MAX_LISTS = 4
_MAX_LIST_LENGTH = 2000


class ManifestCache:
    """A least-recently-used cache of decoded manifests by key, measured in bytes."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._entries: OrderedDict[Hashable, tuple[ManifestColumns, int, frozenset[str]]] = OrderedDict()
        self._lists: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """The size of the cached manifests."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Hashable, fields: frozenset[str]) -> ManifestColumns | None:
        """Return a cached manifest with at least these columns, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not fields <= entry[2]:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def keep(self, key: Hashable, manifest: ManifestColumns) -> None:
        """Cache a manifest, replacing an entry with fewer columns; manifests larger than the budget are not cached."""
        size = int(manifest.table.get_total_buffer_size())
        with self._lock:
            replaced = self._entries.pop(key, None)
            if replaced is not None:
                self._bytes -= replaced[1]
            if size > self.budget_bytes:
                return
            self._entries[key] = (manifest, size, frozenset(manifest.table.column_names))
            self._bytes += size
            while self._bytes > self.budget_bytes:
                _, (_, dropped, _) = self._entries.popitem(last=False)
                self._bytes -= dropped

    def find_list(self, path: str) -> list[ManifestFile] | None:
        """Return the manifests of a cached list, or None."""
        with self._lock:
            cached = self._lists.get(path)
            return None if cached is None else list(cached)

    def keep_list(self, path: str, manifests: list[ManifestFile]) -> None:
        """Cache a list of manifests unless it is long, evicting the oldest."""
        with self._lock:
            if len(manifests) <= _MAX_LIST_LENGTH:
                self._lists[path] = tuple(manifests)
            while len(self._lists) > _MAX_LISTS:
                self._lists.popitem(last=False)
