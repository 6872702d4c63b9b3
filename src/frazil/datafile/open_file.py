"""Files of any storage as handles that pyarrow reads from, a range at a time.

A reader of Parquet or ORC needs the footer and some columns, never the whole file. Local files are opened
directly; everything else goes through `Storage.read_range`. What a decoder refuses becomes `InvalidDataFileError` in
`reading`, unless the storage failed under it: then that is what is raised, whatever the decoder made of it.

A manifest's size of a file saves a request where the file does end there, and is passed over where it does not.
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
"""How many bytes at the end of a file tell its format."""

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
        self.failure: FrazilError | None = None
        """What the storage raised, if it did: decoders may keep no more of it than its text."""

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
                data = self._fetch(self._at, length)
                self._at += length
                return data
            # Footers are read from the end: what comes before is likely to be asked for next.
            self._ahead_at = max(0, min(self._at, self._size - _MIN_FETCH_BYTES))
            wanted = min(_MIN_FETCH_BYTES, self._size - self._ahead_at)
            self._ahead = self._fetch(self._ahead_at, wanted)
            start = self._at - self._ahead_at
        self._at += length
        return self._ahead[start : start + length]

    def _fetch(self, offset: int, length: int) -> bytes:
        try:
            return self._storage.read_range(self._path, offset, length)
        except FrazilError as error:
            self.failure = error
            raise


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that pyarrow reads from; `source` is what it reads through where that is not the file itself."""

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
    """Open a file for pyarrow. `size` saves asking the storage, where a listing told it.

    `recorded_size` is what a manifest says, which may be wrong: it counts where `is_end` finds a file's end there.
    """
    storage = storage_of(storage, path)
    # A file of certain folders alone is read through the storage, which checks what it opened.
    if isinstance(storage, LocalStorage) and not storage.is_bounded:
        # Asks for the size because that refuses what is not a regular file, which could block for ever.
        storage.size(path)
        return OpenFile(path, pa.OSFile(local_path(path), "rb"))
    source = None if recorded_size is None or is_end is None else _source_by(storage, path, recorded_size, is_end)
    if source is None:
        source = StorageFile(storage, path, storage.size(path) if size is None else size)
    return OpenFile(path, pa.PythonFile(source, mode="r"), source)


def _source_by(storage: Storage, path: str, size: int, is_end: Callable[[bytes], bool]) -> StorageFile | None:
    """Return a file of a recorded size, None where it does not end there; what is read of it is kept."""
    if size < END_BYTES:
        return None
    source = StorageFile(storage, path, size)
    source.seek(size - END_BYTES)
    try:
        end = source.read(END_BYTES)
    except StorageError:
        if storage.size(path) == size:
            raise
        return None  # it is not as long
    source.seek(0)
    return source if is_end(end) else None


def is_local(storage: Storage, path: str) -> bool:
    """Return whether reads of a file cost nothing to start, so that none need be joined."""
    return isinstance(storage_of(storage, path), LocalStorage)


@contextmanager
def reading(what: str, path: str, heading: str, file: OpenFile | None = None) -> Iterator[None]:
    """Turn whatever a decoder raises on bad bytes into `InvalidDataFileError` with the path."""
    try:
        yield
    except CorruptTableError as error:
        raise error.at_path(path) from error.__cause__
    except FrazilError:
        raise
    except (pa.ArrowException, ValueError, OverflowError, UnicodeError, KeyError, IndexError, OSError) as error:
        if file is not None and file.source is not None and file.source.failure is not None:
            raise file.source.failure from error
        # Decoders report broken files as errors of input and output too, but without a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise StorageError(f"Cannot read {path}: {error.strerror or error}", path=path) from error
        raise _invalid(what, path, heading, error) from error


def _invalid(what: str, path: str, heading: str, error: BaseException) -> InvalidDataFileError:
    lines = str(error).strip().splitlines()
    reason = lines[0][:300] if lines else type(error).__name__
    return InvalidDataFileError(f"Cannot read {what}: {reason}", path=path, heading=heading)
