"""Sorting and z-order of groups that do not fit into memory: the same files, and nothing left behind where it fails."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors
from frazil.errors import InvalidRequestError, StorageError
from frazil.maintenance.zorder import SAMPLE_ROWS, draw_sample
from tests.support.copied_tables import copy_table

ROWS, FILES = 600, 6
ORDERS = ("text desc nulls first, id", "score nulls last, bucket(4, id)", "zorder(id, text)")


def new_table(*, partition_by: tuple[str, ...] = ()) -> frazil.Table:
    table = frazil.connect("memory:").create_table(
        "db.t", "id bigint, score double, text string, kind string", partition_by=partition_by, format_version=3
    )
    random = np.random.default_rng(3)
    for _ in range(FILES):
        ids = random.integers(0, 500, ROWS // FILES)
        scores = np.where(ids % 5 == 0, np.nan, random.random(len(ids)))
        texts = [None if one % 7 == 0 else f"text {one}" for one in ids.tolist()]
        kinds = ["ab"[one % 2] for one in ids.tolist()]
        table.append(pa.table({"id": ids, "score": scores, "text": texts, "kind": kinds}))
    file = next(iter(table.scan().plan().tasks)).data_file
    assert table.state.metadata.current_snapshot is not None
    vectors = write_deletion_vectors([DeletedRows.of(file, [0, 7])], table.state)
    read = ReadSet(table.state.metadata.current_snapshot.snapshot_id)
    commit_actions(table._catalog, table.state, RowDelta(tuple(vectors), read))
    return table.refresh()


def rewrite(table: frazil.Table, sort_by: str, **options: Any) -> None:
    table.maintain.rewrite_data_files("sort", sort_by, options={"rewrite-all": "true"} | options)


def rows(table: frazil.Table) -> list[str]:
    columns = [*(one.name for one in table.schema.fields), "_row_id", "_last_updated_sequence_number"]
    return [repr(one) for one in table.scan(columns=columns).to_arrow().to_pylist()]


def stored(table: frazil.Table) -> set[str]:
    return {one.path for one in table.state.storage.list(table.location) if one.path.endswith(".parquet")}


@pytest.mark.extended
@pytest.mark.parametrize("partition_by", [(), ("kind",)], ids=["one group", "a group for each partition"])
@pytest.mark.parametrize("sort_by", ORDERS)
def test_spilled_group_is_written_like_one_in_memory(sort_by: str, partition_by: tuple[str, ...]) -> None:
    whole = new_table(partition_by=partition_by)
    in_parts = copy_table(whole)
    before = sorted(rows(whole))
    rewrite(whole, sort_by)
    rewrite(in_parts, sort_by, sort_memory_bytes=6_000)
    assert sorted(rows(in_parts)) == before
    # Which partition's group is done first is not said.
    for kind in "ab":
        mark = f"'kind': '{kind}'"
        assert [one for one in rows(in_parts) if mark in one] == [one for one in rows(whole) if mark in one]
    if not partition_by:
        assert rows(in_parts) == rows(whole)
    assert in_parts.check(bounds=True).ok


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let the system refuse to make files larger than this, as a disk does that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.extended
@pytest.mark.parametrize("sort_by", ORDERS)
@pytest.mark.parametrize("size", [0, 2_000])
def test_full_disk_leaves_the_table_unchanged(
    size: int, sort_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = new_table()
    before, files = rows(table), stored(table)
    with no_file_above(size), pytest.raises(StorageError, match="Cannot spill rows to") as caught:
        rewrite(table, sort_by, sort_memory_bytes=10_000)
    assert caught.value.hint is not None and "max-file-group-size-bytes" in caught.value.hint
    assert (rows(table.refresh()), stored(table)) == (before, files)
    assert list(tmp_path.iterdir()) == []
    rewrite(table, sort_by, sort_memory_bytes=10_000)
    assert sorted(rows(table)) == sorted(before)
    assert list(tmp_path.iterdir()) == []


def test_missing_temporary_folder_is_an_error_only_if_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    table = new_table()
    with pytest.raises(StorageError, match="Cannot spill rows to"):
        rewrite(table, "id", sort_memory_bytes=6_000)
    rewrite(table, "id")
    assert len(table.scan().plan().tasks) == 1


def test_sort_memory_is_an_option_of_sorting_only() -> None:
    table = new_table()
    with pytest.raises(InvalidRequestError, match="sort-memory-bytes is 0"):
        rewrite(table, "id", sort_memory_bytes=0)
    with pytest.raises(InvalidRequestError, match="no option 'sort-memory-bytes'"):
        table.maintain.rewrite_data_files(options={"sort-memory-bytes": 1})


def test_sample_is_uniform_and_bounded() -> None:
    count, step = 10 * SAMPLE_ROWS, 10_000
    schema = pa.schema([("id", pa.int64())])
    made = (pa.record_batch([np.arange(at, at + step)], schema=schema) for at in range(0, count, step))
    drawn = draw_sample(made, schema, count).column("id").to_numpy()
    assert abs(len(drawn) - SAMPLE_ROWS) < SAMPLE_ROWS / 20
    assert abs(float(drawn.mean()) / count - 0.5) < 0.01
    texts = (pa.record_batch([["x" * 10_000] * 500], names=["t"]) for _ in range(40))
    large = draw_sample(texts, pa.schema([("t", pa.string())]), 20_000)
    assert 0 < large.nbytes <= 32 << 20
