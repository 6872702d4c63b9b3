"""Which files are rewritten together: the arithmetic of sizes, the choice of files, and options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_spec import UpdateSpec
from frazil.errors import InvalidRequestError
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE
from frazil.maintenance.plan_rewrite import RewriteRequest, own_position_deletes, plan_rewrite
from frazil.maintenance.rewrite_options import (
    DATA_OPTIONS,
    OptionReader,
    SizeOptions,
    read_data_options,
    read_sizes,
)
from frazil.spec.data_file import DataFile
from tests.support.commit_lab import Lab

MB = 1 << 20


def sizes(target: int, **options: Any) -> SizeOptions:
    return read_sizes(OptionReader("test", options, DATA_OPTIONS), "test", target)


def plan(lab: Lab, **options: Any) -> list[list[str]]:
    """Return the names of the files of each group."""
    options.setdefault("target-file-size-bytes", 1000)
    request = RewriteRequest(read_data_options(options, 512 * MB, strategy="binpack"))
    groups = plan_rewrite(lab.load(), request, threads=1).groups
    return [[task.data_file.file_path.rpartition("/")[2] for task in one.tasks] for one in groups]


def add(lab: Lab, *bytes_of: int, k: str = "a") -> list[DataFile]:
    files = [replace(lab.file([at + 1, at + 2], k), file_size_in_bytes=size) for at, size in enumerate(bytes_of)]
    lab.commit(Append(tuple(files)))
    return files


@pytest.mark.parametrize(
    ("input_bytes", "files"),
    [(999, 1), (1000, 1), (1001, 1), (1090, 1), (1099, 1), (1100, 2), (1700, 2), (1760, 2), (10_090, 10), (10_800, 11)],
)
def test_small_remainder_is_spread_over_the_other_files(input_bytes: int, files: int) -> None:
    assert sizes(1000).expected_files(input_bytes) == files


def test_output_size_is_between_target_and_maximum() -> None:
    found = sizes(512 * MB)
    assert found.write_max_bytes == int(512 * MB * 1.4)
    assert found.output_bytes(100 * MB) == 512 * MB
    assert found.output_bytes(540 * MB) == 540 * MB + 5 * 1024
    assert sizes(1000).output_bytes(1090) == 1400


@pytest.mark.parametrize(
    "options",
    [
        {"min-file-size-bytes": 1000},
        {"max-file-size-bytes": 1000},
        {"target-file-size-bytes": 0},
        {"min-input-files": 0},
        {"min-input-files": "many"},
        {"rewrite-all": "maybe"},
        {"delete-ratio-threshold": 0},
        {"delete-ratio-threshold": "1.5"},
        {"rewrite-job-order": "random"},
        {"max-files-to-rewrite": -1},
        {"max-file-group-size-bytes": 0},
    ],
    ids=str,
)
def test_invalid_values_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot run"):
        read_data_options(options, 1000, strategy="binpack")


def test_unknown_options_are_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidRequestError, match="no option 'target-file-size'") as caught:
        read_data_options({"target-file-size": 1}, 1000, strategy="binpack")
    assert "Did you mean target-file-size-bytes?" in str(caught.value)
    with pytest.raises(InvalidRequestError, match="no option 'compression-factor'"):
        read_data_options({"compression-factor": 2}, 1000, strategy="binpack")
    read_data_options({"compression-factor": "2.5"}, 1000, strategy="sort")
    read_data_options({"var-length-contribution": 8}, 1000, strategy="zorder")


def test_options_accept_python_names_but_no_duplicates() -> None:
    found = read_data_options({"partial_progress_enabled": True, "rewrite_all": "TRUE"}, 1000, strategy="binpack")
    assert found.sizes.partial_progress and found.sizes.rewrite_all
    with pytest.raises(InvalidRequestError, match="set twice"):
        read_data_options({"rewrite_all": True, "rewrite-all": True}, 1000, strategy="binpack")


def test_small_files_form_a_group_from_the_minimum_count_on() -> None:
    lab = Lab()
    add(lab, 100, 100, 100, 100)
    assert plan(lab) == []
    add(lab, 100)
    (group,) = plan(lab)
    assert len(group) == 5


def test_two_files_suffice_if_they_fill_one() -> None:
    lab = Lab()
    add(lab, 700, 700)
    assert [len(one) for one in plan(lab)] == [2]


def test_file_of_the_target_size_is_kept() -> None:
    lab = Lab()
    add(lab, 750, 1000, 1800, *[100] * 5)
    (group,) = plan(lab)
    assert len(group) == 5


def test_oversized_file_is_rewritten_alone() -> None:
    lab = Lab()
    add(lab, 1801)
    assert [len(one) for one in plan(lab)] == [1]


def test_size_limits_are_configurable() -> None:
    lab = Lab()
    add(lab, *[700] * 6, 1900)
    assert [len(one) for one in plan(lab)] == [7]
    assert plan(lab, **{"min-file-size-bytes": 600, "max-file-size-bytes": 2000}) == []
    assert [len(one) for one in plan(lab, **{"min-file-size-bytes": 600, "max-file-size-bytes": 1500})] == [1]


def test_shuffle_options_of_the_jar_change_nothing() -> None:
    hints = {
        "compression-factor": "2.5",
        "shuffle-partitions-per-file": "4",
        "var-length-contribution": "16",
        "max-output-size": "64",
    }
    assert read_data_options(hints, 512 * MB, strategy="zorder") == read_data_options({}, 512 * MB, strategy="zorder")


def test_groups_are_of_one_partition_and_limited_in_size() -> None:
    lab = Lab(partition_by=["k"])
    for k in ("a", "b"):
        add(lab, *[100] * 6, k=k)
    assert [len(one) for one in plan(lab)] == [6, 6]
    assert [len(one) for one in plan(lab, **{"max-file-group-size-bytes": 500})] == [5, 5], "the sixth is not worth it"
    assert [len(one) for one in plan(lab, **{"max-file-group-input-files": 3, "min-input-files": 3})] == [3, 3, 3, 3]


def test_files_of_other_specs_are_grouped_together() -> None:
    lab = Lab(partition_by=["k"])
    for k in ("a", "b", "c"):
        add(lab, 100, 100, k=k)
    assert plan(lab) == []
    lab.commit(UpdateSpec(lambda update: update.remove_field("k")))
    assert [len(one) for one in plan(lab)] == [6]
    assert plan(lab, **{"output-spec-id": 0}) == []
    with pytest.raises(InvalidRequestError, match="no such spec"):
        plan(lab, **{"output-spec-id": 9})


def test_everything_is_rewritten_on_request() -> None:
    lab = Lab()
    add(lab, 1000)
    assert plan(lab) == []
    assert [len(one) for one in plan(lab, **{"rewrite-all": True})] == [1]


def test_number_of_files_can_be_limited() -> None:
    lab = Lab()
    add(lab, *[100] * 8)
    assert [len(one) for one in plan(lab, **{"max-files-to-rewrite": 6})] == [6]


def test_largest_groups_come_first_on_request() -> None:
    lab = Lab(partition_by=["k"])
    add(lab, *[100] * 5, k="a")
    add(lab, *[50] * 7, k="b")
    assert [len(one) for one in plan(lab, **{"rewrite-job-order": "files-asc"})] == [5, 7]
    assert [len(one) for one in plan(lab, **{"rewrite-job-order": "files-desc"})] == [7, 5]
    assert [len(one) for one in plan(lab, **{"rewrite-job-order": "bytes-asc"})] == [7, 5]
    assert [len(one) for one in plan(lab, **{"rewrite-job-order": "bytes-desc"})] == [5, 7]


def test_file_with_many_deleted_rows_is_rewritten_at_any_size() -> None:
    lab = Lab()
    one, two = add(lab, 1000, 1000)
    lab.commit(RowDelta((lab.position_deletes(one, 1),), ReadSet(lab.snapshot.snapshot_id), "delete"))
    assert plan(lab) == [[one.file_path.rpartition("/")[2]]], "one of two rows is more than three tenths"
    assert plan(lab, **{"delete-ratio-threshold": 0.6}) == []
    assert len(plan(lab, **{"delete-ratio-threshold": 0.6, "delete-file-threshold": 1})) == 1
    assert two.file_path


def test_shared_deletes_do_not_count_towards_one_file() -> None:
    lab = Lab()
    one, _ = add(lab, 1000, 1000)
    shared = lab.position_deletes(one, 2, names_file=False)
    lab.commit(RowDelta((shared,), ReadSet(lab.snapshot.snapshot_id), "delete", (one,)))
    assert plan(lab) == []
    assert [len(group) for group in plan(lab, **{"delete-file-threshold": 1})] == [2]


def test_filter_selects_whole_files_with_all_their_deletes() -> None:
    lab = Lab()
    low, _ = add(lab, 100), add(lab, *[100] * 5)
    lab.commit(Append((lab.file([100, 101]),)))
    # An equality delete of a row outside the filter: a filtered scan does not need it, a rewrite does.
    lab.commit(RowDelta((lab.equality_deletes([1]),), None))
    options = {"target-file-size-bytes": 1000, "min-input-files": 1, "rewrite-all": True}
    request = RewriteRequest(read_data_options(options, 1, strategy="binpack"), where=parse_predicate("id = 2"))
    (group,) = plan_rewrite(lab.load(), request, threads=1).groups
    tasks = {one.data_file.file_path: one for one in group.tasks}
    assert all(one.residual == TRUE for one in tasks.values())
    assert len(tasks[low[0].file_path].delete_files) == 1
    assert not any(path.endswith("00007.parquet") for path in tasks)


def test_only_file_scoped_deletes_are_removed_with_the_file() -> None:
    lab = Lab()
    one, two = add(lab, 100, 100)
    own, shared = lab.position_deletes(one), lab.position_deletes(two, names_file=False)
    lab.commit(RowDelta((own, shared), ReadSet(lab.snapshot.snapshot_id), "delete", (two,)))
    request = RewriteRequest(read_data_options({"rewrite-all": True}, 1000, strategy="binpack"))
    (group,) = plan_rewrite(lab.load(), request, threads=1).groups
    assert [file.file_path for file in own_position_deletes(group.tasks)] == [own.file_path]


def test_empty_table_has_no_groups() -> None:
    assert plan(Lab()) == []
