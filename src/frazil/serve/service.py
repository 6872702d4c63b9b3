"""The state shared by operations: the catalog, caches, the committer, stored responses, and access to stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final

from frazil.catalog.base import NO_PLACE, Catalog
from frazil.catalog.idempotency_records import SqlIdempotencyRecords
from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.owned_folders import pointer_folder
from frazil.catalog.pointer_catalog import folder_name
from frazil.errors import FrazilError, NotFoundError, UnsupportedError
from frazil.scan.manifest_cache import ManifestCache
from frazil.serve.auth import Auth, Caller, Right
from frazil.serve.commit_changes import Committer
from frazil.serve.exchange import Request
from frazil.serve.loaded_cache import LoadedCache, TableText, ViewText
from frazil.serve.plan_cache import PlanCache
from frazil.serve.roots import NamespaceRoots, Roots
from frazil.serve.server_state import ServerState
from frazil.serve.store_access import NO_ACCESS, StoreAccess
from frazil.storage.choose import SchemeStorage
from frazil.storage.locations import is_within, table_folders
from frazil.threads import map_in_order

_LOADED_AT_ONCE: Final = 8


@dataclass
class Service:
    """One lake that is served."""

    catalog: Catalog
    state: ServerState
    auth: Auth = field(default_factory=Auth)
    access: StoreAccess = NO_ACCESS
    endpoints: tuple[str, ...] = ()
    roots: Roots = field(init=False)
    """The folders to which locations of clients are restricted."""
    cache: LoadedCache = field(init=False)
    committer: Committer = field(init=False)
    manifests: ManifestCache = field(default_factory=ManifestCache)
    plans: PlanCache = field(default_factory=PlanCache)
    idempotency_records: SqlIdempotencyRecords | None = field(init=False)
    """Records of requests in the transactions of their changes; None if the catalog does not support them."""
    is_stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.cache = LoadedCache(self.catalog)
        self.roots = _roots_of(self.catalog)
        self.committer = Committer(self.catalog, self.cache, self.roots_of)
        records = self.catalog.idempotency_records
        self.idempotency_records = records if records is not None and records.enable() else None

    def roots_of(self, caller: Caller, namespace: Namespace, right: Right = Right.WRITE) -> Roots:
        """Return the folders for locations in a namespace: only its own if others are closed to the caller."""
        closed = self.closed_to(caller, namespace, right)
        if closed is None:
            return self.roots
        folders = self._folders_of(namespace)
        return NamespaceRoots(folders, self.roots, closed, cache(partial(self._find_closed, caller, right, folders)))

    def closed_to(self, caller: Caller, namespace: Namespace, right: Right) -> tuple[str, ...] | None:
        """Return the folders of child namespaces that are closed to a caller, or None if no namespace is closed."""
        if not caller.is_limited:
            return None
        closed = [name for name in self._namespaces_below(namespace) if not caller.may(right, name)]
        return tuple(folder for name in closed for folder in self._folders_of(name))

    def closed_folders(self, request: Request) -> tuple[str, ...] | None:
        """Return the folders that are closed to the caller of a table operation, or None if none is."""
        right = Right.WRITE if request.can_write else Right.READ
        return self.closed_to(request.caller, request.namespace, right)

    def _find_closed(self, caller: Caller, right: Right, own: Sequence[str]) -> list[str]:
        """Return the folders of everything that is closed to a caller; reads the metadata of those tables.

        A closed namespace may contain the caller's `own` folders: then only its tables count.
        """
        closed = [name for name in self._namespaces_below(()) if not caller.may(right, name)]
        folders = (folder for name in closed for folder in self._folders_of(name))
        closed_folders = [folder for folder in folders if not any(is_within(inner, folder) for inner in own)]
        for list_names, locate, load in (
            (self.catalog.list_tables, self.catalog.locate_table, self.cache.load_table),
            (self.catalog.list_views, self.catalog.locate_view, self.cache.load_view),
        ):
            with suppress(UnsupportedError):
                names = [name for namespace in closed for name in list_names(namespace)]
                for each in map_in_order(partial(_folders_of_entity, locate, load), names, threads=_LOADED_AT_ONCE):
                    closed_folders += each
        return closed_folders

    def _folders_of(self, namespace: Namespace) -> tuple[str, ...]:
        """Return the folders in which tables of a namespace are created."""
        namespace_folders: list[str] = []
        # Names that share a folder with others have no folder of their own.
        if all(folder_name(step) == step for step in namespace):
            namespace_folders.append("/".join([self.catalog.warehouse, *namespace]))
        if self.catalog.namespace_exists(namespace):
            namespace_folders += filter(None, [self.catalog.load_namespace_properties(namespace).get("location")])
        return tuple(namespace_folders)

    def _namespaces_below(self, namespace: Namespace) -> Iterator[Namespace]:
        if not namespace or self.catalog.namespace_exists(namespace):
            for name in self.catalog.list_namespaces(namespace):
                yield name
                yield from self._namespaces_below(name)

    @property
    def now_seconds(self) -> int:
        """The time, in seconds from 1970."""
        return self.catalog.now_ms() // 1000


def _folders_of_entity(
    locate: Callable[[Identifier], str | None], load: Callable[[Identifier], TableText | ViewText], name: Identifier
) -> tuple[str, ...]:
    """Return the folders of a table or view; for one that cannot be loaded, the folder of its pointer."""
    try:
        metadata = load(name).loaded.metadata
        return table_folders(metadata.location, metadata.properties)
    except NotFoundError:
        return ()
    except FrazilError:
        location = locate(name)
        return () if location is None else (pointer_folder(location),)


def _roots_of(catalog: Catalog) -> Roots:
    """Return the folders of a lake; a catalog service whose folders are not named has none."""
    further = (catalog.storage.roots or ()) if isinstance(catalog.storage, SchemeStorage) else ()
    is_bounded = catalog.warehouse != NO_PLACE or bool(further)
    warehouse_folder = () if catalog.warehouse == NO_PLACE else (catalog.warehouse,)
    return Roots((*warehouse_folder, *catalog.delete_roots, *further) if is_bounded else None)
