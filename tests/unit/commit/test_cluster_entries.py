"""Entries in the order of their partitions, cluster by cluster: in memory or in files, the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from frazil.commit.cluster_entries import Clusters
from frazil.errors import StorageError


def dealt(parts: list[list[int]], count: int, held_bytes: int) -> list[list[int]]:
    """Return what clusters hold of entries that are named by their ranks."""
    ranks = np.array([one for part in parts for one in part], np.int64)
    with Clusters(ranks, count, held_bytes=held_bytes) as clusters:
        for part in parts:
            clusters.deal(pa.table({"file_path": [str(one) for one in part], "n": pa.array(part, pa.int64())}))
        return [rows.column("n").to_pylist() for rows in clusters.take()]


@pytest.mark.parametrize("held_bytes", [0, 400, 1 << 20], ids=["files", "both", "memory"])
def test_clusters_keep_neighbours_together_across_spilled_chunks(held_bytes: int) -> None:
    chance = np.random.default_rng(1)
    parts = [part.tolist() for part in np.array_split(chance.permutation(100), 7)]
    found = dealt(parts, 4, held_bytes)
    assert found == [list(range(at, at + 25)) for at in range(0, 100, 25)]


@pytest.mark.parametrize(("entries", "count", "sizes"), [(1, 5, [1]), (10, 3, [4, 4, 2]), (3, 1, [3])])
def test_cluster_count_follows_entry_count(entries: int, count: int, sizes: list[int]) -> None:
    assert [len(one) for one in dealt([list(range(entries))], count, 0)] == sizes


def test_temporary_folder_is_left_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Clusters(np.arange(4), 2, held_bytes=0) as clusters:
        clusters.deal(pa.table({"n": [0, 1, 2, 3]}))
        assert [*tmp_path.iterdir()] != []
    assert [*tmp_path.iterdir()] == []


def test_error_names_the_unusable_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with Clusters(np.arange(4), 2, held_bytes=0) as clusters, pytest.raises(StorageError, match="gone"):
        clusters.deal(pa.table({"n": [0, 1, 2, 3]}))
