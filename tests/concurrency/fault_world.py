"""A table in a catalog of a kind, prepared once and put back as it was before each run. For tests of faults."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frazil.catalog.base import Catalog
from frazil.catalog.database import Database
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.memory import MemoryPointers
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.commit.once import RECORD_PREFIX
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.concurrency.check_files import entries_of, positions_of
from tests.concurrency.failing_catalogs import (
    CatalogFaults,
    FailingPointers,
    failing_postgres,
    failing_sqlite,
    put_rows,
    rows_of,
)
from tests.support.commit_lab import LabClock, TableLab

KINDS = ["memory", "sqlite", "postgresql", "filesystem", "filesystem-on-disk"]
_names = itertools.count(1)
_UNIQUE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass
class Saved:
    """Everything a run may change."""

    ms: int
    ids: int
    files: dict[str, Any] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    pointers: dict[Any, Any] = field(default_factory=dict)
    namespaces: dict[Any, Any] = field(default_factory=dict)
    rows: Mapping[str, list[tuple[Any, ...]]] = field(default_factory=dict)


class World:
    """A catalog with tables in it, ways to open it again with faults, and a way back to an earlier state."""

    def __init__(self, kind: str, folder: Path, postgres_uri: Callable[[], str]) -> None:
        self.kind = kind
        self.clock = LabClock()
        self._folder = folder
        self._uri = postgres_uri
        self._name = f"faults{next(_names)}"
        self._pointers = MemoryPointers()
        is_local = kind == "filesystem-on-disk"
        self.storage: Storage = LocalStorage(durable=False) if is_local else MemoryStorage(now_ms=self.clock.now)
        self.warehouse = f"file://{folder}/lake" if is_local else "memory://lake"
        self.faults = CatalogFaults()
        self._database = self._open_database(None)
        self._failing = self._open_database(self.faults)
        self.catalog = self._make(self.storage, self._database, self._pointers)
        self.lab = TableLab(self.catalog, self.storage, self.clock, writes_files=True)

    @property
    def is_filesystem(self) -> bool:
        """Whether the catalog is in files, so that all its calls are calls to storage."""
        return self.kind.startswith("filesystem")

    def open(self, storage: Storage) -> Catalog:
        """Return another handle on the same catalog, of which `faults` has the plan; each begins without faults."""
        self.faults.reset()
        return self._make(storage, self._failing, FailingPointers(self._pointers, self.faults))

    def end_process(self) -> None:
        """Close the connections of the handle, as the end of its process would."""
        self.faults.end_process()
        if self._failing is not None:
            self._failing.close()

    def close(self) -> None:
        """Close the catalog."""
        self.end_process()
        self.catalog.close()

    def _open_database(self, faults: CatalogFaults | None) -> Database | None:
        if self.kind == "sqlite":
            path = self._folder / "catalog.db"
            return SqliteDatabase(path) if faults is None else SqliteDatabase(path, connect=failing_sqlite(faults))
        if self.kind == "postgresql":
            return PostgresDatabase(self._uri(), connect=None if faults is None else failing_postgres(faults))
        return None

    def _make(self, storage: Storage, database: Database | None, pointers: MemoryPointers) -> Catalog:
        sources: dict[str, Any] = {"now_ms": self.clock.now, "new_id": self.clock.new_id}
        if self.is_filesystem:
            return FilesystemCatalog(self._name, self.warehouse, storage, **sources)
        if database is None:
            return PointerCatalog(self._name, self.warehouse, storage, pointers, **sources)
        return SqlCatalog(self._name, self.warehouse, database, storage, **sources)

    # Back and forth

    def save(self) -> Saved:
        """Keep what there is."""
        saved = Saved(self.clock.ms, self.clock.ids)
        if isinstance(self.storage, MemoryStorage):
            saved.files, saved.folders = dict(self.storage._files), set(self.storage._folders)
        else:
            shutil.rmtree(self._folder / "kept", ignore_errors=True)
            shutil.copytree(self._folder / "lake", self._folder / "kept")
        saved.pointers, saved.namespaces = dict(self._pointers._pointers), dict(self._pointers._namespaces)
        if self._database is not None:
            with self._database.transaction() as run:
                saved.rows = rows_of(run, self._name)
        return saved

    def restore(self, saved: Saved) -> None:
        """Put everything back as it was."""
        self.clock.ms, self.clock.ids = saved.ms, saved.ids
        if isinstance(self.storage, MemoryStorage):
            self.storage._files, self.storage._folders = dict(saved.files), set(saved.folders)
        else:
            shutil.rmtree(self._folder / "lake")
            shutil.copytree(self._folder / "kept", self._folder / "lake")
        # In place: other handles share them.
        self._pointers._pointers.clear()
        self._pointers._pointers.update(saved.pointers)
        self._pointers._namespaces.clear()
        self._pointers._namespaces.update(saved.namespaces)
        if self._database is not None:
            with self._database.transaction() as run:
                put_rows(run, self._name, saved.rows)

    # Looking

    def tables(self) -> list[LoadedTable]:
        """Return every table."""
        return [self.catalog.load_table(one) for one in self.catalog.list_tables(("db",))]

    def state(self) -> object:
        """Return what the tables are to a reader, without ids that chance gives."""
        return {one.identifier: describe(one) for one in self.tables()}


def describe(loaded: LoadedTable) -> dict[str, object]:
    """Return what a table is to a reader; snapshots go by their sequence numbers."""
    metadata = loaded.metadata
    numbers = {one.snapshot_id: one.sequence_number for one in metadata.snapshots}
    return {
        "version": metadata.format_version,
        # A new table goes elsewhere where an earlier try has left files.
        "location": _UNIQUE.sub("", metadata.location),
        # A record of a write names its snapshot, whose id is random.
        "properties": {
            name: re.sub(r"\d{10,}", "…", value) if name.startswith(RECORD_PREFIX) else value
            for name, value in metadata.properties.items()
        },
        "schema": [str(one) for one in metadata.current_schema.fields],
        "schemas": len(metadata.schemas_by_id),
        "spec": str(metadata.default_spec.fields),
        "specs": len(metadata.partition_specs),
        "order": str(metadata.default_sort_order.fields),
        "refs": {name: (numbers[one.snapshot_id], one.type, one.max_ref_age_ms) for name, one in metadata.refs.items()},
        "statistics": [one.statistics_path for one in metadata.statistics],
        "partition statistics": [one.statistics_path for one in metadata.partition_statistics],
        "snapshots": [_describe_snapshot(loaded, metadata, one, numbers) for one in metadata.snapshots],
        "next": (metadata.last_sequence_number, metadata.next_row_id, metadata.last_column_id),
    }


def _describe_snapshot(
    loaded: LoadedTable, metadata: TableMetadata, snapshot: Snapshot, numbers: Mapping[int, int]
) -> tuple[object, ...]:
    summary: Mapping[str, str] = {} if snapshot.summary is None else snapshot.summary
    live = sorted(
        (
            *_describe_file(loaded.storage, one.data_file),
            one.sequence_number,
            -1 if one.data_file.first_row_id is None else one.data_file.first_row_id,
        )
        for one in entries_of(loaded, snapshot)
    )
    return (
        snapshot.sequence_number,
        numbers.get(snapshot.parent_snapshot_id or 0),
        summary.get("operation"),
        summary.get("tag"),
        summary.get("wap.id"),
        summary.get("published-wap-id"),
        live,
    )


def _describe_file(storage: Storage, file: DataFile) -> tuple[str, str, int]:
    if file.is_deletion_vector:
        return f"vector of {file.referenced_data_file}", str(positions_of(storage, file)), file.record_count
    kind = {FileContent.DATA: "data", FileContent.POSITION_DELETES: "positions", FileContent.EQUALITY_DELETES: "ids"}
    return kind[file.content], file.file_path, file.record_count
