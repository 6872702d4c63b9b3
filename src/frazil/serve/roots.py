"""The folders that a server reads and writes in: the warehouse, `delete.roots` and those that the operator named.

Clients that may write choose locations: of tables, views and namespaces, of metadata to register, of snapshots and
statistics. One outside of the folders is refused here before anything is opened, with one message, so that a client
does not learn which files exist. The storage refuses it once more, with links resolved, when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from frazil.changes.updates import (
    AddSnapshot,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
)
from frazil.errors import FrazilError
from frazil.serve.error_answers import FORBIDDEN
from frazil.serve.exchange import Refusal
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata
from frazil.storage.locations import is_within, join_location, scheme_of, table_folders

_PATHS: Final = (
    "location",
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_SPELLINGS: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of one server; None if it has no bounds, as over another catalog service."""

    folders: tuple[str, ...] | None = None
    is_limited: bool = False
    """Whether they are those of one namespace, for a caller who may not use others."""
    closed: tuple[str, ...] = ()
    """Folders inside of them that belong to namespaces which the caller may not use."""
    outer: Roots | None = None
    """The folders of the server, which hold as well."""

    def home(self, warehouse: str) -> str:
        """Return a folder inside, for what is placed without a location."""
        return self.folders[0] if self.is_limited and self.folders else warehouse

    def beside(self, metadata: TableMetadata | ViewMetadata) -> Roots:
        """Return the folders with those that a table or view has already."""
        if not self.is_limited or self.folders is None:
            return self
        own = table_folders(metadata.location, metadata.properties)
        return Roots((*self.folders, *own), is_limited=True, closed=self.closed, outer=self.outer)

    def check(self, location: str) -> None:
        """Refuse a location outside of the folders."""
        if self.folders is None:
            return
        try:
            is_inside = _is_in(location, self.folders) and not _is_in(location, self.closed)
        except FrazilError:
            is_inside = False
        if is_inside and self.outer is not None:
            self.outer.check(location)
        if not is_inside:
            raise Refusal(
                403,
                FORBIDDEN,
                f"Cannot use the location {location[:200]!r}: it is outside the folders of this server",
            )

    def check_properties(self, properties: Mapping[str, str], base: str) -> None:
        """Refuse properties that name a folder outside; a relative one is below `base`."""
        for name in _PATHS:
            if name in properties:
                self.check(join_location(base, properties[name]))

    def check_updates(self, updates: Iterable[Any], base: str) -> None:
        """Refuse changes of a table or view that name a file or folder outside; a relative one is below `base`."""
        for update in updates:
            if isinstance(update, SetLocation):
                self.check(update.location)
            elif isinstance(update, SetProperties):
                self.check_properties(update.updates, base)
            elif isinstance(update, AddSnapshot):
                self._check_snapshot(update.snapshot)
            elif isinstance(update, SetStatistics):
                self.check(update.statistics.statistics_path)
            elif isinstance(update, SetPartitionStatistics):
                self.check(update.partition_statistics.statistics_path)

    def check_metadata(self, metadata: TableMetadata | ViewMetadata) -> None:
        """Refuse metadata, as a client registers it, that names a file or folder outside."""
        self.check(metadata.location)
        self.check_properties(metadata.properties, metadata.location)
        if isinstance(metadata, TableMetadata):
            for snapshot in metadata.snapshots:
                self._check_snapshot(snapshot)
            for statistics in metadata.statistics:
                self.check(statistics.statistics_path)
            for partition_statistics in metadata.partition_statistics:
                self.check(partition_statistics.statistics_path)

    def _check_snapshot(self, snapshot: Snapshot) -> None:
        for location in (snapshot.manifest_list, *(snapshot.manifests or ())):
            if location is not None:
                self.check(location)


def _is_in(location: str, folders: Iterable[str]) -> bool:
    return any(is_within(_plain(location), _plain(folder)) for folder in folders)


def _plain(location: str) -> str:
    scheme = scheme_of(location)
    usual = _SPELLINGS.get(scheme or "")
    return location if usual is None else f"{usual}{location[len(scheme or '') :]}"
