"""A table or view as a catalog returned it: where scans and commits start. `Table` in `lake/` holds the live one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """One state of one table: its identifier, its metadata, where that was read, and the storage to read on.

    Of a table that is being created the location is None: nothing of it has been written.
    """

    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    storage: Storage
    planner: Callable[..., Iterator[Any]] | None = field(default=None, compare=False, repr=False)
    """Where the catalog is a service that wants to plan scans of the table: what has it do so."""
    on_plan: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """Where the catalog wants to know of scans: what is told of each plan that was read to its end."""
    on_read: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """Where somebody wants to know of reads: what is told of each plan whose files are read."""
    referenced_by: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)
    """Where it was loaded for a view: the views, the outermost first. A service may let it be read by them alone."""

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)


@dataclass(frozen=True, slots=True)
class LoadedView:
    """One state of one view: its identifier, its metadata, where that was read, and the storage it is on."""

    identifier: tuple[str, ...]
    metadata: ViewMetadata
    metadata_location: str | None
    storage: Storage

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)
