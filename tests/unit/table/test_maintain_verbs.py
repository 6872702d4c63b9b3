"""`t.maintain`: every procedure from a user's hand, dry runs, and what is refused."""

from __future__ import annotations

import datetime
import inspect
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
import frazil.table.maintain
from frazil.commit.row_delta import RowDelta
from frazil.errors import FrazilError, InvalidRequestError
from frazil.maintenance.rewrite_order import choose_order
from frazil.spec.frozen_map import FrozenMap
from tests.support.copied_tables import copy_table
from tests.support.damage import Damaged, rows
from tests.support.equality_delete_writer import write_equality_deletes

DDL = "id bigint, kind string, ts timestamptz, score double"


def with_appends(count: int = 6, **properties: str) -> frazil.Table:
    return copy_table(_appended(count, FrozenMap(properties)))


@cache
def _appended(count: int, properties: FrozenMap[str, str]) -> frazil.Table:
    table = frazil.connect("memory:").create_table("db.t", DDL, format_version=3, properties=properties)
    for at in range(count):
        table.append(rows(at * 10, at * 10 + 10).select(["id", "kind", "ts", "score"]))
    return table


def content(table: frazil.Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def test_rewrite_is_visible_through_the_handle() -> None:
    table = with_appends()
    before = content(table)
    planned = table.maintain.rewrite_data_files(dry_run=True)
    assert planned.rewritten_data_files_count == 6 and len(table.snapshots) == 6
    result = table.maintain.rewrite_data_files()
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert len(table.scan().plan().tasks) == 1
    assert content(table) == before


def test_options_have_java_or_python_names() -> None:
    table = with_appends(3)
    assert table.maintain.rewrite_data_files().rewritten_data_files_count == 0
    assert table.maintain.rewrite_data_files(min_input_files=2, dry_run=True).rewritten_data_files_count == 3
    assert table.maintain.rewrite_data_files(options={"min-input-files": "3"}).rewritten_data_files_count == 3
    with pytest.raises(InvalidRequestError, match="no option 'min_files'"):
        table.maintain.rewrite_data_files(min_files=2)


@pytest.mark.parametrize("sort_by", ["score desc nulls last, id", ["score desc nulls last", "id"], "zorder(id, score)"])
def test_rows_are_sorted_as_requested(sort_by: Any) -> None:
    table = with_appends()
    before = content(table)
    assert table.maintain.rewrite_data_files("sort", sort_by).rewritten_data_files_count == 6
    assert content(table) == before


@pytest.mark.parametrize(
    ("strategy", "sort_by"),
    [
        ("shuffle", None),
        ("sort", None),
        ("binpack", "id"),
        ("binpack", "zorder(id)"),
        ("zorder", None),
        ("sort", "zorder(id), kind"),
        ("sort", "zorder()"),
        ("zorder", "id, id"),
        ("sort", "nope"),
        ("sort", "id backwards"),
    ],
)
def test_invalid_orders_are_refused(strategy: str, sort_by: str | None) -> None:
    table = with_appends(1)
    with pytest.raises(FrazilError):
        table.maintain.rewrite_data_files(strategy, sort_by)


def test_terms_are_split_at_commas_outside_parentheses() -> None:
    metadata = with_appends(1).metadata
    _, order, _ = choose_order(metadata, "sort", "bucket(4, id) desc, kind")
    assert [str(one.transform) for one in order.fields] == ["bucket[4]", "identity"]
    strategy, _, ids = choose_order(metadata, "SORT", "ZORDER(`id`, kind)")
    assert (strategy, ids) == ("zorder", (1, 2))


def test_filter_must_use_table_columns() -> None:
    with pytest.raises(FrazilError):
        with_appends(1).maintain.rewrite_data_files(where="nope = 1")


def test_filter_uses_the_condition_language() -> None:
    table = with_appends(3)
    for where in ("ID < 10", "id < 9.5 and 1 = 1", "not id >= 10"):
        planned = table.maintain.rewrite_data_files(where=where, rewrite_all=True, dry_run=True)
        assert planned.rewritten_data_files_count == 1, where
    with pytest.raises(FrazilError, match="single quotes"):
        table.maintain.rewrite_data_files(where='kind = "a"')
    with pytest.raises(FrazilError, match="Spark"):
        table.maintain.rewrite_data_files(where="upper(kind) = 'A'")


def test_snapshots_expire_after_a_dry_run() -> None:
    table = with_appends()
    table.maintain.rewrite_data_files()
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    planned = table.maintain.expire_snapshots(older_than=now, dry_run=True)
    assert len(table.snapshots) == 7
    done = table.maintain.expire_snapshots(now, 1, 2)
    assert done == planned
    assert (done.deleted_data_files_count, len(table.snapshots)) == (6, 1)
    with pytest.raises(InvalidRequestError):
        table.maintain.expire_snapshots(retain_last=0)
    with pytest.raises(InvalidRequestError):
        table.maintain.expire_snapshots(max_concurrent_deletes=0)


def test_orphans_are_found_in_a_given_listing() -> None:
    table = with_appends(1)
    path = f"{table.location}/data/orphan.parquet"
    table.state.storage.create(path, b"x")
    assert table.maintain.remove_orphan_files().orphan_file_locations == ()
    listed = [(path, 0), *((one.data_file.file_path, 0) for one in table.scan().plan().tasks)]
    assert table.maintain.remove_orphan_files(file_list=listed, dry_run=True).orphan_file_locations == (path,)
    assert table.maintain.remove_orphan_files(file_list=listed).orphan_file_locations == (path,)
    assert not table.state.storage.exists(path)
    with pytest.raises(InvalidRequestError, match="ERROR, IGNORE and DELETE"):
        table.maintain.remove_orphan_files(prefix_mismatch_mode="maybe")
    with pytest.raises(InvalidRequestError, match="24 hours"):
        table.maintain.remove_orphan_files(older_than=datetime.datetime.now(datetime.UTC))


BRANCHED = [
    name
    for name, verb in inspect.getmembers(frazil.table.maintain.Maintain, inspect.isfunction)
    if "branch" in inspect.signature(verb).parameters and not name.startswith("_")
]


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("verb", BRANCHED)
def test_missing_branch_is_refused_and_not_created(verb: str, dry_run: bool) -> None:
    table = with_appends(2)
    table.create_tag("done")
    before = table.metadata
    given: tuple[Any, ...] = (table.location,) if verb == "add_files" else ()
    for branch, message in (("nope", "'nope'"), ("done", "it is a tag")):
        with pytest.raises(FrazilError, match=message):
            getattr(table.maintain, verb)(*given, branch=branch, dry_run=dry_run)
    assert table.refresh().metadata == before


def test_manifests_of_an_unknown_spec_are_refused() -> None:
    table = with_appends(2)
    for dry_run in (True, False):
        with pytest.raises(InvalidRequestError, match="partition spec 7"):
            table.maintain.rewrite_manifests(spec_id=7, dry_run=dry_run)


def test_manifests_are_merged() -> None:
    table = with_appends(6, **{"commit.manifest-merge.enabled": "false"})
    planned = table.maintain.rewrite_manifests(dry_run=True)
    assert planned == table.maintain.rewrite_manifests()
    assert (planned.rewritten_manifests_count, planned.added_manifests_count) == (6, 1)
    with pytest.raises(InvalidRequestError, match="give a list"):
        table.maintain.rewrite_manifests(sort_by="kind")


def test_deletes_are_converted_and_cleaned_up() -> None:
    table = Damaged(2).table
    before = content(table)
    table.upgrade(3)
    assert table.maintain.rewrite_position_delete_files(dry_run=True).rewritten_delete_files_count == 2
    assert table.maintain.rewrite_position_delete_files().added_delete_files_count == 2
    assert table.maintain.convert_equality_deletes().converted_delete_files_count >= 1
    assert table.maintain.remove_dangling_deletes() >= 0
    assert content(table) == before
    assert set(table.inspect.delete_files().column("file_format").to_pylist()) == {"PUFFIN"}
    assert table.check(bounds=True).ok


def test_partition_statistics_are_computed() -> None:
    table = Damaged(3).table
    made = table.maintain.compute_partition_stats()
    assert made is not None and table.metadata.partition_statistics == (made,)


def test_files_are_added(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    table = frazil.connect(tmp_path / "lake").create_table("db.t", DDL)
    assert table.maintain.add_files(str(tmp_path / "x.parquet"), dry_run=True).added_files_count == 1
    assert table.maintain.add_files([str(tmp_path / "x.parquet")]).added_files_count == 1
    assert table.scan().count() == 1


# optimize


def test_healthy_table_is_left_unchanged() -> None:
    table = with_appends(1)
    head = table.current_snapshot
    assert table.maintain.optimize().steps == ()
    assert table.refresh().current_snapshot == head
    assert str(table.maintain.optimize()) == "Nothing is worth doing."


def test_recommended_maintenance_runs_in_order() -> None:
    table = Damaged(2).table
    table.upgrade(3)
    for at in range(25):
        table.append(rows(1000 + at, 1001 + at))
    table.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    before = content(table)
    planned = table.maintain.optimize(dry_run=True)
    names = [one.procedure for one in planned.steps]
    assert names == ["rewrite_position_delete_files", "rewrite_data_files", "rewrite_manifests", "expire_snapshots"]
    head = table.current_snapshot
    assert table.refresh().current_snapshot == head
    done = table.maintain.optimize()
    assert [one.procedure for one in done.steps] == names
    assert all(one.reasons for one in done.steps)
    assert "because" in str(done)
    assert content(table) == before
    assert table.check(bounds=True).ok
    assert table.health().ok, str(table.health())
    assert table.maintain.optimize().steps == ()


def test_budget_is_respected_and_the_next_run_continues() -> None:
    table = frazil.connect("memory:").create_table("db.t", DDL, partition_by=["kind"], format_version=3)
    for at in range(12):
        table.append(rows(at * 10, at * 10 + 10, "ab"[at % 2]).select(["id", "kind", "ts", "score"]))
    before = content(table)
    size = sum(one.data_file.file_size_in_bytes for one in table.scan().plan().tasks)
    assert table.maintain.optimize(0).steps[0].result.rewritten_data_files_count == 0
    first = table.maintain.optimize(size // 2 + size // 10)
    assert first.steps[0].result.rewritten_data_files_count == 6
    assert first.steps[0].result.rewritten_bytes_count <= size // 2 + size // 10
    second = table.maintain.optimize(budget_bytes=size)
    assert second.steps[0].result.rewritten_data_files_count == 6
    assert content(table) == before
    with pytest.raises(InvalidRequestError):
        table.maintain.optimize(-1)


@pytest.mark.extended
def test_nothing_starts_after_the_time_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    table = frazil.connect("memory:").create_table("db.t", DDL, partition_by=["kind"], format_version=3)
    for at in range(24):
        table.append(rows(at * 10, at * 10 + 10, "abcd"[at % 4]).select(["id", "kind", "ts", "score"]))
    before = content(table)
    assert table.maintain.optimize(budget_minutes=0).steps == ()
    left = table.maintain.optimize(budget_minutes=0).left
    assert "rewrite_data_files" in {one.procedure for one in left}
    times = count(table.metadata.last_updated_ms, 20_000)
    monkeypatch.setattr(table._catalog, "now_ms", lambda: next(times))
    first = table.maintain.optimize(budget_minutes=1).steps[0].result
    assert 0 < first.rewritten_data_files_count < 24
    monkeypatch.undo()
    second = table.maintain.optimize(budget_minutes=60).steps[0].result
    assert first.rewritten_data_files_count + second.rewritten_data_files_count == 24
    assert content(table) == before
    assert table.check().ok
    for minutes in (-1, float("nan")):
        with pytest.raises(InvalidRequestError):
            table.maintain.optimize(budget_minutes=minutes)


def test_every_procedure_has_a_dry_run() -> None:
    damaged = Damaged(2)
    table = damaged.table
    table.drop_tag("kept")
    table.delete("kind = 'a'")
    nowhere = write_equality_deletes(pa.table({"id": [1]}), table.state, ["id"], partition=("nowhere",))
    table._run(RowDelta(tuple(nowhere), None))
    state = table.refresh().metadata_location
    stored = {one.path for one in table.state.storage.list(table.location)}
    maintain = table.maintain
    expired = maintain.expire_snapshots(older_than=2**62, dry_run=True)
    assert expired.deleted_data_files_count > 0 and expired.deleted_bytes > 0
    assert maintain.remove_dangling_deletes(dry_run=True) > 0
    stats = maintain.compute_table_stats(dry_run=True)
    assert stats is not None and stats.blob_metadata
    assert maintain.compute_partition_stats(dry_run=True) is not None
    for tried in (
        maintain.optimize(dry_run=True),
        maintain.rewrite_data_files(rewrite_all=True, dry_run=True),
        maintain.rewrite_position_delete_files(rewrite_all=True, dry_run=True),
        maintain.convert_equality_deletes(dry_run=True),
        maintain.rewrite_manifests(dry_run=True),
        maintain.remove_orphan_files(dry_run=True),
    ):
        assert tried is not None
    assert table.refresh().metadata_location == state
    assert {one.path for one in table.state.storage.list(table.location)} == stored
    assert maintain.remove_dangling_deletes() > 0
    assert maintain.remove_dangling_deletes(dry_run=True) == 0
    assert maintain.expire_snapshots(older_than=2**62).deleted_bytes >= expired.deleted_bytes
