"""A read-only catalog, for lakes opened with `trust="none"` and for the console."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.names import Identifier, Namespace, format_name
from frazil.catalog.outcomes import LoadedT, Outcome, Unknown
from frazil.errors import AlreadyExistsError, InvalidRequestError
from frazil.loaded import LoadedTable, LoadedView
from frazil.storage.read_only import untrusted


class ReadOnlyCatalog(Catalog):
    """The names of another catalog without any way to change them. `refused` creates the error."""

    def __init__(self, inner: Catalog, refused: Callable[[str], InvalidRequestError] = untrusted) -> None:
        super().__init__(
            inner.name,
            inner.warehouse,
            inner.storage,
            now_ms=inner.now_ms,
            new_id=inner.new_id,
            delete_roots=inner.delete_roots,
        )
        self._inner = inner
        self._refused = refused
        self.has_readers_by_views = inner.has_readers_by_views

    def __repr__(self) -> str:
        return f"ReadOnlyCatalog({self._inner!r})"

    def close(self) -> None:
        """Close the wrapped catalog."""
        self._inner.close()

    # Reads

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""
        return self._inner.namespace_exists(namespace)

    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the child namespaces of a namespace, or the top-level ones, in order."""
        return self._inner.list_namespaces(parent)

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties."""
        return self._inner.load_namespace_properties(namespace)

    def list_tables(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the tables of a namespace, in order."""
        return self._inner.list_tables(namespace)

    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""
        return self._inner.load_table(identifier)

    def load_table_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedTable:
        """Return the current state of a table that is read through views."""
        return self._inner.load_table_for(identifier, views)

    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the views of a namespace, in order."""
        return self._inner.list_views(namespace)

    def load_view(self, identifier: Identifier) -> LoadedView:
        """Return the current state of a view."""
        return self._inner.load_view(identifier)

    def load_view_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedView:
        """Return the current state of a view that is read through other views."""
        return self._inner.load_view_for(identifier, views)

    def locate_table(self, identifier: Identifier) -> str | None:
        """Return a table's metadata location."""
        return self._inner.locate_table(identifier)

    def locate_view(self, identifier: Identifier) -> str | None:
        """Return a view's metadata location."""
        return self._inner.locate_view(identifier)

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views."""
        return self._inner.other_pointers(identifier)

    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that describes the current holder of a name, or None if the name is free."""
        return self._inner.find_existing(identifier)

    # Changes

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> NoReturn:
        """Refuse to create a namespace."""
        raise self._refused(f"create the namespace {format_name(namespace)}")

    def drop_namespace(self, namespace: Namespace) -> NoReturn:
        """Refuse to drop a namespace."""
        raise self._refused(f"drop the namespace {format_name(namespace)}")

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> NoReturn:
        """Refuse to change a namespace."""
        raise self._refused(f"change the namespace {format_name(namespace)}")

    def commit(self, base: LoadedTable, *_: Any) -> NoReturn:
        """Refuse to commit."""
        raise self._refused(f"commit to {format_name(base.identifier)}")

    def commit_many(self, changes: Sequence[TableChange]) -> NoReturn:
        """Refuse to commit."""
        raise self._refused(f"commit to {' and '.join(format_name(change.base.identifier) for change in changes)}")

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Return the outcome unchanged: this catalog never starts a commit."""
        return unknown

    def drop_table(self, identifier: Identifier, **_: Any) -> NoReturn:
        """Refuse to drop a table."""
        raise self._refused(f"drop table {format_name(identifier)}")

    def rename_table(self, source: Identifier, target: Identifier) -> NoReturn:
        """Refuse to rename a table."""
        raise self._refused(f"rename table {format_name(source)}")

    def register_table(self, identifier: Identifier, metadata_location: str, **_: Any) -> NoReturn:
        """Refuse to register a table."""
        raise self._refused(f"register table {format_name(identifier)}")

    def unregister_table(self, identifier: Identifier, **_: Any) -> NoReturn:
        """Refuse to unregister a table."""
        raise self._refused(f"unregister table {format_name(identifier)}")

    def commit_view(self, base: LoadedView, *_: Any) -> NoReturn:
        """Refuse to change a view."""
        raise self._refused(f"change view {format_name(base.identifier)}")

    def drop_view(self, identifier: Identifier) -> NoReturn:
        """Refuse to drop a view."""
        raise self._refused(f"drop view {format_name(identifier)}")

    def rename_view(self, source: Identifier, target: Identifier) -> NoReturn:
        """Refuse to rename a view."""
        raise self._refused(f"rename view {format_name(source)}")

    def register_view(self, identifier: Identifier, metadata_location: str) -> NoReturn:
        """Refuse to register a view."""
        raise self._refused(f"register view {format_name(identifier)}")

    def new_location(self, identifier: Identifier, location: str | None) -> NoReturn:
        """Refuse to choose a location for a new table or view."""
        raise self._refused(f"create {format_name(identifier)}")
