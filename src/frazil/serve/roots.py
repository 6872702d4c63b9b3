"""The folders that a server reads and writes: the warehouse, `delete.roots` and those named by the operator.

Clients with write access choose locations: of tables, views and namespaces, of metadata to register, of snapshots and
statistics. A location outside the folders is refused here before anything is opened, always with the same message, so
that a client does not learn which files exist. The storage checks again, with links resolved, when it opens a file.

A caller with rights in some namespaces only is restricted to their folders: a location there is also refused if it
overlaps a folder of a table, view or namespace that is closed to the caller, such as that of a renamed table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from frazil.storage.locations import is_under, is_within, join_location, may_overlap, table_folders

_PATHS: Final = (
    "location",
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of one server; None if unrestricted, as in `frazil ui` over a catalog service."""

    folders: tuple[str, ...] | None = None

    def home(self, warehouse: str) -> str:
        """Return an allowed folder for objects without a location."""
        return warehouse

    def beside(self, metadata: TableMetadata | ViewMetadata) -> Roots:
        """Return the folders extended by those that a table or view already has."""
        return self

    def holds(self, location: str) -> bool:
        """Return whether a location is inside the folders."""
        return self.folders is None or any(is_within(location, folder) for folder in self.folders)

    def check(self, location: str) -> None:
        """Refuse a location outside the folders."""
        try:
            is_inside = self.holds(location)
        except FrazilError:
            is_inside = False
        if not is_inside:
            raise Refusal(
                403,
                FORBIDDEN,
                f"Cannot use the location {location[:200]!r}: it is outside the folders of this server",
            )

    def check_properties(self, properties: Mapping[str, str], base: str) -> None:
        """Refuse properties that name a folder outside; relative ones are resolved against `base`."""
        for name in _PATHS:
            if name in properties:
                self.check(join_location(base, properties[name]))

    def check_updates(self, updates: Iterable[Any], base: str) -> None:
        """Refuse updates that name a file or folder outside; relative ones are resolved against `base`."""
        for update in updates:
            if isinstance(update, SetLocation):
                self.check(update.location)
            elif isinstance(update, SetProperties):
                self.check_properties(update.updates, base)
            elif isinstance(update, AddSnapshot):
                self.check_snapshot(update.snapshot)
            elif isinstance(update, SetStatistics):
                self.check(update.statistics.statistics_path)
            elif isinstance(update, SetPartitionStatistics):
                self.check(update.partition_statistics.statistics_path)

    def check_metadata(self, metadata: TableMetadata | ViewMetadata) -> None:
        """Refuse metadata to be registered that names a file or folder outside."""
        self.check(metadata.location)
        self.check_properties(metadata.properties, metadata.location)
        if isinstance(metadata, TableMetadata):
            for snapshot in metadata.snapshots:
                self.check_snapshot(snapshot)
            for statistics in metadata.statistics:
                self.check(statistics.statistics_path)
            for partition_statistics in metadata.partition_statistics:
                self.check(partition_statistics.statistics_path)

    def check_snapshot(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot whose manifests are outside."""
        for location in (snapshot.manifest_list, *(snapshot.manifests or ())):
            if location is not None:
                self.check(location)


@dataclass(frozen=True, slots=True)
class NamespaceRoots(Roots):
    """The folders of one namespace, for a caller to whom others are closed."""

    server: Roots = Roots()
    """The folders of the server, which apply as well."""
    closed: tuple[str, ...] = ()
    """Folders of child namespaces that are closed to the caller."""
    find_closed: Callable[[], Sequence[str]] = tuple
    """Returns the folders of all namespaces, tables and views that are closed to the caller, wherever they are."""
    own: tuple[str, ...] = ()
    """The folders that a table or view already has."""

    def home(self, warehouse: str) -> str:
        """Return an allowed folder for objects without a location."""
        return self.folders[0] if self.folders else warehouse

    def beside(self, metadata: TableMetadata | ViewMetadata) -> NamespaceRoots:
        """Return the folders extended by those that a table or view already has."""
        return replace(self, own=table_folders(metadata.location, metadata.properties))

    def holds(self, location: str) -> bool:
        """Return whether a location is the caller's; a whole namespace folder is not, since later tables share it."""
        if not self.server.holds(location) or _overlaps(location, self.closed):
            return False
        if any(is_within(location, folder) for folder in self.own):
            return True
        is_inside = any(is_under(location, folder) for folder in self.folders or ())
        return is_inside and not _overlaps(location, self.find_closed())


def _overlaps(location: str, folders: Iterable[str]) -> bool:
    return any(may_overlap(location, folder) for folder in folders)
