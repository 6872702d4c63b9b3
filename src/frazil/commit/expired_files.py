"""Delete the files that only removed snapshots referenced, after a commit of `commit/expire_snapshots.py`.

Files are kept by reachability only, from all remaining snapshots, on any branch or tag or none:

    in use        everything that the table references now (`commit/reachable_files.py`): one set for all kinds of files
    candidates    lists, manifests and live files of removed snapshots; statistics files that are no longer listed

A candidate that is in use under any spelling, with links resolved, as a file of any kind, stays. The others are deleted
if the table owns them (`catalog/owned_folders.py`), or else kept and reported. If any metadata of the remaining
snapshots cannot be read, the files in use are unknown and nothing is deleted. Unreadable metadata of removed snapshots
leaves their files behind.

Manifests of the remaining snapshots are not read if the only candidates are manifest lists that were read as such: a
manifest list is not a data file.

A file in use takes sixteen bytes of memory, for its hashes. Candidates are streamed manifest by manifest and deleted as
they come, so memory hardly grows with the table. A candidate whose hash equals that of a file in use stays.

Order: data files, statistics, manifests, lists, so that files of an interrupted run can be found again.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.catalog.owned_folders import OwnedFolders, owned_folders
from frazil.commit.delete_paths import delete_paths
from frazil.commit.reachable_files import ReachableFiles
from frazil.errors import CorruptTableError, StorageError, UnsupportedError
from frazil.expr.columns.location_keys import hashes_of, location_keys
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.seen_hashes import SeenHashes
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key
from frazil.threads import default_threads, map_in_order

NAMED_FILES = 10_000
"""The most paths to report; for further files only counts are kept."""

Candidate = tuple[str, FileContent, int]
"""A data or delete file: path, content, bytes."""


@dataclass(slots=True)
class ExpiredFiles:
    """The files that an expiry deletes, by kind, and those that it keeps because it may not or cannot delete them.

    `kept` are the first `NAMED_FILES` kept files, with the reason; `kept_count` is the number of all. `data_files` are
    the first `NAMED_FILES` data and delete files; `counts`, by content, and `data_bytes` include all.
    """

    data_files: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    manifest_lists: list[str] = field(default_factory=list)
    statistics_files: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    counts: Counter[FileContent] = field(default_factory=Counter)
    data_bytes: int = 0
    kept_count: int = 0

    def keep(self, path: str, reason: str) -> None:
        """Count a kept file, and record the reason for the first of them."""
        self.kept_count += 1
        if len(self.kept) < NAMED_FILES:
            self.kept[path] = reason

    def note(self, path: str, content: FileContent, size: int) -> None:
        """Count a data or delete file."""
        self.counts[content] += 1
        self.data_bytes += size
        if len(self.data_files) < NAMED_FILES:
            self.data_files.append(path)


def find_expired_files(
    catalog: Catalog,
    before: LoadedTable,
    after: LoadedTable,
    *,
    delete_roots: Sequence[str] = (),
    threads: int | None = None,
) -> ExpiredFiles:
    """Return the files that a state references and a later one does not, reading only metadata."""
    return _expire(after, _find(before, after, threads), owned_folders(catalog, after, delete_roots), dry_run=True)


def delete_expired_files(
    catalog: Catalog,
    before: LoadedTable,
    after: LoadedTable,
    *,
    delete_roots: Sequence[str] = (),
    threads: int | None = None,
) -> ExpiredFiles:
    """Delete the files that a state references and the table's present state does not; return the deleted files."""
    return _expire(after, _find(before, after, threads), owned_folders(catalog, after, delete_roots), dry_run=False)


@dataclass(frozen=True, slots=True)
class _Unused:
    """Files that are no longer in use: metadata files, and a stream of distinct data and delete files."""

    files: Iterator[Candidate]
    statistics: list[str]
    manifests: list[str]
    lists: list[str]
    threads: int


def _expire(after: LoadedTable, unused: _Unused, owned: OwnedFolders, *, dry_run: bool) -> ExpiredFiles:
    result = ExpiredFiles()
    waiting: deque[Candidate] = deque()

    def paths() -> Iterator[str]:
        for file in unused.files:
            waiting.append(file)
            yield file[0]

    # Outcomes come in the order of the paths.
    for path, reason in delete_paths(after.storage, paths(), owned, threads=unused.threads, dry_run=dry_run):
        file = waiting.popleft()
        if reason is None:
            result.note(*file)
        else:
            result.keep(path, reason)
    for chosen, deleted in (
        (unused.statistics, result.statistics_files),
        (unused.manifests, result.manifests),
        (unused.lists, result.manifest_lists),
    ):
        for path, reason in delete_paths(after.storage, chosen, owned, threads=unused.threads, dry_run=dry_run):
            if reason is None:
                deleted.append(path)
            else:
                result.keep(path, reason)
    return result


def _find(before: LoadedTable, after: LoadedTable, threads: int | None) -> _Unused:
    """Return the files that a state references and a later one does not, after reading all files in use."""
    workers = default_threads() if threads is None else threads
    kept_ids = after.metadata.snapshots.ids
    removed = [
        before.metadata.snapshot(snapshot_id)
        for snapshot_id in before.metadata.snapshots.ids
        if snapshot_id not in kept_ids
    ]
    still_listed = {location_key(statistics_file) for statistics_file in _statistics(after.metadata)}
    statistics = [
        statistics_file
        for statistics_file in _statistics(before.metadata)
        if location_key(statistics_file) not in still_listed
    ]
    if not removed and not statistics:
        return _Unused(iter(()), [], [], [], workers)
    reachable = ReachableFiles(after.storage)
    reachable.add_table(after, threads=workers, old_metadata=False, has_files=False)
    dropped, unread = _manifests_of(after.storage, removed, workers)
    unused = set(reachable.find_unreachable(list(dropped))[0])
    old = [manifest for path, manifest in dropped.items() if path in unused]
    if old or statistics or unread:
        # Read every manifest, whatever the counts in a manifest list say: a wrong count must not cost a live file.
        reachable.add_files(workers)
    lists = [snapshot.manifest_list for snapshot in removed if snapshot.manifest_list is not None]
    return _Unused(
        _candidates(before, [manifest for manifest in old if manifest.has_live_files], reachable, workers),
        reachable.find_unreachable(statistics)[0],
        reachable.find_unreachable([manifest.manifest_path for manifest in old])[0],
        reachable.find_unreachable(lists)[0],
        workers,
    )


def _manifests_of(
    storage: Storage, snapshots: Iterable[Snapshot], threads: int
) -> tuple[dict[str, ManifestFile], bool]:
    """Return the manifests of snapshots by path, and whether a list could not be read."""

    def read_one(snapshot: Snapshot) -> list[ManifestFile] | None:
        with contextlib.suppress(StorageError, CorruptTableError, UnsupportedError):
            return read_manifest_list(storage, snapshot)
        return None

    manifests_by_path: dict[str, ManifestFile] = {}
    unread = False
    for manifests in map_in_order(read_one, snapshots, threads=threads):
        unread = unread or manifests is None
        for manifest in manifests or ():
            manifests_by_path.setdefault(manifest.manifest_path, manifest)
    return manifests_by_path, unread


def _candidates(
    before: LoadedTable, old: list[ManifestFile], reachable: ReachableFiles, threads: int
) -> Iterator[Candidate]:
    """Yield the live files of some manifests that are not in use."""
    seen = SeenHashes()

    def read_old(manifest: ManifestFile) -> pa.Table | None:
        with contextlib.suppress(StorageError, CorruptTableError, UnsupportedError):
            return _live(before, manifest, ("file_path", "content", "file_size_in_bytes"))
        return None

    for files in counted("manifests read", map_in_order(read_old, old, threads=threads)):
        if files is None:
            continue
        left = np.flatnonzero(~reachable.contains(files.column("file_path").to_pylist()))
        hashes = hashes_of(location_keys(files.column("file_path").take(pa.array(left))))
        left = left[seen.add(hashes)]
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
    paths = [statistics_file.statistics_path for statistics_file in metadata.statistics]
    return paths + [statistics_file.statistics_path for statistics_file in metadata.partition_statistics]
