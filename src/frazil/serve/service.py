"""What operations work with: the catalog, what was loaded lately, who commits, what is kept, how stores are reached."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from frazil.catalog.base import NO_PLACE, Catalog
from frazil.catalog.marks import SqlMarks
from frazil.scan.manifest_cache import ManifestCache
from frazil.serve.auth import Auth
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
        self.committer = Committer(self.catalog, self.cache, self.roots)
        marks = self.catalog.marks
        self.marks = marks if marks is not None and marks.enable() else None

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
