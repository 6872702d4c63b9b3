"""A catalog in a metastore, Hive's or Glue: a catalog of pointers with the habits of metastores.

A table without a location of its own lies in its namespace's location, by its name; a namespace without one in
`<warehouse>/<name>.db`. Names are found in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.names import Identifier
from frazil.catalog.outcomes import LoadedT, Outcome, Unknown
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.changes.requirements import TableRequirement, ViewRequirement
from frazil.changes.updates import TableUpdate, ViewUpdate
from frazil.loaded import LoadedTable, LoadedView
from frazil.storage.locations import strip_slashes


class MetastoreCatalog(PointerCatalog):
    """A catalog whose pointers are in a metastore."""

    label: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.warehouse!r}, {self.label!r})"

    def commit(
        self,
        base: LoadedTable,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
    ) -> Outcome[LoadedTable]:
        """Change a table from a state of it; an unknown outcome is resolved at once."""
        return self._asked(super().commit(base, updates, requirements))

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Change a view from a state of it; an unknown outcome is resolved at once."""
        return self._asked(super().commit_view(base, updates, requirements))

    def _asked(self, outcome: Outcome[LoadedT]) -> Outcome[LoadedT]:
        return self.resolve_unknown(outcome) if isinstance(outcome, Unknown) else outcome

    def commit_many(self, changes: Sequence[TableChange]) -> Outcome[LoadedTable]:
        """Change one table; a metastore moves one pointer at a time."""
        return Catalog.commit_many(self, changes)

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views."""
        own = tuple(level.lower() for level in identifier)
        return ((name, location) for name, location in self._pointers.locations() if name != own)

    def _find_below(self, location: str) -> Identifier | None:
        # A pointer below a folder means a file below it: an empty folder spares asking for all tables.
        folder = strip_slashes(location)
        return None if next(iter(self.storage.list(folder)), None) is None else super()._find_below(folder)


def database_location(warehouse: str | None, database: str) -> str | None:
    """Return where a new database keeps its tables; None if the metastore is to say so."""
    return None if warehouse is None else f"{strip_slashes(warehouse)}/{database}.db"
