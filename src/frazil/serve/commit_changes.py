"""Requirements and updates of clients to new states, of tables, several tables, and views.

Requirements are asked of the current state; where they fail the client has to look again, and the commit is a
conflict at once. Where they hold and another writer moves the pointer meanwhile, the same updates are made on the new
state, by the retry loop of commits (`commit/commit_loop.py`): clients see no conflict that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange, ViewChange
from frazil.catalog.names import (
    Identifier,
    Namespace,
    format_name,
    namespace_not_found,
    table_not_found,
    view_not_found,
)
from frazil.catalog.outcomes import LoadedT, Outcome
from frazil.changes.apply import apply_updates
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.requirements import AssertCreate, check_requirements, check_view_requirements
from frazil.changes.updates import AssignUuid, SetLocation
from frazil.commit.commit_loop import CommitLoop, Limits
from frazil.errors import CommitConflictError, TableNotFoundError, ViewNotFoundError
from frazil.loaded import LoadedTable, LoadedView
from frazil.serve.auth import Caller
from frazil.serve.loaded_cache import LoadedCache
from frazil.serve.name_locks import NameLocks
from frazil.serve.protocol_words import failed_requirement
from frazil.serve.roots import Roots


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for of one table, or of one view."""

    identifier: Identifier
    requirements: tuple[Any, ...]
    updates: tuple[Any, ...]

    @property
    def creates(self) -> bool:
        """Whether the table or view must not be there yet."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.requirements)


@dataclass
class _Attempts(Generic[LoadedT]):
    """Changes on their way into the catalog: each time on the present state, if it meets their requirements."""

    names: str
    send: Callable[[], Outcome[LoadedT]]

    def rebase(self, _: int) -> tuple[LoadedT, ...] | None:
        """Do nothing: `send` loads the present state."""
        return None

    def find_committed(self) -> tuple[LoadedT, ...] | None:
        """Return nothing: who asked can tell, by the key of the request."""
        return None


class Committer:
    """Carries out changes on a catalog."""

    def __init__(self, catalog: Catalog, cache: LoadedCache, roots_of: Callable[[Caller, Namespace], Roots]) -> None:
        self._catalog = catalog
        self._roots_of = roots_of
        self._cache = cache
        self._locks = NameLocks()

    def commit_tables(self, asked: Sequence[Asked], caller: Caller) -> tuple[LoadedTable, ...]:
        """Carry out the changes of one or several tables, all or none; return the new states."""

        def send() -> Outcome[LoadedTable]:
            return self._catalog.commit_many([self._table_change(change, caller) for change in asked])

        names = [change.identifier for change in asked]
        with self._locks.held(names):
            attempts = _Attempts(", ".join(map(format_name, names)), send)
            return CommitLoop[LoadedTable](self._catalog).run(attempts, Limits(()))

    def commit_view(self, asked: Asked, caller: Caller) -> LoadedView:
        """Carry out the change of a view; return its new state."""

        def send() -> Outcome[LoadedView]:
            change = self._view_change(asked, caller)
            return self._catalog.commit_view(change.base, change.updates, change.requirements)

        with self._locks.held([asked.identifier]):
            attempts = _Attempts(format_name(asked.identifier), send)
            return CommitLoop[LoadedView](self._catalog).run(attempts, Limits(()))[0]

    def _table_change(self, asked: Asked, caller: Caller) -> TableChange:
        roots = self._roots_of(caller, asked.identifier[:-1])
        try:
            base = self._cache.load_table(asked.identifier).loaded
        except TableNotFoundError:
            if not asked.creates:
                self._check_namespace(asked.identifier)
                raise table_not_found(asked.identifier) from None
            metadata = apply_updates(None, self._placed(asked, roots), now_ms=self._catalog.now_ms())
            roots.check_metadata(metadata)
            made = LoadedTable(asked.identifier, metadata, None, self._catalog.storage)
            return TableChange(made, (), asked.requirements)
        for requirement in asked.requirements:
            with _named(requirement):
                check_requirements(base.metadata, [requirement])
        roots.beside(base.metadata).check_updates(asked.updates, base.metadata.location)
        return TableChange(base, asked.updates, asked.requirements)

    def _view_change(self, asked: Asked, caller: Caller) -> ViewChange:
        roots = self._roots_of(caller, asked.identifier[:-1])
        try:
            base = self._cache.load_view(asked.identifier).loaded
        except ViewNotFoundError:
            if not asked.creates:
                self._check_namespace(asked.identifier)
                raise view_not_found(asked.identifier) from None
            metadata = apply_view_updates(None, self._placed(asked, roots), now_ms=self._catalog.now_ms())
            roots.check_metadata(metadata)
            made = LoadedView(asked.identifier, metadata, None, self._catalog.storage)
            return ViewChange(made, (), asked.requirements)
        for requirement in asked.requirements:
            with _named(requirement):
                check_view_requirements(base.metadata, [requirement])
        roots.beside(base.metadata).check_updates(asked.updates, base.metadata.location)
        return ViewChange(base, asked.updates, asked.requirements)

    def _placed(self, asked: Asked, roots: Roots) -> tuple[Any, ...]:
        """Return the updates of something new, with an identity and a location that nobody else has."""
        self._check_namespace(asked.identifier)
        taken = self._catalog.find_existing(asked.identifier)
        if taken is not None:
            raise taken
        given = next((update.location for update in reversed(asked.updates) if isinstance(update, SetLocation)), None)
        if given is not None:
            # Before the catalog says what is there.
            roots.check(given)
        location = self._catalog.new_location(asked.identifier, given)
        added: list[Any] = [] if given is not None else [SetLocation(location)]
        if not any(isinstance(update, AssignUuid) for update in asked.updates):
            added.append(AssignUuid(self._catalog.new_id()))
        return (*added, *asked.updates)

    def _check_namespace(self, identifier: Identifier) -> None:
        if not self._catalog.namespace_exists(identifier[:-1]):
            raise namespace_not_found(identifier[:-1])


@contextmanager
def _named(requirement: Any) -> Iterator[None]:
    """Say which requirement it was that does not hold."""
    try:
        yield
    except CommitConflictError as problem:
        raise CommitConflictError(f"{failed_requirement(requirement)}. {problem.message}") from problem
