"""Open a catalog: from a folder and a catalog's URI, for a `Lake` and for commands that need no more than names."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.open_database import open_database
from frazil.catalog.read_only import ReadOnlyCatalog
from frazil.catalog.sql import SqlCatalog
from frazil.errors import InvalidPropertyError, InvalidRequestError, StorageError
from frazil.storage.base import Storage
from frazil.storage.choose import (
    AZURE_SCHEMES,
    DELETE_ROOTS,
    GCS_SCHEMES,
    KNOWN_PROPERTIES,
    READ_ROOTS,
    S3_SCHEMES,
    choose_storage,
    delete_roots,
)
from frazil.storage.hdfs_properties import HDFS_SCHEMES
from frazil.storage.locations import scheme_of
from frazil.storage.memory import MemoryStorage
from frazil.storage.object_properties import is_known
from frazil.table.named_connections import NamedConnection, find_connection

GLUE: Final = "glue"
"""The catalog that is AWS Glue."""
CATALOG_FILE = "catalog.db"
"""The name of the SQLite database that a folder gets where no catalog is named."""
TRUST_ALL = "all"
TRUST_NONE = "none"
MEMORY_WAREHOUSE = "memory://warehouse"


def open_catalog(
    warehouse: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
    trust: str = TRUST_ALL,
    auth: Any = None,
    more_roots: Sequence[str] | None = None,
) -> Catalog:
    """Open the catalog of a lake, as `connect` does; with `more_roots`, only files there and in the warehouse."""
    if trust not in (TRUST_ALL, TRUST_NONE):
        raise InvalidRequestError(f'Cannot connect with trust={trust!r}: it is "all" or "none"')
    text = os.fspath(warehouse)
    named = _find_named(text)
    if named is not None:
        text, catalog = named.address, named.catalog if catalog is None else catalog
        properties = {**named.properties, **(properties or {})}
    if is_service(text):
        if more_roots is not None:
            properties = _with_roots(text, dict(properties or {}), more_roots)
        return _open_service(text, name, dict(properties or {}), trust=trust, catalog=catalog, auth=auth)
    if is_hive(text):
        return _open_metastore(text, name, dict(properties or {}), trust=trust, catalog=catalog, more_roots=more_roots)
    own_properties = dict(properties or {})
    check_properties(own_properties, _catalog_properties(catalog))
    properties = {key: value for key, value in own_properties.items() if key in KNOWN_PROPERTIES or is_known(key)}
    scheme = scheme_of(text)
    folder: Path | None = None
    memory: Storage | None = None
    if scheme in (None, "file"):
        folder = _folder(text)
        location = f"file://{folder}"
    elif scheme == "memory":
        memory, location = MemoryStorage(), MEMORY_WAREHOUSE
    elif scheme in (*S3_SCHEMES, *GCS_SCHEMES, *AZURE_SCHEMES, *HDFS_SCHEMES):
        location = text
    else:
        raise InvalidRequestError(
            f"Cannot open a warehouse at a {scheme}: location: there is no storage for that scheme",
            hint="Give a folder, an s3:, gs:, abfss: or hdfs: URI, or memory:.",
        )
    if trust == TRUST_NONE:
        # Metadata may name files anywhere; of an untrusted lake, only those below the warehouse are opened.
        properties = {READ_ROOTS: location, **(properties or {})}
    storage = choose_storage(
        properties, memory=memory, warehouse=location, more_roots=more_roots, is_read_only=trust == TRUST_NONE
    )
    if folder is None and memory is None:
        # Asks for keys and the rest, so that a lake that opens can be used.
        storage.storage_of(location)
    roots = delete_roots(properties or {})
    if is_hive(catalog):
        from frazil.catalog.hive.open_hive import open_hive

        opened: Catalog = open_hive(name, catalog or "", location, storage, own_properties, delete_roots=roots)
        return opened if trust == TRUST_ALL else ReadOnlyCatalog(opened)
    if catalog == GLUE:
        from frazil.catalog.glue.open_glue import open_glue

        opened = open_glue(name, location, storage, own_properties, delete_roots=roots)
        return opened if trust == TRUST_ALL else ReadOnlyCatalog(opened)
    if trust == TRUST_ALL:
        return _open(name, location, catalog, storage, folder, roots)
    if not lake_exists(text, catalog):
        raise StorageError(f"Cannot open the lake {text!r}: there is none, and trust={trust!r} makes none")
    return ReadOnlyCatalog(_open(name, location, catalog, storage, folder, roots, may_write=False))


def _open_metastore(
    uri: str,
    name: str,
    properties: dict[str, str],
    *,
    trust: str,
    catalog: str | None,
    more_roots: Sequence[str] | None,
) -> Catalog:
    """Open a Hive Metastore by its address; `warehouse` among the properties is where new namespaces lie."""
    if catalog not in (None, "hive"):
        raise InvalidRequestError(
            f"Cannot connect to {uri!r} with another catalog: the address is the catalog's",
            hint="Leave catalog out.",
        )
    warehouse = properties.pop("warehouse", None)
    if warehouse is not None:
        return open_catalog(
            warehouse, catalog=uri, name=name, properties=properties, trust=trust, more_roots=more_roots
        )
    from frazil.catalog.hive.open_hive import open_hive

    check_properties(properties, _catalog_properties(uri))
    if trust == TRUST_NONE and READ_ROOTS not in properties:
        raise InvalidRequestError(
            f"Cannot connect to {uri!r} with trust={trust!r}: a metastore says where files are",
            hint=f"Set {READ_ROOTS} to the folders that may be read.",
        )
    own = {key: value for key, value in properties.items() if key in KNOWN_PROPERTIES or is_known(key)}
    roots = delete_roots(own)
    opened = open_hive(name, uri, None, choose_storage(own, more_roots=more_roots), properties, delete_roots=roots)
    return opened if trust == TRUST_ALL else ReadOnlyCatalog(opened)


def _catalog_properties(catalog: str | None) -> frozenset[str]:
    """Return the names of the properties that a connection with a catalog may have."""
    if is_hive(catalog):
        from frazil.catalog.hive import open_hive

        return KNOWN_PROPERTIES | open_hive.PROPERTIES
    if catalog == GLUE:
        from frazil.catalog.glue import open_glue

        return KNOWN_PROPERTIES | open_glue.PROPERTIES
    return KNOWN_PROPERTIES


def is_hive(text: str | None) -> bool:
    """Return whether an address is a Hive Metastore's."""
    return text is not None and text.lower().startswith("thrift://")


def _find_named(text: str) -> NamedConnection | None:
    """Return the connection of a name, or None; a name that is a folder too is refused."""
    named = find_connection(text)
    if named is not None and Path(text).is_dir():
        raise InvalidRequestError(
            f"Cannot connect to {text!r}: it is a folder here, and a connection that a file of yours names",
            hint=f"Write ./{text} for the folder.",
        )
    return named


def is_service(text: str) -> bool:
    """Return whether a lake is the address of a catalog service."""
    return text.lower().startswith(("http://", "https://"))


def _open_service(
    uri: str, name: str, properties: dict[str, str], *, trust: str, catalog: str | None, auth: Any
) -> Catalog:
    if catalog not in (None, "rest"):
        raise InvalidRequestError(
            f"Cannot connect to {uri!r} with another catalog: the address is the catalog's",
            hint="Leave catalog out.",
        )
    # HTTP takes its time to load, and only services need it.
    from frazil.rest.open_rest import open_rest

    named = {key: value for key, value in properties.items() if not key.startswith("header.")}
    check_properties(named, connection_names(uri))
    if trust == TRUST_NONE and READ_ROOTS not in properties:
        raise InvalidRequestError(
            f"Cannot connect to {uri!r} with trust={trust!r}: a service says where files are",
            hint=f"Set {READ_ROOTS} to the folders that may be read.",
        )
    if trust == TRUST_ALL:
        return open_rest(name, uri, properties, auth=auth)
    return ReadOnlyCatalog(open_rest(name, uri, properties, auth=auth, is_read_only=True))


def _with_roots(uri: str, properties: dict[str, str], more_roots: Sequence[str]) -> dict[str, str]:
    """Return the properties of a service whose files are used only in those folders, since it names any itself."""
    named = [properties[name] for name in (READ_ROOTS, DELETE_ROOTS) if name in properties]
    if not (more_roots or named):
        raise InvalidRequestError(
            f"Cannot serve {uri!r}: a service says where files are, so the folders that may be used must be named",
            hint=f"Name them with --read-root, or in the property {READ_ROOTS}.",
        )
    return {**properties, READ_ROOTS: ",".join([*more_roots, *named])}


def _folder(text: str) -> Path:
    """Return a folder, given as a path or a `file:` URI, by its whole name; `~` is a user's own, as in a shell."""
    try:
        return Path(text.removeprefix("file://").removeprefix("file:")).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidRequestError(f"Cannot open the lake {text!r}: {error}") from error


def lake_exists(warehouse: str | os.PathLike[str], catalog: str | None = None) -> bool:
    """Return whether a lake is there, as far as files of this machine tell; what cannot be told counts as there."""
    text = os.fspath(warehouse)
    if catalog is not None and catalog.startswith("sqlite:///"):
        return Path(catalog.removeprefix("sqlite:///")).exists()
    if (
        scheme_of(text) not in (None, "file")
        or catalog not in (None, "filesystem")
        or find_connection(text) is not None
    ):
        return True
    folder = _folder(text)
    return folder.is_dir() if catalog == "filesystem" else (folder / CATALOG_FILE).exists()


def connection_names(warehouse: str, catalog: str | None = None) -> frozenset[str]:
    """Return the names of all properties that a connection to a lake may have."""
    if is_hive(warehouse) or is_hive(catalog) or catalog == GLUE:
        return _catalog_properties(warehouse if is_hive(warehouse) else catalog)
    if not is_service(warehouse) and find_connection(warehouse) is None:
        return KNOWN_PROPERTIES
    from frazil.rest.settings import PROPERTIES

    return KNOWN_PROPERTIES | PROPERTIES


def check_properties(properties: Mapping[str, str], known: Collection[str]) -> None:
    """Refuse properties that are not known, or are no text."""
    for name, value in properties.items():
        if name not in known and not is_known(name):
            near = get_close_matches(str(name), known, 1)
            raise InvalidPropertyError(
                f"Cannot connect with the property {name!r}: it is not known",
                hint=f"Did you mean {near[0]}?" if near else f"The properties are: {', '.join(sorted(known))}.",
            )
        if not isinstance(value, str):
            raise InvalidPropertyError(f"Cannot connect with the property {name!r}: its value is not text")


def _open(
    name: str,
    warehouse: str,
    catalog: str | None,
    storage: Storage,
    folder: Path | None,
    roots: tuple[str, ...],
    *,
    may_write: bool = True,
) -> Catalog:
    if catalog is None and scheme_of(warehouse) == "memory":
        catalog = "memory"
    if catalog == "memory":
        return MemoryCatalog(name, warehouse, storage, delete_roots=roots)
    if catalog == "filesystem":
        return FilesystemCatalog(name, warehouse, storage, delete_roots=roots)
    if catalog is None:
        if folder is None:
            raise InvalidRequestError(
                f"Cannot open a catalog for {warehouse!r}: an object store has no place for a database",
                hint='Give catalog="sqlite:////path/catalog.db", "postgresql://…" or "filesystem".',
            )
        try:
            if may_write:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Cannot make the lake's folder {str(folder)!r}: {error.strerror or error}") from error
        catalog = f"sqlite:///{folder / CATALOG_FILE}"
    return SqlCatalog(name, warehouse, open_database(catalog, may_write=may_write), storage, delete_roots=roots)
