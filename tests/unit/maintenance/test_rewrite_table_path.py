"""Tables at another place: everything of the list copied, the original gone, every snapshot reads as before."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.errors import FrazilError, InvalidRequestError
from frazil.maintenance.rewrite_table_path import RewriteTablePathResult
from frazil.spec.data_file import DataFile, FileFormat
from tests.support.equality_delete_writer import write_equality_deletes


def rows(*ids: int, kind: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": [kind] * len(ids)})


def read(table: frazil.Table, snapshot_id: int) -> list[tuple[Any, ...]]:
    found = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return sorted(tuple(one.values()) for one in found)


def every_state(table: frazil.Table) -> dict[int, list[tuple[Any, ...]]]:
    return {one.snapshot_id: read(table, one.snapshot_id) for one in table.snapshots}


def copy(result: RewriteTablePathResult) -> int:
    """Copy the files of a list, as a user's tool would."""
    with Path(result.file_list_location.removeprefix("file://")).open(newline="") as file:
        pairs = list(csv.reader(file))
    for source, target in pairs:
        to = Path(target.removeprefix("file://"))
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.removeprefix("file://"), to)
    return len(pairs)


def prefixes(table: frazil.Table, target: Path) -> tuple[str, str]:
    return table.location, f"file://{target}"


def open_copy(tmp_path: Path, target: Path, result: RewriteTablePathResult, name: str = "other") -> frazil.Table:
    lake = frazil.connect(tmp_path / name)
    lake.create_namespace("db")
    return lake.register_table("db.copy", f"file://{target}/metadata/{result.latest_version}")


def new_table(tmp_path: Path, version: int = 2, **options: Any) -> frazil.Table:
    lake = frazil.connect(tmp_path / "lake")
    return lake.create_table("db.t", "id bigint, kind string", format_version=version, **options)


def delete_row(table: frazil.Table, row_id: int) -> None:
    """Delete a row by its position: in version 2 by a delete file, in version 3 by a vector."""
    for task in table.refresh().scan(f"id = {row_id}").plan().tasks:
        found = table.state.storage.read(task.data_file.file_path)
        ids = pq.read_table(pa.BufferReader(found))["id"].to_pylist()
        if row_id not in ids:
            continue
        write = write_position_deletes if table.format_version == 2 else write_deletion_vectors
        deletes = write([DeletedRows.of(task.data_file, [ids.index(row_id)])], table.state)
        assert table.current_snapshot is not None
        read_set = ReadSet(table.current_snapshot.snapshot_id)
        action = RowDelta(tuple(deletes), read_set, "delete", (task.data_file,))
        commit_actions(table._catalog, table.state, action)
    table.refresh()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_copied_table_reads_the_same_without_the_original(tmp_path: Path, version: int, is_partitioned: bool) -> None:
    table = new_table(
        tmp_path,
        version,
        partition_by=["kind"] if is_partitioned else [],
    )
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6, kind="b"))
    table.create_tag("both")
    if version > 1:
        delete_row(table, 2)
    table.append(rows(7, kind="a, with a comma"))
    if version > 1:
        delete_row(table, 5)
    table.maintain.rewrite_manifests()
    table.maintain.compute_table_stats()
    if is_partitioned:
        table.maintain.compute_partition_stats()
    table.create_branch("side")
    table.append(rows(8), branch="side")
    before, states = table.metadata, every_state(table)

    target = tmp_path / "far" / "away" / "t"
    result = table.maintain.rewrite_table_path(*prefixes(table, target))
    assert table.refresh().metadata == before, "the table itself does not change"
    assert copy(result) == result.listed_files_count
    if version > 1:
        assert result.rewritten_delete_file_paths_count > 0

    shutil.rmtree(table.location.removeprefix("file://"))
    copied = open_copy(tmp_path, target, result)
    assert copied.location == f"file://{target}"
    assert every_state(copied) == states
    assert copied.scan(ref="both").count() == 6
    assert copied.check(bounds=True).ok
    copied.append(rows(100))
    if version > 1:
        delete_row(copied, 7)
        assert 7 not in copied.scan().to_arrow()["id"].to_pylist()
    assert 100 in copied.scan().to_arrow()["id"].to_pylist()
    copied.maintain.rewrite_data_files(options={"rewrite-all": True})
    assert copied.check(bounds=True).ok


def test_equality_deletes_are_copied_unchanged(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2, 3))
    deletes = write_equality_deletes(pa.table({"id": pa.array([2], pa.int64())}), table.state, ["id"])
    commit_actions(table._catalog, table.state, RowDelta(tuple(deletes), None))
    table.refresh()
    target = tmp_path / "copy"
    result = table.maintain.rewrite_table_path(*prefixes(table, target))
    copy(result)
    shutil.rmtree(table.location.removeprefix("file://"))
    assert sorted(open_copy(tmp_path, target, result).scan().to_arrow()["id"].to_pylist()) == [1, 3]


@pytest.mark.parametrize("version", [2, 3])
def test_incremental_copy_has_only_later_files(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    for at in range(4):
        table.append(rows(at * 10, at * 10 + 1))
    delete_row(table, 1)
    target = tmp_path / "copy"
    first = table.maintain.rewrite_table_path(*prefixes(table, target))
    copied_before = copy(first)

    table.append(rows(100, 101))
    delete_row(table, 100)
    delete_row(table, 11)
    table.maintain.rewrite_manifests()
    table.append(rows(200))
    second = table.maintain.rewrite_table_path(*prefixes(table, target), start_version=first.latest_version)
    listed = copy(second)
    assert listed < copied_before + 10
    data = [one for one in Path(target, "data").rglob("*.parquet") if "deletes" not in one.name]
    assert len(data) == 6
    states = every_state(table)
    shutil.rmtree(table.location.removeprefix("file://"))
    copied = open_copy(tmp_path, target, second)
    assert every_state(copied) == states
    assert copied.check(bounds=True).ok


def test_files_of_expired_snapshots_are_listed_while_live(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for at in range(3):
        table.append(rows(at))
    table.maintain.rewrite_manifests()
    table.maintain.expire_snapshots(older_than=2**62)
    target = tmp_path / "copy"
    result = table.maintain.rewrite_table_path(*prefixes(table, target))
    copy(result)
    shutil.rmtree(table.location.removeprefix("file://"))
    assert open_copy(tmp_path, target, result).scan().count() == 3


def test_end_version_may_be_an_older_one(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    older = table.metadata_location
    table.append(rows(2))
    assert older is not None
    target = tmp_path / "copy"
    result = table.maintain.rewrite_table_path(*prefixes(table, target), end_version=older.rpartition("/")[2])
    assert result.latest_version == older.rpartition("/")[2]
    copy(result)
    assert open_copy(tmp_path, target, result).scan().to_arrow()["id"].to_pylist() == [1]


def test_dry_run_writes_nothing_and_counts_the_same(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    table.append(rows(1, 2))
    delete_row(table, 1)
    files = {str(one) for one in tmp_path.rglob("*")}
    dry = table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"), dry_run=True)
    assert {str(one) for one in tmp_path.rglob("*")} == files
    done = table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"))
    assert dry.listed_files_count == done.listed_files_count
    assert dry.rewritten_manifest_file_paths_count == done.rewritten_manifest_file_paths_count == 2
    assert dry.rewritten_delete_file_paths_count == done.rewritten_delete_file_paths_count == 1
    assert dry.file_list_location == "N/A"


def test_staging_folder_can_be_chosen_and_reused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    staging = f"file://{tmp_path}/staging/"
    for _ in range(2):
        result = table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"), staging_location=staging)
        assert result.file_list_location == f"file://{tmp_path}/staging/file-list"
    none = table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"), create_file_list=False)
    assert none.file_list_location == "N/A"


def test_staging_folders_do_not_block_orphan_removal(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"))
    assert table.maintain.remove_orphan_files(dry_run=True).orphan_file_locations == ()
    assert table.check().ok


@pytest.mark.parametrize(
    ("source", "target", "options", "match"),
    [
        ("", "file:///x", {}, "source prefix is empty"),
        ("file:///x", "/", {}, "target prefix is empty"),
        ("file:///x/", "file:///x", {}, "source prefix is the target prefix"),
        ("file:///nowhere", "file:///x", {}, "is not below file:///nowhere"),
        ("{location}", "file:///x", {"start_version": "v9.metadata.json"}, "no version 'v9.metadata.json'"),
        ("{location}", "file:///x", {"end_version": "v9.metadata.json"}, "no version 'v9.metadata.json'"),
    ],
)
def test_invalid_requests_are_refused(
    tmp_path: Path, source: str, target: str, options: dict[str, Any], match: str
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    with pytest.raises(InvalidRequestError, match=match):
        table.maintain.rewrite_table_path(source.format(location=table.location), target, **options)


def test_file_outside_the_prefix_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(rows(1), outside / "x.parquet")
    table.maintain.add_files(str(outside))
    with pytest.raises(FrazilError, match=r"the file .*x.parquet is not below"):
        table.maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"))


@pytest.mark.parametrize("name", ["../../home/keys", "data/../../x", "%2e%2e/%2e%2e/x", "data\\..\\x"])
def test_path_escaping_the_prefix_is_refused(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path)
    file = DataFile(f"{table.location}/{name}", FileFormat.PARQUET, 1, 1)
    commit_actions(table._catalog, table.state, Append((file,)))
    for dry_run in (True, False):
        with pytest.raises(FrazilError, match="is not below"):
            table.refresh().maintain.rewrite_table_path(*prefixes(table, tmp_path / "copy"), dry_run=dry_run)
    assert not (tmp_path / "copy").exists()


def test_staging_files_are_never_overwritten(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    listed = Path(str(table.current_snapshot.manifest_list)).name  # type: ignore[union-attr]
    there = tmp_path / "staging" / "metadata" / listed
    there.parent.mkdir(parents=True)
    there.write_text("mine")
    with pytest.raises(InvalidRequestError, match="exists already with other content"):
        table.maintain.rewrite_table_path(
            *prefixes(table, tmp_path / "copy"), staging_location=f"file://{tmp_path}/staging"
        )
    assert there.read_text() == "mine"
