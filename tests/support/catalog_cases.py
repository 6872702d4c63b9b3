"""Every catalog, for tests that hold for all of them, and a table to put into it."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.database import Database
from frazil.catalog.failing_database import FailingDatabase
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.glue.open_glue import open_glue
from frazil.catalog.hive.open_hive import open_hive
from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.metastore_catalog import MetastoreCatalog
from frazil.catalog.outcomes import Committed, Outcome, Rejected
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.changes.updates import SetProperties, TableUpdate
from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.errors import FrazilError
from frazil.loaded import LoadedTable
from frazil.rest.open_rest import open_rest
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestEntry
from frazil.spec.snapshot import Snapshot
from frazil.storage.base import Storage
from frazil.storage.choose import choose_storage
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.glue_server import GlueServer, shared_glue
from tests.support.metastore_server import shared_metastore
from tests.support.served_lake import served

NAMES = ["memory", "sqlite", "sqlite-two-handles", "filesystem", "filesystem-in-memory", "postgresql", "rest"]
METASTORES = ["hive", "hive-unlocked", "glue"]
"""Catalogs in metastores: they have one level of namespaces, and names in lower case."""
SERVICE_VARIABLE = "FRAZIL_TEST_SERVICE"
"""Names a service of somebody else's to hold to the contract instead: its address, the location of its warehouse and
properties, as JSON. Everything in it is dropped. `tests/interop/test_rest_servers.py` sets it."""
if SERVICE_VARIABLE in os.environ:
    NAMES = ["rest-elsewhere"]
EVENTS = ("db", "events")
_counter = itertools.count(1)


@dataclass
class CatalogCase:
    """A catalog of one kind, and ways to open it again."""

    catalog: Catalog
    reopen: Callable[..., Catalog]
    """Opens another handle on the same pointers; takes `storage=` and, of SQL catalogs, `faults=`."""
    storage: Storage
    warehouse: str
    is_sql: bool = False
    is_filesystem: bool = False
    is_service: bool = False
    is_metastore: bool = False
    opened: list[Catalog] = field(default_factory=list)

    def another(self, **options: Any) -> Catalog:
        """Return another handle, closed at the end of the test."""
        made = self.reopen(**options)
        self.opened.append(made)
        return made

    def commit_fault(self, kind: FaultKind) -> Catalog:
        """Return a handle whose next commit meets a fault at the step that moves the pointer."""
        if self.is_filesystem:
            verbs = frozenset({"create_exclusive"})
            return self.another(storage=FailingStorage(self.storage, Fault(1, kind, verbs)))
        handle = self.another(faults={})
        database = failing_database(handle)
        # A swap is one read, then the transaction.
        database.faults[len(database.calls) + 2] = kind
        return handle


def failing_database(catalog: Catalog) -> FailingDatabase:
    database = catalog._pointers._database  # type: ignore[attr-defined]
    assert isinstance(database, FailingDatabase)
    return database


@contextmanager
def opened_case(name: str, folder: Path, postgres_uri: Callable[[], str]) -> Iterator[CatalogCase]:
    """Open a catalog of a kind; close it and every other handle at the end."""
    with ExitStack() as stack:
        if name == "rest-elsewhere":
            given = json.loads(os.environ[SERVICE_VARIABLE])
            case = _open_service(given["address"], given["warehouse"], given["properties"])
            empty_catalog(case.catalog)
        elif name == "rest":
            server = stack.enter_context(served(folder / "warehouse"))
            case = _open_service(f"http://127.0.0.1:{server.port}", f"file://{folder}/warehouse")
        elif name.startswith("hive"):
            case = _open_hive(shared_metastore().uri, folder, is_locked=name == "hive")
        elif name == "glue":
            case = _open_glue(shared_glue(), folder)
        else:
            case = _open(name, folder, postgres_uri)
        yield from _closing(case)


def service_differences(kind: str, of: str) -> dict[str, str]:
    """Return the tests (`contract`) or cases (`sql`) that somebody else's service is known to fail, with reasons."""
    path = Path(__file__).parents[1] / "contract" / "service_differences.toml"
    known: dict[str, dict[str, dict[str, str]]] = tomllib.loads(path.read_text())
    return known.get(kind, {}).get(of, {})


def _closing(case: CatalogCase) -> Iterator[CatalogCase]:
    try:
        yield case
    finally:
        for one in (case.catalog, *case.opened):
            one.close()


def _open_service(address: str, warehouse: str, properties: Mapping[str, str] | None = None) -> CatalogCase:
    def open_service(**_: Any) -> Catalog:
        return open_rest("lake", address, {"rest.client.max-retries": "0", **(properties or {})})

    storage = choose_storage(properties, durable=False)
    return CatalogCase(open_service(), open_service, storage, warehouse, is_service=True)


def _open_hive(uri: str, folder: Path, *, is_locked: bool) -> CatalogCase:
    local = LocalStorage(durable=False)
    warehouse = f"file://{folder}/warehouse"
    properties = {
        "iceberg.engine.hive.lock-enabled": str(is_locked).lower(),
        "iceberg.hive.lock-check-min-wait-ms": "5",
        "iceberg.hive.lock-check-max-wait-ms": "100",
    }

    def open_case(storage: Storage = local, **_: Any) -> Catalog:
        return open_hive("lake", uri, warehouse, storage, properties)

    case = CatalogCase(open_case(), open_case, local, warehouse, is_metastore=True)
    for namespace in case.catalog.list_namespaces():
        if namespace != ("default",):
            for table in case.catalog.list_tables(namespace):
                case.catalog.drop_table(table)
            for view in case.catalog.list_views(namespace):
                case.catalog.drop_view(view)
            case.catalog.drop_namespace(namespace)
    return case


def _open_glue(server: GlueServer, folder: Path) -> CatalogCase:
    local = LocalStorage(durable=False)
    warehouse = f"file://{folder}/warehouse"
    server.forget()

    def open_case(storage: Storage = local, **_: Any) -> Catalog:
        return open_glue("lake", warehouse, storage, server.properties)

    return CatalogCase(open_case(), open_case, local, warehouse, is_metastore=True)


def _open(name: str, folder: Path, postgres_uri: Callable[[], str]) -> CatalogCase:
    local = LocalStorage(durable=False)
    warehouse = f"file://{folder}/warehouse"
    if name == "memory":
        storage = MemoryStorage()
        catalog = MemoryCatalog("lake", "memory://bucket/warehouse", storage)
        return CatalogCase(catalog, lambda **_: catalog, storage, catalog.warehouse)
    if name.startswith("filesystem"):
        chosen: Storage = MemoryStorage() if name.endswith("memory") else local
        place = "memory://bucket/warehouse" if name.endswith("memory") else warehouse

        def open_files(storage: Storage = chosen) -> Catalog:
            return FilesystemCatalog("lake", place, storage)

        return CatalogCase(open_files(), open_files, chosen, place, is_filesystem=True)
    catalog_name = f"lake{next(_counter)}"

    def open_sql(storage: Storage = local, faults: dict[int, FaultKind] | None = None) -> Catalog:
        database: Database
        if name == "postgresql":
            database = PostgresDatabase(postgres_uri())
        else:
            database = SqliteDatabase(folder / "catalog.db")
        if faults is not None:
            database = FailingDatabase(database, faults)
        return SqlCatalog(catalog_name, warehouse, database, storage)

    case = CatalogCase(open_sql(), open_sql, local, warehouse, is_sql=True)
    if name == "sqlite-two-handles":
        case.opened.append(case.catalog)
        case.catalog = open_sql()
    return case


def empty_catalog(catalog: Catalog, namespace: tuple[str, ...] = ()) -> None:
    """Drop everything below a namespace."""
    for inner in catalog.list_namespaces(namespace):
        # Some services keep names that they cannot find again.
        with suppress(FrazilError):
            for table in catalog.list_tables(inner):
                catalog.drop_table(table)
            for view in catalog.list_views(inner):
                catalog.drop_view(view)
            empty_catalog(catalog, inner)
            catalog.drop_namespace(inner)


def made_table(catalog: Catalog, identifier: tuple[str, ...] = EVENTS, **options: Any) -> LoadedTable:
    """Create a table of events, and its namespace where it is missing."""
    if not catalog.namespace_exists(identifier[:-1]):
        # A metastore would add `.db` to the folder.
        is_metastore = isinstance(catalog, MetastoreCatalog)
        place = {"location": f"{catalog.warehouse}/{identifier[0].lower()}"} if is_metastore else None
        catalog.create_namespace(identifier[:-1], place)
    return catalog.create_table(identifier, builders.schema(), **options)


def commit(catalog: Catalog, loaded: LoadedTable, *updates: TableUpdate) -> Outcome[LoadedTable]:
    """Commit updates of one table that rely on nothing."""
    return catalog.commit(loaded, updates)


def setting(loaded: LoadedTable, **properties: str) -> TableChange:
    """Return the change of a table that sets properties."""
    return TableChange(loaded, (SetProperties(FrozenMap(properties)),))


def set_property(catalog: Catalog, loaded: LoadedTable, **properties: str) -> Outcome[LoadedTable]:
    """Commit properties."""
    return commit(catalog, loaded, SetProperties(FrozenMap(properties)))


def committed(outcome: Outcome[LoadedTable]) -> LoadedTable:
    """Return the new state of a commit that must have worked."""
    assert isinstance(outcome, Committed), outcome
    return outcome.loaded


def rejected(outcome: Outcome[Any]) -> Rejected:
    """Return why a commit that must not have worked did not."""
    assert isinstance(outcome, Rejected), outcome
    return outcome


def set_property_until_it_works(catalog: Catalog, identifier: tuple[str, ...], **properties: str) -> LoadedTable:
    """Commit properties as a retry loop would."""
    while True:
        outcome = set_property(catalog, catalog.load_table(identifier), **properties)
        if isinstance(outcome, Committed):
            return outcome.loaded
        assert isinstance(outcome, Rejected), outcome
        assert outcome.reason.retryable, outcome.reason


def write_snapshot(loaded: LoadedTable, snapshot_id: int, *data_paths: str) -> Snapshot:
    """Write a manifest and its list for some data files, which need not exist; return the snapshot."""
    metadata, storage = loaded.metadata, loaded.storage
    folder = f"{metadata.location}/metadata"
    number = metadata.last_sequence_number + 1
    entries = [
        ManifestEntry(EntryStatus.ADDED, DataFile(path, FileFormat.PARQUET, 1, 10), snapshot_id=snapshot_id)
        for path in data_paths
    ]
    manifest = encode_manifest(
        entries,
        path=f"{folder}/m{snapshot_id}.avro",
        spec=metadata.default_spec,
        schema=metadata.current_schema,
        format_version=metadata.format_version,
        snapshot_id=snapshot_id,
    )
    manifest_list = encode_manifest_list(
        [manifest.manifest],
        format_version=metadata.format_version,
        snapshot_id=snapshot_id,
        parent_snapshot_id=metadata.current_snapshot_id,
        sequence_number=number,
    )
    storage.create(f"{folder}/m{snapshot_id}.avro", manifest.data)
    storage.create(f"{folder}/snap-{snapshot_id}.avro", manifest_list.data)
    return Snapshot(
        snapshot_id,
        metadata.last_updated_ms,
        f"{folder}/snap-{snapshot_id}.avro",
        FrozenMap({"operation": "append"}),
        metadata.current_snapshot_id,
        number,
        metadata.current_schema_id,
    )
