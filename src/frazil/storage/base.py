"""The storage interface: whole files, read and written by location. All files of tables go through it.

A file is created once and never changed. Every storage gives these guarantees, which
`tests/contract/test_storage_contract.py` checks:

- A name never shows part of a file: readers see all of it or nothing.
- When a write returns, the file survives a crash of the process and of the machine.
- `create_exclusive` succeeds for at most one of several concurrent callers. Commits rely on this.
- A write that fails with `WriteOutcomeUnknownError` may have happened; with any other error it has not.
- Locations are taken literally: `%20` is three characters. `storage/locations.py` compares them.

Storages are thread-safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from frazil.errors import InvalidRequestError, StorageError
from frazil.storage.new_file import BufferedNewFile, NewFile

MAX_READ_BYTES = 1 << 31
"""The default limit for `read`."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a listing. The time is the storage's, in milliseconds from 1970."""

    path: str
    size: int
    modified_ms: int


class Children(NamedTuple):
    """The names directly inside a folder, sorted."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Storage(ABC):
    """A store of files."""

    __slots__ = ()

    @abstractmethod
    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file; refuse one larger than `max_bytes`."""

    @abstractmethod
    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; fail if the file ends before."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether a file exists; fail if that cannot be determined."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> None:
        """Write a new file under a name that no other writer uses; fail if the name is found to be taken."""

    def open_new(self, path: str) -> NewFile:
        """Open a new file that is written in pieces and gets its name only when it is published, as by `create`.

        Storages that accept only whole files keep it in memory until then.
        """
        return BufferedNewFile(path, self.create)

    @abstractmethod
    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one atomically. The last writer wins."""

    @abstractmethod
    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no particular order; nothing if it does not exist.

        Paths start with the folder as passed. Files that appear or vanish during the call may be missed or listed.
        """

    @abstractmethod
    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; none if it does not exist.

        A folder exists if it was created or has a file below it. All names that exist throughout the call are
        listed.
        """

    @abstractmethod
    def create_folder(self, folder: str) -> None:
        """Create an empty folder, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""

    @abstractmethod
    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; ignore a missing one, refuse one that is not empty."""

    @abstractmethod
    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; ignore a missing one, so that a clean-up may be repeated.

        With `within`, folders with links resolved, only if the file's opened folder is inside one of them: a folder
        that was replaced by a link after it was checked is then refused.
        """

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Delete as many files as possible; return the errors of the others by path."""
        failed: dict[str, StorageError] = {}
        for path in paths:
            try:
                self.delete(path, within=within)
            except StorageError as error:
                failed[path] = error
        return failed

    def resolve_folder(self, folder: str) -> str:
        """Return a folder with links resolved; unchanged in a storage without links."""
        return folder

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return files with links resolved; unchanged in a storage without links."""
        return paths


def check_range(path: str, offset: int, length: int) -> None:
    """Refuse a range with negative numbers."""
    if offset < 0 or length < 0:
        raise InvalidRequestError(f"Cannot read {length} bytes from {offset} of {path}: neither number may be negative")


def not_empty(folder: str) -> StorageError:
    """Return the error for a folder that cannot be removed because it is not empty."""
    return StorageError(f"Cannot remove the folder {folder}: it is not empty", path=folder)


def too_large(path: str, size: int, max_bytes: int) -> StorageError:
    """Return the error for a file larger than the reader's limit."""
    return StorageError(f"Cannot read {path}: it has {size} bytes, more than the limit of {max_bytes}", path=path)


def too_short(path: str, size: int, offset: int, length: int) -> StorageError:
    """Return the error for a file that ends before the requested range."""
    return StorageError(
        f"Cannot read {length} bytes from {offset} of {path}: the file has {size} bytes",
        hint="The file was truncated, or its size is recorded wrongly.",
        path=path,
    )
