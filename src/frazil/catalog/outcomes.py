"""The outcome of a commit: it happened, it did not, or it is unknown; as values, so that exceptions cannot blur them.

The outcome tells the caller what may be cleaned up: after `Committed`, whatever the new state does not use; after
`Rejected`, everything that was written for the change; after `Unknown`, nothing, until `Catalog.resolve_unknown` has
turned it into one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from frazil.errors import CommitStateUnknownError, FrazilError
from frazil.loaded import LoadedTable, LoadedView

LoadedT = TypeVar("LoadedT", LoadedTable, LoadedView)


@dataclass(frozen=True, slots=True)
class Committed(Generic[LoadedT]):
    """The pointer moved. `all_loaded` are the new states, one for each table, in the order of the request."""

    all_loaded: tuple[LoadedT, ...]

    @property
    def loaded(self) -> LoadedT:
        """The new state of the only table or view, or of the first."""
        return self.all_loaded[0]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The pointer did not move and will not. `reason` can be raised and tells whether a retry makes sense."""

    reason: FrazilError
    current_location: str | None = None
    """Where the pointer was instead, or None if there is no such table or view."""


@dataclass(frozen=True, slots=True)
class Attempt(Generic[LoadedT]):
    """An attempted replacement: the base, and the state written for it."""

    base: LoadedT
    loaded: LoadedT


@dataclass(frozen=True, slots=True)
class Unknown(Generic[LoadedT]):
    """The pointer may or may not have moved."""

    error: CommitStateUnknownError
    attempts: tuple[Attempt[LoadedT], ...]


Outcome: TypeAlias = Committed[LoadedT] | Rejected | Unknown[LoadedT]
