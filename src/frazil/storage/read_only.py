"""Read-only storage, for lakes opened with `trust="none"`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

from frazil.errors import InvalidRequestError, StorageError
from frazil.storage.base import Storage
from frazil.storage.choose import SchemeStorage
from frazil.storage.new_file import NewFile

TRUST_HINT: Final = 'Open the lake without trust="none", once you know who wrote its content.'


def untrusted(what: str) -> InvalidRequestError:
    """Return the error for an action that an untrusted lake does not allow; `what` follows `Cannot`."""
    return InvalidRequestError(f'Cannot {what}: the lake was opened with trust="none"', hint=TRUST_HINT)


def check_writable(storage: Storage, location: str) -> None:
    """Refuse a location for Spark to write to that this storage would not write to."""
    if isinstance(storage, ReadOnlyStorage):
        raise untrusted(f"write below {location}")


class ReadOnlyStorage(SchemeStorage):
    """Several storages as one, without writes."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        make, values = super().__reduce__()
        return _rebuild, (make, values)

    def create(self, path: str, data: bytes) -> NoReturn:
        """Refuse to write a file."""
        raise untrusted(f"write {path}")

    def open_new(self, path: str) -> NewFile:
        """Refuse to write a file."""
        raise untrusted(f"write {path}")

    def create_exclusive(self, path: str, data: bytes) -> NoReturn:
        """Refuse to write a file."""
        raise untrusted(f"write {path}")

    def replace(self, path: str, data: bytes) -> NoReturn:
        """Refuse to write a file."""
        raise untrusted(f"write {path}")

    def create_folder(self, folder: str) -> NoReturn:
        """Refuse to create a folder."""
        raise untrusted(f"create the folder {folder}")

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> NoReturn:
        """Refuse to remove a folder."""
        raise untrusted(f"remove the folder {folder}")

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> NoReturn:
        """Refuse to delete a file."""
        raise untrusted(f"delete {path}")

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Refuse to delete files, if there are any."""
        for path in paths:
            raise untrusted(f"delete {path}")
        return {}


def read_only(storage: SchemeStorage) -> ReadOnlyStorage:
    """Return a read-only view of a storage."""
    # The object shares the layout and state of the original, with other methods.
    storage.__class__ = ReadOnlyStorage
    assert isinstance(storage, ReadOnlyStorage)
    return storage


def _rebuild(make: Callable[..., SchemeStorage], values: tuple[Any, ...]) -> ReadOnlyStorage:
    return read_only(make(*values))
