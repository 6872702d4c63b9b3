"""Metadata of strangers: what commits and maintenance touch where a table's metadata names what is not its own.

Whoever writes metadata may name any folder and any file. Each test here is a table whose metadata names files of
others, and an action of somebody who trusts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.commit.append import Append
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.transaction import commit_actions
from frazil.errors import InvalidRequestError
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.statistics import StatisticsFile

Change = Callable[[dict[str, Any]], None]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=["sqlite", "memory"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[frazil.Lake]:
    catalog = "memory" if request.param == "memory" else None
    with frazil.connect(tmp_path / "wh", catalog=catalog) as opened:
        opened.create_namespace("db")
        yield opened


def new_table(lake: frazil.Lake, name: str, location: str | None = None, **properties: str) -> frazil.Table:
    table = lake.create_table(name, rows(1).schema, location=location, properties=properties)
    table.append(rows(1, 2))
    return table


def registered(lake: frazil.Lake, folder: Path, change: Change) -> frazil.Table:
    """Make a table elsewhere, change its metadata file, and register it."""
    with frazil.connect(folder / "maker") as maker:
        maker.create_namespace("db")
        table = new_table(maker, "db.t", str(folder / "t"))
        path = Path(str(table.state.metadata_location).removeprefix("file://"))
    metadata = json.loads(path.read_bytes())
    change(metadata)
    path.write_text(json.dumps(metadata))
    return lake.register_table("db.strange", f"file://{path}")


def homes(folder: Path) -> Path:
    """Make a folder of somebody's documents, all of them old, with folders that are empty."""
    home = folder / "home"
    for name in (".ssh/id_rsa", "doc.txt", "metadata/notes.txt", "metadata/00001-a.metadata.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
        os.utime(home / name, (0, 0))
    for name in ("project/.git/refs/tags", "data/empty"):
        (home / name).mkdir(parents=True)
    return home


def contents(folder: Path) -> set[str]:
    return {str(one) for one in folder.rglob("*")}


def aged(folder: Path) -> None:
    for one in folder.rglob("*"):
        os.utime(one, (0, 0))


def files_of(table: frazil.Table) -> list[str]:
    return [str(one) for one in table.inspect.files().column("file_path").to_pylist()]


def naming(lake: frazil.Lake, table: frazil.Table, *paths: str) -> None:
    """Let a table name files in a snapshot that expires."""
    files = tuple(DataFile(one, FileFormat.PARQUET, 1, 1) for one in paths)
    loaded = commit_actions(lake._catalog, table.refresh().state, Append(files))
    commit_actions(lake._catalog, loaded, DeleteFiles(frozenset(paths)))
    table.refresh()


def expire(table: frazil.Table, **options: Any) -> Any:
    return table.maintain.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1, **options)


# Commits


def test_append_never_deletes_files_named_by_a_metadata_log(lake: frazil.Lake, tmp_path: Path) -> None:
    home = homes(tmp_path)
    victim = new_table(lake, "db.victim")
    theirs = str(victim.state.metadata_location)

    def change(metadata: dict[str, Any]) -> None:
        metadata["properties"] |= {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
        own = Path(metadata["location"].removeprefix("file://"))
        (own / "metadata" / "keep.txt").write_text("mine")
        names = [home / ".ssh/id_rsa", home / "doc.txt", home / "metadata/00001-a.metadata.json", theirs]
        names += [own / "metadata/keep.txt", own / "metadata/../../../home/metadata/00001-a.metadata.json"]
        metadata["metadata-log"] = [{"metadata-file": str(one), "timestamp-ms": 1} for one in names]

    table = registered(lake, tmp_path, change)
    before = contents(home) | contents(tmp_path / "wh" / "db") | contents(tmp_path / "t")
    for _ in range(3):
        table.append(rows(3))
    assert before - contents(home) - contents(tmp_path / "wh" / "db") - contents(tmp_path / "t") == {
        # The file that was registered: a metadata file, beside the one the pointer is at, that the log forgot.
        str(next(one for one in map(Path, before) if one.name.startswith("00001") and one.parent.parent.name == "t"))
    }
    assert victim.refresh().scan().count() == 2


@pytest.mark.parametrize("names", ["location", "write.metadata.path", "write.metadata.path is removed"])
def test_commit_does_not_write_its_pointer_into_a_folder_named_only_by_metadata(
    lake: frazil.Lake, tmp_path: Path, names: str
) -> None:
    home = homes(tmp_path)

    def change(metadata: dict[str, Any]) -> None:
        own = metadata["location"]
        if names != "write.metadata.path":
            metadata["location"] = str(home)
        if names != "location":
            folder = str(home) if names == "write.metadata.path" else f"{own}/metadata"
            metadata["properties"]["write.metadata.path"] = folder

    table = registered(lake, tmp_path, change)
    with pytest.raises(InvalidRequestError, match=r"Cannot commit to db.strange: its metadata would go to .*home"):
        if names == "write.metadata.path is removed":
            table.remove_properties(["write.metadata.path"])
        else:
            table.set_properties({"a": "b"})
    assert not [one for one in contents(home / "metadata") if one.endswith("metadata.json") and "00001-a" not in one]
    # The user may say so.
    table.refresh().set_properties({"write.metadata.path": str(home / "metadata")})


def test_commit_does_not_write_its_pointer_into_the_folder_of_another_table(lake: frazil.Lake, tmp_path: Path) -> None:
    victim = new_table(lake, "db.victim")

    def change(metadata: dict[str, Any]) -> None:
        metadata["location"] = victim.location

    table = registered(lake, tmp_path, change)
    with pytest.raises(InvalidRequestError, match=r"a folder of db\.victim"):
        table.set_properties({"a": "b"})


def test_table_registered_twice_keeps_the_metadata_of_its_other_name(lake: frazil.Lake) -> None:
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = new_table(lake, "db.t", **properties)
    other = lake.register_table("db.other", str(table.state.metadata_location))
    for _ in range(3):
        table.append(rows(3))
    assert other.refresh().scan().count() == 2


# Orphans


@pytest.mark.parametrize("folder", ["location", "write.data.path"])
def test_orphan_search_skips_a_folder_named_only_by_metadata(lake: frazil.Lake, tmp_path: Path, folder: str) -> None:
    home = homes(tmp_path)

    def change(metadata: dict[str, Any]) -> None:
        if folder == "location":
            metadata["location"] = str(home)
            metadata["properties"]["write.metadata.path"] = str(tmp_path / "t/metadata")
        else:
            metadata["properties"][folder] = str(home)

    table = registered(lake, tmp_path, change)
    before = contents(tmp_path)
    for options in ({}, {"location": str(home)}, {"file_list": [(str(home / "doc.txt"), 0)]}):
        with pytest.raises(InvalidRequestError, match=r"home: it is outside the warehouse"):
            table.maintain.remove_orphan_files(**options)
    assert contents(tmp_path) == before
    # The caller may know better.
    Path(home / "metadata/00001-a.metadata.json").unlink()
    found = table.maintain.remove_orphan_files(delete_roots=[str(home)], location=str(home))
    assert {one.rpartition("/")[2] for one in found.orphan_file_locations} == {"doc.txt", "notes.txt"}


@pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "{}", "{}/../data"])
def test_orphan_search_skips_the_folder_of_another_table(lake: frazil.Lake, tmp_path: Path, spelling: str) -> None:
    victim = new_table(lake, "db.victim")
    evil = new_table(lake, "db.evil")
    data = f"{victim.location.removeprefix('file://')}/data"
    evil.set_properties({"write.data.path": spelling.format(data)})
    aged(tmp_path)
    with pytest.raises(InvalidRequestError, match=r"db\.victim has its files in"):
        evil.maintain.remove_orphan_files()
    with pytest.raises(InvalidRequestError, match=r"db\.victim has its files in"):
        evil.maintain.remove_orphan_files(delete_roots=[data])
    assert victim.refresh().scan().count() == 2
    assert victim.check().ok


def test_orphan_search_skips_another_table_behind_a_link(lake: frazil.Lake, tmp_path: Path) -> None:
    victim = new_table(lake, "db.victim")
    (tmp_path / "wh" / "alias").symlink_to(victim.location.removeprefix("file://"))
    evil = new_table(lake, "db.evil", **{"write.data.path": str(tmp_path / "wh/alias/data")})
    aged(tmp_path / "wh" / "db")
    with pytest.raises(InvalidRequestError, match=r"db\.victim has its files in"):
        evil.maintain.remove_orphan_files()
    assert victim.check().ok


def test_orphan_search_is_refused_beside_an_unloadable_table(lake: frazil.Lake, tmp_path: Path) -> None:
    table, broken = new_table(lake, "db.t"), new_table(lake, "db.broken")
    Path(str(broken.state.metadata_location).removeprefix("file://")).unlink()
    with pytest.raises(InvalidRequestError, match=r"db\.broken may have files there but cannot be loaded"):
        table.maintain.remove_orphan_files()
    table.maintain.remove_orphan_files(delete_roots=[table.location])


def test_orphan_search_is_refused_below_a_table_of_another_catalog(lake: frazil.Lake, tmp_path: Path) -> None:
    around = tmp_path / "wh" / "around"
    table = new_table(lake, "db.t", str(around / "deep" / "t"))
    (around / "metadata").mkdir(parents=True)
    (around / "metadata" / "v3.metadata.json").write_text("{}")
    with pytest.raises(InvalidRequestError, match="lies in the folder of another table"):
        table.maintain.remove_orphan_files()


# Expiry


def test_expiry_keeps_and_reports_files_of_another_table(lake: frazil.Lake, tmp_path: Path) -> None:
    victim = new_table(lake, "db.victim")
    evil = new_table(lake, "db.evil", **{"write.data.path": str(tmp_path / "wh/db/victim/data")})
    theirs = [*files_of(victim), f"{victim.location}/data/a strange name.parquet"]
    Path(theirs[1].removeprefix("file://")).write_text("rows")
    naming(lake, evil, *theirs)
    shown = expire(evil, dry_run=True)
    done = expire(evil)
    assert dict(done.kept).keys() == dict(shown.kept).keys() == set(theirs)
    assert done.kept_count == shown.kept_count == 2
    assert Path(theirs[1].removeprefix("file://")).exists()
    assert done.deleted_data_files_count == shown.deleted_data_files_count == 0
    assert done.deleted_manifest_lists_count == shown.deleted_manifest_lists_count > 0
    assert victim.refresh().check().ok


@pytest.mark.parametrize("folder", ["location", "write.data.path"])
def test_expiry_keeps_files_in_a_folder_named_only_by_metadata(lake: frazil.Lake, tmp_path: Path, folder: str) -> None:
    home = homes(tmp_path)

    def change(metadata: dict[str, Any]) -> None:
        if folder == "location":
            metadata["location"] = str(home)
            metadata["properties"]["write.metadata.path"] = str(tmp_path / "t/metadata")
        else:
            metadata["properties"][folder] = str(home)

    table = registered(lake, tmp_path, change)
    naming(lake, table, str(home / "doc.txt"))
    assert dict(expire(table).kept) == {
        str(home / "doc.txt"): "it is outside the warehouse, the configured roots and the folder of the table's "
        "metadata file"
    }
    assert (home / "doc.txt").exists()
    naming(lake, table, str(home / "doc.txt"))
    assert expire(table, delete_roots=[str(home)]).deleted_data_files_count == 1
    assert not (home / "doc.txt").exists()


def test_expiry_keeps_a_file_reached_through_a_link(lake: frazil.Lake) -> None:
    table = new_table(lake, "db.t")
    (path,) = files_of(table)
    folder = Path(table.location.removeprefix("file://"))
    (folder / "alias").symlink_to(folder / "data")
    (folder / "data" / "link.parquet").symlink_to(path.removeprefix("file://"))
    name = path.rpartition("/")[2]
    naming(lake, table, f"{table.location}/alias/{name}", f"{table.location}/data/link.parquet")
    assert expire(table).deleted_data_files_count == 0
    assert table.check().ok


@pytest.mark.parametrize("kind", ["manifest", "manifest list", "metadata file", "statistics"])
def test_expiry_keeps_a_file_in_use_as_another_kind(lake: frazil.Lake, kind: str) -> None:
    table = new_table(lake, "db.t")
    table.maintain.compute_table_stats()
    snapshot = table.current_snapshot
    assert snapshot is not None
    named = {
        "manifest": table.inspect.manifests().column("path").to_pylist()[0],
        "manifest list": snapshot.manifest_list,
        "metadata file": table.state.metadata_location,
        "statistics": table.metadata.statistics[0].statistics_path,
    }[kind]
    with table.transaction() as tx:
        tx.create_branch("keep", snapshot.snapshot_id)
    naming(lake, table, named)
    assert expire(table).deleted_data_files_count == 0
    assert Path(named.removeprefix("file://")).exists()
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize("kind", ["manifest", "statistics"])
def test_expiry_keeps_a_data_file_that_expired_metadata_names_as_another_kind(lake: frazil.Lake, kind: str) -> None:
    table = new_table(lake, "db.t")
    (path,) = files_of(table)
    old = table.current_snapshot
    assert old is not None
    table.append(rows(3))
    if kind == "statistics":
        table.set_statistics(StatisticsFile(old.snapshot_id, path, 1, 1))
    else:
        storage = table.state.storage
        forged = [replace(one, manifest_path=path) for one in read_manifest_list(storage, old)]
        data = encode_manifest_list(
            forged,
            format_version=2,
            snapshot_id=old.snapshot_id,
            parent_snapshot_id=None,
            sequence_number=old.sequence_number,
        ).data
        storage.replace(str(old.manifest_list), data)
    done = expire(table)
    assert done.expired_snapshot_ids == (old.snapshot_id,)
    assert done.deleted_manifest_files_count == done.deleted_statistics_files_count == 0
    assert table.check().ok


# Purges


@pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "{}"])
def test_purge_is_refused_if_another_table_is_in_the_folder_under_any_spelling(
    lake: frazil.Lake, tmp_path: Path, spelling: str
) -> None:
    victim = new_table(lake, "db.victim")
    place = spelling.format(victim.location.removeprefix("file://"))
    evil = registered(lake, tmp_path, lambda metadata: metadata.update({"location": place}))
    with pytest.raises(InvalidRequestError, match=r"db\.victim has its files in"):
        lake.drop_table("db.strange", purge=True)
    assert evil.refresh().name == "db.strange"
    assert victim.check().ok


def test_purge_keeps_files_of_another_table(lake: frazil.Lake) -> None:
    victim, evil = new_table(lake, "db.victim"), new_table(lake, "db.evil")
    commit_actions(
        lake._catalog, evil.refresh().state, Append((DataFile(files_of(victim)[0], FileFormat.PARQUET, 1, 1),))
    )
    assert [path for path, _ in lake.drop_table("db.evil", purge=True).kept] == files_of(victim)
    assert victim.check().ok


def test_purge_outside_the_warehouse_requires_naming_the_folder(lake: frazil.Lake, tmp_path: Path) -> None:
    home = homes(tmp_path)
    table = lake.create_table("db.t", rows(1).schema, properties={"write.data.path": str(home)})
    before = contents(home)
    with pytest.raises(InvalidRequestError, match=r"Cannot purge table db.t: .*home: it is outside the warehouse"):
        lake.drop_table("db.t", purge=True)
    assert table.refresh().scan().count() == 0
    lake.drop_table("db.t", purge=True, delete_roots=[str(home)])
    # Nothing was deleted from any of these folders, so the empty ones stay too.
    assert contents(home) == before


def test_purge_removes_only_folders_it_emptied(lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", rows(1).schema)
    table.append(pa.concat_tables([rows(1), rows(2)]))
    folder = Path(table.location.removeprefix("file://"))
    (folder / "somebody" / "empty").mkdir(parents=True)
    lake.drop_table("db.t", purge=True)
    assert contents(folder) == {str(folder / "somebody"), str(folder / "somebody" / "empty")}


# What is the user's word


def test_table_with_its_own_location_is_maintained_normally(lake: frazil.Lake, tmp_path: Path) -> None:
    table = new_table(lake, "db.t", str(tmp_path / "elsewhere" / "t"))
    table.overwrite(rows(3))
    assert expire(table).deleted_data_files_count == 1
    stray = tmp_path / "elsewhere/t/data/stray.parquet"
    stray.write_text("")
    aged(tmp_path / "elsewhere")
    assert table.maintain.remove_orphan_files().orphan_file_locations == (f"{table.location}/data/stray.parquet",)
    assert lake.drop_table("db.t", purge=True).kept_count == 0
    assert not (tmp_path / "elsewhere" / "t").exists()


@pytest.mark.parametrize("name", ["read.roots", "delete.roots"])
def test_configured_roots_are_trusted(tmp_path: Path, name: str) -> None:
    with frazil.connect(tmp_path / "wh", properties={name: str(tmp_path / "data")}) as lake:
        lake.create_namespace("db")
        table = new_table(lake, "db.t", **{"write.data.path": str(tmp_path / "data" / "t")})
        table.overwrite(rows(3))
        assert expire(table).deleted_data_files_count == 1
        assert lake.drop_table("db.t", purge=True).kept_count == 0


def test_shared_data_folder_is_cleaned_if_the_caller_names_it(lake: frazil.Lake, tmp_path: Path) -> None:
    shared = str(tmp_path / "wh" / "data")
    one, two = (new_table(lake, name, **{"write.data.path": shared}) for name in ("db.one", "db.two"))
    one.overwrite(rows(3))
    assert expire(one, dry_run=True).kept_count == 1
    assert expire(one, delete_roots=[str(tmp_path / "wh")], dry_run=True).kept_count == 1
    assert expire(one, delete_roots=[shared]).deleted_data_files_count == 1
    with pytest.raises(InvalidRequestError, match=r"db\.two has its files in"):
        one.maintain.remove_orphan_files(delete_roots=[shared])
    with pytest.raises(InvalidRequestError, match=r"db\.two has its files in"):
        lake.drop_table("db.one", purge=True)
    assert lake.drop_table("db.one", purge=True, delete_roots=[shared]).kept_count == 0
    assert two.refresh().check().ok


def test_root_must_match_whole_path_segments(lake: frazil.Lake) -> None:
    table = new_table(lake, "db.t")
    for root in ("relative", "/", "file:///"):
        with pytest.raises(InvalidRequestError, match="neither an absolute path nor a URI"):
            expire(table, delete_roots=[root])
