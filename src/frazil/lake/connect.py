"""Open a lake: from a folder and a catalog's URI to a `Lake`.

connect("warehouse")                                          SQLite in the folder
connect("warehouse", catalog="sqlite:////srv/catalog.db")
connect("warehouse", catalog="postgresql://user:secret@host/lake")
connect("warehouse", catalog="filesystem")                    vN.metadata.json files, no database
connect("memory:", catalog="memory")                          nothing is kept
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.open_database import open_database
from frazil.catalog.sql import SqlCatalog
from frazil.errors import InvalidRequestError
from frazil.lake.lake import Lake
from frazil.storage.base import Storage
from frazil.storage.local import LocalStorage
from frazil.storage.locations import scheme_of
from frazil.storage.memory import MemoryStorage

CATALOG_FILE = "catalog.db"
"""The name of the SQLite database that a folder gets where no catalog is named."""


def connect(
    warehouse: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
) -> Lake:
    """Open a lake; the folder and the embedded catalog are made where they are missing.

    `name` is the catalog's name in a SQL database, which several lakes can share. Relative folders count from the
    working folder.
    """
    if properties:
        raise InvalidRequestError(f"Cannot connect with the property {min(properties)!r}: it is not known")
    text = os.fspath(warehouse)
    if scheme_of(text) == "memory":
        return Lake(_open(name, "memory://warehouse", catalog or "memory", MemoryStorage(), None))
    if scheme_of(text) not in (None, "file"):
        raise InvalidRequestError(
            f"Cannot open a warehouse at {text!r}: only local folders and memory: can be opened",
            hint="Give a folder.",
        )
    folder = Path(text.removeprefix("file://").removeprefix("file:")).absolute()
    return Lake(_open(name, f"file://{folder}", catalog, LocalStorage(), folder))


def _open(name: str, warehouse: str, catalog: str | None, storage: Storage, folder: Path | None) -> Catalog:
    if catalog == "memory":
        return MemoryCatalog(name, warehouse, storage)
    if catalog == "filesystem":
        return FilesystemCatalog(name, warehouse, storage)
    if catalog is None:
        if folder is None:
            raise InvalidRequestError("Cannot open a catalog: a warehouse in memory has no folder for it")
        folder.mkdir(parents=True, exist_ok=True)
        catalog = f"sqlite:///{folder / CATALOG_FILE}"
    return SqlCatalog(name, warehouse, open_database(catalog), storage)
