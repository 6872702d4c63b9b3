"""The states of one table in a filesystem catalog: files `vN.metadata.json` in a folder. See `catalog/filesystem.py`.

The highest version is the current one. Taking a version's name by an exclusive create is the only way a version
comes to be; the names of versions that are done with stay taken.
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
    """Return the version of a state by its location, or None where it is no state's."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return None if found is None else int(found[1])


class VersionFiles:
    """The states in a table's folder."""

    __slots__ = ("_folder", "_storage")

    def __init__(self, storage: Storage, table_folder: str) -> None:
        self._storage = storage
        self._folder = f"{table_folder}/metadata"

    def location(self, version: int) -> str:
        """Return where a version is to be written: under one name, whatever the codec."""
        return f"{self._folder}/v{version}.metadata.json"

    def file_names(self) -> tuple[str, ...]:
        """Return the names of all metadata files, manifests included."""
        return self._storage.list_children(self._folder).files

    def locations(self) -> dict[int, str]:
        """Return where each version is; where two files have one version, the plain one, as Iceberg Java does."""
        found: dict[int, str] = {}
        for name in self.file_names():
            parsed = _NAME.fullmatch(name)
            if parsed is not None and (parsed[2] is not None or int(parsed[1]) not in found):
                found[int(parsed[1])] = f"{self._folder}/{name}"
        return found

    def newest(self) -> int:
        """Return the current version, 0 where there is none."""
        return max(self.locations(), default=0)

    def find_current(self) -> tuple[str, TableMetadata] | None:
        """Return where the current state is and what it says, or None where there is none."""
        for _ in range(_TRIES):
            locations = self.locations()
            if not locations:
                return None
            current = locations[max(locations)]
            # A state may be forgotten or dropped between the listing and the read.
            with contextlib.suppress(MissingFileError):
                return current, read_table_metadata(self._storage, current)
        raise InvalidMetadataError(
            f"Cannot read the states in {self._folder}: they vanish while they are read", heading="File System Tables"
        )

    def find_bytes(self, version: int) -> bytes | None:
        """Return a state as the bytes of a plain file, or None where it is not there."""
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
        """Tell other readers where to start looking; whether that works is no matter."""
        with contextlib.suppress(StorageError):
            self._storage.replace(f"{self._folder}/{VERSION_HINT}", str(version).encode())

    def empty(self, versions: Iterable[int]) -> None:
        """Throw away what versions say but the two newest, and keep their names taken."""
        locations = self.locations()
        newest = max(locations, default=0)
        for version in versions:
            if version < newest - 1 and version in locations:
                with contextlib.suppress(StorageError):
                    self._storage.replace(locations[version], b"")

    def delete_all(self) -> None:
        """Delete the hint and every state, the highest last: until then the table is there."""
        names = self.file_names()
        self._storage.delete(f"{self._folder}/{VERSION_HINT}")
        states = [(int(parsed[1]), name) for name in names if (parsed := _NAME.fullmatch(name)) is not None]
        for _, name in sorted(states):
            self._storage.delete(f"{self._folder}/{name}")
        # Checksums that Hadoop's local file system keeps of its files.
        for name in names:
            if name.startswith(".v") and name.endswith(".crc"):
                with contextlib.suppress(StorageError):
                    self._storage.delete(f"{self._folder}/{name}")
