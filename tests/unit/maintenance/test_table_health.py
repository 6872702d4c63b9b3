"""`t.health()`: what would make a table better, and which procedure does it; from metadata alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.commit.append import Append
from frazil.loaded import LoadedTable
from frazil.maintenance.report import Report
from frazil.maintenance.table_health import MANY_MANIFESTS, MIN_INPUT_FILES, table_health
from frazil.storage.failing import FailingStorage
from tests.support.commit_lab import Lab
from tests.support.damage import Damaged, rows

DAY_MS = 86_400_000


def found(report: Report) -> dict[str, str | None]:
    return {one.kind: one.procedure for one in report.problems}


def new_table(**properties: str) -> frazil.Table:
    return frazil.connect("memory:").create_table(
        "db.t", "id bigint, kind string", partition_by=["kind"], properties=properties
    )


def append(table: frazil.Table, kind: str = "a", count: int = 1) -> None:
    for at in range(count):
        table.append(pa.table({"id": [at], "kind": [kind]}))


def test_new_table_is_healthy() -> None:
    table = new_table()
    assert table.health().ok
    append(table)
    report = table.health()
    assert report.ok, str(report)
    assert (report.facts["data_files"], report.facts["rows"], report.facts["snapshots"]) == (1, 1, 1)


def test_small_files_count_if_a_partition_has_several() -> None:
    table = new_table()
    for kind in "abcdefgh":
        append(table, kind)
    assert table.health().ok, "one small file for each partition cannot be packed with another"
    append(table, "a", MIN_INPUT_FILES - 1)
    report = table.health()
    assert found(report) == {"small-files": "rewrite_data_files"}
    assert "5 of 12 data files are below 384 MiB, in 1 partition with 5 or more" in report.problems[0].what
    assert "rewrite_data_files()" in report.problems[0].to_do


def test_files_of_the_target_size_are_not_small() -> None:
    table = new_table(**{"write.target-file-size-bytes": "100"})
    append(table, "a", 8)
    assert table.health().ok


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_are_reported_with_their_remedy(version: int) -> None:
    report = Damaged(version).table.health()
    assert found(report) == {"equality-deletes": "rewrite_data_files", "deleted-rows": "rewrite_data_files"}
    assert report.facts["deletion_vectors" if version == 3 else "position_delete_files"] == 2
    assert report.facts["rows_deleted_by_position"] == 3


def test_position_delete_files_of_an_upgraded_table_should_become_vectors() -> None:
    table = Damaged(2).table
    table.upgrade(3)
    assert found(table.health())["position-deletes"] == "rewrite_position_delete_files"
    (problem,) = (one for one in table.health() if one.kind == "position-deletes")
    assert "deletion vectors" in problem.to_do


def test_many_small_manifests_should_be_merged() -> None:
    table = new_table(**{"commit.manifest-merge.enabled": "false"})
    append(table, "a", MANY_MANIFESTS)
    assert "small-manifests" not in found(table.health())
    append(table, "b")
    assert found(table.health())["small-manifests"] == "rewrite_manifests"


def test_expired_snapshots_should_be_removed() -> None:
    table = new_table()
    append(table, "a", 3)
    table.create_tag("old", max_ref_age_ms=1)
    later = table_health(table.state, now_ms=table.metadata.last_updated_ms + 6 * DAY_MS)
    assert found(later) == {"expired-snapshots": "expire_snapshots"}
    assert "2 of 3 snapshots, and 1 branches and tags" in later.problems[0].what
    table.set_properties({"gc.enabled": "false"})
    kept = table_health(table.state, now_ms=table.metadata.last_updated_ms + 6 * DAY_MS)
    assert kept.ok, "what may not be deleted need not be told"


def test_leftover_metadata_files_are_reported() -> None:
    table = new_table(**{"write.metadata.previous-versions-max": "3"})
    for at in range(4):
        table.set_properties({"owner": str(at)})
    assert found(table.health()) == {"old-metadata-files": "remove_orphan_files"}
    table.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    assert table.health().ok


def test_health_reads_metadata_only(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(rows(0, 3).select(["id"]))
        loaded = table.state
        watched = FailingStorage(loaded.storage)
        table_health(LoadedTable(loaded.identifier, loaded.metadata, None, watched), now_ms=0)
        assert watched.calls != []
        assert not any("/data/" in call.path for call in watched.calls)


def test_file_sizes_are_a_histogram() -> None:
    lab = Lab()
    sizes = [10, 1 << 20, (16 << 20) - 1, 16 << 20, 200 << 20, 512 << 20, 1 << 40]
    lab.commit(Append(tuple(replace(lab.file([at]), file_size_in_bytes=size) for at, size in enumerate(sizes))))
    facts = table_health(lab.load(), now_ms=0).facts
    steps = {name: count for name, count in facts.items() if "mib" in name}
    assert steps == {
        "data_files_below_1_mib": 1,
        "data_files_of_1_mib_to_16_mib": 2,
        "data_files_of_16_mib_to_128_mib": 1,
        "data_files_of_128_mib_to_512_mib": 1,
        "data_files_of_512_mib_or_more": 2,
    }
    assert sum(steps.values()) == facts["data_files"]


def test_deletes_are_reported_by_file() -> None:
    facts = Damaged(3).table.health().facts
    assert (facts["data_files_with_deletes"], facts["most_rows_deleted_from_a_file"]) == (2, 2)


def test_orphans_are_estimated_without_reading_older_manifests(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"])
        for at in range(3):
            table.append(pa.table({"id": [at], "k": [str(at)]}))
        table.delete("k = '1'")
        table.create_branch("b")
        table.append(pa.table({"id": [9], "k": ["9"]}), branch="b")
        later = table.metadata.last_updated_ms + 4 * DAY_MS
        assert table_health(table.state, now_ms=later).facts["orphan_files_estimate"] == 0
        for name in ("x", "y"):
            Path(table.location.removeprefix("file://"), "data", name).write_bytes(b"")
        assert table.health().facts["orphan_files_estimate"] == 0, "young files may be of writers at work"
        report = table_health(table.state, now_ms=later)
        assert report.facts["orphan_files_estimate"] == 2
        assert found(report)["orphan-files"] == "remove_orphan_files"
        table.set_properties({"gc.enabled": "false"})
        assert "orphan_files_estimate" not in table_health(table.state, now_ms=later).facts
