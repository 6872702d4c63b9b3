"""Row ids in v3: the specification's example, upgraded tables, branches, and files that move between manifests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.commit.action import CommitContext, WrittenManifests
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.update_properties import UpgradeFormat
from frazil.commit.update_refs import CreateRef
from frazil.commit.write_manifests import ManifestWriter
from frazil.loaded import LoadedTable
from frazil.spec.manifest import ManifestFile
from tests.support.commit_lab import Lab


def row_ids(lab: Lab) -> dict[str, int | None]:
    """Return the first row id of each live data file."""
    return {one.data_file.file_path: one.data_file.first_row_id for one in lab.live()}


def test_row_ids_match_the_specification_example() -> None:
    # Specification: "Row lineage example".
    lab = Lab(format_version=3)
    loaded = lab.load()
    table = LoadedTable(
        loaded.identifier, replace(loaded.metadata, next_row_id=1000), loaded.metadata_location, lab.storage
    )
    context = CommitContext(7, lab.new_id(), lambda: 0, WrittenManifests())
    made = [
        _manifest("existing", 75, 0, first_row_id=925, snapshot_id=3),
        _manifest("added1", 100, 25, snapshot_id=7),
        _manifest("added2", 0, 100, snapshot_id=7),
        _manifest("added3", 125, 25, snapshot_id=7),
    ]
    written = ManifestWriter(table, context).write_list(made, 3)
    assert [one.first_row_id for one in written.manifests] == [925, 1000, 1125, 1225]
    assert written.first_row_id == 1000
    assert written.added_rows == 375


def _manifest(
    path: str, added: int, existing: int, *, snapshot_id: int, first_row_id: int | None = None
) -> ManifestFile:
    return ManifestFile(
        path,
        1,
        0,
        snapshot_id,
        sequence_number=1 if first_row_id is not None else -1,
        min_sequence_number=1 if first_row_id is not None else -1,
        added_files_count=1,
        existing_files_count=1,
        deleted_files_count=0,
        added_rows_count=added,
        existing_rows_count=existing,
        deleted_rows_count=0,
        first_row_id=first_row_id,
    )


def test_appends_continue_from_the_next_row_id() -> None:
    lab = Lab(format_version=3)
    one, two, three = lab.file(range(5)), lab.file(range(7)), lab.file(range(3))
    lab.commit(Append((one, two)))
    assert (lab.snapshot.first_row_id, lab.snapshot.added_rows) == (0, 12)
    lab.commit(Append((three,)))
    assert row_ids(lab) == {one.file_path: 0, two.file_path: 5, three.file_path: 12}
    assert lab.load().metadata.next_row_id == 15


def test_lost_race_takes_row_ids_after_the_winner() -> None:
    lab = Lab(format_version=3)
    mine, theirs = lab.file(range(5)), lab.file(range(7))
    lab.catalog.rivals = [lab.rival(Append((theirs,)))]
    lab.commit(Append((mine,)))
    assert row_ids(lab) == {theirs.file_path: 0, mine.file_path: 7}
    assert lab.load().metadata.next_row_id == 12


def test_rewritten_merged_and_filtered_manifests_keep_row_ids() -> None:
    lab = Lab(format_version=3, properties={"commit.manifest.min-count-to-merge": "2"})
    one, two, three = lab.file(range(5)), lab.file(range(7)), lab.file(range(3))
    lab.commit(Append((one, two)))
    lab.commit(Append((three,)))
    before = row_ids(lab)
    lab.commit(RewriteManifests())
    assert row_ids(lab) == before
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    del before[one.file_path]
    assert row_ids(lab) == before
    new = lab.file(range(2))
    lab.commit(Overwrite((new,), ReadSet(lab.snapshot.snapshot_id), (two,)))
    after = row_ids(lab)
    assert after[three.file_path] == before[three.file_path]
    assert (after[new.file_path] or 0) >= 15


@pytest.mark.parametrize("version", [1, 2])
def test_upgraded_table_assigns_row_ids_to_old_files_at_the_next_commit(version: int) -> None:
    # Specification: "Row Lineage for Upgraded Tables".
    lab = Lab(format_version=version)
    old, new = lab.file(range(5)), lab.file(range(3))
    lab.commit(Append((old,)))
    lab.commit(UpgradeFormat(3))
    assert row_ids(lab) == {old.file_path: None}
    assert lab.load().metadata.next_row_id == 0
    lab.commit(Append((new,), is_fast=True))
    ids = row_ids(lab)
    assert lab.load().metadata.next_row_id == 8
    assert {ids[old.file_path], ids[new.file_path]} == {0, 3}


@pytest.mark.parametrize("version", [1, 2])
def test_row_ids_assigned_to_old_files_by_a_rival_survive_a_retry(version: int) -> None:
    # The first attempt rewrites the manifest while its files have no row ids; by the second they have.
    lab = Lab(format_version=version)
    old, gone, theirs = lab.file(range(5)), lab.file(range(4)), lab.file(range(3))
    lab.commit(Append((old, gone)))
    lab.commit(UpgradeFormat(3))
    given: dict[str, int | None] = {}

    def rival() -> None:
        lab.commit(Append((theirs,), is_fast=True))
        given.update(row_ids(lab))

    lab.catalog.rivals = [rival]
    lab.commit(DeleteFiles(frozenset({gone.file_path})))
    assert given[old.file_path] is not None
    del given[gone.file_path]
    assert row_ids(lab) == given


def test_commits_to_other_branches_consume_row_ids_too() -> None:
    lab = Lab(format_version=3)
    lab.commit(Append((lab.file(range(5)),)))
    lab.commit(CreateRef("audit", "branch"))
    lab.commit(Append((lab.file(range(4)),), Target("audit")))
    lab.commit(Append((lab.file(range(2)),), Target(is_staged=True)))
    assert lab.load().metadata.next_row_id == 11
    main = lab.file(range(1))
    lab.commit(Append((main,)))
    assert row_ids(lab)[main.file_path] == 11


def test_versions_before_v3_have_no_row_ids() -> None:
    lab = Lab(format_version=2)
    lab.commit(Append((lab.file(range(5)),)))
    assert lab.snapshot.first_row_id is None and lab.snapshot.added_rows is None
    assert lab.load().metadata.next_row_id == 0
