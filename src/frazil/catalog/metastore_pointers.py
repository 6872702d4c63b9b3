"""Pointers in a metastore that others use too: one level of namespaces, tables of every kind, one pointer at a time.

What the Hive Metastore and Glue have in common. Both compare and swap one table in one request. When the answer to such
a request is lost, it may still be on its way, and reading the table once more cannot tell: it may arrive afterwards.
Sending the same change again can. Either it is carried out now, or it finds the pointer moved, by the first request or
by another writer, and from then on no request that expects the old pointer is carried out.

Names are kept in lower case, and found in any.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from frazil.catalog.names import Identifier, Namespace, format_name, table_not_found, view_not_found
from frazil.catalog.pointers import EntityType, Pointer, PointerChange, Pointers, Stale
from frazil.errors import (
    CommitStateUnknownError,
    InvalidRequestError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)

_DATABASE_NAME: Final = re.compile(r"[a-z0-9_]+")
_TRIES: Final = 4
_WAIT_SECONDS: Final = 0.2


class NotReached(Exception):
    """A request was not sent, so nothing happened. Does not leave the catalog room."""


class AnswerMissing(Exception):
    """A request may have been carried out. Does not leave the catalog room."""


class MetastorePointers(Pointers):
    """The common part of all metastores."""

    label: str
    """The metastore, for messages."""

    def __init__(self, *, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    def check_identifier(self, identifier: Identifier) -> None:
        """Accept every name; one that cannot be kept is not found, and the metastore refuses to create it."""

    def check_namespace(self, namespace: Namespace) -> None:
        """Accept every name, as `check_identifier` does."""

    def check_location(self, location: str) -> None:
        """Accept every location."""

    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        """Carry out a change of unknown outcome, unless it or another has been carried out."""
        pointer = self.find(change.identifier)
        location = None if pointer is None else pointer.metadata_location
        if location == change.expected and (pointer is None or pointer.entity_type is change.entity_type):
            stale = self.swap([change])
            pointer = self.find(change.identifier) if stale is None else stale.current
        if pointer is not None and change.location in (pointer.metadata_location, pointer.previous_metadata_location):
            return pointer, change.identifier
        if pointer is None and change.expected is not None:
            # It may have another name by now.
            return None, next((name for name, location in self.locations() if location == change.location), None)
        return pointer, None

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Make one change; return it if it was stale."""
        if len(changes) != 1:
            raise UnsupportedError(
                f"Cannot commit to {len(changes)} tables at once: {self.label} moves one pointer at a time",
                hint="Use a SQL catalog for transactions over several tables.",
            )
        change = changes[0]
        return self._create(change) if change.expected is None else self._move(change)

    @abstractmethod
    def _create(self, change: PointerChange) -> Stale | None:
        """Make a pointer; return the change if its name was taken."""

    @abstractmethod
    def _move(self, change: PointerChange) -> Stale | None:
        """Move a pointer; return the change if it was elsewhere."""

    def _until_answered(self, change: PointerChange, attempt: Callable[[bool], Stale | None]) -> Stale | None:
        """Try until an answer says what happened; its argument is whether an earlier attempt may have happened."""
        problem: Exception | None = None
        is_repeated = False
        for retry in range(_TRIES):
            if retry > 0:
                self._sleep(_WAIT_SECONDS * retry)
            try:
                return attempt(is_repeated)
            except AnswerMissing as error:
                problem, is_repeated = error, True
            except (NotReached, StorageError) as error:
                if not is_repeated:
                    if isinstance(error, StorageError):
                        raise
                    raise StorageError(f"Cannot commit to {format_name(change.identifier)}: {error}") from error
                problem = error
        raise self._unknown(change, str(problem))

    def _unknown(self, change: PointerChange, reason: str) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"Cannot tell whether {self.label} committed the change of {format_name(change.identifier)}: {reason}",
            hint="Read the table again to find out; files written for the commit must stay.",
            metadata_location=change.location,
        )

    def _lost(self, verb: str, name: Identifier | Namespace, error: Exception) -> CommitStateUnknownError:
        """Return the error for a request that may have been carried out."""
        return CommitStateUnknownError(
            f"Cannot tell whether {self.label} did {verb} {format_name(name)}: {error}",
            hint="Look whether the name is there.",
        )

    def _stale_or_unknown(self, change: PointerChange, current: Pointer, *, is_repeated: bool) -> Stale:
        """Return a change that found another pointer; raise if its own may have been there in between."""
        if is_repeated and current.previous_metadata_location != change.expected:
            raise self._unknown(change, "others committed since")
        return Stale(change, current)

    def _not_found(self, entity_type: EntityType, identifier: Identifier) -> NotFoundError:
        return table_not_found(identifier) if entity_type is EntityType.TABLE else view_not_found(identifier)


def own_namespace(namespace: Namespace) -> str | None:
    """Return the database that a namespace is, or None if no metastore has one of that name."""
    name = namespace[0].lower() if len(namespace) == 1 else ""
    return name if _DATABASE_NAME.fullmatch(name) else None


def new_namespace(namespace: Namespace, label: str) -> str:
    """Return the database that a namespace is to be, or refuse its name."""
    name = own_namespace(namespace)
    if name is None:
        reason = (
            "its namespaces have one level"
            if len(namespace) != 1
            else "names of its databases have letters, digits and _ only"
        )
        raise InvalidRequestError(f"Cannot create namespace {format_name(namespace)} in {label}: {reason}")
    return name


def own_name(identifier: Identifier) -> tuple[str, str] | None:
    """Return the database and the name of a table as a metastore has them, or None if it cannot have one."""
    database = own_namespace(identifier[:-1])
    return None if database is None else (database, identifier[-1].lower())


def sorted_names(namespace: Namespace, names: Iterable[str]) -> tuple[Identifier, ...]:
    """Return names of tables as identifiers, in order."""
    return tuple(sorted((*namespace, name) for name in names))
