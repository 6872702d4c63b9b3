"""A table or view as a catalog returned it: the start of every scan and commit. `table/` has the live `Table`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """One state of one table: its identifier, metadata, metadata location and storage.

    The metadata location of a table that is being created is None.
    """

    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    storage: Storage
    planner: Callable[..., Iterator[Any]] | None = field(default=None, compare=False, repr=False)
    """Plans scans in the catalog service, if the service plans scans of this table."""
    on_plan: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """Receives each plan that was read completely, if the catalog collects scan reports."""
    on_read: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """Receives each plan whose files are read, if there is an observer of reads."""
    referenced_by: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)
    """The views that the table was loaded for, outermost first. A service may allow access only through them."""

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)


@dataclass(frozen=True, slots=True)
class LoadedView:
    """One state of one view: its identifier, metadata, metadata location and storage."""

    identifier: tuple[str, ...]
    metadata: ViewMetadata
    metadata_location: str | None
    storage: Storage

    @property
    def name(self) -> str:
        """The identifier as text."""
        return ".".join(self.identifier)
