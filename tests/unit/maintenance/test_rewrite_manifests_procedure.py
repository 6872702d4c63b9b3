"""Rewriting manifests as a procedure: what it counts, and that plans prune by what it wrote."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.errors import InvalidRequestError
from frazil.maintenance.rewrite_manifests import RewriteManifestsResult, rewrite_manifests
from tests.support.commit_lab import Lab


def with_appends(count: int, *, partition_by: tuple[str, ...] = ("k",), target_bytes: int = 8 << 20) -> Lab:
    lab = Lab(
        partition_by=partition_by,
        properties={
            "commit.manifest-merge.enabled": "false",
            "commit.manifest.target-size-bytes": str(target_bytes),
        },
    )
    for at in range(count):
        lab.commit(Append((lab.file([at], "cab"[at % 3], v=at),)))
    return lab


def rewrite(lab: Lab, **options: object) -> RewriteManifestsResult:
    return rewrite_manifests(lab.catalog, lab.load(), RewriteManifests(**options))[1]  # type: ignore[arg-type]


def test_replaced_and_added_manifests_are_counted() -> None:
    lab = with_appends(6)
    before = lab.paths()
    assert rewrite(lab) == RewriteManifestsResult(6, 1)
    assert len(lab.manifests()) == 1
    assert lab.paths() == before
    assert rewrite(lab) == RewriteManifestsResult()


def test_empty_table_has_nothing_to_rewrite() -> None:
    assert rewrite(Lab()) == RewriteManifestsResult()


def test_target_size_manifests_hold_neighbouring_partitions() -> None:
    lab = with_appends(60, target_bytes=2000)
    found = rewrite(lab)
    assert found.rewritten_manifests_count == 60
    assert 1 < found.added_manifests_count < 10
    bounds = []
    for one in lab.manifests():
        assert one.partitions is not None
        bounds.append((one.partitions[0].lower_bound or b"", one.partitions[0].upper_bound or b""))
    lows = sorted(bounds)
    assert all(lows[at][1] <= lows[at + 1][0] for at in range(len(lows) - 1)), "manifests overlap at most at their ends"


def test_sort_fields_come_first() -> None:
    lab = with_appends(6, partition_by=("k", "v"))
    rewrite(lab, sort_by=("v",))
    assert [one.data_file.partition[1] for one in lab.live()] == list(range(6))
    lab = with_appends(6, partition_by=("k", "v"))
    rewrite(lab)
    assert [one.data_file.partition[0] for one in lab.live()] == ["a", "a", "b", "b", "c", "c"]
    with pytest.raises(InvalidRequestError, match="has no such field"):
        rewrite(with_appends(2), sort_by=("nope",))
