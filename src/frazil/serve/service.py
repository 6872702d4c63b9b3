"""What operations work with: the catalog, what was loaded lately, who commits, what is kept, how stores are reached."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from frazil.catalog.base import NO_PLACE, Catalog
from frazil.catalog.marks import SqlMarks
from frazil.catalog.names import Namespace
from frazil.catalog.pointer_catalog import folder_name
from frazil.scan.manifest_cache import ManifestCache
from frazil.serve.auth import Auth, Caller, Right
from frazil.serve.commit_changes import Committer
from frazil.serve.kept_plans import KeptPlans
from frazil.serve.kept_state import KeptState
from frazil.serve.loaded_cache import LoadedCache
from frazil.serve.roots import Roots
from frazil.serve.store_access import NO_ACCESS, StoreAccess
from frazil.storage.choose import SchemeStorage


@dataclass
class Service:
    """One lake that is served."""

    catalog: Catalog
    state: KeptState
    auth: Auth = field(default_factory=Auth)
    access: StoreAccess = NO_ACCESS
    endpoints: tuple[str, ...] = ()
    roots: Roots = field(init=False)
    """The folders that locations of clients must be in."""
    cache: LoadedCache = field(init=False)
    committer: Committer = field(init=False)
    manifests: ManifestCache = field(default_factory=ManifestCache)
    plans: KeptPlans = field(default_factory=KeptPlans)
    marks: SqlMarks | None = field(init=False)
    """Where a request is marked in the transaction of its change; None where the catalog has no such place."""
    is_stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.cache = LoadedCache(self.catalog)
        self.roots = _roots_of(self.catalog)
        self.committer = Committer(self.catalog, self.cache, self.roots_of)
        marks = self.catalog.marks
        self.marks = marks if marks is not None and marks.enable() else None

    def roots_of(self, caller: Caller, namespace: Namespace) -> Roots:
        """Return the folders for locations in a namespace: its own, if others are closed to the caller."""
        if not caller.is_limited:
            return self.roots
        closed = [name for name in self._namespaces_below(namespace) if not caller.may(Right.READ, name)]
        return Roots(
            self._folders_of(namespace),
            is_limited=True,
            closed=tuple(folder for name in closed for folder in self._folders_of(name)),
            outer=self.roots,
        )

    def _folders_of(self, namespace: Namespace) -> tuple[str, ...]:
        """Return the folders that tables of a namespace are created in."""
        own: list[str] = []
        # Names that share a folder with others have none of their own.
        if all(folder_name(step) == step for step in namespace):
            own.append("/".join([self.catalog.warehouse, *namespace]))
        if self.catalog.namespace_exists(namespace):
            own += filter(None, [self.catalog.load_namespace_properties(namespace).get("location")])
        return tuple(own)

    def _namespaces_below(self, namespace: Namespace) -> Iterator[Namespace]:
        if self.catalog.namespace_exists(namespace):
            for name in self.catalog.list_namespaces(namespace):
                yield name
                yield from self._namespaces_below(name)

    @property
    def now_seconds(self) -> int:
        """The time, in seconds from 1970."""
        return self.catalog.now_ms() // 1000


def _roots_of(catalog: Catalog) -> Roots:
    """Return the folders of a lake; another catalog service has its own bounds."""
    further = catalog.storage.roots if isinstance(catalog.storage, SchemeStorage) else ()
    is_bounded = catalog.warehouse != NO_PLACE or bool(further)
    own = () if catalog.warehouse == NO_PLACE else (catalog.warehouse,)
    return Roots((*own, *catalog.delete_roots, *further) if is_bounded else None)
