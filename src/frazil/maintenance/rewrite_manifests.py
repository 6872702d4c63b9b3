"""Rewrite manifests so that plans read fewer of them: the procedure.

Files of one partition come side by side, in manifests of `commit.manifest.target-size-bytes`, so that the summaries of
partitions in manifest lists rule most manifests out. No file changes; `commit/rewrite_manifests.py` is the work,
and other writers are no conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.catalog.base import Catalog
from frazil.commit.new_snapshot import find_parent
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.transaction import commit_actions
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.snapshot import Snapshot, Summary


@dataclass(frozen=True, slots=True)
class RewriteManifestsResult:
    """How many manifests were replaced, and by how many."""

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0


def rewrite_manifests(
    catalog: Catalog, loaded: LoadedTable, action: RewriteManifests, *, cache: ManifestCache | None = None
) -> tuple[LoadedTable, RewriteManifestsResult]:
    """Merge and cluster a branch's manifests; return the table's new state and how many changed."""
    after = commit_actions(catalog, loaded, action, cache=cache)
    head = find_parent(after.metadata, action.target.branch)
    if head is None or loaded.metadata.find_snapshot(head.snapshot_id) is not None:
        return after, RewriteManifestsResult()
    if head.summary is None or Summary.ENTRIES_PROCESSED not in head.summary:
        # Others came first, and after them there was nothing to do.
        return after, RewriteManifestsResult()
    old, new = _paths(after, _parent(after, head)), _paths(after, head)
    return after, RewriteManifestsResult(len(old - new), len(new - old))


def _parent(loaded: LoadedTable, snapshot: Snapshot) -> Snapshot | None:
    parent_id = snapshot.parent_snapshot_id
    return None if parent_id is None else loaded.metadata.find_snapshot(parent_id)


def _paths(loaded: LoadedTable, snapshot: Snapshot | None) -> set[str]:
    if snapshot is None:
        return set()
    return {one.manifest_path for one in read_manifest_list(loaded.storage, snapshot)}
