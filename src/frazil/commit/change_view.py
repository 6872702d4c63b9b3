"""Change a view: the view's part of the commit loop (`commit/commit_loop.py`), with the same retries as for tables.

A change of a view writes no files except its metadata, so there is nothing to clean up, and its updates do not depend
on what other writers committed first. Specification: the view specification, "Versions".
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
    """Change a view and return its new state, on top of the commits of other writers.

    Updates that do not change the metadata commit nothing.
    """
    loop: CommitLoop[LoadedView] = CommitLoop(catalog, pace)
    return loop.run(_ViewChange(catalog, loaded, tuple(updates)), Limits([loaded.metadata.properties]))[0]


class _ViewChange:
    """The updates of a view, and the state that this attempt starts from."""

    def __init__(self, catalog: Catalog, base: LoadedView, updates: tuple[ViewUpdate, ...]) -> None:
        self._catalog = catalog
        self._base = base
        self._updates = updates

    @property
    def names(self) -> str:
        """The view's name."""
        return self._base.name

    def send(self) -> Outcome[LoadedView]:
        """Send the change to the catalog."""
        return self._catalog.commit_view(self._base, self._updates, (AssertViewUuid(self._base.metadata.view_uuid),))

    def rebase(self, attempt: int) -> None:
        """Start from the present state."""
        self._base = self._catalog.refresh_view(self._base)

    def find_committed(self) -> None:
        """Do nothing: a view does not record who changed it."""
