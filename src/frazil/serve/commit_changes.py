"""Commits the requirements and updates of clients, for tables, several tables, and views.

Requirements are checked against the current state; if they fail, the client has to reload, and the commit is a
conflict.
If they hold but another writer moves the pointer meanwhile, the same updates are applied to the new state by the retry
loop of commits (`commit/commit_loop.py`), so that clients see only real conflicts.
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
from frazil.serve.error_messages import failed_requirement
from frazil.serve.loaded_cache import LoadedCache
from frazil.serve.name_locks import NameLocks
from frazil.serve.roots import Roots


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """The change of one table or view that a client requests."""

    identifier: Identifier
    requirements: tuple[Any, ...]
    updates: tuple[Any, ...]

    @property
    def creates(self) -> bool:
        """Whether the change requires that the table or view does not exist yet."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.requirements)


@dataclass
class _Attempts(Generic[LoadedT]):
    """Attempts to commit changes, each based on the present state if it meets their requirements."""

    names: str
    send: Callable[[], Outcome[LoadedT]]

    def rebase(self, _: int) -> tuple[LoadedT, ...] | None:
        """Do nothing: `send` loads the present state."""
        return None

    def find_committed(self) -> tuple[LoadedT, ...] | None:
        """Return None: the client can find out, by the key of the request."""
        return None


class Committer:
    """Applies changes to a catalog."""

    def __init__(self, catalog: Catalog, cache: LoadedCache, roots_of: Callable[[Caller, Namespace], Roots]) -> None:
        self._catalog = catalog
        self._roots_of = roots_of
        self._cache = cache
        self._locks = NameLocks()

    def commit_tables(self, requests: Sequence[ChangeRequest], caller: Caller) -> tuple[LoadedTable, ...]:
        """Commit the changes of one or several tables, all or none; return the new states."""

        def send() -> Outcome[LoadedTable]:
            return self._catalog.commit_many([self._table_change(change, caller) for change in requests])

        names = [change.identifier for change in requests]
        with self._locks.held(names):
            attempts = _Attempts(", ".join(map(format_name, names)), send)
            return CommitLoop[LoadedTable](self._catalog).run(attempts, Limits(()))

    def commit_view(self, change_request: ChangeRequest, caller: Caller) -> LoadedView:
        """Commit the change of a view; return its new state."""

        def send() -> Outcome[LoadedView]:
            change = self._view_change(change_request, caller)
            return self._catalog.commit_view(change.base, change.updates, change.requirements)

        with self._locks.held([change_request.identifier]):
            attempts = _Attempts(format_name(change_request.identifier), send)
            return CommitLoop[LoadedView](self._catalog).run(attempts, Limits(()))[0]

    def _table_change(self, request: ChangeRequest, caller: Caller) -> TableChange:
        roots = self._roots_of(caller, request.identifier[:-1])
        try:
            base = self._cache.load_table(request.identifier).loaded
        except TableNotFoundError:
            if not request.creates:
                self._check_namespace(request.identifier)
                raise table_not_found(request.identifier) from None
            metadata = apply_updates(None, self._placed(request, roots), now_ms=self._catalog.now_ms())
            roots.check_metadata(metadata)
            staged = LoadedTable(request.identifier, metadata, None, self._catalog.storage)
            return TableChange(staged, (), request.requirements)
        for requirement in request.requirements:
            with _named(requirement):
                check_requirements(base.metadata, [requirement])
        roots.beside(base.metadata).check_updates(request.updates, base.metadata.location)
        return TableChange(base, request.updates, request.requirements)

    def _view_change(self, request: ChangeRequest, caller: Caller) -> ViewChange:
        roots = self._roots_of(caller, request.identifier[:-1])
        try:
            base = self._cache.load_view(request.identifier).loaded
        except ViewNotFoundError:
            if not request.creates:
                self._check_namespace(request.identifier)
                raise view_not_found(request.identifier) from None
            metadata = apply_view_updates(None, self._placed(request, roots), now_ms=self._catalog.now_ms())
            roots.check_metadata(metadata)
            staged = LoadedView(request.identifier, metadata, None, self._catalog.storage)
            return ViewChange(staged, (), request.requirements)
        for requirement in request.requirements:
            with _named(requirement):
                check_view_requirements(base.metadata, [requirement])
        roots.beside(base.metadata).check_updates(request.updates, base.metadata.location)
        return ViewChange(base, request.updates, request.requirements)

    def _placed(self, request: ChangeRequest, roots: Roots) -> tuple[Any, ...]:
        """Return the updates that create a table or view, with a new identity and a location of its own."""
        self._check_namespace(request.identifier)
        existing = self._catalog.find_existing(request.identifier)
        if existing is not None:
            raise existing
        requested_location = next(
            (update.location for update in reversed(request.updates) if isinstance(update, SetLocation)), None
        )
        if requested_location is not None:
            # Checked before the catalog reveals what exists there.
            roots.check(requested_location)
        location = self._catalog.new_location(request.identifier, requested_location)
        added: list[Any] = [] if requested_location is not None else [SetLocation(location)]
        if not any(isinstance(update, AssignUuid) for update in request.updates):
            added.append(AssignUuid(self._catalog.new_id()))
        return (*added, *request.updates)

    def _check_namespace(self, identifier: Identifier) -> None:
        if not self._catalog.namespace_exists(identifier[:-1]):
            raise namespace_not_found(identifier[:-1])


@contextmanager
def _named(requirement: Any) -> Iterator[None]:
    """Add the failed requirement to the error."""
    try:
        yield
    except CommitConflictError as problem:
        raise CommitConflictError(f"{failed_requirement(requirement)}. {problem.message}") from problem
