"""Which files a table leads to, as a set that stays small: for telling orphans from the rest.

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
from frazil.columns.manifest_columns import live_mask
from frazil.errors import CorruptTableError, MissingFileError
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import default_threads, map_in_order, read_manifest, read_manifest_list
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, metadata_folder, scheme_of

Hashes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SameLocations:
    """Which schemes, and which authorities, mean the same store: each name to the one it stands for."""

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, location: str) -> tuple[str, str]:
        """Return what a location is compared by: whole, and without scheme and authority."""
        scheme, _, rest = location_key(location).partition("://")
        authority, _, path = rest.partition("/")
        scheme = self.schemes.get(scheme, scheme)
        authority = self.authorities.get(authority, authority)
        return f"{scheme}://{authority}/{path}", path


class _HashSet:
    """Hashes, sorted when they are first asked for."""

    def __init__(self) -> None:
        self._sorted: Hashes = np.empty(0, np.int64)
        self._added: list[Hashes] = []

    def add(self, keys: Iterable[str]) -> None:
        self._added.append(np.fromiter((hash(one) for one in keys), np.int64))

    def contains(self, keys: Iterable[str]) -> Mask:
        if self._added:
            self._sorted = np.unique(np.concatenate([self._sorted, *self._added]))
            self._added = []
        known = self._sorted
        asked = np.fromiter((hash(one) for one in keys), np.int64)
        if not len(known):
            return np.zeros(len(asked), dtype=bool)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        found: Mask = known[at] == asked
        return found


class ReachableFiles:
    """The files that one table leads to. States of the table are added; what one of them leads to is in use."""

    def __init__(self, storage: Storage, same: SameLocations | None = None) -> None:
        self._storage = storage
        self._same = SameLocations() if same is None else same
        self._whole = _HashSet()
        self._paths = _HashSet()
        self._snapshots: set[int] = set()
        self._manifests: set[str] = set()
        self._metadata_files: set[str] = set()
        self.metadata_folders: set[str] = set()
        """The keys of the folders that hold the table's metadata files."""

    def add_table(self, loaded: LoadedTable, *, threads: int | None = None, old_metadata: bool = True) -> None:
        """Add what a state of the table leads to; what was added before is not read again.

        With `old_metadata`, also metadata files that only logs of older metadata files name.
        """
        workers = default_threads() if threads is None else threads
        metadata = loaded.metadata
        self._add_metadata_files(loaded, old_metadata=old_metadata)
        self._add([one.statistics_path for one in metadata.statistics])
        self._add([one.statistics_path for one in metadata.partition_statistics])
        new = [metadata.snapshot(one) for one in metadata.snapshots.ids if one not in self._snapshots]

        def lists_of(snapshot: Snapshot) -> list[ManifestFile]:
            return read_manifest_list(self._storage, snapshot)

        manifests: dict[str, ManifestFile] = {}
        for found in map_in_order(lists_of, new, threads=workers):
            manifests.update((one.manifest_path, one) for one in found if one.manifest_path not in self._manifests)
        for paths in map_in_order(self._read_paths, manifests.values(), threads=workers):
            self._add(paths)
        self._add([one.manifest_list for one in new if one.manifest_list is not None])
        self._add(manifests)
        self._manifests.update(manifests)
        self._snapshots.update(one.snapshot_id for one in new)

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
            logged = [one.metadata_file for one in state.metadata_log]
            found += logged
            state = self._oldest(logged) if old_metadata else None
        folders = {own, *(one.rpartition("/")[0] for one in found)}
        self._add([*found, *(f"{one}/{VERSION_HINT}" for one in folders)])
        self.metadata_folders |= {key for one in folders for key in self._keys(one)}

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
        keys = [self._same.keys_of(spelling) for location in locations for spelling in self._spellings(location)]
        if keys:
            self._whole.add(whole for whole, _ in keys)
            self._paths.add(path for _, path in keys)

    def _keys(self, location: str) -> list[str]:
        return [self._same.keys_of(one)[0] for one in self._spellings(location)]

    def _spellings(self, location: str) -> tuple[str, ...]:
        """Return a location as it is written and, on this machine, as it is with links followed."""
        if scheme_of(location) not in (None, "file"):
            return (location,)
        return location, self._storage.resolve_folder(location)

    def is_metadata_folder(self, folder: str) -> bool:
        """Return whether a folder holds metadata files of this table."""
        return any(key in self.metadata_folders for key in self._keys(folder))

    def find_unreachable(self, locations: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return which locations are no file of the table, and which differ from one in scheme or authority only."""
        whole = np.zeros(len(locations), dtype=bool)
        paths = np.zeros(len(locations), dtype=bool)
        spelt = [self._spellings(one) for one in locations]
        for turn in range(max(map(len, spelt), default=0)):
            keys = [self._same.keys_of(one[min(turn, len(one) - 1)]) for one in spelt]
            whole |= self._whole.contains(key for key, _ in keys)
            paths |= self._paths.contains(path for _, path in keys)
        missing = [one for one, known in zip(locations, whole | paths, strict=True) if not known]
        doubtful = [one for one, known in zip(locations, paths & ~whole, strict=True) if known]
        return missing, doubtful
