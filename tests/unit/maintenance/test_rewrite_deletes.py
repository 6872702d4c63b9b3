"""Rewriting delete files: fewer ones, vectors, equality deletes turned into positions; rows never change."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.remove_dangling_deletes import RemoveDanglingDeletes
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.row_delta import RowDelta
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.errors import ConcurrentChangeError
from frazil.expr.extract import parse_predicate
from frazil.maintenance.convert_equality_deletes import ConvertEqualityDeletesResult, convert_equality_deletes
from frazil.maintenance.plan_rewrite import RewriteRequest, plan_rewrite
from frazil.maintenance.rewrite_group import rewrite_group
from frazil.maintenance.rewrite_options import read_data_options
from frazil.maintenance.rewrite_position_deletes import (
    RewritePositionDeletesResult,
    rewrite_position_delete_files,
)
from frazil.scan.tasks import FileScanTask
from tests.support.commit_lab import Lab, paths_of
from tests.support.copied_tables import copy_table
from tests.support.equality_delete_writer import write_equality_deletes


def _ten_rows(start: int, kind: str) -> pa.Table:
    return pa.table({"id": range(start, start + 10), "kind": [kind] * 10})


@cache
def _with_four_files(version: int) -> frazil.Table:
    table = frazil.connect("memory:").create_table(
        "db.t", "id bigint, kind string", partition_by=["kind"], format_version=version
    )
    for at in range(4):
        table.append(_ten_rows(at * 10, "ab"[at % 2]))
    return table


class Deleted:
    """A table of four data files in two partitions, 10 rows each, with ways to delete rows."""

    def __init__(self, version: int = 2) -> None:
        self.table = copy_table(_with_four_files(version))

    def append(self, start: int, kind: str) -> None:
        self.table.append(_ten_rows(start, kind))

    @property
    def tasks(self) -> list[FileScanTask]:
        """The live data files."""
        return sorted(self.table.refresh().scan().plan().tasks, key=lambda one: self.first_id(one))

    def first_id(self, task: FileScanTask) -> int:
        return task.data_sequence_number

    def positions(self, chosen: dict[int, list[int]], *, per_file: bool) -> None:
        """Delete rows of files by position delete files."""
        tasks = self.tasks
        rows = [DeletedRows.of(tasks[at].data_file, found) for at, found in chosen.items()]
        files = write_position_deletes(rows, self.table.state, granularity="file" if per_file else "partition")
        self.commit(files, tuple(tasks[at].data_file for at in chosen))

    def vectors(self, chosen: dict[int, list[int]]) -> None:
        """Delete rows of files by deletion vectors."""
        tasks = self.tasks
        rows = [DeletedRows.of(tasks[at].data_file, found) for at, found in chosen.items()]
        self.commit(write_deletion_vectors(rows, self.table.state), ())

    def commit(self, files: list[Any], referenced: tuple[Any, ...]) -> None:
        head = self.table.refresh().current_snapshot
        assert head is not None
        self.table._run(RowDelta(tuple(files), ReadSet(head.snapshot_id), "delete", referenced))

    def equality(self, ids: list[int], kind: str | None) -> None:
        """Delete rows by value in one partition; all partitions where there is no kind."""
        spec = next(one for one in self.table.metadata.partition_specs if one.is_unpartitioned == (kind is None))
        partition = () if kind is None else (kind,)
        files = write_equality_deletes(
            pa.table({"id": ids}), self.table.refresh().state, ["id"], spec_id=spec.spec_id, partition=partition
        )
        self.table._run(RowDelta(tuple(files), None))

    def ids(self) -> list[int]:
        found: list[int] = sorted(self.table.refresh().scan(columns=["id"]).to_arrow().column(0).to_pylist())
        return found

    def deletes(self) -> dict[str, int]:
        """Count the live delete files by kind."""
        found = self.table.refresh().inspect.delete_files()
        kinds = zip(found.column("content").to_pylist(), found.column("file_format").to_pylist(), strict=True)
        names = ["equality" if one == 2 else "vector" if kind == "PUFFIN" else "position" for one, kind in kinds]
        return {one: names.count(one) for one in sorted(set(names))}

    def rewrite(self, *, dry_run: bool = False, where: str = "true", **options: Any) -> RewritePositionDeletesResult:
        _, result = rewrite_position_delete_files(
            self.table._catalog,
            self.table.refresh().state,
            options,
            where=parse_predicate(where),
            dry_run=dry_run,
        )
        self.table.refresh()
        return result

    def convert(self, *, dry_run: bool = False) -> ConvertEqualityDeletesResult:
        _, result = convert_equality_deletes(self.table._catalog, self.table.refresh().state, dry_run=dry_run)
        self.table.refresh()
        return result


def test_small_position_delete_files_are_merged_per_partition() -> None:
    case = Deleted()
    for at in range(5):
        case.positions({0: [at], 1: [at], 2: [9 - at]}, per_file=False)
    before = case.ids()
    assert case.deletes() == {"position": 10}
    case.table.set_properties({"write.delete.granularity": "partition"})
    result = case.rewrite()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (10, 2)
    assert result.rewritten_bytes_count > result.added_bytes_count > 0
    assert case.ids() == before
    assert case.table.check(bounds=True).ok
    assert case.rewrite() == RewritePositionDeletesResult()


def test_few_position_delete_files_are_kept_unless_requested() -> None:
    case = Deleted()
    case.positions({0: [1], 2: [1]}, per_file=True)
    assert case.rewrite() == RewritePositionDeletesResult()
    assert case.rewrite(rewrite_all=True).rewritten_delete_files_count == 2


def test_rewritten_deletes_do_not_apply_to_later_rows() -> None:
    case = Deleted()
    case.positions({0: [1]}, per_file=False)
    case.append(100, "a")
    case.positions({2: [1]}, per_file=False)
    before = case.ids()
    case.rewrite(rewrite_all=True)
    assert case.ids() == before


def test_filter_selects_partitions() -> None:
    case = Deleted()
    case.positions({0: [1], 1: [1]}, per_file=True)
    before = case.ids()
    assert case.rewrite(where="kind = 'a'", rewrite_all=True).rewritten_delete_files_count == 1
    assert case.ids() == before


def test_dry_run_of_deletes_changes_nothing() -> None:
    case = Deleted()
    case.positions({0: [1], 1: [1]}, per_file=True)
    before = case.table.refresh().metadata
    assert case.rewrite(dry_run=True, rewrite_all=True).rewritten_delete_files_count == 2
    assert case.table.refresh().metadata == before


@pytest.mark.parametrize("per_file", [True, False])
def test_upgraded_table_gets_vectors(per_file: bool) -> None:
    case = Deleted()
    for at in range(3):
        case.positions({0: [at], 1: [at], 2: [9 - at]}, per_file=per_file)
    before = case.ids()
    case.table.upgrade(3)
    result = case.rewrite()
    assert result.rewritten_delete_files_count == (9 if per_file else 6)
    assert result.added_delete_files_count == 3
    assert case.deletes() == {"vector": 3}
    assert case.ids() == before
    assert case.table.check(bounds=True).ok
    case.vectors({0: [9], 3: [0]})
    assert case.ids() == [one for one in before if one not in (9, 30)]


def test_concurrently_added_vector_is_a_conflict() -> None:
    case = Deleted()
    case.positions({0: [0], 2: [0]}, per_file=False)
    case.table.upgrade(3)
    loaded = case.table.state
    tasks = case.tasks
    old = [one.data_file for one in tasks[0].delete_files]
    rows = DeletedRows.of(tasks[0].data_file, [0, 5])
    vectors = write_deletion_vectors([rows], loaded)
    head = case.table.current_snapshot
    assert head is not None
    case.table._run(RowDelta(tuple(vectors), ReadSet(head.snapshot_id), "delete", included_deletes=tuple(old)))
    with pytest.raises(ConcurrentChangeError):
        rewrite_position_delete_files(case.table._catalog, loaded)
    assert 5 not in case.ids()
    case.rewrite()
    assert case.deletes() == {"vector": 2}
    assert 5 not in case.ids() and 0 not in case.ids()


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_become_position_deletes(version: int) -> None:
    case = Deleted(version)
    case.equality([1, 2, 99], "a")
    case.append(0, "a")
    case.equality([21], "a")
    before = case.ids()
    planned = case.convert(dry_run=True)
    assert planned.converted_delete_files_count == 2
    result = case.convert()
    assert (result.converted_delete_files_count, result.deleted_rows_count) == (2, 3)
    assert case.ids() == before
    assert case.deletes() == {"position" if version == 2 else "vector": 2}
    assert case.table.check(bounds=True).ok
    assert case.convert() == ConvertEqualityDeletesResult()


def test_equality_deletes_are_merged_into_existing_vectors() -> None:
    case = Deleted(3)
    case.vectors({0: [5], 1: [5]})
    case.equality([1], "a")
    before = case.ids()
    case.convert()
    assert case.ids() == before and len(before) == 37
    assert case.deletes() == {"vector": 2}


def test_converted_equality_deletes_include_position_deletes_after_an_upgrade() -> None:
    case = Deleted(2)
    case.positions({0: [5], 2: [5]}, per_file=False)
    case.equality([1], "a")
    before = case.ids()
    case.table.upgrade(3)
    case.convert()
    assert case.ids() == before
    assert case.deletes() == {"position": 1, "vector": 1}
    case.rewrite()
    assert case.ids() == before
    assert case.deletes() == {"vector": 2}


@pytest.mark.parametrize("version", [2, 3])
def test_compaction_started_earlier_cannot_restore_rows(version: int) -> None:
    case = Deleted(version)
    request = RewriteRequest(read_data_options({"rewrite-all": True}, 1 << 20, strategy="binpack"))
    plan = plan_rewrite(case.table.state, request)
    written = [(one, rewrite_group(plan, one)) for one in plan.groups]
    case.equality([1], "a")
    case.convert()
    assert plan.snapshot is not None
    removed = tuple(task.data_file for one, _ in written for task in one.tasks)
    added = tuple(file for _, files in written for file in files)
    action = RewriteFiles(removed, added, plan.snapshot.snapshot_id, data_sequence_number=plan.data_sequence_number)
    with pytest.raises(ConcurrentChangeError):
        case.table._run(action)
    assert 1 not in case.ids()


def dangling(case: Deleted) -> None:
    case.table._run(RemoveDanglingDeletes())


def test_dangling_deletes_are_removed_and_others_kept() -> None:
    case = Deleted(2)
    case.positions({0: [1]}, per_file=True)
    case.positions({1: [1], 3: [1]}, per_file=False)
    case.equality([2], "a")
    case.equality([12], "b")
    before = case.ids()
    dangling(case)
    assert case.deletes() == {"equality": 2, "position": 2}
    case.table.delete("kind = 'a'")
    case.append(50, "a")
    after = case.ids()
    dangling(case)
    assert case.deletes() == {"equality": 1, "position": 1}
    assert case.ids() == after and len(before) == 35
    head = case.table.current_snapshot
    dangling(case)
    assert case.table.current_snapshot == head


def test_global_equality_delete_is_kept_while_a_partition_has_older_rows() -> None:
    case = Deleted(2)
    with case.table.update_spec() as spec:
        spec.remove_field("kind")
    case.equality([1, 11], None)
    before = case.ids()
    assert 1 not in before and 11 not in before
    case.table.delete("kind = 'a'")
    dangling(case)
    assert case.deletes() == {"equality": 1}
    assert 11 not in case.ids()
    case.table.delete("kind = 'b'")
    dangling(case)
    assert case.deletes() == {}


def test_position_deletes_are_kept_beside_data_of_their_own_commit() -> None:
    # Such deletes reach files of the same sequence number, so that they dangle only where all data is newer.
    lab = Lab(partition_by=["k"])
    data = lab.file([1, 2, 3], "a")
    deletes = lab.position_deletes(data, names_file=False)
    lab.commit(RowDelta((data, deletes), None))
    lab.commit(Append((lab.file([4], "a"),)))
    lab.commit(RemoveDanglingDeletes())
    assert paths_of(*lab.deletes()) == paths_of(deletes)
