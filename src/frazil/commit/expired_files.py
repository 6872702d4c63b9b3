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
from frazil.commit.delete_paths import delete_paths
from frazil.errors import CorruptTableError, StorageError
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import default_threads, map_in_order, read_manifest, read_manifest_list
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, table_folders


@dataclass(slots=True)
class ExpiredFiles:
    """What an expiry deletes, by kind; `kept` says which files could not be deleted, and why.

    `data_files` are data and delete files alike, and `contents` says which is what.
    """

    data_files: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    manifest_lists: list[str] = field(default_factory=list)
    statistics_files: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    contents: dict[str, FileContent] = field(default_factory=dict)


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
        found.contents = _files_only_in(before, after, old, list(in_use.values()), workers)
        found.data_files = list(found.contents)
    listed = {location_key(one) for one in _statistics(after.metadata)}
    found.statistics_files = [one for one in _statistics(before.metadata) if location_key(one) not in listed]
    return found


def delete_expired_files(before: LoadedTable, after: LoadedTable, *, threads: int | None = None) -> ExpiredFiles:
    """Delete the files that a state led to and the table's present one does not; return what was deleted."""
    found = find_expired_files(before, after, threads=threads)
    folders = table_folders(after.metadata.location, after.metadata.properties)
    workers = default_threads() if threads is None else threads
    for paths in (found.data_files, found.statistics_files, found.manifests, found.manifest_lists):
        deleted = []
        for path, reason in delete_paths(after.storage, list(paths), folders, threads=workers):
            if reason is None:
                deleted.append(path)
            else:
                found.kept[path] = reason
        paths[:] = deleted
    return found


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
) -> dict[str, FileContent]:
    """Return the live files of some manifests that are in no other; candidates are crossed out one by one."""
    candidates: dict[str, tuple[str, FileContent]] = {}

    def read_old(manifest: ManifestFile) -> list[tuple[str, int]]:
        with contextlib.suppress(StorageError, CorruptTableError):
            files = _live(before, manifest, ("file_path", "content"))
            return list(zip(files["file_path"].to_pylist(), files["content"].to_pylist(), strict=True))
        return []

    for found in map_in_order(read_old, old, threads=threads):
        candidates.update((location_key(path), (path, FileContent(content))) for path, content in found)
    if not candidates:
        return {}
    for files in map_in_order(lambda one: _live(after, one, ("file_path",)), kept, threads=threads):
        for path in files["file_path"].to_pylist():
            candidates.pop(location_key(path), None)
        if not candidates:
            break
    return dict(candidates.values())


def _live(loaded: LoadedTable, manifest: ManifestFile, fields: tuple[str, ...]) -> pa.Table:
    """Return columns of a manifest's live files."""
    # No partition values are asked for, so the spec does not matter, not even one that is gone.
    files = read_manifest(loaded.storage, manifest, StructType(), ("status", *fields))
    return files.table.filter(pa.array(live_mask(files)))


def _statistics(metadata: TableMetadata) -> list[str]:
    paths = [one.statistics_path for one in metadata.statistics]
    return paths + [one.statistics_path for one in metadata.partition_statistics]
