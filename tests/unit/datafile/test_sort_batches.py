"""Sorting more rows than memory holds: what is kept on disk goes away, and a full disk says so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.sort_batches import RowOrder, sort_batches
from frazil.datafile.sort_rows import RowSorter
from frazil.errors import StorageError
from frazil.spec.schema import Schema
from frazil.spec.sorting import build_sort_order
from frazil.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(1, "k", LONG), NestedField(2, "number", LONG), NestedField(3, "text", STRING)))
ARROW = to_arrow_schema(SCHEMA)
SORTER = RowSorter(SCHEMA, build_sort_order(SCHEMA, ["k"]))
STEP = 50
MANY = 4_000
FAN_IN = 4
"""So few that the runs of many rows are merged over and over."""
FULL_DISK = Path("/dev/full")


class Files:
    """Opens files in a folder, under names of their own, and knows those that are open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[IO[bytes]] = []

    def __call__(self) -> IO[bytes]:
        made: IO[bytes] = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
        self.opened.append(made)
        return made

    @property
    def open_count(self) -> int:
        """How many files are open."""
        return sum(not one.closed for one in self.opened)


def batches(count: int, *, spread: int = 1 << 40, fails_at: int | None = None) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(7)
    for start in range(0, count, STEP):
        if start == fails_at:
            raise StorageError("Cannot read file: it is gone")
        keys = random.integers(0, spread, STEP)
        texts = [f"text {one}" for one in keys.tolist()]
        yield pa.record_batch([keys, np.arange(start, start + STEP), texts], schema=ARROW)


def choose(_: bool) -> RowOrder:
    return SORTER


def run(count: int, held_bytes: int, new_file: Any, **more: Any) -> pa.Table:
    made = sort_batches(batches(count, **more), ARROW, choose, held_bytes=held_bytes, fan_in=FAN_IN, new_file=new_file)
    return pa.Table.from_batches(made, ARROW)


def test_rows_that_fit_in_memory_do_not_spill(tmp_path: Path) -> None:
    files = Files(tmp_path)
    rows = run(1000, 1 << 20, files)
    assert rows.column("k").to_pylist() == sorted(rows.column("k").to_pylist())
    assert rows.num_rows == 1000
    assert files.opened == []


@pytest.mark.parametrize("spread", [1 << 40, 5, 1], ids=["all differ", "few values", "one value"])
def test_spilled_rows_are_sorted_stably(spread: int, tmp_path: Path) -> None:
    files = Files(tmp_path)
    rows = run(MANY, 1 << 13, files, spread=spread)
    pairs = list(zip(rows.column("k").to_pylist(), rows.column("number").to_pylist(), strict=True))
    assert len(pairs) == MANY
    assert pairs == sorted(pairs)
    assert len(files.opened) > FAN_IN**2, "runs are merged more than once"
    assert files.open_count == 0
    assert list(tmp_path.iterdir()) == []


def test_empty_input_can_be_sorted() -> None:
    assert run(0, 1, None).num_rows == 0


def test_output_batches_are_small() -> None:
    made = sort_batches(batches(12_000), ARROW, choose, held_bytes=1 << 16)
    assert max(one.nbytes for one in made) < 1 << 16


def test_sort_order_is_chosen_once_knowing_whether_all_rows_fit() -> None:
    told: list[bool] = []

    def asked(is_all: bool) -> RowOrder:
        told.append(is_all)
        return SORTER

    for held in (1 << 30, 1 << 12):
        list(sort_batches(batches(1000), ARROW, asked, held_bytes=held))
    assert told == [True, False]


@pytest.mark.parametrize("fails_at", [0, 100, MANY - STEP])
def test_failed_sort_leaves_no_files(fails_at: int, tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(StorageError, match="it is gone"):
        run(MANY, 1 << 13, files, fails_at=fails_at)
    assert files.open_count == 0
    assert list(tmp_path.iterdir()) == []


def test_abandoned_sort_leaves_no_files(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with closing(sort_batches(batches(MANY), ARROW, choose, held_bytes=1 << 13, fan_in=FAN_IN, new_file=files)) as made:
        assert next(made).num_rows > 0
        assert files.open_count > 1
    assert files.open_count == 0


@pytest.mark.skipif(not FULL_DISK.exists(), reason="the system has no full disk to offer")
@pytest.mark.parametrize("full_from", [0, 3, 33])
def test_full_disk_is_an_error_with_a_hint(full_from: int, tmp_path: Path) -> None:
    files = Files(tmp_path)

    def new_file() -> IO[bytes]:
        if len(files.opened) < full_from:
            return files()
        made: IO[bytes] = FULL_DISK.open("w+b")
        files.opened.append(made)
        return made

    with pytest.raises(StorageError, match=r"Cannot spill rows to .*No space left on device") as caught:
        run(MANY, 1 << 13, new_file)
    assert caught.value.hint is not None and "TMPDIR" in caught.value.hint
    assert files.open_count == 0


def test_missing_temporary_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Cannot spill rows to"):
        run(1000, 1 << 10, Files(tmp_path / "gone"))
