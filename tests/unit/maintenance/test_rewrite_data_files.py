"""Rewriting data files in this process: rows, ids and deletes stay what they are, whoever else is at work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import Target
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors
from frazil.errors import (
    CommitStateUnknownError,
    ConcurrentChangeError,
    EngineError,
    FrazilError,
    InvalidRequestError,
)
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.maintenance.plan_rewrite import (
    STRATEGIES,
    RewriteGroup,
    RewritePlan,
    RewriteRequest,
    Strategy,
    plan_rewrite,
)
from frazil.maintenance.rewrite_data_files import Progress, RewriteDataFilesResult, rewrite_data_files
from frazil.maintenance.rewrite_group import rewrite_group
from frazil.maintenance.rewrite_options import read_data_options
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.sorting import UNSORTED, build_sort_order
from tests.support.copied_tables import copy_table
from tests.support.damage import DDL, Damaged, rows
from tests.support.equality_delete_writer import write_equality_deletes

VERSIONS = (1, 2, 3)


def new_table(version: int = 3, *, partition_by: Sequence[str] = (), **properties: str) -> frazil.Table:
    lake = frazil.connect("memory:")
    return lake.create_table(
        "db.t", DDL, partition_by=list(partition_by), format_version=version, properties=properties
    )


def with_appends(
    version: int = 3, count: int = 6, *, partition_by: Sequence[str] = (), **properties: str
) -> frazil.Table:
    return copy_table(_appended(version, count, tuple(partition_by), FrozenMap(properties)))


@cache
def _appended(version: int, count: int, partition_by: tuple[str, ...], properties: FrozenMap[str, str]) -> frazil.Table:
    table = new_table(version, partition_by=partition_by, **properties)
    for at in range(count):
        table.append(rows(at * 10, at * 10 + 10, "ab"[at % 2]))
    return table


def request_for(
    table: frazil.Table,
    strategy: Strategy = "binpack",
    *,
    where: str | None = None,
    sort_by: Sequence[str] = (),
    zorder: Sequence[str] = (),
    **options: Any,
) -> RewriteRequest:
    return RewriteRequest(
        read_data_options({name.replace("_", "-"): one for name, one in options.items()}, 1 << 20, strategy=strategy),
        strategy,
        build_sort_order(table.schema, tuple(sort_by)) if sort_by else UNSORTED,
        tuple(table.schema.field(one).field_id for one in zorder),
        TRUE if where is None else parse_predicate(where),
    )


def rewrite(table: frazil.Table, strategy: Strategy = "binpack", **options: Any) -> RewriteDataFilesResult:
    _, result = rewrite_data_files(
        table._catalog, table.refresh().state, request_for(table, strategy, **options), threads=2
    )
    table.refresh()
    return result


def content(table: frazil.Table, **choice: Any) -> list[str]:
    """Return all rows as sorted text; in v3 with their ids and the numbers of their last changes."""
    columns = [one.name for one in table.schema.fields]
    if table.format_version >= 3:
        columns += ["_row_id", "_last_updated_sequence_number"]
    return sorted(map(repr, table.scan(columns=columns, **choice).to_arrow().to_pylist()))


def files_of(table: frazil.Table) -> list[DataFile]:
    return [one.data_file for one in table.scan().plan().tasks]


def stored(table: frazil.Table) -> set[str]:
    return {one.path for one in table.state.storage.list(table.location) if "/data/" in one.path}


def delete(table: frazil.Table, file: DataFile, positions: list[int], *, command: str = "delete") -> None:
    """Delete rows of a file by a vector, as another writer."""
    loaded = table._catalog.refresh(table.state)
    vectors = write_deletion_vectors([DeletedRows.of(file, positions)], loaded)
    assert loaded.metadata.current_snapshot is not None
    read = ReadSet(loaded.metadata.current_snapshot.snapshot_id)
    commit_actions(table._catalog, loaded, RowDelta(tuple(vectors), read, command))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", VERSIONS)
def test_small_files_are_merged_with_the_same_rows(version: int) -> None:
    table = with_appends(version)
    before = content(table)
    result = rewrite(table)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert result.rewritten_bytes_count > 0 and result.failed_data_files_count == 0
    assert content(table) == before
    assert table.check(bounds=True).ok
    assert rewrite(table) == RewriteDataFilesResult()
    assert table.current_snapshot is not None and table.current_snapshot.operation == "replace"


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_rewritten_separately(version: int) -> None:
    table = with_appends(version, 12, partition_by=["kind"])
    before = content(table)
    assert rewrite(table).added_data_files_count == 2
    assert {one.partition for one in files_of(table)} == {("a",), ("b",)}
    assert content(table) == before
    assert table.check(bounds=True).ok


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_are_applied_and_dangling_ones_removed(version: int) -> None:
    table = Damaged(version).table
    before = content(table)
    result = rewrite(table, rewrite_all=True, remove_dangling_deletes=True)
    assert content(table) == before
    assert result.removed_delete_files_count >= 3
    assert table.inspect.delete_files().num_rows == 0
    assert table.check(bounds=True).ok


@pytest.mark.parametrize("version", [2, 3])
def test_file_scoped_deletes_are_removed_in_the_same_commit(version: int) -> None:
    table = Damaged(version).table
    before = content(table)
    result = rewrite(table, rewrite_all=True)
    assert result.removed_delete_files_count == 2
    assert content(table) == before
    kinds = set(table.inspect.delete_files().column("content").to_pylist())
    assert kinds <= {2}, "equality deletes may be about others"


def test_rows_keep_ids_through_several_rewrites() -> None:
    table = with_appends(3)
    before = content(table)
    for strategy in STRATEGIES:
        rewrite(table, strategy, rewrite_all=True, sort_by=["id desc"] if strategy == "sort" else (), zorder=["id"])
        assert content(table) == before
    table.append(rows(900, 901))
    assert len({one.split("'_row_id': ")[1].split(",")[0] for one in content(table)}) == 61


def test_upgraded_rows_get_ids_once() -> None:
    table = with_appends(2)
    table.upgrade(3)
    plain = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    rewrite(table)
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == plain
    ids = table.scan(columns=["_row_id"]).to_arrow().column(0)
    assert ids.null_count == 0 and len(set(ids.to_pylist())) == 60
    before = content(table)
    rewrite(table, rewrite_all=True)
    assert content(table) == before


def test_filter_leaves_other_files_and_keeps_rows_outside_it() -> None:
    table = with_appends(2, 12, partition_by=["kind"])
    before = content(table)
    loaded = table.state
    # A row outside the filter is deleted by value: it must not come back.
    deletes = write_equality_deletes(pa.table({"id": [0]}), loaded, ["id"], spec_id=0, partition=("a",))
    table._run(RowDelta(tuple(deletes), None))
    after = content(table)
    assert len(after) == len(before) - 1
    result = rewrite(table, where="kind = 'a' and id >= 5", min_input_files=2)
    assert 0 < result.rewritten_data_files_count <= 6
    assert content(table) == after


@pytest.mark.parametrize("version", VERSIONS)
def test_sorted_files_have_disjoint_ranges(version: int) -> None:
    table = with_appends(version, 8, **{"write.parquet.compression-codec": "uncompressed"})
    before = content(table)
    table.set_sort_order(["score desc nulls last", "id"])
    total = sum(one.file_size_in_bytes for one in files_of(table))
    rewrite(
        table,
        "sort",
        sort_by=["score desc nulls last", "id"],
        rewrite_all=True,
        target_file_size_bytes=total // 4,
        min_file_size_bytes=1,
    )
    assert content(table) == before
    files = files_of(table)
    assert {one.sort_order_id for one in files} == {table.sort_order.order_id}
    scores = [one for one in table.scan(columns=["score"]).to_arrow().column(0).to_pylist() if one == one]
    known = [one for one in scores if one is not None]
    assert known == sorted(known, reverse=True)
    assert table.check(bounds=True).ok


def test_order_other_than_the_table_order_is_not_recorded() -> None:
    table = with_appends(3)
    rewrite(table, "sort", sort_by=["id desc"])
    ids = table.scan(columns=["id"]).to_arrow().column(0).to_pylist()
    assert ids == sorted(ids, reverse=True)
    assert {one.sort_order_id for one in files_of(table)} == {0}


def test_after_z_order_a_filter_on_either_column_skips_most_files(tmp_path: Path) -> None:
    lake = frazil.connect(str(tmp_path))
    table = lake.create_table(
        "db.t", "x bigint, y bigint, z string", properties={"write.parquet.row-group-size-bytes": "2048"}
    )
    count = 1 << 12
    for at in range(6):
        values = pc.random(count, initializer=at)
        other = pc.random(count, initializer=100 + at)
        table.append(
            pa.table(
                {
                    "x": pc.cast(pc.multiply(values, 1e6), pa.int64(), safe=False),
                    # Skewed, and of a much smaller range than x.
                    "y": pc.cast(pc.multiply(pc.power(other, 4), 1000), pa.int64(), safe=False),
                    "z": [f"row {one}" for one in range(count)],
                }
            )
        )
    before = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    total = sum(one.file_size_in_bytes for one in files_of(table))
    rewrite(table, "zorder", zorder=["x", "y"], target_file_size_bytes=total // 64, min_file_size_bytes=1)
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == before
    every = len(files_of(table))
    assert every > 30
    for where in ("x = 500000", "y = 300"):
        assert len(table.scan(where).plan().tasks) < every / 2, where


def test_dry_run_writes_nothing() -> None:
    table = with_appends()
    before, files = table.metadata, stored(table)
    request = request_for(table)
    state, result = rewrite_data_files(table._catalog, table.state, request, dry_run=True)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert state.metadata == before and stored(table) == files


def test_progress_is_reported() -> None:
    table = with_appends(3, 12, partition_by=["kind"])
    told: list[Progress] = []
    rewrite_data_files(table._catalog, table.state, request_for(table), on_progress=told.append, threads=1)
    assert [(one.done_groups, one.all_groups) for one in told] == [(1, 2), (2, 2)]
    assert told[-1].done_bytes == told[-1].all_bytes > 0


def test_files_use_the_current_schema_and_spec() -> None:
    table = with_appends(2, 6, partition_by=["kind"])
    with table.update_schema() as update:
        update.add_column("more", "int")
        update.rename_column("score", "points")
        update.drop_column("place")
    with table.update_spec() as spec:
        spec.remove_field("kind")
        spec.add_field("bucket(2, id)")
    table.append(pa.table({"id": [1000], "kind": ["z"], "more": pa.array([5], pa.int32())}))
    before = content(table)
    result = rewrite(table, rewrite_all=True)
    assert result.rewritten_data_files_count == 7
    assert {one.spec_id for one in files_of(table)} == {table.spec.spec_id}
    assert content(table) == before
    assert table.check(bounds=True).ok


@pytest.mark.parametrize("old", ["orc", "avro"])
def test_file_format_follows_the_table(old: str) -> None:
    table = with_appends(2, 6, **{"write.format.default": old})
    before = content(table)
    assert {one.file_format.value for one in files_of(table)} == {old}
    table.set_properties({"write.format.default": "parquet"})
    rewrite(table)
    assert {one.file_format.value for one in files_of(table)} == {"parquet"}
    assert content(table) == before


def test_output_spec_can_be_chosen() -> None:
    table = with_appends(2, 6, partition_by=["kind"])
    with table.update_spec() as spec:
        spec.remove_field("kind")
    before = content(table)
    rewrite(table, rewrite_all=True, output_spec_id=0)
    assert {one.spec_id for one in files_of(table)} == {0}
    assert content(table) == before


def test_branch_is_rewritten_without_changing_others() -> None:
    table = with_appends(3)
    table.create_branch("audit")
    table.append(rows(500, 510), branch="audit")
    main, audit = content(table), content(table, ref="audit")
    request = request_for(table)
    request = RewriteRequest(request.options, target=Target("audit"))
    _, result = rewrite_data_files(table._catalog, table.state, request)
    table.refresh()
    assert result.rewritten_data_files_count == 7
    assert (content(table), content(table, ref="audit")) == (main, audit)
    assert len(files_of(table)) == 6


# Beside other writers


class Beside:
    """Rewrites groups as usual, and lets another writer act once the first group is written."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.calls = 0

    def __call__(self, plan: RewritePlan, group: RewriteGroup) -> Sequence[DataFile]:
        files = rewrite_group(plan, group)
        self.calls += 1
        if self.calls == 1:
            self.act()
        return files


def beside(table: frazil.Table, act: Callable[[], object], **options: Any) -> RewriteDataFilesResult:
    request = request_for(table, max_concurrent_file_group_rewrites=1, **options)
    _, result = rewrite_data_files(table._catalog, table.state, request, rewriter=Beside(act))
    table.refresh()
    return result


def other_handle(table: frazil.Table) -> frazil.Table:
    return frazil.Table(table._catalog, table.state)


@pytest.mark.parametrize("version", VERSIONS)
def test_concurrent_append_is_not_a_conflict(version: int) -> None:
    table = with_appends(version)
    beside(table, lambda: other_handle(table).append(rows(700, 710)))
    assert len(content(table)) == 70
    assert len(files_of(table)) == 2


def test_concurrently_deleted_row_stays_deleted() -> None:
    table = with_appends(3)
    victim = files_of(table)[0]
    files = stored(table)
    with pytest.raises(ConcurrentChangeError, match="deletes were added to a data file"):
        beside(table, lambda: delete(table, victim, [0]))
    table.refresh()
    assert len(content(table)) == 59
    assert {one for one in stored(table) if one.endswith(".parquet")} == files, "new files are cleaned up"


def delete_by_value(table: frazil.Table) -> None:
    """Delete one row by its id, as another writer."""
    other = other_handle(table)
    deletes = write_equality_deletes(pa.table({"id": [3]}), other.state, ["id"])
    other._run(RowDelta(tuple(deletes), None))


def test_concurrent_equality_delete_applies_to_new_files() -> None:
    table = with_appends(2)
    result = beside(table, lambda: delete_by_value(table))
    assert result.rewritten_data_files_count == 6
    assert len(content(table)) == 59


def test_concurrent_equality_delete_conflicts_if_new_files_get_a_new_sequence_number() -> None:
    table = with_appends(2)
    with pytest.raises(ConcurrentChangeError):
        beside(table, lambda: delete_by_value(table), use_starting_sequence_number=False)
    assert len(content(table.refresh())) == 59


@pytest.mark.parametrize("max_commits", [1, 10])
def test_partial_progress_retries_a_conflicting_group(max_commits: int) -> None:
    table = with_appends(3, 12, partition_by=["kind"])
    before = len(content(table))
    victim = next(one for one in files_of(table) if one.partition == ("a",))
    result = beside(
        table,
        lambda: delete(table, victim, [0]),
        partial_progress_enabled=True,
        partial_progress_max_commits=max_commits,
    )
    assert (result.rewritten_data_files_count, result.failed_data_files_count, result.failures) == (12, 0, ())
    assert len(content(table)) == before - 1, "the row that was deleted meanwhile stays deleted"
    assert len(files_of(table)) == 2
    assert sorted(one.record_count for one in files_of(table)) == [59, 60]
    assert {one for one in stored(table) if one.endswith(".parquet")} >= {one.file_path for one in files_of(table)}
    assert table.check(bounds=True).ok


class AfterEachGroup(Beside):
    """Lets another writer act after every group of one partition."""

    def __call__(self, plan: RewritePlan, group: RewriteGroup) -> Sequence[DataFile]:
        files = rewrite_group(plan, group)
        if group.tasks[0].data_file.partition == ("a",):
            self.act()
        return files


@pytest.mark.parametrize("max_commits", [1, 10])
def test_group_that_conflicts_twice_is_reported_and_others_commit(max_commits: int) -> None:
    table = with_appends(3, 12, partition_by=["kind"])
    before = len(content(table))
    files = stored(table)
    victims = [one for one in files_of(table) if one.partition == ("a",)]
    request = request_for(
        table,
        max_concurrent_file_group_rewrites=1,
        partial_progress_enabled=True,
        partial_progress_max_commits=max_commits,
    )
    rewriter = AfterEachGroup(lambda: delete(table, victims.pop(), [0]))
    _, result = rewrite_data_files(table._catalog, table.state, request, rewriter=rewriter)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 6)
    assert len(result.failures) == 1 and "deletes were added" in result.failures[0]
    assert len(content(table.refresh())) == before - 2
    made = {one for one in stored(table) if one.endswith(".parquet")} - set(files)
    assert made == {one.file_path for one in files_of(table) if one.partition == ("b",)}, "no file is left over"
    assert table.check(bounds=True).ok
    assert rewrite(table).rewritten_data_files_count == 6, "another run does the rest"
    assert len(content(table)) == before - 2


def test_two_concurrent_rewrites_duplicate_nothing() -> None:
    table = with_appends(3)
    before = content(table)
    with pytest.raises(ConcurrentChangeError, match="not in the table"):
        beside(table, lambda: rewrite(other_handle(table)))
    table.refresh()
    assert content(table) == before
    assert len(files_of(table)) == 1
    assert len(stored(table)) == 7, "the files of the rewrite that lost are gone"


@pytest.mark.parametrize("appends", [1, 2])
def test_expired_base_conflicts_only_if_history_is_lost(appends: int) -> None:
    table = with_appends(3)

    def act() -> None:
        other = other_handle(table)
        for _ in range(appends):
            other.append(rows(700, 710))
        other.maintain.expire_snapshots(older_than=2**62)

    if appends == 1:
        assert beside(table, act).rewritten_data_files_count == 6
    else:
        with pytest.raises(ConcurrentChangeError, match=r"the changes since .* are unknown"):
            beside(table, act)
    assert len(content(table.refresh())) == 60 + 10 * appends
    assert table.check(bounds=True).ok


def test_too_many_failed_commits_stop_the_rewrite() -> None:
    table = with_appends(3, 12, partition_by=["kind"])
    victim = next(one for one in files_of(table) if one.partition == ("a",))
    with pytest.raises(ConcurrentChangeError):
        beside(
            table,
            lambda: delete(table, victim, [0]),
            partial_progress_enabled=True,
            partial_progress_max_failed_commits=0,
        )
    assert victim.file_path in {one.file_path for one in files_of(table)}


def test_failed_group_is_reported_and_its_files_deleted() -> None:
    table = with_appends(3, 12, partition_by=["kind"])
    before, files = content(table), stored(table)

    def fail() -> None:
        raise InvalidRequestError("Cannot go on: the test says so")

    with pytest.raises(InvalidRequestError, match="the test says so"):
        beside(table, fail)
    assert content(table.refresh()) == before
    left = stored(table) - files
    assert len(left) <= 1, "the failing group's own files are its rewriter's to delete"
    result = beside(table, fail, partial_progress_enabled=True)
    assert (result.rewritten_data_files_count, result.failed_data_files_count) == (6, 6)
    assert content(table) == before


def test_rewriter_that_loses_rows_is_detected() -> None:
    table = with_appends(3)
    before, files = content(table), stored(table)

    def lose(plan: RewritePlan, group: RewriteGroup) -> Sequence[DataFile]:
        return rewrite_group(plan, replace(group, tasks=group.tasks[:-1]))

    with pytest.raises(EngineError, match="50 rows were written instead of 60"):
        rewrite_data_files(table._catalog, table.state, request_for(table), rewriter=lose)
    assert content(table.refresh()) == before and stored(table) == files


def test_new_files_are_kept_if_the_commit_outcome_is_unknown() -> None:
    table = with_appends(3)
    files = stored(table)

    catalog = table._catalog
    real = catalog.commit

    def commit(*arguments: Any) -> Any:
        real(*arguments)
        raise CommitStateUnknownError("Cannot tell")

    catalog.commit = commit  # type: ignore[method-assign, assignment]
    with pytest.raises(FrazilError):
        rewrite(table)
    catalog.commit = real  # type: ignore[method-assign]
    table.refresh()
    assert len(files_of(table)) == 1
    assert stored(table) > files
    assert len(content(table)) == 60


def test_fully_deleted_group_writes_nothing() -> None:
    table = with_appends(3, 1)
    delete(table, files_of(table)[0], list(range(10)))
    table.refresh()
    result = rewrite(table)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (1, 0)
    assert content(table) == [] and files_of(table) == []


def test_plan_determines_the_sequence_number_of_new_files() -> None:
    table = with_appends(2)
    loaded: LoadedTable = table.state
    assert plan_rewrite(loaded, request_for(table)).data_sequence_number == 6
    assert plan_rewrite(loaded, request_for(table, use_starting_sequence_number=False)).data_sequence_number is None
    assert plan_rewrite(with_appends(1).state, request_for(table)).data_sequence_number is None
