"""Files of any storage as handles that pyarrow reads from, a range at a time.

A reader of Parquet or ORC needs the footer and some columns, never the whole file. Local files are opened
directly; everything else goes through `Storage.read_range`. Errors of the storage pass through pyarrow as they
are; what pyarrow itself refuses becomes `InvalidDataFileError` in `reading`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from frazil.errors import CorruptTableError, FrazilError, InvalidDataFileError, StorageError
from frazil.storage.base import Storage
from frazil.storage.local import LocalStorage, local_path

_MIN_FETCH_BYTES = 64 * 1024


class StorageFile(io.RawIOBase):
    """A file of a storage with a position, read by ranges; small reads fetch a little ahead."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._path = path
        self._size = size
        self._at = 0
        self._ahead = b""
        self._ahead_at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def size(self) -> int:
        """Return the size of the file."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, fewer only at the end of the file."""
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        start = self._at - self._ahead_at
        if not 0 <= start <= start + length <= len(self._ahead):
            if length > _MIN_FETCH_BYTES:
                data = self._storage.read_range(self._path, self._at, length)
                self._at += length
                return data
            # Footers are read from the end: what comes before is likely to be asked for next.
            self._ahead_at = max(0, min(self._at, self._size - _MIN_FETCH_BYTES))
            wanted = min(_MIN_FETCH_BYTES, self._size - self._ahead_at)
            self._ahead = self._storage.read_range(self._path, self._ahead_at, wanted)
            start = self._at - self._ahead_at
        self._at += length
        return self._ahead[start : start + length]


def open_file(storage: Storage, path: str, *, size: int | None = None) -> pa.NativeFile:
    """Open a file for pyarrow. `size` saves asking the storage, where the manifest knows it."""
    if isinstance(storage, LocalStorage):
        # Asks for the size because that refuses what is not a regular file, which could block for ever.
        storage.size(path)
        return pa.OSFile(local_path(path), "rb")
    known = storage.size(path) if size is None or size < 0 else size
    return pa.PythonFile(StorageFile(storage, path, known), mode="r")


def is_local(storage: Storage) -> bool:
    """Return whether reads cost nothing to start, so that none need be joined."""
    return isinstance(storage, LocalStorage)


@contextmanager
def reading(what: str, path: str, heading: str) -> Iterator[None]:
    """Turn whatever a decoder raises on bad bytes into `InvalidDataFileError` with the path."""
    try:
        yield
    except CorruptTableError as error:
        raise error.at_path(path) from error.__cause__
    except FrazilError:
        raise
    except (pa.ArrowException, ValueError, OverflowError, UnicodeError, KeyError, IndexError) as error:
        raise _invalid(what, path, heading, error) from error
    except OSError as error:
        # The decoders of ORC and Parquet report broken files as errors of input and output, without a number.
        if error.errno is not None:
            raise StorageError(f"Cannot read {path}: {error.strerror or error}", path=path) from error
        raise _invalid(what, path, heading, error) from error


def _invalid(what: str, path: str, heading: str, error: BaseException) -> InvalidDataFileError:
    lines = str(error).strip().splitlines()
    reason = lines[0][:300] if lines else type(error).__name__
    return InvalidDataFileError(f"Cannot read {what}: {reason}", path=path, heading=heading)
