"""A fault at every call to storage that a commit makes: the table reads all the same, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_schema import UpdateSchema
from frazil.errors import FrazilError
from frazil.expr.parse import parse_predicate
from frazil.storage.failing import FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.storage.memory import MemoryStorage
from tests.commit_lab import Lab

pytestmark = pytest.mark.slow


def _append(lab: Lab) -> None:
    lab.commit(Append((lab.file([9], "b"),)))


def _fast_append(lab: Lab) -> None:
    lab.commit(Append((lab.file([9], "b"),), is_fast=True))


def _delete(lab: Lab) -> None:
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))


def _upsert(lab: Lab) -> None:
    lab.commit(RowDelta((lab.equality_deletes([1], partition=("a",)), lab.file([5], "a")), None))


def _delete_rows(lab: Lab) -> None:
    file = next(one.data_file for one in lab.live())
    deletes = lab.vectors({file: [0]}) if lab.load().metadata.format_version > 2 else (lab.position_deletes(file),)
    lab.commit(RowDelta(deletes, ReadSet(lab.snapshot.snapshot_id), "delete"))


def _overwrite(lab: Lab) -> None:
    file = next(one.data_file for one in lab.live())
    lab.commit(Overwrite((lab.file([1], file.partition[0]),), ReadSet(lab.snapshot.snapshot_id), (file,)))


def _replace_partitions(lab: Lab) -> None:
    lab.commit(ReplacePartitions((lab.file([1], "a"),), ReadSet(lab.snapshot.snapshot_id)))


def _compact(lab: Lab) -> None:
    file = next(one.data_file for one in lab.live())
    lab.commit(RewriteFiles((file,), (lab.file([1], file.partition[0]),), lab.snapshot.snapshot_id))


def _rewrite_manifests(lab: Lab) -> None:
    lab.commit(RewriteManifests())


def _expire(lab: Lab) -> None:
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 10_000))


def _schema(lab: Lab) -> None:
    lab.commit(UpdateSchema(lambda u: u.add_column("x", "long")))


def _several(lab: Lab) -> None:
    lab.commit(
        UpdateSchema(lambda u: u.add_column("x", "long")),
        Append((lab.file([9], "b"),)),
        DeleteFiles(where=parse_predicate("k = 'a'")),
    )


OPERATIONS: tuple[Callable[[Lab], None], ...] = (
    _append,
    _fast_append,
    _delete,
    _upsert,
    _delete_rows,
    _overwrite,
    _replace_partitions,
    _compact,
    _rewrite_manifests,
    _expire,
    _schema,
    _several,
)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", list(FaultKind), ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__.strip("_"))
def test_a_fault_at_any_storage_call_leaves_a_table_that_reads(
    operation: Callable[[Lab], None], kind: FaultKind, version: int
) -> None:
    done = _states_without_faults(operation, version)
    call = 0
    while True:
        call += 1
        memory, lab = _prepared(version)
        before = _state(lab)
        assert before == done[0]
        failing = FailingStorage(memory, Fault(call, kind))
        lab.storage = lab.catalog.storage = failing
        raised: BaseException | None = None
        try:
            operation(lab)
        except (FrazilError, SimulatedCrash) as error:
            raised = error
        lab.storage = lab.catalog.storage = memory
        lab.check_readable()
        # All of it or nothing; and what was acknowledged is there.
        assert _state(lab) == done[1] if raised is None else _state(lab) in done
        # Whatever was left behind is in nobody's way.
        operation_works_again = Append((lab.file([77], "b"),))
        lab.commit(operation_works_again)
        lab.check_readable()
        if not any(one.fault for one in failing.calls):
            break
    assert call > 2


def _prepared(version: int) -> tuple[MemoryStorage, Lab]:
    memory = MemoryStorage()
    properties = {"commit.manifest.min-count-to-merge": "2"}
    lab = Lab(storage=memory, partition_by=["k"], properties=properties, format_version=version)
    for one in (lab.file([1], "a"), lab.file([2], "b")):
        lab.commit(Append((one,)))
    return memory, lab


def _states_without_faults(operation: Callable[[Lab], None], version: int) -> tuple[object, object]:
    _, lab = _prepared(version)
    before = _state(lab)
    operation(lab)
    return before, _state(lab)


def _state(lab: Lab) -> object:
    """Return what a table is to a reader: its files, its deletes and its schema, and how many snapshots it has."""
    metadata = lab.load().metadata
    names = tuple(one.name for one in metadata.current_schema.fields)
    files = sorted((one.partition, one.record_count, one.content) for one in (e.data_file for e in lab.live()))
    return files, names, len(metadata.snapshots), len(lab.manifests())
