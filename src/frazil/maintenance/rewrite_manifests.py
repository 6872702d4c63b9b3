"""Rewrite manifests so that plans read fewer of them.

Files of one partition are placed next to each other, in manifests of `commit.manifest.target-size-bytes`, so that the
partition summaries in manifest lists rule out most manifests. Files do not change. `commit/rewrite_manifests.py` does
the work, and other writers do not conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.catalog.base import Catalog
from frazil.commit.new_snapshot import find_parent
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.loaded import LoadedTable
from frazil.maintenance.commit_snapshot import commit_snapshot
from frazil.maintenance.shown_work import with_progress
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec import properties
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RewriteManifestsResult:
    """The numbers of replaced and of new manifests."""

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0


@with_progress("rewrite manifests of")
def rewrite_manifests(
    catalog: Catalog,
    loaded: LoadedTable,
    action: RewriteManifests,
    *,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable, RewriteManifestsResult]:
    """Merge and cluster a branch's manifests; return the table's new state and the numbers of manifests.

    With `dry_run` nothing is written, and the number of new manifests is an estimate.
    """
    if dry_run:
        return loaded, _expected(loaded, action)
    after, snapshot = commit_snapshot(catalog, loaded, action, cache=cache)
    if snapshot is None:
        return after, RewriteManifestsResult()
    old, new = _paths(after, _parent(after, snapshot)), _paths(after, snapshot)
    return after, RewriteManifestsResult(len(old - new), len(new - old))


def _expected(loaded: LoadedTable, action: RewriteManifests) -> RewriteManifestsResult:
    head = find_parent(loaded.metadata, action.target.branch)
    target = read_property(loaded.metadata.properties, properties.MANIFEST_TARGET_SIZE_BYTES)
    manifests = [] if head is None else read_manifest_list(loaded.storage, head)
    old = new = 0
    for group in action.groups(loaded, manifests):
        old += len(group)
        new += -(-sum(manifest.manifest_length for manifest in group) // target)
    return RewriteManifestsResult(old, new)


def _parent(loaded: LoadedTable, snapshot: Snapshot) -> Snapshot | None:
    parent_id = snapshot.parent_snapshot_id
    return None if parent_id is None else loaded.metadata.find_snapshot(parent_id)


def _paths(loaded: LoadedTable, snapshot: Snapshot | None) -> set[str]:
    if snapshot is None:
        return set()
    return {manifest.manifest_path for manifest in read_manifest_list(loaded.storage, snapshot)}
