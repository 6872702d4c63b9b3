"""Which files a table leads to, as a set that stays small: for telling what may be deleted from the rest.

    every snapshot      its manifest list, its manifests, the live files in them: data, deletes, vectors' files
    the table           its metadata files, as far back as each one's log leads; statistics files; the version hint

A file is kept as two 64-bit hashes, of its location and of its path alone, so that millions take little memory. Two
files of one hash are taken for one, which keeps an orphan now and then and never loses a live file.

One file may be spelt in many ways. Locations are compared as `storage/locations.location_key` spells them, and as
they are with links followed; schemes and authorities that are told to be the same are the same. Where anything cannot
be read, what is in use is not known, and an error says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.catalog.metadata_files import read_table_metadata
from frazil.catalog.version_files import VERSION_HINT
from frazil.columns.location_keys import Hashes, hashes_of, location_keys
from frazil.columns.manifest_columns import live_mask
from frazil.columns.seen_hashes import SeenHashes
from frazil.errors import CorruptTableError, FrazilError, MissingFileError
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, metadata_folder, scheme_of
from frazil.threads import default_threads, map_in_order


@dataclass(frozen=True, slots=True)
class SameLocations:
    """Which schemes, and which authorities, mean the same store: each name to the one it stands for."""

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, location: str) -> tuple[str, str]:
        """Return what a location is compared by: whole, and without scheme and authority."""
        return self._cut(location_key(location))

    def hashes_of(self, locations: Sequence[str]) -> tuple[Hashes, Hashes]:
        """Return hashes of what locations are compared by."""
        keys = location_keys(pa.array(locations, pa.string()))
        if self.schemes or self.authorities:
            pairs = [self._cut(key) for key in keys]
            return hashes_of([whole for whole, _ in pairs]), hashes_of([path for _, path in pairs])
        return hashes_of(keys), hashes_of([key.split("/", 3)[3] for key in keys])

    def _cut(self, key: str) -> tuple[str, str]:
        scheme, _, rest = key.partition("://")
        authority, _, path = rest.partition("/")
        scheme = self.schemes.get(scheme, scheme)
        authority = self.authorities.get(authority, authority)
        return f"{scheme}://{authority}/{path}", path


class ReachableFiles:
    """The files that one table leads to. States of the table are added; what one of them leads to is in use."""

    def __init__(self, storage: Storage, same: SameLocations | None = None) -> None:
        self._storage = storage
        self._same = SameLocations() if same is None else same
        self._whole = SeenHashes()
        self._paths = SeenHashes()
        self._snapshots: set[int] = set()
        self._manifests: set[str] = set()
        self._unread: dict[str, ManifestFile] = {}
        self._metadata_files: set[str] = set()
        self.metadata_folders: set[str] = set()
        """The keys of the folders that hold the table's metadata files."""

    def add_table(
        self, loaded: LoadedTable, *, threads: int | None = None, old_metadata: bool = True, has_files: bool = True
    ) -> None:
        """Add what a state of the table leads to; what was added before is not read again.

        With `old_metadata`, also metadata files that only logs of older metadata files name. Without `has_files`, data
        and delete files are left out until `add_files`, and no manifest is read.
        """
        workers = default_threads() if threads is None else threads
        metadata = loaded.metadata
        self._add_metadata_files(loaded, old_metadata=old_metadata)
        self._add([statistics_file.statistics_path for statistics_file in metadata.statistics])
        self._add([statistics_file.statistics_path for statistics_file in metadata.partition_statistics])
        new = [
            metadata.snapshot(snapshot_id)
            for snapshot_id in metadata.snapshots.ids
            if snapshot_id not in self._snapshots
        ]

        def lists_of(snapshot: Snapshot) -> list[ManifestFile]:
            return read_manifest_list(self._storage, snapshot)

        manifests: dict[str, ManifestFile] = {}
        for found in map_in_order(lists_of, new, threads=workers):
            manifests.update(
                (manifest.manifest_path, manifest)
                for manifest in found
                if manifest.manifest_path not in self._manifests
            )
        self._add([snapshot.manifest_list for snapshot in new if snapshot.manifest_list is not None])
        self._add(manifests)
        self._unread.update(manifests)
        self._snapshots.update(snapshot.snapshot_id for snapshot in new)
        if has_files:
            self.add_files(workers)

    def add_files(self, threads: int) -> None:
        """Add the data and delete files of states that were added without them."""
        read = map_in_order(self._read_paths, self._unread.values(), threads=threads)
        for paths in counted("manifests read", read):
            self._add(paths)
        self._manifests.update(self._unread)
        self._unread = {}

    def _read_paths(self, manifest: ManifestFile) -> list[str]:
        # No partition values are asked for, so the spec does not matter, not even one that is gone.
        files = read_manifest(self._storage, manifest, StructType(), ("status", "file_path"))
        paths: list[str] = files.column("file_path").filter(pa.array(live_mask(files))).to_pylist()
        return paths

    def _add_metadata_files(self, loaded: LoadedTable, *, old_metadata: bool) -> None:
        own = metadata_folder(loaded.metadata.location, loaded.metadata.properties)
        found = [] if loaded.metadata_location is None else [loaded.metadata_location]
        state: TableMetadata | None = loaded.metadata
        while state is not None:
            logged = [entry.metadata_file for entry in state.metadata_log]
            found += logged
            state = self._oldest(logged) if old_metadata else None
        folders = {own, *(location.rpartition("/")[0] for location in found)}
        self._add([*found, *(f"{folder}/{VERSION_HINT}" for folder in folders)])
        self.metadata_folders |= {key for folder in folders for key in self._keys(folder)}

    def _oldest(self, logged: Sequence[str]) -> TableMetadata | None:
        """Return the oldest logged state whose file is still there, None once all of them have been looked at."""
        for location in logged:
            if location in self._metadata_files:
                continue
            self._metadata_files.add(location)
            # An old metadata file that is gone or broken leads nowhere, and nothing current depends on it.
            with contextlib.suppress(MissingFileError, CorruptTableError):
                return read_table_metadata(self._storage, location)
        return None

    def _add(self, locations: Iterable[str]) -> None:
        for spelling in self._spellings(list(locations)):
            whole, paths = self._same.hashes_of(spelling)
            self._whole.add(whole)
            self._paths.add(paths)

    def _keys(self, location: str) -> list[str]:
        return [self._same.keys_of(spelling[0])[0] for spelling in self._spellings([location])]

    def _spellings(self, locations: Sequence[str], *, must_resolve: bool = True) -> list[Sequence[str]]:
        """Return locations as they are written and, where some are on this machine, with links followed."""
        local = [index for index, location in enumerate(locations) if scheme_of(location) in (None, "file")]
        if not local:
            return [locations]
        written = [locations[index] for index in local]
        resolved = self._resolved(written, must_resolve=must_resolve)
        if resolved == written:
            return [locations]
        if len(local) == len(locations):
            return [locations, resolved]
        followed = list(locations)
        for position, really in zip(local, resolved, strict=True):
            followed[position] = really
        return [locations, followed]

    def _resolved(self, locations: Sequence[str], *, must_resolve: bool) -> Sequence[str]:
        try:
            return self._storage.resolve_files(locations)
        except FrazilError:
            if must_resolve:
                raise
        # One that cannot be looked up is no file that could be deleted; the others are asked about one by one.
        found = list(locations)
        for index, location in enumerate(locations):
            with contextlib.suppress(FrazilError):
                found[index] = self._storage.resolve_files([location])[0]
        return found

    def is_metadata_folder(self, folder: str) -> bool:
        """Return whether a folder holds metadata files of this table."""
        return any(key in self.metadata_folders for key in self._keys(folder))

    def contains(self, locations: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each location whether it is, or may be, a file of the table."""
        whole, paths = self._look_up(locations)
        return whole | paths

    def find_unreachable(self, locations: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return which locations are no file of the table, and which differ from one in scheme or authority only."""
        whole, paths = self._look_up(locations)
        missing = [location for location, known in zip(locations, whole | paths, strict=True) if not known]
        doubtful = [location for location, known in zip(locations, paths & ~whole, strict=True) if known]
        return missing, doubtful

    def _look_up(self, locations: Sequence[str]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which locations are known whole, and which by their path alone."""
        whole = np.zeros(len(locations), dtype=bool)
        paths = np.zeros(len(locations), dtype=bool)
        for spelling in self._spellings(locations, must_resolve=False) if locations else ():
            whole_hashes, path_hashes = self._same.hashes_of(spelling)
            whole |= self._whole.contains(whole_hashes)
            paths |= self._paths.contains(path_hashes)
        return whole, paths
