"""Open a lake: from a folder and a catalog's URI to a `Lake`.

connect("warehouse")                                          SQLite in the folder
connect("warehouse", catalog="sqlite:////srv/catalog.db")
connect("warehouse", catalog="postgresql://user:secret@host/lake")
connect("warehouse", catalog="filesystem")                    vN.metadata.json files, no database
connect("s3://bucket/warehouse", catalog="postgresql://…",    files in an object store
        properties={"s3.region": "eu-central-1", "s3.access-key-id": "…", "s3.secret-access-key": "…"})
connect("thrift://host:9083", warehouse="s3://bucket/wh")     a Hive Metastore
connect("s3://bucket/wh", catalog="glue", properties={…})     AWS Glue
connect("memory:", catalog="memory")                          nothing is kept
connect("warehouse", trust="none")                            an untrusted lake: to be looked at
connect("https://…", warehouse="…", credential="id:secret")   a catalog service, by the REST protocol
connect("prod")                                               what a file of the user's names (`named_connections.py`)

Properties say how object stores are reached (`storage/object_service.py`) and what may be read (`read.roots`). Their
values, and the catalog's URI, may hold secrets: neither is kept where it could be shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.lineage import open_lineage
from frazil.table.lake import TRUSTED_VIEWS, Lake
from frazil.table.open_catalog import TRUST_ALL, open_catalog


def connect(
    warehouse: str | os.PathLike[str] | None = None,
    /,
    *,
    catalog: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
    trust: str = TRUST_ALL,
    token: str | None = None,
    credential: str | None = None,
    auth: Callable[[], str | Mapping[str, str]] | None = None,
    **named: str | os.PathLike[str],
) -> Lake:
    """Open a lake; a missing folder and its SQLite catalog are created.

    `warehouse` is a folder, a URI of an object store (`s3:`, `gs:`, `abfss:`), or `memory:`. It may also be the `http:`
    or `https:` address of a catalog service, with the service's own `warehouse=` by name, the `thrift:` address of a
    Hive Metastore, with the folder of its files as `warehouse=`, or the name of a connection in
    `~/.config/frazil.toml` or `~/.pyiceberg.yaml`. `catalog` is `sqlite:///…`, `postgresql://…`, `thrift://…`, `glue`,
    `filesystem` or `memory`; a folder needs none. `name` is the catalog's name in a SQL database, which several
    catalogs can share.
    `token`, `credential` (`id:secret`, for OAuth2) and `auth`, a function that returns a token or headers for each
    request, authenticate at a catalog service. `properties` are credentials and settings of object stores and
    services, and which folders may be read; docs/connecting.md lists them. `trust="none"` opens an untrusted lake:
    only files below the warehouse (and `read.roots`) are opened, views are shown and not run, and nothing is written,
    changed or deleted.

    ```python
    lake = frazil.connect("warehouse")
    lake = frazil.connect("s3://bucket/wh", catalog="postgresql://host/db", properties={"s3.region": "eu-west-1"})
    lake = frazil.connect("https://catalog.example", warehouse="prod", token="…")
    ```
    """
    given = dict(properties or {})
    given |= {key: value for key, value in (("token", token), ("credential", credential)) if value is not None}
    # A lake may be given by name too; beside an address, the name is that of the service's warehouse.
    by_name = named.pop("warehouse", None)
    if named:
        raise InvalidRequestError(f"Cannot connect with {', '.join(sorted(named))}: there is no such option")
    address = by_name if warehouse is None else warehouse
    if address is None:
        raise InvalidRequestError("Cannot connect: no lake was named", hint="Give a folder, a URI or an address.")
    if warehouse is not None and by_name is not None:
        given["warehouse"] = os.fspath(by_name)
    trusts_views = _is_true(TRUSTED_VIEWS, given.pop(TRUSTED_VIEWS, "false"))
    lineage = open_lineage(given)
    opened = open_catalog(address, catalog=catalog, name=name, properties=given, trust=trust, auth=auth)
    opened.lineage = lineage
    return Lake(opened, trust=trust, trusts_views=trusts_views)


def _is_true(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidPropertyError(f"Cannot connect with the property {name!r}: {text!r} is neither true nor false")
    return text.lower() == "true"
