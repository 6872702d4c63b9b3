"""Change a view: what the commit loop (`commit/commit_loop.py`) does for views, as patient as for tables.

A view's change writes no files but its metadata, so nothing is left to clean up, and its updates are the same
whatever another writer committed first. Specification: the view specification, "Versions".
"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.catalog.base import Catalog
from frazil.catalog.outcomes import Outcome
from frazil.changes.requirements import AssertViewUuid
from frazil.changes.updates import ViewUpdate
from frazil.commit.commit_loop import SYSTEM_PACE, CommitLoop, Limits, Pace
from frazil.loaded import LoadedView


def change_view(
    catalog: Catalog, loaded: LoadedView, updates: Sequence[ViewUpdate], *, pace: Pace = SYSTEM_PACE
) -> LoadedView:
    """Change a view and return its new state; what another writer commits first is built upon.

    Updates that leave the metadata as it is commit nothing.
    """
    loop: CommitLoop[LoadedView] = CommitLoop(catalog, pace)
    return loop.run(_ViewChange(catalog, loaded, tuple(updates)), Limits([loaded.metadata.properties]))[0]


class _ViewChange:
    """The updates of a view, and the state they are made from at this attempt."""

    def __init__(self, catalog: Catalog, base: LoadedView, updates: tuple[ViewUpdate, ...]) -> None:
        self._catalog = catalog
        self._base = base
        self._updates = updates

    @property
    def names(self) -> str:
        """The view's name."""
        return self._base.name

    def send(self) -> Outcome[LoadedView]:
        """Have the catalog make the change."""
        return self._catalog.commit_view(self._base, self._updates, (AssertViewUuid(self._base.metadata.view_uuid),))

    def rebase(self, attempt: int) -> None:
        """Start from the present state."""
        self._base = self._catalog.refresh_view(self._base)

    def find_committed(self) -> None:
        """Find nothing: a view has no sign of who changed it."""
