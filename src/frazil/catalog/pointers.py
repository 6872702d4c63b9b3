"""The pointer store: a small set of atomic steps, implemented in memory and in SQL databases.

`catalog/pointer_catalog.py` builds a catalog on it. A pointer is a row: the type of the named entity, the location of
its metadata, and the previous location.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from frazil.catalog.names import Identifier, Namespace
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata


class EntityType(Enum):
    """The type of a named entity."""

    TABLE = "TABLE"
    VIEW = "VIEW"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The current and previous metadata location of a table or view."""

    entity_type: EntityType
    metadata_location: str
    previous_metadata_location: str | None = None


@dataclass(frozen=True, slots=True)
class PointerChange:
    """A pointer move from one location to another, or its creation if `expected` is None."""

    entity_type: EntityType
    identifier: Identifier
    expected: str | None
    location: str
    base: TableMetadata | ViewMetadata | None = field(default=None, compare=False, repr=False)
    """What the expected location holds, if known: a metastore keeps a copy of some of it beside the pointer."""
    metadata: TableMetadata | ViewMetadata | None = field(default=None, compare=False, repr=False)
    """What the new location holds."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A change that met another pointer than expected, or none."""

    change: PointerChange
    current: Pointer | None


class Pointers(ABC):
    """Pointers by name, and namespaces. Every method is one atomic step.

    A method that changes something may raise CommitStateUnknownError; after any other error nothing changed.
    """

    @abstractmethod
    def check_identifier(self, identifier: Identifier) -> None:
        """Refuse a name that could be confused with another."""

    @abstractmethod
    def check_namespace(self, namespace: Namespace) -> None:
        """Refuse a namespace that could be confused with another."""

    @abstractmethod
    def check_location(self, location: str) -> None:
        """Refuse a location that cannot be stored."""

    @abstractmethod
    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None."""

    @abstractmethod
    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        """Wait for changes in flight, then return a name's pointer, and the name that has the change's location."""

    @abstractmethod
    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Apply all changes or none; return the stale one, if any. A new name needs an existing namespace."""

    @abstractmethod
    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer that is at `expected`, or anywhere if that is None; return it, or None if there was none."""

    @abstractmethod
    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Rename a pointer to a free name in an existing namespace."""

    @abstractmethod
    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of one type in an existing namespace, in order."""

    @abstractmethod
    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return all names of tables and views with their metadata files."""

    @abstractmethod
    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace that does not exist."""

    @abstractmethod
    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an existing, empty namespace."""

    @abstractmethod
    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""

    @abstractmethod
    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the child namespaces of an existing namespace, or the top-level ones, in order."""

    @abstractmethod
    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of an existing namespace."""

    @abstractmethod
    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of an existing namespace."""

    @abstractmethod
    def close(self) -> None:
        """Release the connections."""
