"""What a storage promises: whole files, read and written by location. Files of tables are read and written through it.

A file is created once and never changed. The promises every storage keeps, and
`tests/contract/test_storage_contract.py` checks:

- A name never shows part of a file: readers find all of it or nothing.
- When a write returns, the file survives a crash of this process and of the machine.
- `create_exclusive` succeeds for one caller at most, whoever races for the name. This is what commits rest on.
- A write that fails with `WriteOutcomeUnknownError` may have happened; with any other error it has not.
- Locations are taken literally: `%20` is three characters. `storage/locations.py` compares them.

Storages are safe to use from several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from frazil.errors import InvalidRequestError, StorageError
from frazil.storage.new_file import BufferedNewFile, NewFile

MAX_READ_BYTES = 1 << 31
"""The most that `read` returns unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it. The time is the storage's, in milliseconds from 1970."""

    path: str
    size: int
    modified_ms: int


class Children(NamedTuple):
    """The names directly inside a folder, each kind in order."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Storage(ABC):
    """A store of files."""

    __slots__ = ()

    @abstractmethod
    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file; refuse one that is larger than `max_bytes`."""

    @abstractmethod
    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; a file that ends before is an error."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether there is a file; an error where that cannot be told."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> None:
        """Write a new file under a name that no other writer uses; refuse a name that is seen to be taken."""

    def open_new(self, path: str) -> NewFile:
        """Begin a new file that is written piece by piece and has its name only once it is published, as by `create`.

        Storages that take whole files only keep it in memory until then.
        """
        return BufferedNewFile(path, self.create)

    @abstractmethod
    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Write a file over another of its name, if there is one; readers see either. The last writer wins."""

    @abstractmethod
    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no promised order; of a folder that is not there, none.

        Paths start with the folder as it was given. Files that come or go meanwhile may be missed or shown.
        """

    @abstractmethod
    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; of one that is not there, none.

        A folder is one that was created, or that has a file below it. All names that were there before the call
        and stay are shown.
        """

    @abstractmethod
    def create_folder(self, folder: str) -> None:
        """Make an empty folder, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""

    @abstractmethod
    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; one that is not there is no error, one that is not empty is."""

    @abstractmethod
    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; one that is not there is no error, so that a clean-up may be repeated.

        With `within`, which are folders without links in them, only if the file's folder is in one of them when it is
        opened: a folder that was swapped for a link after it was checked leads nowhere.
        """

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Delete files, all that can be; return why the others could not, by path."""
        failed: dict[str, StorageError] = {}
        for path in paths:
            try:
                self.delete(path, within=within)
            except StorageError as error:
                failed[path] = error
        return failed

    def resolve_folder(self, folder: str) -> str:
        """Return where a folder really is, its links followed; the same folder where there are no links."""
        return folder

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return where files really are, links followed, many at a time; the same paths where there are no links."""
        return paths


def check_range(path: str, offset: int, length: int) -> None:
    """Refuse a range that no file can have."""
    if offset < 0 or length < 0:
        raise InvalidRequestError(f"Cannot read {length} bytes from {offset} of {path}: neither number may be negative")


def not_empty(folder: str) -> StorageError:
    """Return the error for a folder that cannot be removed because something is in it."""
    return StorageError(f"Cannot remove the folder {folder}: it is not empty", path=folder)


def too_large(path: str, size: int, max_bytes: int) -> StorageError:
    """Return the error for a file that is larger than its reader allows."""
    return StorageError(f"Cannot read {path}: its {size} bytes are more than the {max_bytes} allowed", path=path)


def too_short(path: str, size: int, offset: int, length: int) -> StorageError:
    """Return the error for a file that ends before the range that was asked for."""
    return StorageError(
        f"Cannot read {length} bytes from {offset} of {path}: the file has {size} bytes",
        hint="The file was cut short, or what names it is wrong about its size.",
        path=path,
    )
