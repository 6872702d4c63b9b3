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
    """How many manifests were replaced, and by how many."""

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
    """Merge and cluster a branch's manifests; return the table's new state and how many changed.

    With `dry_run` nothing is written, and the number of new ones is an estimate.
    """
    if dry_run:
        return loaded, _expected(loaded, action)
    after, made = commit_snapshot(catalog, loaded, action, cache=cache)
    if made is None:
        return after, RewriteManifestsResult()
    old, new = _paths(after, _parent(after, made)), _paths(after, made)
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
