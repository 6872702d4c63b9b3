"""A change of a table or view, as passed to a catalog: its base state, the updates, and the requirements.

Pointer catalogs apply it once and then swap the pointer (`catalog/pointer_catalog.py`, `catalog/filesystem.py`); a
catalog service receives the updates and requirements and applies them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from frazil.changes.apply import apply_updates
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.requirements import (
    TableRequirement,
    ViewRequirement,
    check_requirements,
    check_view_requirements,
)
from frazil.changes.updates import TableUpdate, ViewUpdate
from frazil.loaded import LoadedTable, LoadedView
from frazil.storage.base import Storage

LoadedT_co = TypeVar("LoadedT_co", LoadedTable, LoadedView, covariant=True)


class Change(Protocol[LoadedT_co]):
    """A change that can be made to a table or to a view."""

    @property
    def base(self) -> LoadedT_co:
        """The state the change was made from."""

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedT_co:
        """Return the unwritten state that results from the change, or the base if nothing changes.

        A requirement that the base does not meet raises a CommitConflictError.
        """


@dataclass(frozen=True, slots=True)
class TableChange:
    """Updates of one table, in order, and the requirements for applying them.

    Applied to a state that was never written, they create the table.
    """

    base: LoadedTable
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedTable:
        """Return the table's next, unwritten state, or the base if nothing changes."""
        base, is_new = self.base, self.base.metadata_location is None
        check_requirements(None if is_new else base.metadata, self.requirements)
        metadata = apply_updates(base.metadata, self.updates, now_ms=now_ms, base_location=base.metadata_location)
        if metadata is base.metadata and not is_new:
            return base
        return LoadedTable(base.identifier, metadata, None, storage)


@dataclass(frozen=True, slots=True)
class ViewChange:
    """Updates of one view, in order, and the requirements for applying them; like `TableChange`."""

    base: LoadedView
    updates: tuple[ViewUpdate, ...] = ()
    requirements: tuple[ViewRequirement, ...] = ()

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedView:
        """Return the view's next, unwritten state, or the base if nothing changes."""
        base, is_new = self.base, self.base.metadata_location is None
        check_view_requirements(None if is_new else base.metadata, self.requirements)
        metadata = apply_view_updates(base.metadata, self.updates, now_ms=now_ms)
        if metadata is base.metadata and not is_new:
            return base
        return LoadedView(base.identifier, metadata, None, storage)
