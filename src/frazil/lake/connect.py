"""Open a lake: from a folder and a catalog's URI to a `Lake`.

connect("warehouse")                                          SQLite in the folder
connect("warehouse", catalog="sqlite:////srv/catalog.db")
connect("warehouse", catalog="postgresql://user:secret@host/lake")
connect("warehouse", catalog="filesystem")                    vN.metadata.json files, no database
connect("s3://bucket/warehouse", catalog="postgresql://…",    files in an object store
        properties={"s3.region": "eu-central-1", "s3.access-key-id": "…", "s3.secret-access-key": "…"})
connect("memory:", catalog="memory")                          nothing is kept
connect("warehouse", trust="none")                            a stranger's: to be looked at

Properties say how object stores are reached (`storage/object_service.py`) and what may be read (`read.roots`). Their
values, and the catalog's URI, may hold secrets: neither is kept where it could be shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from frazil.lake.lake import Lake
from frazil.lake.open_catalog import TRUST_ALL, open_catalog


def connect(
    warehouse: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
    trust: str = TRUST_ALL,
) -> Lake:
    """Open a lake; the folder and the embedded catalog are made where they are missing.

    `warehouse` is a folder, an `s3:` or `gs:` URI, or `memory:`; relative folders count from the working folder.
    `name` is the catalog's name in a SQL database, which several lakes can share. `properties` say how object
    stores are reached and what may be read.
    `trust="none"` is for what a stranger wrote: only files below the warehouse (and `read.roots`) are opened, views
    are shown and not run, and nothing is written, changed or deleted.
    """
    opened = open_catalog(warehouse, catalog=catalog, name=name, properties=properties, trust=trust)
    return Lake(opened, trust=trust)
