"""The states of one table in a filesystem catalog: files `vN.metadata.json` in a folder. See `catalog/filesystem.py`.

The highest version is the current one. A version comes into being only by creating its file exclusively; the names of
obsolete versions stay taken.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Final

from frazil.catalog.metadata_files import read_table_metadata
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.errors import FileAlreadyExistsError, InvalidMetadataError, MissingFileError, StorageError
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage

VERSION_HINT: Final = "version-hint.text"
_NAME: Final = re.compile(
    r"v([1-9][0-9]{0,8})(?:(\.metadata\.json)|\.gz\.metadata\.json|\.metadata\.json\.gz)", re.ASCII
)
_TRIES: Final = 20


def find_version(location: str) -> int | None:
    """Return the version of a state's location, or None if it is not one."""
    match = _NAME.fullmatch(location.rpartition("/")[2])
    return None if match is None else int(match[1])


class VersionFiles:
    """The states in a table's folder."""

    __slots__ = ("_folder", "_storage")

    def __init__(self, storage: Storage, table_folder: str) -> None:
        self._storage = storage
        self._folder = f"{table_folder}/metadata"

    def location(self, version: int) -> str:
        """Return the location for writing a version: one name, whatever the codec."""
        return f"{self._folder}/v{version}.metadata.json"

    def file_names(self) -> tuple[str, ...]:
        """Return the names of all metadata files, including manifests."""
        return self._storage.list_children(self._folder).files

    def locations(self) -> dict[int, str]:
        """Return the location of each version; of two files for one version the plain one, as in Iceberg Java."""
        by_version: dict[int, str] = {}
        for name in self.file_names():
            parsed = _NAME.fullmatch(name)
            if parsed is not None and (parsed[2] is not None or int(parsed[1]) not in by_version):
                by_version[int(parsed[1])] = f"{self._folder}/{name}"
        return by_version

    def newest(self) -> int:
        """Return the current version, or 0 if there is none."""
        return max(self.locations(), default=0)

    def find_current(self) -> tuple[str, TableMetadata] | None:
        """Return the location and metadata of the current state, or None if there is none."""
        for _ in range(_TRIES):
            locations = self.locations()
            if not locations:
                return None
            current = locations[max(locations)]
            # A state may be emptied or dropped between the listing and the read.
            with contextlib.suppress(MissingFileError):
                return current, read_table_metadata(self._storage, current)
        raise InvalidMetadataError(
            f"Cannot read the states in {self._folder}: they vanish while they are read", heading="File System Tables"
        )

    def find_bytes(self, version: int) -> bytes | None:
        """Return a state as the bytes of an uncompressed file, or None if it does not exist."""
        location = self.locations().get(version)
        if location is None:
            return None
        try:
            if location != self.location(version):
                return encode_table_metadata(read_table_metadata(self._storage, location))
            return self._storage.read(location)
        except MissingFileError:
            return None

    def claim(self, version: int, data: bytes) -> bool:
        """Write a version; return whether its name was free."""
        try:
            self._storage.create_exclusive(self.location(version), data)
        except FileAlreadyExistsError:
            return False
        return True

    def write_hint(self, version: int) -> None:
        """Write the hint that tells other readers where to start; failures are ignored."""
        with contextlib.suppress(StorageError):
            self._storage.replace(f"{self._folder}/{VERSION_HINT}", str(version).encode())

    def empty(self, versions: Iterable[int]) -> None:
        """Empty versions other than the two newest, so that their names stay taken."""
        locations = self.locations()
        newest = max(locations, default=0)
        for version in versions:
            if version < newest - 1 and version in locations:
                with contextlib.suppress(StorageError):
                    self._storage.replace(locations[version], b"")

    def delete_all(self) -> None:
        """Delete the hint and all states, the highest last: until then the table exists."""
        names = self.file_names()
        self._storage.delete(f"{self._folder}/{VERSION_HINT}")
        states = [(int(parsed[1]), name) for name in names if (parsed := _NAME.fullmatch(name)) is not None]
        for _, name in sorted(states):
            self._storage.delete(f"{self._folder}/{name}")
        # Checksum files of Hadoop's local file system.
        for name in names:
            if name.startswith(".v") and name.endswith(".crc"):
                with contextlib.suppress(StorageError):
                    self._storage.delete(f"{self._folder}/{name}")
