"""Delete the files of a dropped table: all files that its metadata references and that it owns.

Data files first, then the manifests that name them, then manifest lists, statistics and metadata, so that an
interrupted purge can be repeated. A manifest that cannot be read stays, with the files it names.

Metadata may name arbitrary files, so only files that the table owns are deleted (`catalog/owned_folders.py`). Only
folders from which a file was deleted are removed, and parent folders that are empty then. The report lists what stays,
and why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from frazil.catalog.owned_folders import OwnedFolders
from frazil.catalog.purge import PurgeReport, check_may_purge
from frazil.codec.manifest_avro import decode_manifest
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.errors import CorruptTableError, FrazilError, InvalidRequestError, StorageError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.progress import count, showing
from frazil.spec.snapshot import Snapshot
from frazil.storage.base import Storage
from frazil.storage.locations import is_within, scheme_of

MAX_REPORTED = 100
_UNREADABLE = (CorruptTableError, StorageError, UnsupportedError)


def purge_files(loaded: LoadedTable, owned: OwnedFolders) -> PurgeReport:
    """Delete the files that a dropped table's last state references and that the table owns."""
    check_may_purge(loaded)
    with showing(f"delete the files of {loaded.name}"):
        return _purge(loaded, owned)


def _purge(loaded: LoadedTable, owned: OwnedFolders) -> PurgeReport:
    metadata = loaded.metadata
    work = _Purge(loaded.storage, owned)
    manifest_lists: list[str] = []
    manifests: dict[str, None] = {}
    for snapshot in metadata.snapshots:
        paths = work.manifests_of(snapshot)
        if paths is None:
            continue
        manifests.update(dict.fromkeys(paths))
        if snapshot.manifest_list is not None:
            manifest_lists.append(snapshot.manifest_list)
    # Without its list, manifests could not be found, so they are deleted first, and their files before them.
    read = [path for path in manifests if work.delete_data_files(path)]
    work.delete(read)
    if len(read) == len(manifests):
        work.delete(manifest_lists)
    work.delete(statistics_file.statistics_path for statistics_file in metadata.statistics)
    work.delete(statistics_file.statistics_path for statistics_file in metadata.partition_statistics)
    work.delete(entry.metadata_file for entry in metadata.metadata_log)
    if loaded.metadata_location is not None:
        work.delete([loaded.metadata_location])
    work.remove_folders()
    return PurgeReport(work.deleted_count, work.kept_count, tuple(work.kept))


@dataclass(slots=True)
class _Purge:
    storage: Storage
    owned: OwnedFolders
    deleted_count: int = 0
    kept_count: int = 0
    kept: list[tuple[str, str]] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)

    def manifests_of(self, snapshot: Snapshot) -> list[str] | None:
        """Return the manifests of a snapshot, or None if its list cannot be read."""
        path = snapshot.manifest_list
        if path is None:
            return list(snapshot.manifests or ())
        try:
            return [manifest.manifest_path for manifest in decode_manifest_list(self.storage.read(path), path=path)]
        except _UNREADABLE as error:
            self.keep(path, error)
            return None

    def delete_data_files(self, manifest_path: str) -> bool:
        """Delete the files that a manifest names; return whether it could be read."""
        try:
            data = self.storage.read(manifest_path)
            columns = decode_manifest(data, fields=("file_path",), path=manifest_path, may_be_encrypted=True)
        except _UNREADABLE as error:
            self.keep(manifest_path, error)
            return False
        self.delete(_texts(columns.column("file_path")))
        return True

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that the table owns."""
        for path in paths:
            if path in self.done:
                continue
            self.done.add(path)
            try:
                self.owned.check(path)
                self.storage.delete(path, within=self.owned.real_folders)
            except (InvalidRequestError, StorageError) as error:
                self.keep(path, error)
                continue
            self.deleted_count += 1
            count("files deleted")
            folder, _, name = path.rpartition("/")
            self.emptied.add(folder)
            if scheme_of(path) in (None, "file"):
                # The checksum file of Hadoop's local file system.
                with contextlib.suppress(StorageError):
                    self.storage.delete(f"{folder}/.{name}.crc", within=self.owned.real_folders)

    def remove_folders(self) -> None:
        """Remove folders that are empty after the deletions, up to the table's own."""
        for folder in sorted(self.emptied, key=len, reverse=True):
            while any(is_within(folder, owned_folder) for owned_folder in self.owned.folders):
                try:
                    children = self.storage.list_children(folder)
                    if children.files or children.folders:
                        break
                    self.storage.delete_folder(folder, within=[*map(_parent, self.owned.real_folders)])
                except (StorageError, InvalidRequestError):
                    break
                folder = folder.rpartition("/")[0]

    def keep(self, path: str, error: FrazilError) -> None:
        """Record a file that stays."""
        self.kept_count += 1
        if len(self.kept) < MAX_REPORTED:
            self.kept.append((path, error.message))


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0]


def _texts(column: Iterable[object]) -> Iterator[str]:
    return (str(scalar) for scalar in column)
