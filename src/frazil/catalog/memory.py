"""A catalog in this process's memory: a whole one, for tests, for trying things, and for tables that need not last.

Its pointers are a dict under a lock; its files are on whatever storage it is given. Threads may share it.
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
    """Pointers in a dict; every step holds one lock."""

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
        """Return a name's pointer and who, by any name, has the change's location."""
        with self._lock:
            wanted = change.location
            holders = (
                name
                for name, pointer in self._pointers.items()
                if wanted in (pointer.metadata_location, pointer.previous_metadata_location)
            )
            return self._pointers.get(change.identifier), next(holders, None)

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Make all changes, or none; return the one that was stale."""
        with self._lock:
            for change in changes:
                current = self._pointers.get(change.identifier)
                if change.expected is None and current is None and not self.namespace_exists(change.identifier[:-1]):
                    raise namespace_not_found(change.identifier[:-1])
                found = None if current is None else current.metadata_location
                if found != change.expected or (current is not None and current.entity_type is not change.entity_type):
                    return Stale(change, current)
            for change in changes:
                self._pointers[change.identifier] = Pointer(change.entity_type, change.location, change.expected)
            return None

    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer, one at an expected location where given; return what it was, or None."""
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
        """Give a pointer another name that is free, in a namespace that exists."""
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
        """Return the names of a kind in a namespace that exists, in order."""
        with self._lock:
            self._check_exists(namespace)
            names = (
                name
                for name, pointer in self._pointers.items()
                if name[:-1] == namespace and pointer.entity_type is entity_type
            )
            return tuple(sorted(names))

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return every name, of tables and views, with its metadata file."""
        with self._lock:
            return [(name, pointer.metadata_location) for name, pointer in self._pointers.items()]

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace that does not exist."""
        with self._lock:
            if self.namespace_exists(namespace):
                raise namespace_exists(namespace)
            self._namespaces[namespace] = dict(properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove a namespace that exists and is empty."""
        with self._lock:
            self._check_exists(namespace)
            inside = [*self._pointers, *(name for name in self._namespaces if name != namespace)]
            held = next((name for name in inside if name[: len(namespace)] == namespace), None)
            if held is not None:
                raise namespace_not_empty(namespace, format_name(held))
            del self._namespaces[namespace]

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was made, or something below it exists."""
        with self._lock:
            known = (*self._namespaces, *(name[:-1] for name in self._pointers))
            return any(name[: len(namespace)] == namespace for name in known)

    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the namespaces directly below one that exists, or the topmost, in order."""
        with self._lock:
            if parent:
                self._check_exists(parent)
            known = (*self._namespaces, *(name[:-1] for name in self._pointers))
            depth = len(parent) + 1
            return tuple(
                sorted({name[:depth] for name in known if len(name) >= depth and name[: len(parent)] == parent})
            )

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace that exists."""
        with self._lock:
            self._check_exists(namespace)
            return dict(self._namespaces.get(namespace, {}))

    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of a namespace that exists."""
        with self._lock:
            self._check_exists(namespace)
            gone = set(removals)
            kept = {name: value for name, value in self._namespaces.get(namespace, {}).items() if name not in gone}
            self._namespaces[namespace] = {**kept, **updates}

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _check_exists(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)


class MemoryCatalog(PointerCatalog):
    """A catalog in memory; its tables' files are in memory too unless a storage is given."""

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
