"""Tables and views that were loaded lately, with their JSON: a metadata file never changes, so its location is the key.

Where a catalog can tell where metadata is without reading it (`Catalog.locate_table`), a load of a table that was
loaded before costs one look at its pointer, and the answer's body is there already. Other catalogs are asked each time.
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
"""About what an entry takes for each byte of its JSON: the text, and the values that were read from it."""


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
    """The states that were asked for last, as many as fit the budget. Several threads may ask."""

    def __init__(self, catalog: Catalog, budget_bytes: int = BUDGET_BYTES) -> None:
        self._catalog = catalog
        self._budget = budget_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Any, bytes]] = OrderedDict()
        self._bytes = 0

    def load_table(self, identifier: Identifier) -> TableText:
        """Return the current state of a table."""
        location = self._catalog.locate_table(identifier)
        known = self._find(location)
        if known is not None and location is not None:
            return TableText(LoadedTable(identifier, known[0], location, self._catalog.storage), known[1])
        return self.keep_table(self._catalog.load_table(identifier), is_fixed=location is not None)

    def load_view(self, identifier: Identifier) -> ViewText:
        """Return the current state of a view."""
        location = self._catalog.locate_view(identifier)
        known = self._find(location)
        if known is not None and location is not None:
            return ViewText(LoadedView(identifier, known[0], location, self._catalog.storage), known[1])
        loaded = self._catalog.load_view(identifier)
        text = encode_view_metadata(loaded.metadata, compress=False)
        self._keep(loaded, text, is_fixed=location is not None)
        return ViewText(loaded, text)

    def keep_table(self, loaded: LoadedTable, *, is_fixed: bool = True) -> TableText:
        """Return a state with its JSON, and keep it for those who load it next."""
        text = encode_table_metadata(loaded.metadata)
        self._keep(loaded, text, is_fixed=is_fixed)
        return TableText(loaded, text)

    def _find(self, location: str | None) -> tuple[Any, bytes] | None:
        if location is None:
            return None
        with self._lock:
            known = self._kept.get(location)
            if known is not None:
                self._kept.move_to_end(location)
        # A file that was lost is to be noticed, where looking costs next to nothing.
        if known is not None and scheme_of(location) == "file" and not self._catalog.storage.exists(location):
            return None
        return known

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
    """Return metadata with only the snapshots that branches and tags are at."""
    wanted = {ref.snapshot_id for ref in metadata.refs.values()} | {metadata.current_snapshot_id}
    cells = [cell for cell in metadata.snapshots.cells if cell.snapshot_id in wanted]
    return metadata if len(cells) == len(metadata.snapshots) else replace(metadata, snapshots=SnapshotList(cells))
