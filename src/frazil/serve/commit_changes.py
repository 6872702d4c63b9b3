"""Requirements and updates of clients to new states: the one loop for tables, several tables, and views.

Requirements are asked of the current state; where they fail the client has to look again, and the commit is a
conflict at once. Where they hold and another writer moves the pointer meanwhile, the same updates are applied to the
new state: clients see no conflict that is none. Updates are applied by `changes/`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from frazil.catalog.base import Catalog
from frazil.catalog.names import Identifier, namespace_not_found, shown, table_not_found, view_not_found
from frazil.catalog.outcomes import Committed, Outcome, Unknown
from frazil.changes.apply import apply_updates
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.requirements import AssertCreate, Requirement, check_requirements, check_view_requirements
from frazil.changes.updates import AssignUuid, SetLocation, Update
from frazil.errors import CommitConflictError, TableNotFoundError, ViewNotFoundError
from frazil.loaded import LoadedTable, LoadedView
from frazil.serve.loaded_cache import LoadedCache
from frazil.serve.name_locks import NameLocks
from frazil.serve.protocol_words import failed_requirement

TRIES: Final = 20
"""How often the same updates are applied to a state that another process moved on from."""

LoadedT = TypeVar("LoadedT", LoadedTable, LoadedView)


@dataclass(frozen=True, slots=True)
class Change:
    """What a client asks for of one table or view."""

    identifier: Identifier
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]

    @property
    def creates(self) -> bool:
        """Whether the table or view must not be there yet."""
        return any(isinstance(one, AssertCreate) for one in self.requirements)


class Committer:
    """Carries out changes on a catalog."""

    def __init__(self, catalog: Catalog, cache: LoadedCache) -> None:
        self._catalog = catalog
        self._cache = cache
        self._locks = NameLocks()

    def commit_tables(self, changes: Sequence[Change]) -> tuple[LoadedTable, ...]:
        """Carry out the changes of one or several tables, all or none; return the new states."""

        def attempt() -> Outcome[LoadedTable]:
            pairs = [self._next_table(one) for one in changes]
            if len(pairs) == 1:
                base, new = pairs[0]
                return self._catalog.swap(base, new.metadata)
            return self._catalog.swap_many([(base, new.metadata) for base, new in pairs])

        with self._locks.held(one.identifier for one in changes):
            return self._until_settled(attempt, changes)

    def commit_view(self, change: Change) -> LoadedView:
        """Carry out the change of a view; return its new state."""

        def attempt() -> Outcome[LoadedView]:
            base, new = self._next_view(change)
            return self._catalog.swap_view(base, new.metadata)

        with self._locks.held([change.identifier]):
            return self._until_settled(attempt, [change])[0]

    def _until_settled(self, attempt: Callable[[], Outcome[LoadedT]], changes: Sequence[Change]) -> tuple[LoadedT, ...]:
        for _ in range(TRIES):
            outcome = attempt()
            if isinstance(outcome, Unknown):
                outcome = self._catalog.resolve_unknown(outcome)
            if isinstance(outcome, Committed):
                return outcome.all_loaded
            if isinstance(outcome, Unknown):
                raise outcome.error
            if not outcome.reason.retryable:
                raise outcome.reason
        names = ", ".join(shown(one.identifier) for one in changes)
        raise CommitConflictError(f"Cannot commit to {names}: other writers keep committing first")

    def _next_table(self, change: Change) -> tuple[LoadedTable, LoadedTable]:
        try:
            base = self._cache.load_table(change.identifier).loaded
        except TableNotFoundError:
            if not change.creates:
                self._check_namespace(change.identifier)
                raise table_not_found(change.identifier) from None
            return self._new_table(change)
        for one in change.requirements:
            with _named(one):
                check_requirements(base.metadata, [one])  # type: ignore[list-item]
        metadata = apply_updates(
            base.metadata,
            change.updates,  # type: ignore[arg-type]
            now_ms=self._catalog.now_ms(),
            base_location=base.metadata_location,
        )
        return base, LoadedTable(change.identifier, metadata, None, self._catalog.storage)

    def _new_table(self, change: Change) -> tuple[LoadedTable, LoadedTable]:
        updates = self._placed(change)
        check_requirements(None, change.requirements)  # type: ignore[arg-type]
        metadata = apply_updates(None, updates, now_ms=self._catalog.now_ms())  # type: ignore[arg-type]
        made = LoadedTable(change.identifier, metadata, None, self._catalog.storage)
        return made, made

    def _next_view(self, change: Change) -> tuple[LoadedView, LoadedView]:
        try:
            base = self._cache.load_view(change.identifier).loaded
        except ViewNotFoundError:
            if not change.creates:
                self._check_namespace(change.identifier)
                raise view_not_found(change.identifier) from None
            metadata = apply_view_updates(None, self._placed(change), now_ms=self._catalog.now_ms())  # type: ignore[arg-type]
            made = LoadedView(change.identifier, metadata, None, self._catalog.storage)
            return made, made
        for one in change.requirements:
            with _named(one):
                check_view_requirements(base.metadata, [one])  # type: ignore[list-item]
        metadata = apply_view_updates(base.metadata, change.updates, now_ms=self._catalog.now_ms())  # type: ignore[arg-type]
        return base, LoadedView(change.identifier, metadata, None, self._catalog.storage)

    def _placed(self, change: Change) -> tuple[Update, ...]:
        """Return the updates of something new, with an identity and a place that nobody else has."""
        self._check_namespace(change.identifier)
        taken = self._catalog.find_existing(change.identifier)
        if taken is not None:
            raise taken
        given = next((one.location for one in reversed(change.updates) if isinstance(one, SetLocation)), None)
        location = self._catalog.new_location(change.identifier, given)
        added: list[Update] = [] if given is not None else [SetLocation(location)]
        if not any(isinstance(one, AssignUuid) for one in change.updates):
            added.append(AssignUuid(self._catalog.new_id()))
        return (*added, *change.updates)

    def _check_namespace(self, identifier: Identifier) -> None:
        if not self._catalog.namespace_exists(identifier[:-1]):
            raise namespace_not_found(identifier[:-1])


@contextmanager
def _named(requirement: Requirement) -> Iterator[None]:
    """Say which requirement it was that does not hold."""
    try:
        yield
    except CommitConflictError as problem:
        raise CommitConflictError(f"{failed_requirement(requirement)}. {problem.message}") from problem
