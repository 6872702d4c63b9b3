"""Manifests that are read before a commit merges them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.commit.read_ahead import read_ahead
from frazil.errors import NotFoundError

ROWS = pa.table({"id": [1, 2, 3]})
MERGE_AT = {"commit.manifest.min-count-to-merge": "4"}


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    lake = frazil.connect(tmp_path / "lake", catalog="filesystem")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema, properties=MERGE_AT)
    for _ in range(3):
        table.append(ROWS)
    return table


def _remove_manifests(folder: Path) -> None:
    found = [path for path in folder.rglob("*-m*.avro") if not path.name.startswith("snap-")]
    assert len(found) == 3
    for path in found:
        path.unlink()


def _read_ahead(table: frazil.Table) -> None:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    thread = read_ahead(table.state, snapshot, table._cache)
    assert thread is not None
    thread.join()


def test_merge_uses_manifests_read_ahead(table: frazil.Table, tmp_path: Path) -> None:
    _read_ahead(table)
    _remove_manifests(tmp_path)
    table.append(ROWS)
    assert table.inspect.manifests().num_rows == 1
    assert table.scan().count() == 12


def test_merge_reads_manifests_that_were_not_read_ahead(table: frazil.Table, tmp_path: Path) -> None:
    _remove_manifests(tmp_path)
    with pytest.raises(NotFoundError):
        table.append(ROWS)


def test_read_ahead_failures_are_left_to_the_commit(table: frazil.Table, tmp_path: Path) -> None:
    _remove_manifests(tmp_path)
    _read_ahead(table)
    with pytest.raises(NotFoundError):
        table.append(ROWS)


def test_nothing_is_read_ahead_without_a_merge(table: frazil.Table) -> None:
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    assert read_ahead(table.state, snapshot, table._cache) is None
