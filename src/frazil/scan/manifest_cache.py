"""Decoded manifests, kept within a memory budget. Manifests never change, so what is here is never stale.

A plan asks for some columns of a manifest; an entry that has at least those serves it. Least recently used
entries go first. The last few lists of manifests are kept too: a change reads the same one as it plans and as it
commits. Safe to use from several threads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from frazil.codec.manifest_avro import ManifestColumns
from frazil.spec.manifest import ManifestFile

DEFAULT_BUDGET_BYTES = 64 * 1024 * 1024
"""Manifests of 120,000 files with metrics of ten columns, or of 450,000 without metrics."""

_MANY_LISTS = 4
_LONG_LIST = 2000


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
        """The bytes held."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Hashable, fields: frozenset[str]) -> ManifestColumns | None:
        """Return a manifest that was kept with at least these columns, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not fields <= entry[2]:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def keep(self, key: Hashable, manifest: ManifestColumns) -> None:
        """Keep a manifest, in place of one with fewer columns; one larger than the budget is not kept."""
        size = int(manifest.table.get_total_buffer_size())
        with self._lock:
            known = self._entries.pop(key, None)
            if known is not None:
                self._bytes -= known[1]
            if size > self.budget_bytes:
                return
            self._entries[key] = (manifest, size, frozenset(manifest.table.column_names))
            self._bytes += size
            while self._bytes > self.budget_bytes:
                _, (_, dropped, _) = self._entries.popitem(last=False)
                self._bytes -= dropped

    def find_list(self, path: str) -> list[ManifestFile] | None:
        """Return the manifests of a list that was kept, or None."""
        with self._lock:
            found = self._lists.get(path)
            return None if found is None else list(found)

    def keep_list(self, path: str, manifests: list[ManifestFile]) -> None:
        """Keep a list of manifests, unless it is long, in place of the one that was kept first."""
        with self._lock:
            if len(manifests) <= _LONG_LIST:
                self._lists[path] = tuple(manifests)
            while len(self._lists) > _MANY_LISTS:
                self._lists.popitem(last=False)
