"""Cutting files and packing parts: offsets, sizes, weights, lookback, and that nothing is lost or read twice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidRequestError
from frazil.scan.split import MEBIBYTE, SplitOptions, adaptive_target_bytes, plan_groups, split_task, weight_of
from frazil.scan.tasks import DeleteTask, FileScanTask
from frazil.spec.data_file import DataFile, FileContent, FileFormat


def task(size: int, *, offsets: tuple[int, ...] | None = None, deletes: int = 0, **fields: Any) -> FileScanTask:
    file = DataFile("file:/f", fields.pop("file_format", FileFormat.PARQUET), 1, size, split_offsets=offsets, **fields)
    delete = DeleteTask(DataFile("file:/d", FileFormat.PARQUET, 1, 10, FileContent.POSITION_DELETES), 1)
    return FileScanTask(file, 1, (delete,) * deletes)


def parts(one: FileScanTask, target: int) -> list[tuple[int, int]]:
    return [(part.start, part.size_bytes) for part in split_task(one, target)]


def test_file_is_split_at_its_offsets() -> None:
    assert parts(task(100, offsets=(4, 40, 80)), 1000) == [(0, 40), (40, 40), (80, 20)]


@pytest.mark.parametrize("offsets", [(4, 4, 80), (80, 4), (4, 100), (-1, 4), ()])
def test_unusable_offsets_are_ignored(offsets: tuple[int, ...]) -> None:
    assert parts(task(100, offsets=offsets), 60) == [(0, 60), (60, 40)]


def test_unsplittable_file_stays_whole() -> None:
    whole = task(100, file_format=FileFormat.PUFFIN)
    assert list(split_task(whole, 10)) == [whole]
    assert list(split_task(task(0), 10)) == [task(0)]


def test_task_weight_is_bytes_and_deletes_or_open_cost() -> None:
    assert weight_of(task(100), 4) == 100
    assert weight_of(task(100, deletes=2), 4) == 120
    assert weight_of(task(1), 4) == 4
    assert weight_of(task(1, deletes=3), 100) == 400


def test_size_of_a_vector_is_its_blob() -> None:
    vector = DataFile(
        "file:/v", FileFormat.PUFFIN, 1, 9999, FileContent.POSITION_DELETES, content_offset=4, content_size_in_bytes=40
    )
    assert weight_of(FileScanTask(task(100).data_file, 1, (DeleteTask(vector, 1),)), 4) == 140


def sizes(tasks: list[FileScanTask], **options: int) -> list[list[int]]:
    chosen = SplitOptions(**{"target_bytes": 100, "open_file_cost_bytes": 1, "lookback": 10, **options})
    return [[one.size_bytes for one in group.tasks] for group in plan_groups(tasks, chosen)]


def test_splits_go_to_the_first_group_with_room() -> None:
    assert sizes([task(60), task(50), task(40), task(50)]) == [[60, 40], [50, 50]]


def test_fullest_group_is_emitted_beyond_the_lookback() -> None:
    assert sizes([task(60), task(80), task(70), task(30)], lookback=2) == [[80], [60, 30], [70]]


def test_adjacent_splits_of_a_file_are_merged() -> None:
    file = task(90, offsets=(4, 30, 60))
    assert sizes([file]) == [[90]]


def test_small_scans_are_spread_over_readers() -> None:
    target = 128 * MEBIBYTE
    assert adaptive_target_bytes(1000 * MEBIBYTE, 4, target) == target
    assert adaptive_target_bytes(200 * MEBIBYTE, 8, target) == 25 * MEBIBYTE
    assert adaptive_target_bytes(20 * MEBIBYTE, 8, target) == 16 * MEBIBYTE
    assert adaptive_target_bytes(20 * MEBIBYTE, 8, 8 * MEBIBYTE) == 8 * MEBIBYTE


@pytest.mark.parametrize("options", [{"target_bytes": 0}, {"lookback": 0}, {"open_file_cost_bytes": -1}])
def test_invalid_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot split"):
        SplitOptions(**options)


@given(
    st.lists(
        st.builds(
            lambda size, cuts: (size, tuple(sorted({cut % size for cut in cuts}))),
            st.integers(1, 500),
            st.lists(st.integers(0, 500), max_size=5),
        ),
        max_size=12,
    ),
    st.integers(1, 300),
    st.integers(0, 50),
    st.integers(1, 5),
)
def test_every_byte_is_in_exactly_one_group(
    files: list[tuple[int, tuple[int, ...]]], target: int, cost: int, lookback: int
) -> None:
    tasks = [task(size, offsets=offsets or None) for size, offsets in files]
    groups = list(plan_groups(tasks, SplitOptions(target, cost, lookback)))
    covered: dict[int, list[tuple[int, int]]] = {id(one.data_file): [] for one in tasks}
    for group in groups:
        for one in group.tasks:
            covered[id(one.data_file)].append((one.start, one.start + one.size_bytes))
    for one in tasks:
        ranges = sorted(covered[id(one.data_file)])
        assert ranges[0][0] == 0
        assert ranges[-1][1] == one.data_file.file_size_in_bytes
        assert all(left[1] == right[0] for left, right in pairwise(ranges))
