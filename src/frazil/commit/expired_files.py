"""Delete the files that only removed snapshots led to. After a commit of `commit/expire_snapshots.py`.

Reachability only, over all snapshots that are left, whatever branch or tag or none they are on:

    in use        manifest lists, manifests, and the live files of the manifests, of every snapshot the table has now
    candidates    the same of snapshots that are gone; statistics files that are no longer listed

A candidate that is in use under any spelling stays. What is left over is deleted, inside the table's own folders
only. If anything of the snapshots that are left cannot be read, nothing is known, and nothing is deleted; what
cannot be read of those that are gone is left behind.

Of a data or delete file in use eight bytes are kept, a hash; candidates come as a stream, manifest by manifest, and are
deleted as they come. So memory hardly grows with the table. A candidate whose hash is that of a file in use stays.

Order: data files, then manifests, then lists, so that an interrupted run leaves files that can be found again.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from frazil.columns.location_keys import hashes_of, location_keys
from frazil.columns.manifest_columns import live_mask
from frazil.columns.seen_hashes import SeenHashes
from frazil.commit.delete_paths import delete_paths
from frazil.errors import CorruptTableError, StorageError
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.scan.read_manifests import default_threads, map_in_order, read_manifest, read_manifest_list
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, table_folders

NAMED_FILES = 10_000
"""Of how many files the paths are told at most; of all others, numbers."""

Candidate = tuple[str, FileContent, int]
"""A data or delete file: path, content, bytes."""


@dataclass(slots=True)
class ExpiredFiles:
    """What an expiry deletes, by kind; `kept` says which files could not be deleted, and why.

    `data_files` are data and delete files alike, the first `NAMED_FILES` of them; `counts` are of all, by content, and
    so is `data_bytes`.
    """

    data_files: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    manifest_lists: list[str] = field(default_factory=list)
    statistics_files: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    counts: Counter[FileContent] = field(default_factory=Counter)
    data_bytes: int = 0

    def note(self, path: str, content: FileContent, size: int) -> None:
        """Count a data or delete file."""
        self.counts[content] += 1
        self.data_bytes += size
        if len(self.data_files) < NAMED_FILES:
            self.data_files.append(path)


def find_expired_files(before: LoadedTable, after: LoadedTable, *, threads: int | None = None) -> ExpiredFiles:
    """Return the files that a state led to and a later one does not; reads metadata only."""
    workers = default_threads() if threads is None else threads
    found, candidates = _find(before, after, workers)
    for one in candidates:
        found.note(*one)
    return found


def delete_expired_files(before: LoadedTable, after: LoadedTable, *, threads: int | None = None) -> ExpiredFiles:
    """Delete the files that a state led to and the table's present one does not; return what was deleted."""
    workers = default_threads() if threads is None else threads
    found, candidates = _find(before, after, workers)
    folders = table_folders(after.metadata.location, after.metadata.properties)
    waiting: deque[Candidate] = deque()

    def paths() -> Iterator[str]:
        for one in candidates:
            waiting.append(one)
            yield one[0]

    # Outcomes come in the order of the paths.
    for path, reason in delete_paths(after.storage, paths(), folders, threads=workers):
        file = waiting.popleft()
        if reason is None:
            found.note(*file)
        else:
            found.kept[path] = reason
    for chosen in (found.statistics_files, found.manifests, found.manifest_lists):
        deleted = []
        for path, reason in delete_paths(after.storage, list(chosen), folders, threads=workers):
            if reason is None:
                deleted.append(path)
            else:
                found.kept[path] = reason
        chosen[:] = deleted
    return found


def _find(before: LoadedTable, after: LoadedTable, threads: int) -> tuple[ExpiredFiles, Iterator[Candidate]]:
    """Return metadata files that are no longer in use, and data files as a stream, each once.

    All that is in use has been read when this returns.
    """
    kept_ids = after.metadata.snapshots.ids
    gone = [before.metadata.snapshot(one) for one in before.metadata.snapshots.ids if one not in kept_ids]
    found = ExpiredFiles()
    candidates: Iterator[Candidate] = iter(())
    if gone:
        kept = list(after.metadata.snapshots)
        in_use = _manifests_of(after.storage, kept, threads, must_read=True)
        dropped = _manifests_of(after.storage, gone, threads, must_read=False)
        used = {location_key(path) for path in in_use}
        old = [one for path, one in dropped.items() if location_key(path) not in used]
        found.manifests = [one.manifest_path for one in old]
        lists = {location_key(one.manifest_list) for one in kept if one.manifest_list is not None}
        found.manifest_lists = [
            one.manifest_list
            for one in gone
            if one.manifest_list is not None and location_key(one.manifest_list) not in lists
        ]
        candidates = _files_only_in(before, after, old, list(in_use.values()), threads)
    listed = {location_key(one) for one in _statistics(after.metadata)}
    found.statistics_files = [one for one in _statistics(before.metadata) if location_key(one) not in listed]
    return found, candidates


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
) -> Iterator[Candidate]:
    """Return the live files of some manifests that are in no other; the others are read before this returns."""
    chosen = [one for one in old if one.has_live_files]
    in_use = SeenHashes()
    if chosen:
        # Every one of them, whatever the counts of a manifest list say: they are not worth a live file.
        read = map_in_order(lambda one: _live(after, one, ("file_path",)), kept, threads=threads)
        for files in counted("manifests read", read):
            in_use.add(hashes_of(location_keys(files.column("file_path"))))
    return _candidates(before, chosen, in_use, threads)


def _candidates(before: LoadedTable, old: list[ManifestFile], in_use: SeenHashes, threads: int) -> Iterator[Candidate]:
    seen = SeenHashes()

    def read_old(manifest: ManifestFile) -> pa.Table | None:
        with contextlib.suppress(StorageError, CorruptTableError):
            return _live(before, manifest, ("file_path", "content", "file_size_in_bytes"))
        return None

    for files in counted("manifests read", map_in_order(read_old, old, threads=threads)):
        if files is None:
            continue
        hashes = hashes_of(location_keys(files.column("file_path")))
        left = np.flatnonzero(~in_use.contains(hashes))
        left = left[seen.add(hashes[left])]
        rows = files.take(pa.array(left))
        sizes = rows.column("file_size_in_bytes").to_pylist()
        contents = map(FileContent, rows.column("content").to_pylist())
        yield from zip(rows.column("file_path").to_pylist(), contents, sizes, strict=True)


def _live(loaded: LoadedTable, manifest: ManifestFile, fields: tuple[str, ...]) -> pa.Table:
    """Return columns of a manifest's live files."""
    # No partition values are asked for, so the spec does not matter, not even one that is gone.
    files = read_manifest(loaded.storage, manifest, StructType(), ("status", *fields))
    return files.table.filter(pa.array(live_mask(files)))


def _statistics(metadata: TableMetadata) -> list[str]:
    paths = [one.statistics_path for one in metadata.statistics]
    return paths + [one.statistics_path for one in metadata.partition_statistics]
