"""Delete the files that only removed snapshots led to. After a commit of `commit/expire_snapshots.py`.

Reachability only, over all snapshots that are left, whatever branch or tag or none they are on:

    candidates    manifest lists, manifests, and the live files of the manifests, of snapshots that are gone;
                  statistics files that are no longer listed
    in use        the same of every snapshot the table has now

A candidate that is in use under any spelling stays. What is left over is deleted, inside the table's own folders
only. If anything of the snapshots that are left cannot be read, nothing is known, and nothing is deleted; what
cannot be read of those that are gone is left behind.

Order: data files, then manifests, then lists, so that an interrupted run leaves files that can be found again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.columns.manifest_columns import live_mask
from frazil.errors import CorruptTableError, FrazilError, StorageError
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import default_threads, map_in_order, read_manifest, read_manifest_list
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import check_may_delete, location_key, table_folders


@dataclass(slots=True)
class ExpiredFiles:
    """What an expiry deletes, by kind; `kept` says which files could not be deleted, and why."""

    data_files: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    manifest_lists: list[str] = field(default_factory=list)
    statistics_files: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def find_expired_files(before: LoadedTable, after: LoadedTable, *, threads: int | None = None) -> ExpiredFiles:
    """Return the files that a state led to and a later one does not; reads metadata only."""
    workers = default_threads() if threads is None else threads
    kept_ids = after.metadata.snapshots.ids
    gone = [before.metadata.snapshot(one) for one in before.metadata.snapshots.ids if one not in kept_ids]
    found = ExpiredFiles()
    if gone:
        kept = list(after.metadata.snapshots)
        in_use = _manifests_of(after.storage, kept, workers, must_read=True)
        dropped = _manifests_of(after.storage, gone, workers, must_read=False)
        used = {location_key(path) for path in in_use}
        old = [one for path, one in dropped.items() if location_key(path) not in used]
        found.manifests = [one.manifest_path for one in old]
        lists = {location_key(one.manifest_list) for one in kept if one.manifest_list is not None}
        found.manifest_lists = [
            one.manifest_list
            for one in gone
            if one.manifest_list is not None and location_key(one.manifest_list) not in lists
        ]
        found.data_files = _files_only_in(before, after, old, list(in_use.values()), workers)
    listed = {location_key(one) for one in _statistics(after.metadata)}
    found.statistics_files = [one for one in _statistics(before.metadata) if location_key(one) not in listed]
    return found


def delete_expired_files(before: LoadedTable, after: LoadedTable, *, threads: int | None = None) -> ExpiredFiles:
    """Delete the files that a state led to and the table's present one does not; return what was deleted."""
    found = find_expired_files(before, after, threads=threads)
    folders = table_folders(after.metadata.location, after.metadata.properties)
    for paths in (found.data_files, found.statistics_files, found.manifests, found.manifest_lists):
        paths[:] = _delete(after.storage, paths, folders, found.kept)
    return found


def _delete(storage: Storage, paths: list[str], folders: tuple[str, ...], kept: dict[str, str]) -> list[str]:
    allowed = []
    for path in paths:
        try:
            check_may_delete(storage, path, folders)
            allowed.append(path)
        except FrazilError as error:
            kept[path] = error.message
    failed = storage.delete_many(allowed)
    kept.update({path: error.message for path, error in failed.items()})
    return [path for path in allowed if path not in failed]


def _manifests_of(
    storage: Storage, snapshots: Iterable[Snapshot], threads: int, *, must_read: bool
) -> dict[str, ManifestFile]:
    """Return the manifests of snapshots by path."""

    def read_one(snapshot: Snapshot) -> list[ManifestFile]:
        if must_read:
            return read_manifest_list(storage, snapshot)
        with contextlib.suppress(StorageError, CorruptTableError):
            return read_manifest_list(storage, snapshot)
        return []

    found: dict[str, ManifestFile] = {}
    for manifests in map_in_order(read_one, snapshots, threads=threads):
        for one in manifests:
            found.setdefault(one.manifest_path, one)
    return found


def _files_only_in(
    before: LoadedTable, after: LoadedTable, old: list[ManifestFile], kept: list[ManifestFile], threads: int
) -> list[str]:
    """Return the live files of some manifests that are in no other; candidates are crossed out one by one."""
    candidates: dict[str, str] = {}
    for paths in map_in_order(lambda one: _paths_of(before, one, must_read=False), old, threads=threads):
        candidates.update((location_key(path), path) for path in paths)
    if not candidates:
        return []
    for paths in map_in_order(lambda one: _paths_of(after, one, must_read=True), kept, threads=threads):
        for path in paths:
            candidates.pop(location_key(path), None)
        if not candidates:
            break
    return list(candidates.values())


def _paths_of(loaded: LoadedTable, manifest: ManifestFile, *, must_read: bool) -> list[str]:
    """Return the paths of a manifest's live files."""
    try:
        # No partition values are asked for, so the spec does not matter, not even one that is gone.
        files = read_manifest(loaded.storage, manifest, StructType(), ("status", "file_path"))
    except (StorageError, CorruptTableError):
        if must_read:
            raise
        return []
    paths: list[str] = files.column("file_path").filter(pa.array(live_mask(files))).to_pylist()
    return paths


def _statistics(metadata: TableMetadata) -> list[str]:
    paths = [one.statistics_path for one in metadata.statistics]
    return paths + [one.statistics_path for one in metadata.partition_statistics]
