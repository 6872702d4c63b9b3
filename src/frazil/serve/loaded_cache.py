"""A cache of loaded tables and views with their JSON, by metadata location, since metadata files never change.

If a catalog can tell the metadata location without reading it (`Catalog.locate_table`), loading a cached table costs
one
look-up of its pointer, and the response body is ready. Other catalogs are asked each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, Final

from frazil.catalog.base import Catalog
from frazil.catalog.names import Identifier
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.codec.view_metadata_json import encode_view_metadata
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import scheme_of

BUDGET_BYTES: Final = 256 << 20
_BYTES_PER_TEXT_BYTE: Final = 3
"""The approximate memory use of an entry per byte of its JSON: the text, and the parsed values."""


@dataclass(frozen=True, slots=True)
class TableText:
    """A table's state with its metadata as JSON."""

    loaded: LoadedTable
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view's state with its metadata as JSON."""

    loaded: LoadedView
    text: bytes = field(repr=False)


class LoadedCache:
    """The most recently used states that fit the memory budget. Thread-safe."""

    def __init__(self, catalog: Catalog, budget_bytes: int = BUDGET_BYTES) -> None:
        self._catalog = catalog
        self._budget = budget_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Any, bytes]] = OrderedDict()
        self._bytes = 0

    def load_table(self, identifier: Identifier) -> TableText:
        """Return the current state of a table."""
        location = self._catalog.locate_table(identifier)
        cached = self._find(location)
        if cached is not None and location is not None:
            return TableText(LoadedTable(identifier, cached[0], location, self._catalog.storage), cached[1])
        return self.keep_table(self._catalog.load_table(identifier), is_fixed=location is not None)

    def load_view(self, identifier: Identifier) -> ViewText:
        """Return the current state of a view."""
        location = self._catalog.locate_view(identifier)
        cached = self._find(location)
        if cached is not None and location is not None:
            return ViewText(LoadedView(identifier, cached[0], location, self._catalog.storage), cached[1])
        loaded = self._catalog.load_view(identifier)
        text = encode_view_metadata(loaded.metadata, compress=False)
        self._keep(loaded, text, is_fixed=location is not None)
        return ViewText(loaded, text)

    def keep_table(self, loaded: LoadedTable, *, is_fixed: bool = True) -> TableText:
        """Encode a state as JSON, and cache it for later loads."""
        text = encode_table_metadata(loaded.metadata)
        self._keep(loaded, text, is_fixed=is_fixed)
        return TableText(loaded, text)

    def _find(self, location: str | None) -> tuple[Any, bytes] | None:
        if location is None:
            return None
        with self._lock:
            cached = self._kept.get(location)
            if cached is not None:
                self._kept.move_to_end(location)
        # A lost file should be noticed if checking costs next to nothing.
        if cached is not None and scheme_of(location) == "file" and not self._catalog.storage.exists(location):
            return None
        return cached

    def _keep(self, loaded: LoadedTable | LoadedView, text: bytes, *, is_fixed: bool) -> None:
        location, size = loaded.metadata_location, len(text) * _BYTES_PER_TEXT_BYTE
        if not is_fixed or location is None or size > self._budget:
            return
        with self._lock:
            if location in self._kept:
                return
            self._kept[location] = (loaded.metadata, text)
            self._bytes += size
            while self._bytes > self._budget:
                _, (_, oldest) = self._kept.popitem(last=False)
                self._bytes -= len(oldest) * _BYTES_PER_TEXT_BYTE


def with_referenced_snapshots(metadata: TableMetadata) -> TableMetadata:
    """Return metadata with only the snapshots that branches and tags refer to."""
    referenced = {ref.snapshot_id for ref in metadata.refs.values()} | {metadata.current_snapshot_id}
    cells = [cell for cell in metadata.snapshots.cells if cell.snapshot_id in referenced]
    return metadata if len(cells) == len(metadata.snapshots) else replace(metadata, snapshots=SnapshotList(cells))
