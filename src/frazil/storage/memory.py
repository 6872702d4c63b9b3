"""Files in this process's memory: a whole storage, for tests, for trying things, and for tables that need not last.

Locations are keys, taken as they are, of any scheme. The clock is the caller's, so listings are repeatable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from frazil.errors import FileAlreadyExistsError, MissingFileError
from frazil.storage.base import (
    MAX_READ_BYTES,
    Children,
    Storage,
    StoredFile,
    check_range,
    not_empty,
    too_large,
    too_short,
)


class _Kept(NamedTuple):
    data: bytes
    modified_ms: int


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryStorage(Storage):
    """Files in a dict; every call is atomic."""

    __slots__ = ("_files", "_folders", "_lock", "_now_ms")

    def __init__(self, *, now_ms: Callable[[], int] = _system_ms) -> None:
        self._files: dict[str, _Kept] = {}
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self._now_ms = now_ms

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file; refuse one that is larger than `max_bytes`."""
        data = self._find(path).data
        if len(data) > max_bytes:
            raise too_large(path, len(data), max_bytes)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; a file that ends before is an error."""
        check_range(path, offset, length)
        data = self._find(path).data
        if offset + length > len(data):
            raise too_short(path, len(data), offset, length)
        return data[offset : offset + length]

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return len(self._find(path).data)

    def exists(self, path: str) -> bool:
        """Return whether there is a file."""
        with self._lock:
            return path in self._files

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; refuse a name that is taken."""
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError."""
        with self._lock:
            if path in self._files:
                raise FileAlreadyExistsError(f"Cannot create {path}: it exists", path=path)
            self._files[path] = _Kept(bytes(data), self._now_ms())

    def replace(self, path: str, data: bytes) -> None:
        """Write a file over another of its name, if there is one."""
        with self._lock:
            self._files[path] = _Kept(bytes(data), self._now_ms())

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder as they are now, in the order of their names."""
        prefix = folder.rstrip("/") + "/"
        with self._lock:
            found = sorted((path, kept) for path, kept in self._files.items() if path.startswith(prefix))
        for path, kept in found:
            yield StoredFile(path, len(kept.data), kept.modified_ms)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder."""
        prefix = folder.rstrip("/") + "/"
        files: set[str] = set()
        folders: set[str] = set()
        with self._lock:
            for path in self._below(prefix):
                name, slash, _ = path[len(prefix) :].partition("/")
                (folders if slash or path in self._folders else files).add(name)
        return Children(tuple(sorted(files)), tuple(sorted(folders)))

    def create_folder(self, folder: str) -> None:
        """Make an empty folder, or raise FileAlreadyExistsError."""
        folder = folder.rstrip("/")
        with self._lock:
            if folder in self._folders or folder in self._files or self._below(f"{folder}/"):
                raise FileAlreadyExistsError(f"Cannot create {folder}: it exists", path=folder)
            self._folders.add(folder)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; one that is not there is no error."""
        folder = folder.rstrip("/")
        with self._lock:
            if self._below(f"{folder}/"):
                raise not_empty(folder)
            self._folders.discard(folder)

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; one that is not there is no error."""
        with self._lock:
            self._files.pop(path, None)

    def _below(self, prefix: str) -> tuple[str, ...]:
        known = (*self._files, *self._folders)
        return tuple(path for path in known if path.startswith(prefix))

    def _find(self, path: str) -> _Kept:
        with self._lock:
            kept = self._files.get(path)
        if kept is None:
            raise MissingFileError(f"Cannot read {path}: there is no such file", path=path)
        return kept
