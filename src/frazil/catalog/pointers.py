"""Where pointers are kept: a small set of atomic steps that memory and SQL databases both have.

`catalog/pointer_catalog.py` makes a catalog of it. A pointer is a row: what kind of thing a name stands for, where
its metadata is, and where it was before.
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
    """What a name stands for."""

    TABLE = "TABLE"
    VIEW = "VIEW"


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where the metadata of a table or view is, and where it was before."""

    entity_type: EntityType
    metadata_location: str
    previous_metadata_location: str | None = None


@dataclass(frozen=True, slots=True)
class PointerChange:
    """A pointer to be moved from one location to another; from None, to be made."""

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
    """A change that found another pointer than it expected, or none."""

    change: PointerChange
    current: Pointer | None


class Pointers(ABC):
    """Pointers by name, and namespaces. Every method is one atomic step.

    A method that changes something may raise CommitStateUnknownError; after any other error nothing changed.
    """

    @abstractmethod
    def check_identifier(self, identifier: Identifier) -> None:
        """Refuse a name that cannot be kept apart from others."""

    @abstractmethod
    def check_namespace(self, namespace: Namespace) -> None:
        """Refuse a namespace that cannot be kept apart from others."""

    @abstractmethod
    def check_location(self, location: str) -> None:
        """Refuse a location that cannot be kept."""

    @abstractmethod
    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None."""

    @abstractmethod
    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        """Wait for changes in flight, then return a name's pointer and who, by any name, has the change's location."""

    @abstractmethod
    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Make all changes, or none; return the one that was stale. A new name needs a namespace that exists."""

    @abstractmethod
    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer, one at an expected location where given; return what it was, or None."""

    @abstractmethod
    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Give a pointer another name that is free, in a namespace that exists."""

    @abstractmethod
    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of a kind in a namespace that exists, in order."""

    @abstractmethod
    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return every name, of tables and views, with its metadata file."""

    @abstractmethod
    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace that does not exist."""

    @abstractmethod
    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove a namespace that exists and is empty."""

    @abstractmethod
    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was made, or something below it exists."""

    @abstractmethod
    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the namespaces directly below one that exists, or the topmost, in order."""

    @abstractmethod
    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace that exists."""

    @abstractmethod
    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of a namespace that exists."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held open."""
