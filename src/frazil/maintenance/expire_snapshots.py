"""Expire snapshots and delete the files that only they referenced. Specification: "Snapshot Retention Policy".

    decide     which snapshots and references expire (`commit/expire_snapshots.py`); a dry run stops after finding files
    commit     metadata without them; a reference that is created concurrently keeps its snapshot
    delete     files that the resulting table does not reference (`commit/expired_files.py`), several at a time

If the process dies between commit and deletion, unreferenced files are left behind: orphans, which
`maintenance/orphan_files.py` finds. No live file is ever deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.catalog.base import Catalog
from frazil.changes.apply import apply_updates
from frazil.commit.action import CommitContext, WrittenManifests, snapshot_id_of
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import ExpiredFiles, delete_expired_files, find_expired_files
from frazil.commit.transaction import commit_actions
from frazil.loaded import LoadedTable
from frazil.maintenance.shown_work import with_progress
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import FileContent
from frazil.threads import default_threads


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsResult:
    """The numbers of files that an expiry deleted, or would delete; `kept` names those it could not, with reasons."""

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    deleted_bytes: int = 0
    """The size of the data and delete files, without metadata."""
    kept_count: int = 0
    """The number of unreferenced files that stay; `kept` names the first of them."""


@with_progress("expire snapshots of")
def expire_snapshots(
    catalog: Catalog,
    loaded: LoadedTable,
    action: ExpireSnapshots,
    *,
    dry_run: bool = False,
    delete_roots: Sequence[str] = (),
    threads: int | None = None,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable, ExpireSnapshotsResult]:
    """Remove snapshots and the files that only they referenced; return the table's new state and what was deleted.

    Files that the table does not own (`catalog/owned_folders.py`) stay and are reported; `delete_roots` are folders
    that the caller declares as the table's. With `dry_run` nothing changes, and the result is what would happen now.
    """
    if dry_run:
        after = _without_snapshots(catalog, loaded, action)
        expired_files = find_expired_files(catalog, loaded, after, delete_roots=delete_roots, threads=threads)
        return loaded, _result(loaded, after, expired_files)
    committed = commit_actions(catalog, loaded, action, cache=cache)
    # Include concurrent commits: they may reference a file again that the expired snapshots referenced.
    now = catalog.refresh(committed)
    deleted = delete_expired_files(catalog, loaded, now, delete_roots=delete_roots, threads=threads)
    return now, _result(loaded, committed, deleted)


def _without_snapshots(catalog: Catalog, loaded: LoadedTable, action: ExpireSnapshots) -> LoadedTable:
    commit_id = catalog.new_id()
    context = CommitContext(
        snapshot_id_of(commit_id), commit_id, catalog.now_ms, WrittenManifests(), threads=default_threads()
    )
    changes = action.prepare(loaded, context)
    metadata = apply_updates(loaded.metadata, changes.updates, now_ms=catalog.now_ms())
    return LoadedTable(loaded.identifier, metadata, loaded.metadata_location, loaded.storage)


def _result(before: LoadedTable, after: LoadedTable, files: ExpiredFiles) -> ExpireSnapshotsResult:
    counts = files.counts
    remaining = after.metadata.snapshots.ids
    return ExpireSnapshotsResult(
        counts[FileContent.DATA],
        counts[FileContent.POSITION_DELETES],
        counts[FileContent.EQUALITY_DELETES],
        len(files.manifests),
        len(files.manifest_lists),
        len(files.statistics_files),
        tuple(snapshot_id for snapshot_id in before.metadata.snapshots.ids if snapshot_id not in remaining),
        tuple(files.kept.items()),
        files.data_bytes,
        files.kept_count,
    )
