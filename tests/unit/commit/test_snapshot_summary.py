"""Summaries: counts, totals that add up, and partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.row_delta import RowDelta
from frazil.commit.summary import COMMIT_ID, VERSION, totals_after
from frazil.commit.transaction import Transaction
from frazil.commit.update_refs import CreateRef
from frazil.expr.extract import parse_predicate
from frazil.spec.data_file import FileContent
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot
from tests.support.commit_lab import Lab


def numbers(summary: Mapping[str, str], *names: str) -> list[str | None]:
    """Return some values of a summary."""
    return [summary.get(name) for name in names]


def check_totals(lab: Lab) -> None:
    """Check that the totals are what the live files add up to."""
    files = [one.data_file for one in lab.live()]
    data = [one for one in files if one.content is FileContent.DATA]
    positions = [one for one in files if one.content is FileContent.POSITION_DELETES]
    equalities = [one for one in files if one.content is FileContent.EQUALITY_DELETES]
    sizes = (one.content_size_in_bytes if one.is_deletion_vector else one.file_size_in_bytes for one in files)
    expected = {
        "total-data-files": len(data),
        "total-records": sum(one.record_count for one in data),
        "total-delete-files": len(files) - len(data),
        "total-position-deletes": sum(one.record_count for one in positions),
        "total-equality-deletes": sum(one.record_count for one in equalities),
        "total-files-size": sum(one or 0 for one in sizes),
    }
    assert {name: int(lab.summary[name]) for name in expected} == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_totals_add_up_over_appends_deletes_and_overwrites(version: int) -> None:
    lab = Lab(partition_by=["k"], format_version=version)
    files = [lab.file(range(at + 1), "abc"[at]) for at in range(3)]
    lab.commit(Append(tuple(files)))
    check_totals(lab)
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    check_totals(lab)
    assert numbers(lab.summary, "operation", "deleted-data-files", "deleted-records") == ["delete", "1", "1"]
    lab.commit(Overwrite((lab.file(range(9), "b"),), ReadSet(lab.snapshot.snapshot_id), (files[1],)))
    check_totals(lab)
    assert numbers(lab.summary, "operation", "added-records", "deleted-records") == ["overwrite", "9", "2"]
    if version == 1:
        return
    lab.commit(RowDelta((lab.equality_deletes([1, 2], partition=("c",)), lab.file([1], "c")), None))
    check_totals(lab)
    assert numbers(lab.summary, "added-equality-delete-files", "added-equality-deletes") == ["1", "2"]
    deletes = lab.vectors({files[2]: [0, 2]}) if version == 3 else (lab.position_deletes(files[2], 2),)
    lab.commit(RowDelta(deletes, ReadSet(lab.snapshot.snapshot_id), "delete"))
    check_totals(lab)
    added = ["1", None] if version == 3 else [None, "1"]
    assert numbers(lab.summary, "added-dvs", "added-position-delete-files") == added
    assert lab.summary["added-position-deletes"] == "2"


def test_first_snapshot_of_a_branch_continues_from_its_base_totals() -> None:
    lab = Lab()
    lab.commit(Append((lab.file(range(5)),)))
    lab.commit(Append((lab.file(range(2)),), Target("audit")))
    head = lab.head("audit")
    assert head is not None and head.summary is not None
    assert head.summary["total-records"] == "7"
    assert head.parent_snapshot_id == lab.snapshot.snapshot_id
    lab.commit(CreateRef("other", "branch"))


@pytest.mark.parametrize(
    ("before", "added", "removed", "after"),
    [
        ("5", 3, 1, "7"),
        ("0", 0, 0, "0"),
        ("1", 0, 2, None),
        ("-1", 5, 0, None),
        ("many", 1, 0, None),
        ("", 1, 0, None),
        ("9" * 40, 1, 0, None),
        (None, 1, 0, None),
    ],
)
def test_unknown_total_is_omitted(before: str | None, added: int, removed: int, after: str | None) -> None:
    summary = {"operation": "append"} | ({} if before is None else {"total-records": before})
    parent = Snapshot(1, 0, "list", FrozenMap(summary))
    found = totals_after(parent, {"added-records": added, "deleted-records": removed})
    assert found.get("total-records") == after


def test_totals_start_at_zero_without_a_parent_and_are_omitted_without_a_summary() -> None:
    assert totals_after(None, {"added-records": 2})["total-records"] == "2"
    assert totals_after(Snapshot(1, 0, "list"), {"added-records": 2}) == {}


def test_changed_partitions_are_listed_up_to_the_limit() -> None:
    lab = Lab(partition_by=["k"], properties={"write.summary.partition-limit": "2"})
    one, two = lab.file([1], "a"), lab.file([2, 3], "b c")
    lab.commit(Append((one, two)))
    assert lab.summary["changed-partition-count"] == "2"
    assert lab.summary["partition-summaries-included"] == "true"
    assert lab.summary["partitions.k=a"] == "added-files-size=100,added-data-files=1,added-records=1"
    assert lab.summary["partitions.k=b+c"] == "added-files-size=200,added-data-files=1,added-records=2"
    lab.commit(DeleteFiles(where=parse_predicate("k = 'a'")))
    assert lab.summary["partitions.k=a"] == "removed-files-size=100,deleted-data-files=1,deleted-records=1"
    lab.commit(Append(tuple(lab.file([at], "xyz"[at]) for at in range(3))))
    assert lab.summary["changed-partition-count"] == "3"
    assert not any(name.startswith("partition") for name in lab.summary)


def test_engine_info_is_recorded_but_cannot_override_counts() -> None:
    lab = Lab()
    transaction = Transaction(
        lab.catalog, pace=lab.pace, engine={"engine-name": "spark", "engine-version": "4"}, threads=1
    )
    target = Target(properties=FrozenMap({"mine": "1", "added-records": "99", "operation": "replace"}))
    transaction.table(lab.load()).add(Append((lab.file([1]),), target))
    transaction.commit()
    assert numbers(lab.summary, "engine-name", "engine-version", "mine") == ["spark", "4", "1"]
    assert numbers(lab.summary, "operation", "added-records") == ["append", "1"]
    assert VERSION in lab.summary and COMMIT_ID in lab.summary


def test_default_engine_name_is_frazil() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    assert numbers(lab.summary, "engine-name", "engine-version") == ["frazil", lab.summary[VERSION]]
    lab.commit(Append((lab.file([2]),), Target(properties=FrozenMap({"engine-name": "mine"}))))
    assert lab.summary["engine-name"] == "mine"


def test_snapshot_times_never_decrease() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    first = lab.snapshot.timestamp_ms
    lab.now_ms -= 3_600_000
    lab.commit(Append((lab.file([2]),)))
    assert lab.snapshot.timestamp_ms >= first
    assert lab.load().metadata.last_updated_ms >= first


def test_parent_with_invalid_totals_does_not_block_a_commit() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),), Target(properties=FrozenMap({"x": "y"}))))
    snapshot = lab.snapshot
    broken = replace(snapshot, summary=FrozenMap({"operation": "append", "total-records": "x"}))
    assert totals_after(broken, {"added-records": 1}) == {}
