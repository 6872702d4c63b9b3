"""A table as a catalog returned it: what scans and commits start from. `Table` in `lake/` holds the live one."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """One state of one table: its identifier, its metadata, where that was read, and the storage to read on."""

    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    storage: Storage

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)
