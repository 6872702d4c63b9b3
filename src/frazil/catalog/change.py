"""A change of a table or view as a catalog takes it: the state it was made from, the updates, and what must hold.

Catalogs that keep pointers carry it out, once, and swap (`catalog/pointer_catalog.py`, `catalog/filesystem.py`);
one that is a service is sent the updates and requirements, and carries them out itself.
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
    """What can be done to a table or to a view."""

    @property
    def base(self) -> LoadedT_co:
        """The state the change was made from."""

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedT_co:
        """Return the state that the change leads to, which is not written yet; the base where it is the same.

        A requirement that the base does not meet is a CommitConflictError.
        """


@dataclass(frozen=True, slots=True)
class TableChange:
    """Updates of one table, in order, and what must hold for them to be made.

    From a state that was never written they create the table: they come on top of what the state has.
    """

    base: LoadedTable
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedTable:
        """Return the table's next state, not written yet; the base where it is the same."""
        base, is_new = self.base, self.base.metadata_location is None
        check_requirements(None if is_new else base.metadata, self.requirements)
        made = apply_updates(base.metadata, self.updates, now_ms=now_ms, base_location=base.metadata_location)
        if made is base.metadata and not is_new:
            return base
        return LoadedTable(base.identifier, made, None, storage)


@dataclass(frozen=True, slots=True)
class ViewChange:
    """Updates of one view, in order, and what must hold for them to be made; as `TableChange`."""

    base: LoadedView
    updates: tuple[ViewUpdate, ...] = ()
    requirements: tuple[ViewRequirement, ...] = ()

    def carry_out(self, storage: Storage, *, now_ms: int) -> LoadedView:
        """Return the view's next state, not written yet; the base where it is the same."""
        base, is_new = self.base, self.base.metadata_location is None
        check_view_requirements(None if is_new else base.metadata, self.requirements)
        made = apply_view_updates(base.metadata, self.updates, now_ms=now_ms)
        if made is base.metadata and not is_new:
            return base
        return LoadedView(base.identifier, made, None, storage)
