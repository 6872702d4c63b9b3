"""The removal of orphans: what is deleted, and everything that must not be."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpdateLocation
from frazil.commit.update_refs import CreateRef
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import FrazilError, InvalidRequestError
from frazil.maintenance.orphan_files import (
    DAY_MS,
    DEFAULT_AGE_MS,
    OrphanFilesResult,
    OrphanRequest,
    PrefixMismatch,
    remove_orphan_files,
)
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from tests.support.commit_lab import SCHEMA, Lab
from tests.support.damage import rows


def new_lab(**properties: str) -> Lab:
    lab = Lab(format_version=3, properties=properties)
    lab.writes_files = True
    return lab


def add(lab: Lab, path: str, *, age_ms: int = 0) -> str:
    """Write a file that nothing leads to."""
    location = f"{lab.load().metadata.location}/{path}"
    now = lab.now_ms
    lab.now_ms = now - age_ms
    lab.storage.create(location, b"orphan")
    lab.now_ms = now
    return location


def remove(lab: Lab, *, dry_run: bool = False, **request: object) -> OrphanFilesResult:
    return remove_orphan_files(
        lab.catalog,
        lab.load(),
        OrphanRequest(**request),  # type: ignore[arg-type]
        dry_run=dry_run,
        threads=1,
    )


def old(lab: Lab) -> None:
    """Let four days pass."""
    lab.now_ms += 4 * DAY_MS


def with_files(lab: Lab) -> None:
    """Commit files of every kind, on branches and in old snapshots."""
    one, two = lab.file([1, 2, 3]), lab.file([4])
    lab.commit(Append((one, two)))
    lab.commit(CreateRef("tag", "tag", lab.snapshot.snapshot_id))
    lab.commit(RowDelta(lab.vectors({one: [0]}), ReadSet(lab.snapshot.snapshot_id), "delete"))
    lab.commit(RowDelta((lab.equality_deletes([2]),), None))
    lab.commit(DeleteFiles(frozenset({two.file_path})))
    folder = f"{lab.load().metadata.location}/metadata"
    for name in ("stats.puffin", "partitions.parquet"):
        lab.storage.create(f"{folder}/{name}", b"x")
    lab.commit(
        UpdateStatistics(
            statistics=(StatisticsFile(lab.snapshot.snapshot_id, f"{folder}/stats.puffin", 1, 1, ()),),
            partition_statistics=(
                PartitionStatisticsFile(lab.snapshot.snapshot_id, f"{folder}/partitions.parquet", 1),
            ),
        )
    )
    lab.storage.create(f"{folder}/version-hint.text", b"1")


def test_only_unreferenced_files_are_deleted() -> None:
    lab = new_lab()
    with_files(lab)
    live = lab.stored()
    orphans = {add(lab, "data/x.parquet"), add(lab, "metadata/snap-1.avro"), add(lab, "metadata/9-x.metadata.json")}
    old(lab)
    found = remove(lab)
    assert set(found.orphan_file_locations) == orphans
    assert found.orphan_bytes == 18
    assert lab.stored() == live
    assert remove(lab) == OrphanFilesResult()
    lab.check_readable()


def test_dry_run_deletes_nothing() -> None:
    lab = new_lab()
    with_files(lab)
    orphan = add(lab, "data/x.parquet")
    old(lab)
    before = lab.stored()
    assert remove(lab, dry_run=True).orphan_file_locations == (orphan,)
    assert lab.stored() == before


def test_recent_files_are_kept() -> None:
    lab = new_lab()
    with_files(lab)
    young, aged = add(lab, "data/young.parquet", age_ms=DEFAULT_AGE_MS - 5000), add(lab, "data/y", age_ms=4 * DAY_MS)
    assert remove(lab).orphan_file_locations == (aged,)
    assert young in lab.stored()
    assert remove(lab, older_than_ms=lab.now_ms - 2 * DAY_MS).orphan_file_locations == (young,)


def test_minimum_age_is_one_day() -> None:
    lab = new_lab()
    with pytest.raises(InvalidRequestError, match="less than 24 hours"):
        remove(lab, older_than_ms=lab.now_ms - DAY_MS + 5000)


def test_hidden_files_are_kept_unless_their_folder_is_a_partition() -> None:
    lab = new_lab()
    with_files(lab)
    hidden = {add(lab, "data/_SUCCESS"), add(lab, "data/.x.crc"), add(lab, "data/_temporary/0/x.parquet")}
    old(lab)
    assert remove(lab) == OrphanFilesResult()
    assert hidden <= lab.stored()
    partitioned = Lab(partition_by=["k"])
    assert "k" in [one.name for one in partitioned.load().metadata.default_spec.fields]
    add(partitioned, "data/k=_a/x.parquet")
    old(partitioned)
    assert len(remove(partitioned).orphan_file_locations) == 1


def test_concurrently_committed_files_are_kept() -> None:
    lab = new_lab()
    with_files(lab)
    late = lab.file([7])
    old(lab)
    loaded = lab.load()
    lab.commit(Append((late,)))
    found = remove_orphan_files(lab.catalog, loaded, threads=1)
    assert found == OrphanFilesResult()
    assert late.file_path in lab.stored()


def test_nothing_is_deleted_if_a_manifest_is_unreadable() -> None:
    lab = new_lab()
    with_files(lab)
    add(lab, "data/x.parquet")
    old(lab)
    lab.storage.delete(lab.manifests()[0].manifest_path)
    before = lab.stored()
    with pytest.raises(FrazilError):
        remove(lab)
    assert lab.stored() == before


def test_logged_metadata_files_are_kept_unless_requested() -> None:
    lab = new_lab(**{"write.metadata.previous-versions-max": "2"})
    for at in range(9):
        lab.commit(Append((lab.file([at]),)))
    metadata_files = {one for one in lab.stored() if one.endswith(".metadata.json")}
    assert len(metadata_files) == 10
    old(lab)
    assert remove(lab) == OrphanFilesResult()
    found = remove(lab, old_metadata=True)
    assert len(found.orphan_file_locations) == 7
    assert all(one.endswith(".metadata.json") for one in found.orphan_file_locations)
    lab.check_readable()


@pytest.mark.parametrize("place", ["inside", "same data folder"])
def test_folder_used_by_another_table_is_refused(place: str) -> None:
    lab = new_lab()
    with_files(lab)
    location = lab.load().metadata.location
    other = {"write.data.path": f"{location}/data"} if place == "same data folder" else {}
    inside = f"{location}/nested" if place == "inside" else None
    lab.catalog.create_table(("db", "other"), SCHEMA, location=inside, properties=other)
    old(lab)
    with pytest.raises(InvalidRequestError, match=r"db\.other has its files in"):
        remove(lab)


def test_sibling_with_a_common_name_prefix_is_not_searched() -> None:
    lab = new_lab()
    with_files(lab)
    lab.add_table(("db", "t2"))
    old(lab)
    assert remove(lab) == OrphanFilesResult()


def test_metadata_of_a_table_of_another_catalog_is_refused() -> None:
    lab = new_lab()
    with_files(lab)
    add(lab, "nested/metadata/00000-abc.metadata.json")
    old(lab)
    with pytest.raises(InvalidRequestError, match="metadata of another table"):
        remove(lab)


def test_table_at_the_warehouse_root_is_refused() -> None:
    lab = new_lab()
    lab.commit(UpdateLocation("memory://lake"))
    with pytest.raises(InvalidRequestError, match="contains the whole warehouse"):
        remove(lab)


def test_search_outside_the_table_folders_is_refused() -> None:
    lab = new_lab()
    with pytest.raises(InvalidRequestError, match="outside the table's folders"):
        remove(lab, location="memory://lake/db")


def test_search_of_one_folder_leaves_the_others() -> None:
    lab = new_lab()
    with_files(lab)
    here, there = add(lab, "data/x.parquet"), add(lab, "metadata/x.avro")
    old(lab)
    assert remove(lab, location=f"{lab.load().metadata.location}/data").orphan_file_locations == (here,)
    assert there in lab.stored()


def test_files_may_be_given_in_place_of_a_listing() -> None:
    lab = new_lab()
    with_files(lab)
    orphan = add(lab, "data/x.parquet")
    old(lab)
    given = [(one, 0) for one in lab.stored()] + [("memory://lake/elsewhere/x", 0)]
    assert remove(lab, files=given).orphan_file_locations == (orphan,)


def spelt(lab: Lab, change: Callable[[str], str]) -> str:
    """Commit a file under another spelling than its own, and return its own."""
    one = lab.file([1])
    lab.commit(Append((replace(one, file_path=change(one.file_path)),)))
    old(lab)
    return one.file_path


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.replace("memory://lake", "other://lake"),
        lambda path: path.replace("memory://lake", "memory://second"),
    ],
    ids=["scheme", "authority"],
)
def test_other_schemes_and_authorities_are_refused_kept_or_deleted_as_requested(change: Callable[[str], str]) -> None:
    lab = new_lab()
    path = spelt(lab, change)
    with pytest.raises(InvalidRequestError, match="with another scheme or authority"):
        remove(lab)
    assert path in lab.stored()
    assert remove(lab, prefix_mismatch_mode=PrefixMismatch.IGNORE) == OrphanFilesResult()
    schemes, authorities = {"other,more": "memory"}, {"second": "lake"}
    assert remove(lab, equal_schemes=schemes, equal_authorities=authorities) == OrphanFilesResult()
    assert remove(lab, prefix_mismatch_mode=PrefixMismatch.DELETE).orphan_file_locations == (path,)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.replace("/data/", "//data/"),
        lambda path: path.replace("/data/", "/./data/"),
        lambda path: path.replace("/data/", "/%64ata/"),
        lambda path: path.replace("/data/", "/x/../data/"),
    ],
    ids=["slashes", "dot", "percent", "dots"],
)
def test_live_file_is_kept_under_any_spelling(change: Callable[[str], str]) -> None:
    lab = new_lab()
    path = spelt(lab, change)
    assert remove(lab) == OrphanFilesResult()
    assert path in lab.stored()


class OnDisk:
    """A table in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.lake = frazil.connect(str(folder))
        self.table = self.lake.create_table("db.t", "id bigint, kind string, ts timestamptz, score double")
        self.table.append(rows(0, 5).select(["id", "kind", "ts", "score"]))
        self.root = Path(self.table.location.removeprefix("file://"))

    def age(self) -> None:
        """Make all files five days older."""
        for path in self.root.rglob("*"):
            if path.is_file():
                seconds = path.stat().st_mtime - 5 * DAY_MS / 1000
                os.utime(path, (seconds, seconds))

    def remove(self) -> OrphanFilesResult:
        """Remove orphans."""
        return remove_orphan_files(self.lake.catalog, self.table.refresh().state, threads=2)


def test_local_files_are_judged_by_age(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path)
    (disk.root / "data" / "x.parquet").write_bytes(b"x")
    assert disk.remove() == OrphanFilesResult()
    disk.age()
    found = disk.remove()
    assert [one.rpartition("/")[2] for one in found.orphan_file_locations] == ["x.parquet"]
    assert disk.table.check().ok


def test_live_file_reached_through_links_is_kept(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    file = next(iter(disk.table.scan().plan().tasks)).data_file
    table = disk.lake.create_table("db.u", "id bigint, kind string, ts timestamptz, score double")
    root = Path(table.location.removeprefix("file://"))
    target = root / "data" / "linked.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(Path(file.file_path.removeprefix("file://")).read_bytes())
    through = str(target).replace("/real/", "/link/")
    table._run(Append((replace(file, file_path=f"file://{through}"),)))
    disk.root = root
    disk.table = table
    disk.age()
    assert disk.remove() == OrphanFilesResult()
    assert target.exists()
    assert table.scan().to_arrow().num_rows == 5


def test_linked_folder_elsewhere_is_not_searched(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path / "lake")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    os.utime(outside / "precious.parquet", (0, 0))
    (disk.root / "data" / "linked").symlink_to(outside)
    disk.age()
    assert disk.remove() == OrphanFilesResult()
    assert (outside / "precious.parquet").exists()


def test_versions_of_a_filesystem_catalog_are_never_reused(tmp_path: Path) -> None:
    lake = frazil.connect(str(tmp_path), catalog="filesystem")
    properties = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    table = lake.create_table("db.t", "id bigint", properties=properties)
    for at in range(5):
        table.append(pa.table({"id": [at]}))
    root = Path(table.location.removeprefix("file://"))
    versions = sorted(root.glob("metadata/v*.metadata.json"))
    assert len(versions) == 6
    for path in root.rglob("*.*"):
        os.utime(path, (0, 0))
    for old_metadata in (False, True):
        found = remove_orphan_files(lake.catalog, table.refresh().state, OrphanRequest(old_metadata=old_metadata))
        assert found == OrphanFilesResult()
    assert sorted(root.glob("metadata/v*.metadata.json")) == versions
    table.append(pa.table({"id": [9]}))
    assert table.scan().count() == 6


def test_table_is_readable_after_all_removals(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path)
    disk.table.append(pa.table({"id": [7]}))
    disk.age()
    before = disk.table.scan().to_arrow()
    disk.remove()
    assert repr(disk.table.scan().to_arrow().to_pydict()) == repr(before.to_pydict())
