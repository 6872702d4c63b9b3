"""A complete catalog in this process's memory, for tests, experiments, and tables that need not last.

Its pointers are a dict under a lock; its files are on any storage. Threads may share it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from frazil.catalog.base import random_id, system_ms
from frazil.catalog.names import (
    Identifier,
    Namespace,
    format_name,
    namespace_exists,
    namespace_not_empty,
    namespace_not_found,
    table_exists,
    table_not_found,
    view_exists,
    view_not_found,
)
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.catalog.pointers import EntityType, Pointer, PointerChange, Pointers, Stale
from frazil.storage.base import Storage
from frazil.storage.memory import MemoryStorage


class MemoryPointers(Pointers):
    """Pointers in a dict; every step holds the lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pointers: dict[Identifier, Pointer] = {}
        self._namespaces: dict[Namespace, dict[str, str]] = {}

    def check_identifier(self, identifier: Identifier) -> None:
        """Accept every name."""

    def check_namespace(self, namespace: Namespace) -> None:
        """Accept every name."""

    def check_location(self, location: str) -> None:
        """Accept every location."""

    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None."""
        with self._lock:
            return self._pointers.get(identifier)

    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        """Return a name's pointer, and the name that has the change's location, if any."""
        with self._lock:
            location = change.location
            holders = (
                name
                for name, pointer in self._pointers.items()
                if location in (pointer.metadata_location, pointer.previous_metadata_location)
            )
            return self._pointers.get(change.identifier), next(holders, None)

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Apply all changes or none; return the stale one, if any."""
        with self._lock:
            for change in changes:
                current = self._pointers.get(change.identifier)
                if change.expected is None and current is None and not self.namespace_exists(change.identifier[:-1]):
                    raise namespace_not_found(change.identifier[:-1])
                actual = None if current is None else current.metadata_location
                if actual != change.expected or (current is not None and current.entity_type is not change.entity_type):
                    return Stale(change, current)
            for change in changes:
                self._pointers[change.identifier] = Pointer(change.entity_type, change.location, change.expected)
            return None

    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer that is at `expected`, or anywhere if that is None; return it, or None if there was none."""
        with self._lock:
            pointer = self._pointers.get(identifier)
            if (
                pointer is None
                or pointer.entity_type is not entity_type
                or expected not in (None, pointer.metadata_location)
            ):
                return None
            return self._pointers.pop(identifier)

    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Rename a pointer to a free name in an existing namespace."""
        with self._lock:
            pointer = self._pointers.get(source)
            if pointer is None or pointer.entity_type is not entity_type:
                raise table_not_found(source) if entity_type is EntityType.TABLE else view_not_found(source)
            if source == target:
                return
            if not self.namespace_exists(target[:-1]):
                raise namespace_not_found(target[:-1])
            other = self._pointers.get(target)
            if other is not None:
                raise table_exists(target) if other.entity_type is EntityType.TABLE else view_exists(target)
            self._pointers[target] = self._pointers.pop(source)

    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of one type in an existing namespace, in order."""
        with self._lock:
            self._check_exists(namespace)
            names = (
                name
                for name, pointer in self._pointers.items()
                if name[:-1] == namespace and pointer.entity_type is entity_type
            )
            return tuple(sorted(names))

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return all names of tables and views with their metadata files."""
        with self._lock:
            return [(name, pointer.metadata_location) for name, pointer in self._pointers.items()]

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace that does not exist."""
        with self._lock:
            if self.namespace_exists(namespace):
                raise namespace_exists(namespace)
            self._namespaces[namespace] = dict(properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an existing, empty namespace."""
        with self._lock:
            self._check_exists(namespace)
            inside = [*self._pointers, *(name for name in self._namespaces if name != namespace)]
            blocker = next((name for name in inside if name[: len(namespace)] == namespace), None)
            if blocker is not None:
                raise namespace_not_empty(namespace, format_name(blocker))
            del self._namespaces[namespace]

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""
        with self._lock:
            namespaces = (*self._namespaces, *(name[:-1] for name in self._pointers))
            return any(name[: len(namespace)] == namespace for name in namespaces)

    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the child namespaces of an existing namespace, or the top-level ones, in order."""
        with self._lock:
            if parent:
                self._check_exists(parent)
            namespaces = (*self._namespaces, *(name[:-1] for name in self._pointers))
            depth = len(parent) + 1
            return tuple(
                sorted({name[:depth] for name in namespaces if len(name) >= depth and name[: len(parent)] == parent})
            )

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of an existing namespace."""
        with self._lock:
            self._check_exists(namespace)
            return dict(self._namespaces.get(namespace, {}))

    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of an existing namespace."""
        with self._lock:
            self._check_exists(namespace)
            removed = set(removals)
            remaining = {
                name: value for name, value in self._namespaces.get(namespace, {}).items() if name not in removed
            }
            self._namespaces[namespace] = {**remaining, **updates}

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _check_exists(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)


class MemoryCatalog(PointerCatalog):
    """A catalog in memory; its tables' files are also in memory unless a storage is passed."""

    def __init__(
        self,
        name: str = "memory",
        warehouse: str = "memory://warehouse",
        storage: Storage | None = None,
        *,
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
        delete_roots: Sequence[str] = (),
    ) -> None:
        chosen = MemoryStorage(now_ms=now_ms) if storage is None else storage
        super().__init__(
            name, warehouse, chosen, MemoryPointers(), now_ms=now_ms, new_id=new_id, delete_roots=delete_roots
        )
