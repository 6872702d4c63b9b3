"""A fault at every call to storage, of every maintenance job: rows stay what they are, and another run does the rest.

A job runs on a prepared table once for each call it makes and each kind of fault. Whatever it met, afterwards every
reference reads as before, `check` finds nothing wrong, and the job run again ends well and changes no rows either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pytest

from frazil.catalog.base import Catalog
from frazil.catalog.memory import MemoryPointers
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.datafile.write_deletes import DeletedRows, write_position_deletes
from frazil.errors import FrazilError
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.maintenance.convert_equality_deletes import convert_equality_deletes
from frazil.maintenance.expire_snapshots import expire_snapshots
from frazil.maintenance.orphan_files import DAY_MS, remove_orphan_files
from frazil.maintenance.partition_stats import compute_partition_stats
from frazil.maintenance.plan_rewrite import RewriteRequest
from frazil.maintenance.rewrite_data_files import rewrite_data_files
from frazil.maintenance.rewrite_manifests import rewrite_manifests
from frazil.maintenance.rewrite_options import read_data_options
from frazil.maintenance.rewrite_position_deletes import rewrite_position_delete_files
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.storage.base import Storage
from frazil.storage.failing import FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.storage.memory import MemoryStorage
from frazil.table.table import Table
from frazil.verbs.write_session import read_set_of
from tests.support.commit_lab import LabClock
from tests.support.equality_delete_writer import write_equality_deletes

NAME: Final = ("db", "t")
SCHEMA: Final = Schema((NestedField(1, "id", LONG), NestedField(2, "k", STRING)))
Job = Callable[[Catalog, LoadedTable], object]


class World:
    """A table in memory with everything there is to maintain, and a way back to it."""

    def __init__(self) -> None:
        self.clock = LabClock()
        self.storage = MemoryStorage(now_ms=self.clock.now)
        self.pointers = MemoryPointers()
        catalog = self.open(self.storage)
        catalog.create_namespace(("db",))
        catalog.create_table(
            NAME,
            SCHEMA,
            build_partition_spec(SCHEMA, ["k"]),
            properties={"commit.manifest-merge.enabled": "false"},
            format_version=2,
        )
        table = self.table
        for at in range(4):
            table.append(pa.table({"id": range(at * 4, at * 4 + 4), "k": ["ab"[at % 2]] * 4}))
        table.create_tag("kept")
        tasks = list(table.scan().plan().tasks)
        rows = [DeletedRows.of(one.data_file, [1]) for one in tasks[:3]]
        positions = write_position_deletes(rows, table.state, granularity="partition")
        values = write_equality_deletes(pa.table({"id": [0, 9]}), table.state, ["id"], partition=("a",))
        files = tuple(one.data_file for one in tasks[:3])
        table._run(RowDelta((*positions, *values), read_set_of(table.state, "main", TRUE), "delete", files))
        table.upgrade(3)
        table.overwrite_partitions(pa.table({"id": [50, 51], "k": ["b", "b"]}))
        self.storage.create(f"{table.location}/data/orphan.parquet", b"orphan")
        self.clock.ms += 4 * DAY_MS
        self.saved = self._state()
        self.before = self.rows()

    def open(self, storage: Storage) -> Catalog:
        """Return a handle on the catalog, over a storage that may fail."""
        return PointerCatalog(
            "lab", "memory://lake", storage, self.pointers, now_ms=self.clock.now, new_id=self.clock.new_id
        )

    @property
    def table(self) -> Table:
        """The table, through a handle that does not fail."""
        catalog = self.open(self.storage)
        return Table(catalog, catalog.load_table(NAME))

    def _state(self) -> tuple[Any, ...]:
        storage, pointers = self.storage, self.pointers
        return self.clock.ms, self.clock.ids, dict(storage._files), set(storage._folders), dict(pointers._pointers)

    def restore(self) -> None:
        """Put everything back."""
        self.clock.ms, self.clock.ids, files, folders, pointers = self.saved
        self.storage._files, self.storage._folders = dict(files), set(folders)
        self.pointers._pointers.clear()
        self.pointers._pointers.update(pointers)

    def rows(self) -> dict[str, list[str]]:
        """Return the rows of every reference."""
        table = self.table
        return {
            name: sorted(map(repr, table.scan(ref=name, columns=["id", "k"]).to_arrow().to_pylist()))
            for name in table.refs
        }

    def check(self, told: object) -> None:
        """See that all is well."""
        assert self.rows() == self.before, told
        report = self.table.check()
        assert report.ok, (told, str(report))


def _data(catalog: Catalog, loaded: LoadedTable, **options: Any) -> object:
    chosen = {"rewrite-all": True, "remove-dangling-deletes": True, **options}
    request = RewriteRequest(read_data_options(chosen, 1 << 20, strategy="binpack"))
    return rewrite_data_files(catalog, loaded, request, threads=1)


JOBS: Final[dict[str, Job]] = {
    "rewrite_data_files": _data,
    "rewrite_data_files_in_parts": lambda catalog, loaded: _data(catalog, loaded, **{"partial-progress.enabled": True}),
    "rewrite_position_delete_files": rewrite_position_delete_files,
    "convert_equality_deletes": convert_equality_deletes,
    "rewrite_manifests": lambda catalog, loaded: rewrite_manifests(
        catalog, loaded, RewriteManifests(includes_deletes=True)
    ),
    "expire_snapshots": lambda catalog, loaded: expire_snapshots(
        catalog, loaded, ExpireSnapshots(older_than_ms=1 << 60), threads=1
    ),
    "remove_orphan_files": lambda catalog, loaded: remove_orphan_files(catalog, loaded, threads=1),
    "compute_partition_stats": lambda catalog, loaded: compute_partition_stats(catalog, loaded, threads=1),
}
WORLD: Final[list[World]] = []


def world() -> World:
    if not WORLD:
        WORLD.append(World())
    return WORLD[0]


def run_all(job: Job, kind: FaultKind, *, step: int) -> int:
    """Run a job with a fault at every call, or at every few; return how many were met."""
    where = world()
    call, met = 1, 0
    while True:
        where.restore()
        failing = FailingStorage(where.storage, Fault(call, kind))
        catalog = where.open(failing)
        try:
            job(catalog, catalog.load_table(NAME))
        except (FrazilError, SimulatedCrash):
            pass
        if not any(one.fault is not None for one in failing.calls):
            return met
        met += 1
        where.check((kind, call))
        again = where.open(where.storage)
        job(again, again.load_table(NAME))
        where.check((kind, call, "again"))
        call += step


@pytest.mark.extended
@pytest.mark.parametrize("kind", [FaultKind.IO_ERROR, FaultKind.APPLIED_BUT_ERROR, FaultKind.CRASH_AFTER])
@pytest.mark.parametrize("name", JOBS)
def test_fault_at_some_calls_of_maintenance_preserves_rows(name: str, kind: FaultKind) -> None:
    assert run_all(JOBS[name], kind, step=9) >= 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", list(FaultKind))
@pytest.mark.parametrize("name", JOBS)
def test_fault_at_any_call_of_maintenance_preserves_rows(name: str, kind: FaultKind) -> None:
    assert run_all(JOBS[name], kind, step=1) >= 5
