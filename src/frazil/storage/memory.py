"""A complete storage in this process's memory, for tests, experiments, and tables that need not last.

Locations of any scheme are literal keys. The caller may pass a clock, so that listings are reproducible.
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


class _MemoryFile(NamedTuple):
    data: bytes
    modified_ms: int


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryStorage(Storage):
    """Files in a dict; every call is atomic."""

    __slots__ = ("_files", "_folders", "_lock", "_now_ms")

    def __init__(self, *, now_ms: Callable[[], int] = _system_ms) -> None:
        self._files: dict[str, _MemoryFile] = {}
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self._now_ms = now_ms

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file; refuse one larger than `max_bytes`."""
        data = self._find(path).data
        if len(data) > max_bytes:
            raise too_large(path, len(data), max_bytes)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; fail if the file ends before."""
        check_range(path, offset, length)
        data = self._find(path).data
        if offset + length > len(data):
            raise too_short(path, len(data), offset, length)
        return data[offset : offset + length]

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return len(self._find(path).data)

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        with self._lock:
            return path in self._files

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; fail if the name is taken."""
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError."""
        with self._lock:
            if path in self._files:
                raise FileAlreadyExistsError(f"Cannot create {path}: it exists", path=path)
            self._files[path] = _MemoryFile(bytes(data), self._now_ms())

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one."""
        with self._lock:
            self._files[path] = _MemoryFile(bytes(data), self._now_ms())

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the present files below a folder, in the order of their names."""
        prefix = folder.rstrip("/") + "/"
        with self._lock:
            files = sorted((path, stored) for path, stored in self._files.items() if path.startswith(prefix))
        for path, stored in files:
            yield StoredFile(path, len(stored.data), stored.modified_ms)

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
        """Create an empty folder, or raise FileAlreadyExistsError."""
        folder = folder.rstrip("/")
        with self._lock:
            if folder in self._folders or folder in self._files or self._below(f"{folder}/"):
                raise FileAlreadyExistsError(f"Cannot create {folder}: it exists", path=folder)
            self._folders.add(folder)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; ignore a missing one."""
        folder = folder.rstrip("/")
        with self._lock:
            if self._below(f"{folder}/"):
                raise not_empty(folder)
            self._folders.discard(folder)

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; ignore a missing one."""
        with self._lock:
            self._files.pop(path, None)

    def _below(self, prefix: str) -> tuple[str, ...]:
        names = (*self._files, *self._folders)
        return tuple(path for path in names if path.startswith(prefix))

    def _find(self, path: str) -> _MemoryFile:
        with self._lock:
            stored = self._files.get(path)
        if stored is None:
            raise MissingFileError(f"Cannot read {path}: the file does not exist", path=path)
        return stored
