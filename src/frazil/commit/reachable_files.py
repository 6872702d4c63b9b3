"""The files that a table references, as a compact set, to distinguish them from files that may be deleted.

    every snapshot      its manifest list, its manifests, and the live files in them: data, deletes, files of vectors
    the table           its metadata files, as far back as the log of each reaches; statistics files; the version hint

A file is stored as two 64-bit hashes, of its location and of its path alone, so that millions of files take little
memory. Files with equal hashes count as one, which occasionally keeps an orphan and never loses a live file.

A file may be spelt in many ways. Locations are compared as normalized by `storage/locations.location_key`, and also
with links resolved; schemes and authorities declared as equal are equal. If anything cannot be read, the files in use
are unknown, and an error is raised.
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
from frazil.errors import CorruptTableError, FrazilError, MissingFileError
from frazil.expr.columns.location_keys import Hashes, hashes_of, location_keys
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.seen_hashes import SeenHashes
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
    """Schemes and authorities that refer to the same store: each name to its canonical name."""

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, location: str) -> tuple[str, str]:
        """Return the keys that a location is compared by: the whole, and without scheme and authority."""
        return self._split(location_key(location))

    def hashes_of(self, locations: Sequence[str]) -> tuple[Hashes, Hashes]:
        """Return hashes of the keys of locations."""
        keys = location_keys(pa.array(locations, pa.string()))
        if self.schemes or self.authorities:
            pairs = [self._split(key) for key in keys]
            return hashes_of([whole for whole, _ in pairs]), hashes_of([path for _, path in pairs])
        return hashes_of(keys), hashes_of([key.split("/", 3)[3] for key in keys])

    def _split(self, key: str) -> tuple[str, str]:
        scheme, _, rest = key.partition("://")
        authority, _, path = rest.partition("/")
        scheme = self.schemes.get(scheme, scheme)
        authority = self.authorities.get(authority, authority)
        return f"{scheme}://{authority}/{path}", path


class ReachableFiles:
    """The files that one table references; states of the table are added, and files of any of them are in use."""

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
        """Add the files that a state of the table references; metadata that was read before is not read again.

        With `old_metadata`, metadata files that only the logs of older metadata files list are added too. Without
        `has_files`, data and delete files are left out until `add_files`, and no manifest is read.
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
        for listed in map_in_order(lists_of, new, threads=workers):
            manifests.update(
                (manifest.manifest_path, manifest)
                for manifest in listed
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
        # Partition values are not requested, so the spec does not matter, even if it was removed.
        files = read_manifest(self._storage, manifest, StructType(), ("status", "file_path"))
        paths: list[str] = files.column("file_path").filter(pa.array(live_mask(files))).to_pylist()
        return paths

    def _add_metadata_files(self, loaded: LoadedTable, *, old_metadata: bool) -> None:
        own = metadata_folder(loaded.metadata.location, loaded.metadata.properties)
        listed = [] if loaded.metadata_location is None else [loaded.metadata_location]
        state: TableMetadata | None = loaded.metadata
        while state is not None:
            logged = [entry.metadata_file for entry in state.metadata_log]
            listed += logged
            state = self._oldest(logged) if old_metadata else None
        folders = {own, *(location.rpartition("/")[0] for location in listed)}
        self._add([*listed, *(f"{folder}/{VERSION_HINT}" for folder in folders)])
        self.metadata_folders |= {key for folder in folders for key in self._keys(folder)}

    def _oldest(self, logged: Sequence[str]) -> TableMetadata | None:
        """Return the oldest logged state whose file still exists, or None once all have been tried."""
        for location in logged:
            if location in self._metadata_files:
                continue
            self._metadata_files.add(location)
            # An old metadata file that is missing or corrupt references nothing, and nothing current depends on it.
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
        """Return the locations as written and, if some are local, with links resolved."""
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
        for position, target in zip(local, resolved, strict=True):
            followed[position] = target
        return [locations, followed]

    def _resolved(self, locations: Sequence[str], *, must_resolve: bool) -> Sequence[str]:
        try:
            return self._storage.resolve_files(locations)
        except FrazilError:
            if must_resolve:
                raise
        # A location that cannot be resolved is not a file that could be deleted; resolve the others individually.
        resolved = list(locations)
        for index, location in enumerate(locations):
            with contextlib.suppress(FrazilError):
                resolved[index] = self._storage.resolve_files([location])[0]
        return resolved

    def is_metadata_folder(self, folder: str) -> bool:
        """Return whether a folder holds metadata files of this table."""
        return any(key in self.metadata_folders for key in self._keys(folder))

    def contains(self, locations: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each location whether it is, or may be, a file of the table."""
        whole, paths = self._look_up(locations)
        return whole | paths

    def find_unreachable(self, locations: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the locations that are not files of the table, and those that differ only in scheme or authority."""
        whole, paths = self._look_up(locations)
        missing = [path for path, is_known in zip(locations, whole | paths, strict=True) if not is_known]
        doubtful = [path for path, is_known in zip(locations, paths & ~whole, strict=True) if is_known]
        return missing, doubtful

    def _look_up(self, locations: Sequence[str]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which locations match whole, and which by their path alone."""
        whole = np.zeros(len(locations), dtype=bool)
        paths = np.zeros(len(locations), dtype=bool)
        for spelling in self._spellings(locations, must_resolve=False) if locations else ():
            whole_hashes, path_hashes = self._same.hashes_of(spelling)
            whole |= self._whole.contains(whole_hashes)
            paths |= self._paths.contains(path_hashes)
        return whole, paths
