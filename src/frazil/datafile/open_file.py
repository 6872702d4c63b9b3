"""Files of any storage as handles that pyarrow reads in ranges.

A reader of Parquet or ORC needs the footer and some columns, never the whole file. Local files are opened directly; all
others are read through `Storage.read_range`. Errors of a decoder become `InvalidDataFileError` in `reading`, unless the
storage failed first: then its error is raised, however the decoder reported it.

The size in a manifest saves a request if the file ends there, and is ignored if it does not.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import CorruptTableError, FrazilError, InvalidDataFileError, StorageError
from frazil.storage.base import Storage
from frazil.storage.choose import storage_of
from frazil.storage.local import LocalStorage, local_path

END_BYTES = 4
"""The number of bytes at the end of a file that identify its format."""

_MIN_FETCH_BYTES = 64 * 1024


class StorageFile(io.RawIOBase):
    """A file of a storage as a seekable stream, read in ranges, with a small read-ahead."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._path = path
        self._size = size
        self._position = 0
        self._ahead = b""
        self._ahead_start = 0
        self.failure: FrazilError | None = None
        """The storage's error, if any, since decoders may keep only its text."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def size(self) -> int:
        """Return the size of the file."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; fewer only at the end of the file."""
        remaining = max(0, self._size - self._position)
        length = remaining if size is None or size < 0 else min(size, remaining)
        if length == 0:
            return b""
        start = self._position - self._ahead_start
        if not 0 <= start <= start + length <= len(self._ahead):
            if length > _MIN_FETCH_BYTES:
                data = self._fetch(self._position, length)
                self._position += length
                return data
            # Footers are read from the end, so the bytes before are likely to be read next.
            self._ahead_start = max(0, min(self._position, self._size - _MIN_FETCH_BYTES))
            fetch_bytes = min(_MIN_FETCH_BYTES, self._size - self._ahead_start)
            self._ahead = self._fetch(self._ahead_start, fetch_bytes)
            start = self._position - self._ahead_start
        self._position += length
        return self._ahead[start : start + length]

    def _fetch(self, offset: int, length: int) -> bytes:
        try:
            return self._storage.read_range(self._path, offset, length)
        except FrazilError as error:
            self.failure = error
            raise


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file for pyarrow; `source` is the stream that it reads through, unless it reads the file directly."""

    path: str
    handle: pa.NativeFile
    source: StorageFile | None = None

    def close(self) -> None:
        """Close the file."""
        self.handle.close()


def open_file(
    storage: Storage,
    path: str,
    *,
    size: int | None = None,
    recorded_size: int | None = None,
    is_end: Callable[[bytes], bool] | None = None,
) -> OpenFile:
    """Open a file for pyarrow. `size`, if known from a listing, saves a request to the storage.

    `recorded_size` is the size in a manifest, which may be wrong: it is used only if `is_end` recognises a file's end.
    """
    storage = storage_of(storage, path)
    # A bounded storage is read through its interface, which checks what it opened.
    if isinstance(storage, LocalStorage) and not storage.is_bounded:
        # Requesting the size refuses anything but regular files, which could block for ever.
        storage.size(path)
        return OpenFile(path, pa.OSFile(local_path(path), "rb"))
    source = (
        None if recorded_size is None or is_end is None else _source_with_size(storage, path, recorded_size, is_end)
    )
    if source is None:
        source = StorageFile(storage, path, storage.size(path) if size is None else size)
    return OpenFile(path, pa.PythonFile(source, mode="r"), source)


def _source_with_size(storage: Storage, path: str, size: int, is_end: Callable[[bytes], bool]) -> StorageFile | None:
    """Return a file of a recorded size, or None if it does not end there; bytes already read are kept."""
    if size < END_BYTES:
        return None
    source = StorageFile(storage, path, size)
    source.seek(size - END_BYTES)
    try:
        end = source.read(END_BYTES)
    except StorageError:
        if storage.size(path) == size:
            raise
        return None  # the file is shorter
    source.seek(0)
    return source if is_end(end) else None


def is_local(storage: Storage, path: str) -> bool:
    """Return whether starting a read is free, so that ranges need not be merged."""
    return isinstance(storage_of(storage, path), LocalStorage)


@contextmanager
def reading(what: str, path: str, heading: str, file: OpenFile | None = None) -> Iterator[None]:
    """Convert a decoder's errors on bad bytes to `InvalidDataFileError` with the path."""
    try:
        yield
    except CorruptTableError as error:
        raise error.at_path(path) from error.__cause__
    except FrazilError:
        raise
    except (pa.ArrowException, ValueError, OverflowError, UnicodeError, KeyError, IndexError, OSError) as error:
        if file is not None and file.source is not None and file.source.failure is not None:
            raise file.source.failure from error
        # Decoders report corrupt files as OSError too, but without an errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise StorageError(f"Cannot read {path}: {error.strerror or error}", path=path) from error
        raise _invalid(what, path, heading, error) from error


def _invalid(what: str, path: str, heading: str, error: BaseException) -> InvalidDataFileError:
    lines = str(error).strip().splitlines()
    reason = lines[0][:300] if lines else type(error).__name__
    return InvalidDataFileError(f"Cannot read {what}: {reason}", path=path, heading=heading)
