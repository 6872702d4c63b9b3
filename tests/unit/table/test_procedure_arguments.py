"""Every argument of Iceberg Java's procedures changes what a call does; `docs/options.md` names these tests.

Those that need Spark are elsewhere: `snapshot` and `migrate` of Spark's tables, views of files, changelog views.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.commit import delete_paths
from frazil.commit.append import Append
from frazil.errors import FrazilError, InvalidRequestError, MissingFileError
from frazil.maintenance import add_files as add_files_module
from frazil.maintenance.orphan_files import DAY_MS
from frazil.sessions import run_call
from frazil.sessions.sql_context import SqlContext
from frazil.storage.local import LocalStorage
from frazil.table.sql_session import SqlSession

Rows = tuple[tuple[Any, ...], ...]
Call = Callable[..., Rows]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[frazil.Lake]:
    with frazil.connect(tmp_path / "lake") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def call(lake: frazil.Lake) -> Call:
    """Run a procedure with arguments that Spark has evaluated."""
    session = SqlSession({"lake": lake})

    def run(procedure: str, **values: Any) -> Rows:
        return run_call.call(run_call.Target(lake, "lake", SqlContext(session)), procedure, values).rows

    return run


def rows(*ids: int, kind: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": [kind] * len(ids)})


def filled(lake: frazil.Lake, times: int = 3, **options: Any) -> frazil.Table:
    """Return a table of as many snapshots, each with one row and one file; its id is the number of the snapshot."""
    table = lake.create_table("db.t", "id bigint, kind string", **options)
    for number in range(times):
        table.append(rows(number, kind="ab"[number % 2]))
    return table


def ids(table: frazil.Table, **where: Any) -> list[int]:
    found: list[int] = sorted(table.refresh().scan(**where).to_arrow()["id"].to_pylist())
    return found


def snapshots(table: frazil.Table) -> list[int]:
    return [one.snapshot_id for one in table.refresh().snapshots]


def write(folder: Path, name: str, *values: int) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), path)
    return path


@pytest.fixture
def deleting(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of threads that delete files, one file at a time."""
    names: set[str] = set()
    delete_many = LocalStorage.delete_many

    def spy(self: LocalStorage, paths: Any, **more: Any) -> Any:
        names.add(threading.current_thread().name)
        return delete_many(self, paths, **more)

    monkeypatch.setattr(LocalStorage, "delete_many", spy)
    monkeypatch.setattr(delete_paths, "_BATCH_SIZE", 1)
    return names


HERE = {threading.main_thread().name}


# History


def test_arguments_of_rollbacks(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake)
    first, second, third = snapshots(table)
    assert call("rollback_to_snapshot", table="db.t", snapshot_id=second) == ((third, second),)
    made = table.refresh().metadata.snapshot(second).timestamp_ms
    at = pa.scalar(made, pa.timestamp("ms", "UTC")).as_py()
    assert call("rollback_to_timestamp", table="lake.db.t", timestamp=at) == ((second, first),)
    assert call("set_current_snapshot", table="db.t", snapshot_id=third)[0][1] == third
    table.create_tag("start", snapshot_id=first)
    assert call("set_current_snapshot", table="db.t", ref="start") == ((third, first),)
    assert ids(table) == [0]
    with pytest.raises(InvalidRequestError, match="ref"):
        call("set_current_snapshot", table="db.t", snapshot_id=third, ref="start")


def test_arguments_that_pick_snapshots(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake, 2, properties={"write.wap.enabled": "true"})
    first, second = snapshots(table)
    call("rollback_to_snapshot", table="db.t", snapshot_id=first)
    assert call("cherrypick_snapshot", table="db.t", snapshot_id=second) == ((second, second),)
    table.refresh().append(rows(7), snapshot_properties={"wap.id": "night"})
    (staged,) = set(snapshots(table)) - {first, second}
    assert call("publish_changes", table="db.t", wap_id="night")[0][0] == staged
    assert ids(table) == [0, 1, 7]
    table.create_branch("audit", snapshot_id=first)
    assert call("fast_forward", table="db.t", branch="audit", to="main") == (("audit", first, snapshots(table)[-1]),)


def test_arguments_of_ancestors_and_registration(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake)
    assert [one[0] for one in call("ancestors_of", table="db.t")] == snapshots(table)[::-1]
    assert [one[0] for one in call("ancestors_of", table="db.t", snapshot_id=snapshots(table)[1])] == [
        *snapshots(table)[1::-1]
    ]
    assert call("register_table", table="db.again", metadata_file=table.metadata_location) == (
        (snapshots(table)[-1], 3, 3),
    )
    assert ids(lake.table("db.again")) == [0, 1, 2]


# Expiry


def test_arguments_of_expiry(call: Call, lake: frazil.Lake, deleting: set[str]) -> None:
    table = filled(lake, 6)
    first, *_ = snapshots(table)
    call("expire_snapshots", table="db.t", snapshot_ids=[first])
    assert len(snapshots(table)) == 5
    assert call("expire_snapshots", table="db.t", older_than="2000-01-01") == ((0,) * 6,)
    deleting.clear()
    call("expire_snapshots", table="db.t", older_than="2100-01-01", retain_last=3, max_concurrent_deletes=1)
    assert len(snapshots(table)) == 3
    assert deleting == HERE
    with table.update_schema() as change:
        change.add_column("more", "int")
    table.overwrite(rows(9))
    call("expire_snapshots", table="db.t", older_than="2100-01-01", stream_results=True, max_concurrent_deletes=3)
    assert not deleting <= HERE
    assert (len(snapshots(table)), len(table.metadata.schemas)) == (1, 2)
    table.append(rows(10))
    call("expire_snapshots", table="db.t", older_than="2100-01-01", clean_expired_metadata=True)
    assert len(table.refresh().metadata.schemas) == 1
    with pytest.raises(InvalidRequestError, match="one at least"):
        call("expire_snapshots", table="db.t", max_concurrent_deletes=0)


# Orphans


def orphan(table: frazil.Table, name: str, days: float = 5) -> Path:
    """Write a file that nothing leads to, as if it were so many days old."""
    path = Path(table.location.removeprefix("file://")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"nobody's")
    seconds = path.stat().st_mtime - days * DAY_MS / 1000
    os.utime(path, (seconds, seconds))
    return path


def test_arguments_of_orphan_removal(
    call: Call, lake: frazil.Lake, deleting: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(lake, 1)
    paths = {name: orphan(table, name) for name in ("data/x", "data/y", "metadata/z")}
    young = orphan(table, "data/young", days=2)
    found = call("remove_orphan_files", table="db.t", dry_run=True)
    assert {one[0] for one in found} == {f"file://{one}" for one in paths.values()}
    assert all(one.exists() for one in paths.values())
    folder = f"{table.location}/metadata"
    assert len(call("remove_orphan_files", table="db.t", location=folder, max_concurrent_deletes=1)) == 1
    assert (deleting, paths["metadata/z"].exists(), paths["data/x"].exists()) == (HERE, False, True)
    monkeypatch.setattr(run_call, "SHOWN_PATHS", 1)
    found = call("remove_orphan_files", table="db.t", stream_results=True, prefix_listing=True)
    assert (len(found), paths["data/x"].exists(), paths["data/y"].exists()) == (1, False, False)
    day_and_half = pa.scalar(table.snapshots[-1].timestamp_ms - 3 * DAY_MS // 2, pa.timestamp("ms", "UTC")).as_py()
    call("remove_orphan_files", table="db.t", older_than=day_and_half)
    assert not young.exists()
    assert ids(table) == [0]


def test_arguments_about_prefixes_of_orphans(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake, 1)
    (task,) = table.scan().plan().tasks
    moved = orphan(table, "data/moved.parquet")
    # The table knows the file under another scheme and another authority.
    table._run(Append((replace(task.data_file, file_path=f"other://host{moved}"),)))
    with pytest.raises(InvalidRequestError, match="with another scheme or authority"):
        call("remove_orphan_files", table="db.t")
    with pytest.raises(InvalidRequestError, match="ERROR, IGNORE and DELETE"):
        call("remove_orphan_files", table="db.t", prefix_mismatch_mode="SKIP")
    assert call("remove_orphan_files", table="db.t", prefix_mismatch_mode="IGNORE") == ()
    same = {"equal_schemes": {"other": "file"}, "equal_authorities": {"host": ""}}
    assert call("remove_orphan_files", table="db.t", dry_run=True, **same) == ()
    found = call("remove_orphan_files", table="db.t", prefix_mismatch_mode="DELETE", dry_run=True)
    assert [one[0] for one in found] == [f"file://{moved}"]


# Rewrites


def test_arguments_of_data_file_rewrites(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake, 6, partition_by=["kind"])
    table.create_branch("audit")
    everything = {"rewrite-all": "true"}
    assert call("rewrite_data_files", table="db.t")[0][0] == 0, "three files of a partition are fewer than five"
    assert call("rewrite_data_files", table="db.t", options={"min-input-files": "3"}, where="kind = 'a'")[0][:2] == (
        *(3, 1),
    )
    assert call("rewrite_data_files", table="db.t", options=everything, branch="audit")[0][0] == 6
    assert len(table.refresh().scan().plan().tasks) == 4
    call("rewrite_data_files", table="db.t", strategy="sort", sort_order="id DESC NULLS LAST", options=everything)
    tasks = table.refresh().scan().plan().tasks
    assert len(tasks) == 2
    assert table.scan("kind = 'a'").to_arrow()["id"].to_pylist() == [4, 2, 0]
    for wrong in ({"strategy": "best"}, {"options": {"min-files": "2"}}, {"branch": "nope"}, {"where": "nope = 1"}):
        with pytest.raises(FrazilError):
            call("rewrite_data_files", table="db.t", **wrong)


def test_arguments_of_manifest_rewrites(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake, 4, partition_by=["kind"])
    with table.update_spec() as change:
        change.add_field("bucket(2, id)", name="shard")
    table.append(rows(8))
    table.append(rows(9))
    old, new = (one.spec_id for one in table.refresh().metadata.partition_specs)
    assert call("rewrite_manifests", table="db.t", spec_id=old) == ((0, 0),), "it has one manifest of the old spec"
    assert call("rewrite_manifests", table="db.t", spec_id=new, use_caching=True) == ((2, 1),)
    table.append(rows(10))
    assert call("rewrite_manifests", table="db.t", spec_id=new, sort_by=["shard", "kind"]) == ((2, 1),)
    for wrong in ({"spec_id": 77}, {"spec_id": new, "sort_by": ["nope"]}):
        with pytest.raises(FrazilError):
            call("rewrite_manifests", table="db.t", **wrong)


def test_arguments_of_delete_file_rewrites(call: Call, lake: frazil.Lake) -> None:
    table = lake.create_table(
        *("db.t", "id bigint, kind string"),
        partition_by=["kind"],
        format_version=2,
        properties={"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"},
    )
    for kind in "ab":
        table.append(rows(*range(10), kind=kind))
        for number in range(3):
            table.delete(f"kind = '{kind}' and id = {number}")
    assert call("rewrite_position_delete_files", table="db.t")[0][:2] == (0, 0), "three files are fewer than five"
    options = {"min-input-files": "2"}
    assert call("rewrite_position_delete_files", table="db.t", options=options, where="kind = 'a'")[0][:2] == (3, 1)
    assert call("rewrite_position_delete_files", table="db.t", options=options)[0][:2] == (3, 1)
    assert len(ids(table)) == 14


# Statistics


def test_arguments_of_statistics(call: Call, lake: frazil.Lake) -> None:
    table = filled(lake, 3, partition_by=["kind"])
    first, _, third = snapshots(table)
    call("compute_table_stats", table="db.t", snapshot_id=first, columns=["kind"])
    call("compute_table_stats", table="db.t")
    made = {one.snapshot_id: one for one in table.refresh().metadata.statistics}
    assert {key: len(one.blob_metadata) for key, one in made.items()} == {first: 1, third: 2}
    assert call("compute_table_stats", table="db.t", columns=["id"])[0][0].endswith(".stats")
    call("compute_partition_stats", table="db.t", snapshot_id=first)
    call("compute_partition_stats", table="db.t")
    assert {one.snapshot_id for one in table.refresh().metadata.partition_statistics} == {first, third}
    for name in ("compute_table_stats", "compute_partition_stats"):
        with pytest.raises(FrazilError, match="77"):
            call(name, table="db.t", snapshot_id=77)


# Files of others


@pytest.fixture
def describing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of threads that look at files of others."""
    names: set[str] = set()
    describe = add_files_module._Describer.describe

    def spy(self: Any, found: Any) -> Any:
        names.add(threading.current_thread().name)
        return describe(self, found)

    monkeypatch.setattr(add_files_module._Describer, "describe", spy)
    return names


def test_arguments_of_added_files(call: Call, lake: frazil.Lake, tmp_path: Path, describing: set[str]) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    for number, kind in enumerate("aab"):
        write(tmp_path / "files", f"kind={kind}/{number}.parquet", number)
    source = f"`parquet`.`{tmp_path / 'files'}`"
    some = {"partition_filter": {"kind": "a"}, "parallelism": 1}
    assert call("add_files", table="db.t", source_table=source, **some) == ((2, 1),)
    assert (ids(table), describing) == ([0, 1], HERE)
    with pytest.raises(FrazilError, match="already"):
        call("add_files", table="db.t", source_table=source)
    assert call("add_files", table="db.t", source_table=source, check_duplicate_files=False, parallelism=2) == ((3, 2),)
    assert ids(table) == [0, 0, 1, 1, 2]
    assert len(describing - HERE) in (1, 2)


def test_arguments_of_snapshots(
    call: Call, lake: frazil.Lake, tmp_path: Path, describing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write(tmp_path / "files", f"{number}.parquet", number)
    source = f"parquet.`{tmp_path / 'files'}`"
    call(
        "snapshot",
        source_table=source,
        table="db.new",
        location=str(tmp_path / "elsewhere"),
        properties={"colour": "blue"},
        parallelism=1,
    )
    table = lake.table("db.new")
    assert (table.location, table.properties["colour"]) == (f"file://{tmp_path}/elsewhere", "blue")
    assert (ids(table), describing) == ([0, 1, 2], HERE)
    describe = add_files_module._Describer.describe

    def gone(self: Any, found: Any) -> Any:
        if found.path.endswith("1.parquet"):
            raise MissingFileError(f"There is no {found.path}")
        return describe(self, found)

    monkeypatch.setattr(add_files_module._Describer, "describe", gone)
    with pytest.raises(MissingFileError):
        call("snapshot", source_table=source, table="db.less")
    assert call("snapshot", source_table=source, table="db.less", ignore_missing_files=True) == ((2,),)
    assert ids(lake.table("db.less")) == [0, 2]


# Another place


def test_arguments_of_rewritten_paths(call: Call, lake: frazil.Lake, tmp_path: Path) -> None:
    table = filled(lake, 1)
    versions = [str(table.metadata_location).rpartition("/")[2]]
    for number in (1, 2):
        table.append(rows(number))
        versions.append(str(table.metadata_location).rpartition("/")[2])
    both = {"source_prefix": table.location, "target_prefix": f"file://{tmp_path}/copy"}

    def listed(answer: Rows) -> list[str]:
        return Path(answer[0][1].removeprefix("file://")).read_text().splitlines()

    whole = call("rewrite_table_path", table="db.t", **both)
    assert whole[0][0] == versions[-1]
    assert all(f"file://{tmp_path}/copy/" in one.split(",")[1] for one in listed(whole))
    some = call(
        "rewrite_table_path",
        table="db.t",
        start_version=versions[0],
        end_version=versions[1],
        staging_location=f"file://{tmp_path}/staged",
        **both,
    )
    assert some[0][0] == versions[1]
    assert any(str(tmp_path / "staged") in one for one in listed(some))
    assert len(listed(some)) < len(listed(whole))
    assert call("rewrite_table_path", table="db.t", create_file_list=False, **both)[0][1] == "N/A"
