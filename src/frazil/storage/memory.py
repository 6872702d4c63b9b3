"""Files in this process's memory: a whole storage, for tests, for trying things, and for tables that need not last.

Locations are keys, taken as they are, of any scheme. The clock is the caller's, so listings are repeatable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from frazil.errors import FileAlreadyExistsError, MissingFileError
from frazil.storage.base import MAX_READ_BYTES, Storage, StoredFile, check_range, too_large, too_short


class _Kept(NamedTuple):
    data: bytes
    modified_ms: int


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryStorage(Storage):
    """Files in a dict; every call is atomic."""

    __slots__ = ("_files", "_lock", "_now_ms")

    def __init__(self, *, now_ms: Callable[[], int] = _system_ms) -> None:
        self._files: dict[str, _Kept] = {}
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

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        with self._lock:
            self._files.pop(path, None)

    def _find(self, path: str) -> _Kept:
        with self._lock:
            kept = self._files.get(path)
        if kept is None:
            raise MissingFileError(f"Cannot read {path}: there is no such file", path=path)
        return kept
