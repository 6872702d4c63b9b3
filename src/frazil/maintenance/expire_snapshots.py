"""Expire snapshots and delete the files that only they led to. Specification: "Snapshot Retention Policy".

    decide     which snapshots and references go (`commit/expire_snapshots.py`); a dry run stops after finding files
    commit     metadata without them; a reference that somebody makes meanwhile keeps its snapshot
    delete     what the table as it is then does not lead to (`commit/expired_files.py`), several files at a time

Where the process dies between commit and deletion, files are left that nothing leads to: orphans, which
`maintenance/orphan_files.py` finds. Nothing live is ever deleted for it.
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
    """How many files of each kind an expiry deleted, or would delete; `kept` says which it could not, and why."""

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    deleted_bytes: int = 0
    """The bytes of the data and delete files; metadata comes on top."""
    kept_count: int = 0
    """How many files stay though nothing leads to them; `kept` names the first of them."""


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
    """Remove snapshots and the files that only they led to; return the table's new state and what was deleted.

    Files that are not the table's own (`catalog/owned_folders.py`) stay, and are told; `delete_roots` are folders that
    the caller names. With `dry_run` nothing changes, and the result says what would happen now.
    """
    if dry_run:
        after = _without_snapshots(catalog, loaded, action)
        found = find_expired_files(catalog, loaded, after, delete_roots=delete_roots, threads=threads)
        return loaded, _result(loaded, after, found)
    committed = commit_actions(catalog, loaded, action, cache=cache)
    # What others committed meanwhile counts as well: they may lead to a file again that the expired ones led to.
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
    kinds = files.counts
    left = after.metadata.snapshots.ids
    return ExpireSnapshotsResult(
        kinds[FileContent.DATA],
        kinds[FileContent.POSITION_DELETES],
        kinds[FileContent.EQUALITY_DELETES],
        len(files.manifests),
        len(files.manifest_lists),
        len(files.statistics_files),
        tuple(snapshot_id for snapshot_id in before.metadata.snapshots.ids if snapshot_id not in left),
        tuple(files.kept.items()),
        files.data_bytes,
        files.kept_count,
    )
